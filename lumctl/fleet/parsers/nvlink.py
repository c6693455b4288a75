"""``nvidia-smi nvlink -s``: the speed of each NVLink of each GPU."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lumctl.fleet.parsers.numbers import leading_float

_GPU = re.compile(r"\s*GPU ([0-9]{1,4}): (.*?)\s*(?:\(UUID: ([^)\s]+)\))?\s*$")
_LINK = re.compile(r"\s*Link ([0-9]{1,4}): (.+)$")


@dataclass(frozen=True, slots=True)
class NvlinkReading:
    """The links of one GPU, in GB/s by link number; ``None`` for a link that is not active."""

    index: int
    product: str
    uuid: str | None
    links: Mapping[int, float | None] = field(default_factory=dict)


def parse_nvlink(text: str) -> tuple[NvlinkReading, ...]:
    """Read every GPU that the text names."""
    readings: list[NvlinkReading] = []
    links: dict[int, float | None] = {}
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            links = {}
            readings.append(NvlinkReading(int(gpu[1]), gpu[2], gpu[3], links))
        elif readings and (link := _LINK.match(line)):
            links[int(link[1])] = leading_float(link[2])
    return tuple(readings)
