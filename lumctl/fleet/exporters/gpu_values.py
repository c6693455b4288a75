"""The values of each GPU of a page, by the GPU's PCI address or UUID.

An exporter prints a partitioned GPU several times. Then the greatest value counts: it is the worst for every quantity
that indicates a fault.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lumctl.fleet.exporters.text_format import Sample, count_of
from lumctl.fleet.parsers.fields import whole_pci
from lumctl.fleet.readings import GpuReading

# By the fields' types, which are texts and equal to none of these if readings.py ever postpones its annotations.
_COUNTS = frozenset(each.name for each in fields(GpuReading) if each.type == int | None)
_SWITCHES = frozenset(each.name for each in fields(GpuReading) if each.type == bool | None)


@dataclass
class GpuValues:
    """One GPU of a page. ``at`` is the oldest time that its samples state; ``None`` if none states a time."""

    key: str
    uuid: str | None
    product: str | None
    at: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    partitioned: bool = False

    def add(self, sample: Sample, name: str) -> None:
        """Store a value; if a name has several, keep the greatest."""
        self.values[name] = max(sample.value, self.values.get(name, sample.value))
        if sample.at is not None:
            self.at = sample.at if self.at is None else min(self.at, sample.at)

    def reading(self, source: str, taken_at: float, values: Mapping[str, Any]) -> GpuReading:
        """The reading of this GPU; ``values`` are by the names of the reading's fields."""
        typed = {name: _typed(name, value) for name, value in values.items()}
        return GpuReading(
            taken_at=taken_at if self.at is None else min(taken_at, self.at),
            pci=self.key,
            uuid=self.uuid,
            product=self.product,
            source=source,
            raw={"mig_mode/current_mig": "Enabled"} if self.partitioned else {},
            **{name: value for name, value in typed.items() if value is not None},
        )


def _typed(name: str, value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if name in _SWITCHES:
        return value != 0
    return count_of(value) if name in _COUNTS else value


class GpuPage:
    """Collects the GPUs of a page. The labels of the address, the UUID and the model are tried in the order given."""

    def __init__(self, *, pci: Iterable[str], uuid: Iterable[str], product: Iterable[str]) -> None:
        self._pci, self._uuid, self._product = tuple(pci), tuple(uuid), tuple(product)
        self._gpus: dict[str, GpuValues] = {}

    def gpu(self, labels: Mapping[str, str]) -> GpuValues | None:
        """The GPU that a sample belongs to; ``None`` if its labels name no GPU."""
        pci = whole_pci(_first(labels, self._pci) or "")
        uuid = _first(labels, self._uuid)
        key = pci or (uuid.lower() if uuid else None)
        if key is None:
            return None
        found = self._gpus.get(key)
        if found is None:
            found = self._gpus[key] = GpuValues(key, uuid, _first(labels, self._product))
        return found

    def __iter__(self) -> Iterator[GpuValues]:
        """The GPUs, in the order of the page."""
        return iter(self._gpus.values())


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)
