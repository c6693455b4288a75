"""A cluster trace: a CSV file of the jobs of a cluster, with one line for each."""

import csv
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from math import ceil, inf
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lumctl.errors import RefusedError, UsageError

TraceFields = Mapping[str, Sequence[str]]
"""The column and the unit of ``submit``, ``duration`` and ``accelerators``."""
DEFAULT_FIELDS: TraceFields = {
    "submit": ("submit", "s"),
    "duration": ("duration", "s"),
    "accelerators": ("accelerators", "whole"),
}
MOST_JOBS = 10_000_000
"""Of a file. So many take some hundred MB of memory, and more than that to sort them."""
_MOST_LINE = 64 * 1024
_MOST_ACCELERATORS = 1_000_000_000
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class ClusterJob(NamedTuple):
    """A job: when it is submitted, after the first one; for how long it runs; and how many accelerators it asks for."""

    submit_s: float
    duration_s: float
    accelerators: int


@dataclass(frozen=True, slots=True)
class ClusterTrace:
    """The jobs of a file, which has this checksum (SHA-256)."""

    checksum: str
    submit_s: "array[float]"
    duration_s: "array[float]"
    accelerators: "array[int]"

    def jobs(self) -> Iterator[ClusterJob]:
        """The jobs by time of submission; equal ones in the order of the file."""
        columns = self.submit_s, self.duration_s, self.accelerators
        order: Sequence[int] = range(len(self.submit_s))
        if any(after < before for before, after in zip(self.submit_s, self.submit_s[1:], strict=False)):
            order = sorted(order, key=self.submit_s.__getitem__)
        first = self.submit_s[order[0]]
        for at in order:
            submit_s, duration_s, accelerators = (column[at] for column in columns)
            yield ClusterJob(submit_s - first, duration_s, int(accelerators))


def trace_source(path: Path, mapping: Path | None) -> tuple[str, Mapping[str, str]]:
    """What :func:`trace_of` is given for a file, and what a study's run must have the same of to continue.

    Raises:
        UsageError: the file, or that of the mapping, cannot be read or is not valid.
    """
    fields = DEFAULT_FIELDS
    if mapping is not None:
        from lumctl.studies.trace_map import read_trace_map  # noqa: PLC0415 - its imports take a while

        fields = read_trace_map(mapping)
    place, words = str(path.resolve()), json.dumps(fields)
    read_trace.cache_clear()  # the file may have changed since this process read it
    checksum = read_trace(place, words).checksum
    return json.dumps({"path": place, "fields": words, "checksum": checksum}), {"trace": checksum, "columns": words}


def trace_of(source: str) -> ClusterTrace:
    """The trace of a file, which is read once in a process; ``source`` is its path, fields and checksum, as JSON.

    Raises:
        RefusedError: the file has another checksum.
        UsageError: see :func:`read_trace`.
    """
    wanted = json.loads(source)
    trace = read_trace(wanted["path"], wanted["fields"])
    if trace.checksum != wanted["checksum"]:
        raise RefusedError(f"{wanted['path']} has changed since this run began", hint="run the study again")
    return trace


