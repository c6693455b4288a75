"""The private folder of a job on this machine: where it is, how its files are saved, and what they say of its ranks.

``lumctl job run`` writes these files while it runs the job; see :mod:`lumctl.training.job_folder`.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError
from lumctl.health.lateness import Lateness, RankLateness
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Assignment
from lumctl.json_lines import connect

COORDINATOR = "c.sock"
LATE = "late.json"
LATE_SCHEMA = "lumctl/job-late-kept/v1"
LIGHT = "light.json"
LIGHT_TOTALS = ("changes", "failed_changes", "wait_s", "hidden_s", "worst_s")
LIGHT_SCHEMA = "lumctl/job-light-kept/v1"
JUDGED_EVERY_S = 15.0
"""How often a coordinator judges who is late."""
_TRAINING_STEPS = 2
"""So many training steps may pass until one is complete in the record."""
_CONNECT_WITHIN_S = 0.2
_DIGEST = 8


def job_folder(inventory: Path, target: str, job: str) -> Path:
    """The folder of a job on this machine, for one inventory file.

    Its name is short, because the path of a Unix socket has 108 bytes at most.
    """
    named = hashlib.sha256(f"{inventory.resolve()}\0{target}\0{job}".encode()).hexdigest()[:_DIGEST]
    return private_runtime_folder() / "jobs" / named


def coordinator_socket(inventory: Path, target: str, job: str) -> Path:
    """The path of the coordinator's socket."""
    return job_folder(inventory, target, job) / COORDINATOR


def save_file(path: Path, schema: str, key: str, document: Mapping[str, Any]) -> None:
    """Save a document atomically, readable by this user only.

    Raises:
        OSError: it cannot be written.
    """
    made: Path | None = None
    try:
        prefix = f".{path.name}."
        with NamedTemporaryFile("w", dir=path.parent, prefix=prefix, delete=False, encoding="utf-8") as beside:
            made = Path(beside.name)
            json.dump({"schema": schema, key: document}, beside)
        # No fsync: a power failure ends the job's processes and removes this folder as well.
        made.replace(path)
    except BaseException:
        if made is not None:
            with suppress(OSError):
                made.unlink()
        raise


def saved_file(path: Path, schema: str, key: str) -> dict[str, Any] | None:
    """A saved document; ``None`` if none can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("schema") != schema or not isinstance(found.get(key), dict):
        return None
    document: dict[str, Any] = found[key]
    return document


def save_late(folder: Path, document: Mapping[str, Any]) -> None:
    """Save who is late in a job, as :func:`late_ranks` reads it. Raises ``OSError``."""
    save_file(folder / LATE, LATE_SCHEMA, "late", document)


def save_light(folder: Path, document: Mapping[str, Any]) -> None:
    """Save what changes of light have cost a job, as :func:`light_totals` reads it. Raises ``OSError``."""
    save_file(folder / LIGHT, LIGHT_SCHEMA, "light", document)


def light_totals(inventory: Inventory, target: str, now: float) -> dict[str, dict[str, float]]:
    """What changes of light have cost the jobs with phases that lumctl runs on this machine now, by job.

    Seconds waited and hidden, and the longest wait, each of the rank with the longest; numbers of changes.
    """
    found = {}
    for name, job in inventory.jobs.items():
        if job.run is None or not job.phases:
            continue
        with suppress(LumctlError, LookupError, TypeError, ValueError):
            saved = saved_file(job_folder(inventory.path, target, name) / LIGHT, LIGHT_SCHEMA, "light") or {}
            if 0 <= now - float(saved["at"]) <= inventory.thresholds.stale_after_s + JUDGED_EVERY_S:
                found[name] = {key: float(saved[key]) for key in LIGHT_TOTALS}
    return found


def late_ranks(inventory: Inventory, target: str, assignment: Assignment, now: float) -> Lateness:
    """Who is late in the jobs that lumctl runs on this machine, as their coordinators last judged.

    Where a coordinator here runs a job, but has not judged it lately, they are unknown.
    """
    late: dict[str, RankLateness] = {}
    judged: set[str] = set()
    unknown: set[str] = set()
    for name, job in inventory.jobs.items():
        ranks = assignment.get(name, ())
        if job.run is None or not ranks:
            continue
        try:
            folder = job_folder(inventory.path, target, name)
        except LumctlError:  # this user has no private folder, so no job of this user runs here
            continue
        found = _late_of(name, saved_file(folder / LATE, LATE_SCHEMA, "late"), now, inventory)
        if found is not None:
            judged |= set(ranks)
            # A rank that a swap has moved meanwhile is another accelerator's.
            late |= {
                each.accelerator: each for each in found if ranks[each.rank : each.rank + 1] == (each.accelerator,)
            }
        elif _runs(folder / COORDINATOR):
            unknown |= set(ranks)
    return Lateness(late, frozenset(judged), frozenset(unknown))


def _late_of(
    job: str, document: Mapping[str, Any] | None, now: float, inventory: Inventory
) -> list[RankLateness] | None:
    """The late ranks of a job; ``None`` if nobody has judged it lately."""
    if document is None:
        return None
    try:
        at, step_s = float(document["at"]), float(document["step_s"])
        oldest_s = inventory.thresholds.stale_after_s + JUDGED_EVERY_S + _TRAINING_STEPS * step_s
        if not 0 <= now - at <= oldest_s:
            return None
        return [_late_rank(job, each, at) for each in document["ranks"]]
    except (LookupError, TypeError, ValueError):
        return None


def _late_rank(job: str, row: Mapping[str, Any], at: float) -> RankLateness:
    gap_s, step_s, since = (float(row[name]) for name in ("gap_s", "step_s", "since"))
    if not (isfinite(gap_s) and isfinite(step_s) and isfinite(since)):
        raise ValueError(gap_s, step_s, since)
    rank, accelerator, group = int(row["rank"]), str(row["accelerator"]), str(row["group"])
    return RankLateness(job, rank, accelerator, group, gap_s, step_s, since, at, bool(row["worked_around"]))


def _runs(socket: Path) -> bool:
    """Whether a coordinator answers here."""
    try:
        connect(socket, _CONNECT_WITHIN_S).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:
        return True  # it may be busy
    return True
