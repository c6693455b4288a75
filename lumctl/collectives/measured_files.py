"""Reads logs of collectives (CSV): how long each rank was in each of them, and measured all-reduces.

A log has one of two forms: ``step,rank0_ms,rank1_ms,...`` with the time of each rank in the collective, or
``step,rank,enter_s,leave_s`` with a line for each rank. Measurements are ``bytes,seconds`` and perhaps ``ranks``.
``ms`` or ``us`` may stand for seconds in every name.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from lumctl.collectives.arrivals import ArrivalStep
from lumctl.collectives.documents import shown
from lumctl.collectives.link_fit import Measurement
from lumctl.collectives.schedule import MOST_RANKS
from lumctl.errors import UsageError
from lumctl.printable import number_ranges

MOST_BYTES = 64_000_000
MOST_ROWS = 200_000
_UNITS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6}
_RANK_COLUMN = re.compile(r"rank([0-9]{1,4})_(s|ms|us)")
_FORMS = "a log begins with step,rank0_ms,rank1_ms,... or step,rank,enter_s,leave_s"
CsvLine = tuple[int, list[str]]
"""A line number, and the cells of that line."""


def read_arrivals(content: bytes) -> list[ArrivalStep]:
    """The steps of a log, in its order.

    Raises:
        UsageError: it is no such log; a rank is missing, a step is there twice, or a time is no number of at least 0.
    """
    header, rows = _table(content, _FORMS)
    columns = [_RANK_COLUMN.fullmatch(name) for name in header[1:]]
    if header[0] == "step" and len(columns) > 1 and all(columns):
        found = [(int(column[1]), _UNITS[column[2]]) for column in columns if column is not None]
        if [rank for rank, _ in found] != list(range(len(found))):
            raise UsageError(f"line 1: expected the ranks 0 to {len(found) - 1} in order")
        return list(_durations(rows, [unit for _, unit in found]))
    if header[:2] == ["step", "rank"]:
        names = re.fullmatch(r"enter_(s|ms|us),leave_(s|ms|us)", ",".join(header[2:]))
        if names is not None:
            return _events(rows, _UNITS[names[1]], _UNITS[names[2]])
    raise UsageError(f"line 1: found {shown(','.join(header))}", hint=_FORMS)


def read_measurements(content: bytes, ranks: int) -> list[Measurement]:
    """The measured all-reduces of a file; ``ranks`` is for lines without a number of their own.

    Raises:
        UsageError: it has other columns, or a value is out of range.
    """
    form = "measured collectives begin with bytes,seconds or ranks,bytes,seconds"
    header, rows = _table(content, form)
    units = [name for name in header if name in _UNITS]
    if len(units) != 1 or "bytes" not in header or set(header) - {"bytes", "ranks", units[0]}:
        raise UsageError(f"line 1: found {shown(','.join(header))}", hint=form)
    found = []
    for line, cells in rows:
        row = dict(zip(header, cells, strict=True))
        own = _whole(row["ranks"], line, "ranks", 2, MOST_RANKS) if "ranks" in row else ranks
        size, seconds = (_positive(row[name], line, name) for name in ("bytes", units[0]))
        found.append(Measurement(own, size, seconds * _UNITS[units[0]]))
    return found


def _table(content: bytes, form: str) -> tuple[list[str], Iterator[CsvLine]]:
    """The header and the lines below it, each with as many cells as the header."""
    if len(content) > MOST_BYTES:
        raise UsageError(f"larger than {MOST_BYTES // 1_000_000} MB, the most that is read")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("not UTF-8 text", hint=form) from None
    reader = csv.reader(StringIO(text))
    try:
        header = [cell.strip() for cell in next(reader, [])]
    except csv.Error as error:
        raise UsageError(f"line 1: {error}", hint=form) from None
    if not header:
        raise UsageError("line 1: found nothing", hint=form)
    return header, _rows(reader, len(header))


def _rows(reader: Any, width: int) -> Iterator[CsvLine]:
    """The lines of a CSV reader, all of ``width`` cells; empty lines are left out."""
    try:
        for cells in reader:
            line = reader.line_num
            if cells and len(cells) != width:
                raise UsageError(f"line {line}: found {len(cells)} values, expected {width}")
            if line > MOST_ROWS + 1:
                raise UsageError(f"line {line}: more than {MOST_ROWS} lines", hint="leave out the oldest steps")
            if cells:
                yield line, cells
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num}: {error}") from None


def _durations(rows: Iterator[CsvLine], units: Sequence[float]) -> Iterator[ArrivalStep]:
    lines: dict[int, int] = {}
    for line, (number, *times) in rows:
        step = _whole(number, line, "step")
        if step in lines:
            raise UsageError(f"line {line}: step {step} is there twice, first on line {lines[step]}")
        lines[step] = line
        entered = tuple(
            -_positive(text, line, f"rank {rank}") * unit
            for rank, (text, unit) in enumerate(zip(times, units, strict=True))
        )
        yield ArrivalStep(step, entered, (0.0,) * len(entered))


def _events(rows: Iterator[CsvLine], enter_unit: float, leave_unit: float) -> list[ArrivalStep]:
    steps: dict[int, dict[int, tuple[float, float]]] = {}
    lines: dict[int, int] = {}
    for line, (number, rank_text, enter, leave) in rows:
        step, rank = _whole(number, line, "step"), _whole(rank_text, line, "rank", 0, MOST_RANKS - 1)
        times = steps.setdefault(step, {})
        lines.setdefault(step, line)
        if rank in times:
            raise UsageError(f"line {line}: step {step} has rank {rank} twice")
        times[rank] = (_finite(enter, line, "enter") * enter_unit, _finite(leave, line, "leave") * leave_unit)
        if times[rank][1] < times[rank][0]:
            raise UsageError(f"line {line}: rank {rank} leaves before it enters")
    count = max((rank for times in steps.values() for rank in times), default=-1) + 1
    return [_complete(step, times, count, lines[step]) for step, times in steps.items()]


def _complete(step: int, times: Mapping[int, tuple[float, float]], count: int, line: int) -> ArrivalStep:
    absent = [rank for rank in range(count) if rank not in times]
    if absent:
        raise UsageError(f"line {line}: step {step} has no time of rank {number_ranges(absent)}")
    entered, left = zip(*(times[rank] for rank in range(count)), strict=True)
    return ArrivalStep(step, entered, left)


def _finite(text: str, line: int, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"line {line}: {name}: found {shown(text)}, expected a number")
    return value


def _positive(text: str, line: int, name: str) -> float:
    value = _finite(text, line, name)
    if value <= 0:
        raise UsageError(f"line {line}: {name}: found {shown(text)}, expected a number above 0")
    return value


def _whole(text: str, line: int, name: str, least: int = 0, most: int = 10**12) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(most)) and least <= int(digits) <= most):
        raise UsageError(f"line {line}: {name}: found {shown(text)}, expected a whole number from {least} to {most}")
    return int(digits)
