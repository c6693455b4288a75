"""NVLinks, summed over each accelerator: eighteen links with three counters each would be too many series."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import counter, filled, gauge
from lumctl.daemon.families.readable import Readable
from lumctl.fleet.readings import ALL_NVLINKS, NVLINK_TOTAL, NvlinkReading

_ERRORS = (("replay", "replay_errors"), ("recovery", "recovery_errors"), ("crc", "crc_errors"))


def nvlinks(readable: Readable) -> Iterator[Metric]:
    """How many links work, what they counted, and the worst error rate that one states."""
    beyond_s = readable.look.inventory.probes["nvlink"].every_s
    count = gauge("accelerator_nvlinks", "NVLinks of an accelerator, by whether they are active.", ["id", "active"])
    errors = counter("accelerator_nvlink_errors", "Errors of an accelerator's NVLinks, by kind.", ["id", "kind"])
    rates: dict[str, float] = {}
    for name, known in readable.nvlinks.items():
        # Where none is active, nvidia-smi does not say how many there are.
        links = tuple(link for link in known if link.link != ALL_NVLINKS)
        single = [link for link in links if link.link != NVLINK_TOTAL]
        stated = [link for link in single if readable.is_new(link.taken_at, beyond_s=beyond_s)]
        for active in (True, False):
            if stated:
                found = sum(link.active is active for link in stated)
                count.add_metric([readable.target, name, str(active).lower()], found)
        counted = [link for link in links if _is_counted(readable, link, beyond_s)]
        # A sum over fewer links than before would look like counters that began again.
        if links and len(counted) == len(links):
            for kind, total in _sums(counted):
                errors.add_metric([readable.target, name, kind], total)
        stated_rates = [link.effective_ber for link in counted if link.effective_ber is not None]
        if stated_rates:
            rates[name] = max(stated_rates)
    yield count
    yield errors
    text = "Effective bit error rate of an accelerator's worst NVLink."
    yield filled(gauge("accelerator_nvlink_bit_error_ratio", text, ["id"]), readable.target, rates)


def _is_counted(readable: Readable, link: NvlinkReading, beyond_s: float) -> bool:
    return link.errors_at is not None and readable.is_new(link.errors_at, beyond_s=beyond_s)


def _sums(links: list[NvlinkReading]) -> Iterator[tuple[str, int]]:
    for kind, field in _ERRORS:
        counts = [getattr(link, field) for link in links]
        if counts and None not in counts:
            yield kind, sum(counts)
