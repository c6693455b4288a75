"""The YAML file that says which columns of a cluster trace are read, and in which units."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from lumctl.errors import UsageError
from lumctl.inventory.document_reader import read_whole
from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.files import decoded, read_bytes
from lumctl.inventory.positions import MarkedDict, found, read_yaml
from lumctl.inventory.problems import Mark, Problems

TimeUnit = Literal["ms", "s", "min", "h", "d"]


class TraceColumns(Entry):
    """The names of columns."""

    submit: Text = "submit"
    duration: Text = "duration"
    accelerators: Text = "accelerators"


class TraceUnits(Entry):
    """The units of columns; ``datetime`` is a date with a time as ISO 8601 has it, in UTC unless it says otherwise."""

    submit: TimeUnit | Literal["datetime"] = "s"
    duration: TimeUnit = "s"
    accelerators: Literal["whole", "percent"] = "whole"


class TraceMap(Entry):
    """The whole file; what it leaves out is called as here, in seconds and whole accelerators."""

    columns: TraceColumns = TraceColumns()
    units: TraceUnits = TraceUnits()


def read_trace_map(path: Path) -> Mapping[str, tuple[str, str]]:
    """The column and the unit of ``submit``, ``duration`` and ``accelerators``.

    Raises:
        InventoryError: the file has errors; it lists them with their places.
        UsageError: it cannot be read.
    """
    content, problems = read_bytes(path), Problems(path)
    if isinstance(content, str):
        raise UsageError(f"{path} {content}")
    if not content.strip():
        raise UsageError(f"{path} is empty", hint="it has columns and units; see: lumctl study run --help")
    text = decoded(content, problems)
    written = read_yaml(text, problems) if text is not None else None
    mapping = read_whole(TraceMap, written, problems) if isinstance(written, MarkedDict) else None
    if mapping is None or problems:
        if not problems:
            problems.add(Mark(1, 1), f"found {found(written)}, expected a mapping with the keys columns, units")
        raise problems.error()
    columns, units = mapping.columns, mapping.units
    return {
        "submit": (columns.submit, units.submit),
        "duration": (columns.duration, units.duration),
        "accelerators": (columns.accelerators, units.accelerators),
    }
