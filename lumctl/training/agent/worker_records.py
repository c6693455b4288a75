"""The records that an agent keeps of its workers, and how its successor finds them again."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lumctl.training.agent.folder import Folder
from lumctl.training.agent.process import Process, boot, with_variable
from lumctl.training.agent.worker import BEATS, HEARTBEAT_S, Worker, worker_of
from lumctl.training.variables import ACCELERATOR, BEAT_S, SOCKET, WORKER

SCHEMA = "lumctl/agent/v1"


def write_records(folder: Folder, workers: Iterable[Worker]) -> None:
    """Write the records of all workers, atomically.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps({"schema": SCHEMA, "boot": boot(), "workers": [each.kept() for each in workers]}, indent=1)
    new = folder.records.with_name(f"{folder.records.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    # Not synchronised: where the power fails, the workers end as well.
    new.rename(folder.records)


def adopted(folder: Folder, *, now: float, at: float) -> dict[str, Worker]:
    """The workers that earlier agents of this folder started; those that still live have a process.

    Records that cannot be read are put aside, and the workers are found by the variables they were started with.
    """
    sound, workers = _read(folder.records)
    if not sound or any(each.alive and each.pid is None for each in workers.values()):
        # Its agent was killed between having started a worker and having said so.
        _find(folder, workers)
    for each in workers.values():
        each.heard_at = now
        if each.alive and each.pid is not None and each.started is not None:
            each.process = Process.found(each.pid, each.started)
        if each.alive and each.process is None:
            each.alive, each.at = False, at
    return workers


def _read(path: Path) -> tuple[bool, dict[str, Worker]]:
    try:
        found: Any = json.loads(path.read_text())
        workers = {each.worker: each for each in map(worker_of, found["workers"])}
        booted: str = found["boot"]
    except FileNotFoundError:
        return True, {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        path.rename(path.with_name(f"{path.name}.unreadable"))
        return False, {}
    if booted != boot():
        for each in workers.values():
            each.started = None
    return True, workers


def _find(folder: Folder, workers: dict[str, Worker]) -> None:
    for pid, started, given in with_variable(SOCKET, str(folder.socket)):
        name = given.get(WORKER, "")
        known = workers.get(name) or Worker(name, given.get(ACCELERATOR, ""), _heartbeat_s(given.get(BEAT_S, "")))
        if known.alive and known.pid is None:
            known.pid, known.started = pid, started
            workers[name] = known


def _heartbeat_s(beat_s: str) -> float:
    try:
        return BEATS * float(beat_s)
    except ValueError:
        return HEARTBEAT_S
