"""The last status of a job, saved beside its socket: shown after its end, and read by a lumctl that takes it over."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

KEPT = "last.json"
SCHEMA = "lumctl/job-kept/v1"
ENDED, STOPPED = "ended", "stopped"
OVER = frozenset({ENDED, STOPPED})
"""States of a job after which nothing follows."""


def keep(folder: Path, document: Mapping[str, Any]) -> None:
    """Save the status of a job atomically, readable by this user only.

    Raises:
        OSError: it cannot be written.
    """
    made: Path | None = None
    try:
        with NamedTemporaryFile("w", dir=folder, prefix=f".{KEPT}.", delete=False, encoding="utf-8") as beside:
            made = Path(beside.name)
            json.dump({"schema": SCHEMA, "status": document}, beside)
        # Not synchronised: where the power fails, the job's processes and this folder are gone as well.
        made.replace(folder / KEPT)
    except BaseException:
        if made is not None:
            with suppress(OSError):
                made.unlink()
        raise


def kept(folder: Path) -> dict[str, Any] | None:
    """The last saved status of a job; ``None`` if none can be read."""
    try:
        found = json.loads((folder / KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("status"), dict):
        return None
    status: dict[str, Any] = found["status"]
    return status


def recoveries_before(folder: Path) -> tuple[dict[str, Any], ...]:
    """The recoveries in the saved status of a job that has not ended, for the lumctl that takes it over."""
    status = kept(folder)
    return tuple(status["recoveries"]) if status is not None and status["state"] not in OVER else ()


def ended(folder: Path) -> dict[str, Any] | None:
    """The saved status of a job that has ended; ``None`` if there is none."""
    status = kept(folder)
    return status if status is not None and status["state"] in OVER else None
