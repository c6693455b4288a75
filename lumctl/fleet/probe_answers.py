"""Whether what a probe plug-in answers is a report: of the right types, with finite numbers and PCI addresses."""

import math
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from lumctl.fleet.parsers.pci import whole_pci
from lumctl.fleet.probe_api import ProbeReport
from lumctl.fleet.readings import GpuReading
from lumctl.printable import one_line

_MOST_ACCELERATORS = 1024
_MOST_CHARACTERS = 80
Fits = Callable[[Any], bool]


def complaint(report: Any, values: Collection[str]) -> str | None:
    """What is wrong with an answer of a probe that declares these values; ``None`` if nothing is."""
    return next(_complaints(report, values), None)


def _complaints(report: Any, values: Collection[str]) -> Iterator[str]:
    if not isinstance(report, ProbeReport):
        yield f"answered {type(report).__name__}, which is no ProbeReport"
        return
    of_report: Any = report
    for name, fits in (("accelerators", tuple), ("lost", tuple), ("problem", str)):
        if not isinstance(getattr(of_report, name), fits):
            yield f"answered {name} of type {type(getattr(of_report, name)).__name__}, expected {fits.__name__}"
            return
    if len(report.accelerators) > _MOST_ACCELERATORS:
        yield f"answered {len(report.accelerators)} accelerators of one host"
    for pci in report.lost:
        if not isinstance(pci, str) or whole_pci(pci) is None:
            yield f"answered {_shown(pci)} in lost, which is no PCI address"
    known: set[str | None] = set()
    for reading in report.accelerators:
        yield from _of_reading(reading, values)
        address = whole_pci(reading.pci)
        if address in known:
            yield f"answered {address} twice"
        known.add(address)


def _of_reading(reading: Any, values: Collection[str]) -> Iterator[str]:
    if not isinstance(reading, GpuReading):
        yield f"answered {type(reading).__name__}, which is no GpuReading"
        return
    for name, fits in _fits().items():
        if not fits(getattr(reading, name)):
            yield f"answered {name} {_shown(getattr(reading, name))} of {_shown(reading.pci)}"
    if whole_pci(reading.pci) is None:
        yield f"answered {_shown(reading.pci)}, which is no PCI address"
    for name in reading.vendor_values:
        if name not in values:
            yield f"answered the value {_shown(name)}, which it does not declare"


def _shown(value: object) -> str:
    return one_line(repr(value), _MOST_CHARACTERS)


@cache
def _fits() -> Mapping[str, Fits]:
    """For each field of a reading, whether a value is of its type."""
    hints = get_type_hints(GpuReading)
    return {each.name: _fit(hints[each.name]) for each in fields(GpuReading)}


def _fit(hint: Any) -> Fits:
    kind, of = get_origin(hint), get_args(hint)
    if kind in {Union, types.UnionType}:
        some = [_fit(each) for each in of]
        return lambda value: any(fits(value) for fits in some)
    if kind is tuple:
        return _tuple_of(of)
    if kind is frozenset:
        item = _fit(of[0])
        return lambda value: isinstance(value, frozenset) and all(map(item, value))
    if kind is not None:  # a mapping: a reading has no other kind of field
        key, item = _fit(of[0]), _fit(of[1])
        return lambda value: isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
    if hint is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return lambda value: isinstance(value, hint) and (hint is not int or not isinstance(value, bool))


def _tuple_of(of: tuple[Any, ...]) -> Fits:
    parts = [_fit(each) for each in of if each is not Ellipsis]
    if Ellipsis in of:
        return lambda value: isinstance(value, tuple) and all(map(parts[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(parts)
        and all(fits(part) for fits, part in zip(parts, value, strict=True))
    )
