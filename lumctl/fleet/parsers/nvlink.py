"""``nvidia-smi nvlink``: the state (``-s``) and the error counters (``-e``) of each NVLink of each GPU.

Counters were renamed with the fifth generation, which has other counters and states bit error rates. Every ``Link N:
NAME: NUMBER`` is kept by its name in lower case.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lumctl.fleet.parsers.fields import leading_float, lines_of, whole_count
from lumctl.fleet.readings import ALL_NVLINKS, NvlinkReading

_GPU = re.compile(r"\s*GPU ([0-9]{1,4}): (.*?)\s*(?:\(UUID: ([^)\s]+)\))?\s*$")
_LINK = re.compile(r"\s*Link ([0-9]{1,4}): (.+)$")
_COUNTER = re.compile(r"(.{1,60}?)\s*: (.{1,40})$")
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})? GB/s")
_INACTIVE = "<inactive>"
_NONE_ACTIVE = re.compile(r"\s*NVML: Unable to retrieve NVLink information as all links are inActive", re.IGNORECASE)
_RATE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?(?:[eE][-+]?[0-9]{1,4})?")
_NO_NUMBER = frozenset({"n/a", "not supported", "<not supported>"})

Place = tuple[int, str | None, int]
"""Whose: the GPU's place in the list, its UUID, and the link's number."""


@dataclass(frozen=True, slots=True)
class NvlinkState:
    """Whether a link is active, and its speed in GB/s; ``None`` if the line has neither."""

    active: bool | None
    speed_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class NvlinkErrors:
    """The counters of a link, and its bit error rates, by name in lower case."""

    counters: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)

    def told(self, link: NvlinkReading, errors_at: float) -> NvlinkReading:
        """A link with these errors."""
        return replace(
            link,
            errors_at=errors_at,
            replay_errors=self.counters.get("replay errors"),
            # What the fifth generation cannot recover brings the link down; what it can is no error.
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


def _lines(text: str, *, states: bool = False) -> tuple[int, list[tuple[Place, str]]]:
    """How many GPUs there are, and the data of each link; of ``states``, also lines about all links at once."""
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
