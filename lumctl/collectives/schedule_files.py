"""Reads a file with a schedule: lumctl's JSON, MSCCL's XML or MSCCL++'s JSON, told apart by their content."""

import json
from typing import Any

from lumctl.collectives.documents import read_schedule, shown
from lumctl.collectives.machine import CollectiveProgram
from lumctl.collectives.msccl import read_msccl
from lumctl.collectives.mscclpp import read_mscclpp
from lumctl.collectives.schedule import Schedule
from lumctl.errors import UsageError

MOST_BYTES = 80_000_000
"""Larger files are refused; the schedule of 1,024 ranks has 60 million bytes."""


def read_file(content: bytes) -> Schedule | CollectiveProgram:
    """The schedule or program of a file.

    Raises:
        UsageError: it is none of the formats, or an error in one; the message has the place.
    """
    if len(content) > MOST_BYTES:
        raise UsageError(f"larger than {MOST_BYTES // 1_000_000} MB, the most that is read")
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return read_msccl(content)
    document = _json(content)
    if isinstance(document, dict) and "rounds" in document:
        return read_schedule(document)
    if isinstance(document, dict) and "gpus" in document:
        return read_mscclpp(document)
    kind = (
        f"an object with {', '.join(map(shown, list(document)[:5])) or 'nothing'}"
        if isinstance(document, dict)
        else shown(document)
    )
    raise UsageError(
        f"found {kind}, expected a schedule ('rounds') or an execution plan of MSCCL++ ('gpus')",
        hint="lumctl collective plan 8 -o json prints a schedule",
    )


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise UsageError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise UsageError("neither XML nor JSON: not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON that can be read: {shown(str(error))}") from None