@lru_cache(maxsize=1)
def read_trace(path: str, fields: str) -> ClusterTrace:
    """The trace of a file as it is; ``fields`` are :data:`TraceFields` as JSON.

    Raises:
        UsageError: it cannot be read, or one of its lines is not valid; the message has its number.
    """
    try:
        with Path(path).open("rb") as file:
            return _read(path, file, json.loads(fields))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(path: str, file: BinaryIO, fields: TraceFields) -> ClusterTrace:
    digest = sha256()
    # Not strict: a broken line must be one for the program, not for the parser of CSV.
    records = csv.reader(_lines(path, file, digest.update))
    header = [name.strip() for name in _next(path, records) or ()]
    if not header:
        raise UsageError(f"{path} is empty", hint="its first line has the names of columns")
    places = [_column(path, header, name, fields[name][0]) for name in fields]
    units = {name: fields[name][1] for name in fields}
    read_job = _job_reader(units, dict(zip(fields, places, strict=True)))
    trace = ClusterTrace("", array("d"), array("d"), array("q"))
    line = records.line_num + 1
    while (record := _next(path, records)) is not None:
        if record:
            try:
                submit_s, duration_s, accelerators = read_job(record)
            except (ArithmeticError, LookupError, ValueError):
                raise UsageError(f"{path}:{line}: {_flaw(record, fields, places)}") from None
            trace.submit_s.append(submit_s)
            trace.duration_s.append(duration_s)
            trace.accelerators.append(accelerators)
            if len(trace.submit_s) > MOST_JOBS:
                raise UsageError(f"{path} has more than {MOST_JOBS} jobs", hint="divide it")
        line = records.line_num + 1
    if not trace.submit_s:
        raise UsageError(f"{path} has no jobs, only the names of columns")
    return ClusterTrace(digest.hexdigest(), trace.submit_s, trace.duration_s, trace.accelerators)


def _lines(path: str, file: BinaryIO, update: Callable[[bytes], None]) -> Iterator[str]:
    """The lines of the file; each goes into its checksum too, so this is the checksum of what was read."""
    number = 0
    while line := file.readline(_MOST_LINE):
        number += 1
        update(line)
        if len(line) == _MOST_LINE:
            raise UsageError(f"{path}:{number}: the line is longer than {_MOST_LINE} bytes")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}:{number}: found byte 0x{line[error.start]:02x}, expected UTF-8 text") from None


def _next(path: str, records: "Iterator[list[str]]") -> list[str] | None:
    line = records.line_num + 1  # type: ignore[attr-defined]
    try:
        return next(records, None)
    except csv.Error as error:  # such as quotes that do not end
        raise UsageError(f"{path}:{line}: not valid CSV: {error}") from None


def _column(path: str, header: list[str], field: str, name: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    there = "are several columns" if name in header else "is no column"
    known = ", ".join(each[:40] for each in header[:12])
    raise UsageError(
        f"{path}:1: there {there} {name!r} for {field}",
        hint=f"it has {known}; name others: --trace-map FILE",
    )


def _job_reader(units: Mapping[str, str], places: Mapping[str, int]) -> Callable[[list[str]], tuple[float, float, int]]:
    """What reads one record; it raises an error of Python, without a message, for one that is not valid."""
    submit, duration, accelerators = (places[name] for name in ("submit", "duration", "accelerators"))
    # A date has no factor. Numbers are divided, for 0.07 of a hundred times 100 is more than 7.
    submit_s, duration_s = (_SECONDS.get(units[name], 0.0) for name in ("submit", "duration"))
    parts = 100.0 if units["accelerators"] == "percent" else 1.0

    def read(record: list[str]) -> tuple[float, float, int]:
        at = float(record[submit]) * submit_s if submit_s else _seconds_of(record[submit])
        lasts = float(record[duration]) * duration_s
        count = ceil(float(record[accelerators]) / parts)
        if not (0 <= at < inf and 0 <= lasts < inf and 0 <= count <= _MOST_ACCELERATORS):
            raise ValueError
        return at, lasts, count

    return read


def _seconds_of(text: str) -> float:
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _flaw(record: list[str], fields: TraceFields, places: list[int]) -> str:
    """What is wrong with a record: the first of its values that no job may have."""
    fine = {"submit": "0", "duration": "0", "accelerators": "0"}
    for (name, (column, unit)), place in zip(fields.items(), places, strict=True):
        if place >= len(record):
            return f"the line has {len(record)} values, so none for column {column}"
        units = {**dict.fromkeys(fine, "s"), name: unit}
        try:
            _job_reader(units, {each: at for at, each in enumerate(fine)})(
                [record[place] if each == name else "0" for each in fine]
            )
        except (ArithmeticError, ValueError):
            expected = "a date with a time, after 1970" if unit == "datetime" else "a number of 0 or more"
            return f"{column} is {record[place][:40]!r}, expected {expected}"
    raise AssertionError
