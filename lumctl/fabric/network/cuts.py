"""Why circuits cannot all be: more of them must cross between two parts of a network than its fibres have room for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from lumctl.fabric.network.model import Ends, Network

_EVERY_CUT = 10
"""Up to so many devices every way to part them is tried."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Devices that ``crossing`` circuits must leave or enter, with ``room`` for fewer in the fibres out of them."""

    devices: tuple[str, ...]
    crossing: tuple[Ends, ...]
    room: int


def full_cut(network: Network, demands: Sequence[Ends], rooms: Mapping[str, int]) -> Cut | None:
    """A part of the network that not all demands can leave; ``None`` if none was found, which proves nothing.

    ``rooms`` is how many more circuits each fibre or bundle can carry, by name. In a network of few devices every cut
    is looked at. In a larger one parts are grown from each device, always by the one that makes the cut worse: that
    finds the full fibres of stars, chains and trees.
    """
    weight: Counter[frozenset[str]] = Counter(frozenset((a.device, b.device)) for a, b in demands)
    for fibre in network.fibres:
        weight[frozenset(fibre.devices)] -= rooms[fibre.name]
    weight = Counter({pair: excess for pair, excess in weight.items() if len(pair) > 1})
    devices = list(network.devices)
    parts = _all_parts(devices) if len(devices) <= _EVERY_CUT else _grown_parts(devices, weight)
    worst = max(parts, key=lambda part: _excess(weight, part))
    if _excess(weight, worst) <= 0:
        return None
    crossing = tuple(ends for ends in demands if (ends[0].device in worst) != (ends[1].device in worst))
    room = len(crossing) - _excess(weight, worst)
    return Cut(tuple(name for name in devices if name in worst), crossing, room)


def _excess(weight: Mapping[frozenset[str], int], part: frozenset[str]) -> int:
    """How many circuits too many cross between a part and the rest."""
    return sum(excess for pair, excess in weight.items() if len(pair & part) == 1)


def _all_parts(devices: Sequence[str]) -> Iterator[frozenset[str]]:
    """Every part, the smaller ones first; the last device is always in the rest, for a cut has two sides."""
    for size in range(len(devices)):
        yield from (frozenset(part) for part in combinations(devices[:-1], size))


def _grown_parts(devices: Sequence[str], weight: Mapping[frozenset[str], int]) -> Iterator[frozenset[str]]:
    around: dict[str, dict[str, int]] = {name: {} for name in devices}
    for pair, excess in weight.items():
        a, b = pair
        around[a][b] = around[b][a] = excess
    for start in devices:
        gain = {name: sum(near.values()) for name, near in around.items()}
        part: set[str] = set()
        grown: str | None = start
        while grown is not None:
            del gain[grown]
            part.add(grown)
            yield frozenset(part)
            for name, excess in around[grown].items():
                if name in gain:
                    gain[name] -= 2 * excess
            grown = max(gain, key=gain.__getitem__, default=None)
