"""``nvidia-smi nvlink``: state (``-s``), error counters (``-e``) and traffic (``-gt d``) of each NVLink of each GPU.

The fifth generation of NVLink has different counters and also prints bit error rates. Every ``Link N: NAME: NUMBER`` is
kept by its name in lower case. nvidia-smi counts traffic and prints no rates, so a rate is a mean over the time between
two answers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.fleet.parsers.fields import leading_float, lines_of, whole_count
from lumctl.fleet.readings import ALL_NVLINKS, GpuReading, NvlinkReading

_GPU = re.compile(r"\s*GPU ([0-9]{1,4}): (.*?)\s*(?:\(UUID: ([^)\s]+)\))?\s*$")
_LINK = re.compile(r"\s*Link ([0-9]{1,4}): (.+)$")
_COUNTER = re.compile(r"(.{1,60}?)\s*: (.{1,40})$")
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})? GB/s")
_INACTIVE = "<inactive>"
_NONE_ACTIVE = re.compile(r"\s*NVML: Unable to retrieve NVLink information as all links are inActive", re.IGNORECASE)
_RATE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?(?:[eE][-+]?[0-9]{1,4})?")
_NO_NUMBER = frozenset({"n/a", "not supported", "<not supported>"})

Place = tuple[int, str | None, int]
"""Identifies a link: the GPU's place in the list, its UUID, and the link's number."""


@dataclass(frozen=True, slots=True)
class NvlinkState:
    """Whether a link is active (``None`` if the line cannot be read), and its speed in GB/s if it is active."""

    active: bool | None
    speed_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class NvlinkErrors:
    """The counters of a link, and its bit error rates, by name in lower case."""

    counters: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)

    def told(self, link: NvlinkReading, errors_at: float) -> NvlinkReading:
        """The reading of a link with these errors added."""
        return replace(
            link,
            errors_at=errors_at,
            replay_errors=self.counters.get("replay errors"),
            # In the fifth generation only failed recoveries count: they bring the link down. Others are no errors.
            recovery_errors=self.counters.get("recovery errors", self.counters.get("link recovery failed events")),
            crc_errors=self.counters.get("crc errors"),
            effective_ber=self.rates.get("effective ber"),
            errors=self.counters,
        )


@dataclass(frozen=True, slots=True)
class NvlinkAnswer:
    """How many GPUs an answer names, and the first line about a link that could not be read."""

    gpus: int
    unread: str | None


def parse_nvlink_states(text: str) -> tuple[NvlinkAnswer, dict[Place, NvlinkState]]:
    """Read ``nvidia-smi nvlink -s``."""
    gpus, lines = _lines(text, states=True)
    states = {place: _state(said) for place, said in lines}
    unread = next((said for place, said in lines if states[place].active is None), None)
    return NvlinkAnswer(gpus, unread), states


def _state(said: str) -> NvlinkState:
    if _SPEED.fullmatch(said):
        return NvlinkState(active=True, speed_gb_s=leading_float(said))
    return NvlinkState(active=False if said.lower() == _INACTIVE else None)


def parse_nvlink_errors(text: str) -> tuple[NvlinkAnswer, dict[Place, NvlinkErrors]]:
    """Read ``nvidia-smi nvlink -e``."""
    gpus, lines = _lines(text)
    unread: str | None = None
    counters: dict[Place, dict[str, int]] = {}
    rates: dict[Place, dict[str, float]] = {}
    for place, said in lines:
        counters.setdefault(place, {})
        rates.setdefault(place, {})
        found = _COUNTER.fullmatch(said)
        name, value = (" ".join(found[1].lower().split()), found[2].strip()) if found else ("", "")
        count = whole_count(value)
        if name.endswith(" ber") and _RATE.fullmatch(value):
            rates[place].setdefault(name, float(value))
        elif count is not None and name:
            counters[place].setdefault(name, count)
        elif value.lower() not in _NO_NUMBER:
            unread = unread or said
    return NvlinkAnswer(gpus, unread), {at: NvlinkErrors(counters[at], rates[at]) for at in counters}


_TRAFFIC = re.compile(r"Data (Tx|Rx): ([0-9]{1,20}) KiB")


def parse_nvlink_traffic(text: str) -> tuple[NvlinkAnswer, dict[Place, tuple[int, int]]]:
    """Read ``nvidia-smi nvlink -gt d``: the KiB that each link sent and received, without protocol overhead."""
    gpus, lines = _lines(text)
    unread: str | None = None
    counts: dict[Place, dict[str, int]] = {}
    for place, said in lines:
        if found := _TRAFFIC.fullmatch(said):
            counts.setdefault(place, {}).setdefault(found[1], int(found[2]))
        elif said.partition(": ")[2].lower() not in _NO_NUMBER:
            unread = unread or said
    both = {place: (kib["Tx"], kib["Rx"]) for place, kib in counts.items() if len(kib) == 2}  # noqa: PLR2004
    return NvlinkAnswer(gpus, unread), both


def _lines(text: str, *, states: bool = False) -> tuple[int, list[tuple[Place, str]]]:
    """How many GPUs there are, and the text about each link; with ``states``, also lines about all links at once."""
    gpus = 0
    found: list[tuple[Place, str]] = []
    gpu: tuple[int, str | None] | None = None
    for line in lines_of(text):
        if heading := _GPU.match(line):
            gpu, gpus = (int(heading[1]), heading[3]), gpus + 1
        elif gpu is not None and (link := _LINK.match(line)):
            found.append(((*gpu, int(link[1])), link[2].strip()))
        elif gpu is not None and states and _NONE_ACTIVE.match(line):
            found.append(((*gpu, ALL_NVLINKS), _INACTIVE))
    return gpus, found


GpuPlace = tuple[int, str | None]
"""A GPU's place in nvidia-smi's list, and its UUID where that is printed."""
_KB = 1.024
"""KB per KiB."""


@dataclass(frozen=True, slots=True)
class NvlinkRates:
    """Traffic of all NVLinks of a GPU together: means over the ``over_s`` seconds that end at ``at``."""

    at: float
    over_s: float
    tx_kb_s: float
    rx_kb_s: float


@dataclass(frozen=True, slots=True)
class NvlinkTraffic:
    """The counts of one answer (KiB sent and received, by link), and the rates since the previous answer."""

    at: float | None = None
    counts: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    rates: Mapping[GpuPlace, NvlinkRates] = field(default_factory=dict)

    def followed_by(self, counts: Mapping[Place, tuple[int, int]], at: float) -> "NvlinkTraffic":
        """The traffic after the next answer. A GPU has no rate if a count of one of its links is new or was reset."""
        # The first answer, or a clock that was set back: no time to divide by.
        if self.at is None or at <= self.at:
            return NvlinkTraffic(at, counts)
        over_s = at - self.at
        moved: dict[GpuPlace, list[tuple[int, int]]] = {}
        unknown: set[GpuPlace] = set()
        for place, (tx, rx) in counts.items():
            before = self.counts.get(place)
            if before is None or tx < before[0] or rx < before[1]:
                unknown.add(place[:2])
            else:
                moved.setdefault(place[:2], []).append((tx - before[0], rx - before[1]))
        rates = {
            gpu: NvlinkRates(at, over_s, *(_KB * sum(kib) / over_s for kib in zip(*links, strict=True)))
            for gpu, links in moved.items()
            if gpu not in unknown
        }
        return NvlinkTraffic(at, counts, rates)


def with_nvlink_rates(gpus: Iterable[GpuReading], traffic: NvlinkTraffic, now: float) -> tuple[GpuReading, ...]:
    """GPUs with the rates of their NVLinks: by UUID, or by place if both lists are equally long.

    A rate becomes unknown when it is older than twice the time that it covers.
    """
    gpus = tuple(gpus)
    listed = {place[:2] for place in traffic.counts}
    by_place = {index: rates for (index, _), rates in traffic.rates.items()} if len(listed) == len(gpus) else {}
    by_uuid = {uuid: rates for (_, uuid), rates in traffic.rates.items() if uuid}
    found = []
    for place, gpu in enumerate(gpus):
        rates = by_uuid.get(gpu.uuid) if gpu.uuid and by_uuid else by_place.get(place)
        if rates is not None and now - rates.at > 2 * rates.over_s:
            rates = None
        found.append(
            replace(
                gpu,
                nvlink_tx_kb_s=rates.tx_kb_s if rates else None,
                nvlink_rx_kb_s=rates.rx_kb_s if rates else None,
                nvlink_rates_at=rates.at if rates else None,
                nvlink_rates_over_s=rates.over_s if rates else None,
            )
        )
    return tuple(found)
