"""The metrics of one look as a file for the textfile collector of node_exporter."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lumctl.daemon.families import families
from lumctl.site.observation import Observation


def metrics_text(look: Observation) -> str:
    """All that a look says, in the text format.

    Times are written as time stamps, not as ages: a file that is no longer renewed must be seen to grow old.
    """
    registry = CollectorRegistry()
    registry.register(_OneLook(look))
    return generate_latest(registry).decode()


class _OneLook(Collector):
    def __init__(self, look: Observation) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        yield from families(self._look, now=self._look.at, ages=False)
        made_at = GaugeMetricFamily("lumctl_check_timestamp_seconds", "When this was looked at.", labels=["target"])
        made_at.add_metric([self._look.target], self._look.at)
        yield made_at
        took = GaugeMetricFamily("lumctl_check_collection_seconds", "How long the collection took.", labels=["target"])
        took.add_metric([self._look.target], self._look.snapshot.seconds)
        yield took
