"""The values of each GPU of a page, by the GPU's PCI address or UUID.

An exporter prints one GPU several times where it is partitioned; then the greatest value counts, which for every
quantity that means a fault is the worst.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lumctl.fleet.exporters.text_format import Sample, count_of
from lumctl.fleet.parsers.fields import whole_pci
from lumctl.fleet.readings import GpuReading

_COUNTS = frozenset(each.name for each in fields(GpuReading) if each.type == int | None)
_SWITCHES = frozenset(each.name for each in fields(GpuReading) if each.type == bool | None)


@dataclass
class GpuValues:
    """One GPU of a page. ``at`` is the oldest time that one of its samples states, if any does."""

    key: str
    uuid: str | None
    product: str | None
    at: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    partitioned: bool = False

    def add(self, sample: Sample, name: str) -> None:
        """Take a value; of several the greatest."""
        self.values[name] = max(sample.value, self.values.get(name, sample.value))
        if sample.at is not None:
            self.at = sample.at if self.at is None else min(self.at, sample.at)

    def reading(self, source: str, taken_at: float, values: Mapping[str, Any]) -> GpuReading:
        """The reading; ``values`` are numbers and others by the reading's own fields."""
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
    """Collects the GPUs of a page; labels of the address, the UUID and the model are tried in their order."""

    def __init__(self, *, pci: Iterable[str], uuid: Iterable[str], product: Iterable[str]) -> None:
        self._pci, self._uuid, self._product = tuple(pci), tuple(uuid), tuple(product)
        self._gpus: dict[str, GpuValues] = {}

    def gpu(self, labels: Mapping[str, str]) -> GpuValues | None:
        """The GPU that a sample belongs to; ``None`` where its labels name none."""
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
