"""How a job stood last, kept beside its socket: told after its end, and to the lumctl that takes it over."""

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
    """Write down how a job stands, for this user only; what was kept before stays whole until then.

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
    """How a job stood when that was written last; ``None`` if nothing is kept that can be read."""
    try:
        found = json.loads((folder / KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("status"), dict):
        return None
    status: dict[str, Any] = found["status"]
    return status


def recoveries_before(folder: Path) -> tuple[dict[str, Any], ...]:
    """The recoveries of a job that has not ended as far as is known: whoever takes it over tells of them too."""
    status = kept(folder)
    return tuple(status["recoveries"]) if status is not None and status["state"] not in OVER else ()


def ended(folder: Path) -> dict[str, Any] | None:
    """How a job ended; ``None`` if that is not known."""
    status = kept(folder)
    return status if status is not None and status["state"] in OVER else None
