"""How families are made: every name begins alike, and every series says of which target it is."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Numbers = Mapping[str, float | int | bool | None]
"""A value for each component; ``None`` where it does not say."""
Filled = TypeVar("Filled", GaugeMetricFamily, CounterMetricFamily)


def gauge(name: str, text: str, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    """An empty family of gauges."""
    return GaugeMetricFamily(f"lumctl_{name}", text, labels=["target", *labels])


def counter(name: str, text: str, labels: Iterable[str] = ()) -> CounterMetricFamily:
    """An empty family of counters; ``_total`` is put behind its name."""
    return CounterMetricFamily(f"lumctl_{name}", text, labels=["target", *labels])


def filled(family: Filled, target: str, numbers: Numbers, factor: float = 1) -> Filled:
    """A family with a series for each component that has a value."""
    for name, value in numbers.items():
        if value is not None:
            family.add_metric([target, name], value * factor)
    return family
