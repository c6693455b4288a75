"""Which process holds a store's write lock, and the command that frees it."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from lumctl.processes import ProcessState, find, process_with, this_process

_LOCKS = Path("/proc/locks")
_WRITER_BYTE = 120
"""The byte of the shared-memory file that a writer in WAL mode locks, see sqlite.org/walformat.html."""
_SESSION_NAME = re.compile(r"lumctl (\d+)@(.+)/([0-9a-f]+)")
# PostgreSQL cuts a session's name after 63 bytes. The machine is cut first, so that the boot id behind it stays whole.
_MOST_NAME, _MOST_HOST = 63, 36
_ACTIVITY = """
SELECT s.pid, s.usename, s.application_name, host(s.client_addr), s.state,
       extract(epoch FROM clock_timestamp() - s.xact_start)
FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %s AND l.objid = %s
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a write lock. ``words`` describe it, ``remedy`` is the command that frees the lock.

    ``process`` is ``None`` if it is not on this machine.
    """

    words: str
    remedy: str
    process: ProcessState | None = None


def holder_of_file(file: Path) -> Holder | None:
    """The process that locks an SQLite database; ``None`` if there is none, or the system does not show it."""
    pid = next(_lock_holders(file), None)
    identity = None if pid is None else process_with(pid)
    process = None if identity is None else find(identity)
    if process is None:
        return None
    if process.id.pid == os.getpid():
        return Holder("this process itself, in another thread", "wait for it", process)
    return Holder(process.described, _ending(process, process.kill_command), process)


def holder_of_advisory_lock(connection: Connection, keys: tuple[int, int], login: str) -> Holder | None:
    """The session that holds an advisory lock of a PostgreSQL database; ``login`` is the URL for psql.

    Raises:
        SQLAlchemyError: the database does not show it.
    """
    # pg_locks shows the two keys as OIDs, which are unsigned.
    unsigned = tuple(key & 0xFFFFFFFF for key in keys)
    found = connection.exec_driver_sql(_ACTIVITY, unsigned).first()
    if found is None:
        return None
    session, user, name, address, state, seconds = found
    process = _process_named(name or "")
    whose = process.described if process else _described(name or "", address)
    age = f", in a transaction for {seconds:.0f} s" if seconds is not None else ""
    words = f"{whose}; it is session {session} of the database's user {user}, {state or 'state hidden'}{age}"
    if process is not None and process.id.pid == os.getpid():
        return Holder("this process itself, in another thread", "wait for it", process)
    return Holder(
        words, _ending(process, f"psql {shlex.quote(login)} -c 'SELECT pg_terminate_backend({session})'"), process
    )


def session_name() -> str:
    """The name of this process's sessions in the database's list of sessions; it contains the PID and the machine."""
    process = this_process()
    host = process.host.encode("ascii", "replace").decode()[:_MOST_HOST]
    return f"lumctl {process.pid}@{host}/{_short(process.boot_id)}"[:_MOST_NAME]


def _ending(process: ProcessState | None, command: str) -> str:
    """The remedy for a held lock: a stopped process never frees it and must be ended; any other may soon free it."""
    end = f"end it: {command} (its unfinished write is undone)"
    return end if process is not None and process.stopped else f"wait for it, or {end}"


def _lock_holders(file: Path) -> Iterator[int]:
    """PIDs that hold an exclusive lock on an SQLite database or its shared memory, the writer first."""
    found = []
    # A writer in WAL mode locks a byte of the shared memory. The database file itself is locked where the mode changes
    # or the log is removed.
    for path in (file.with_name(f"{file.name}-shm"), file):
        try:
            status = path.stat()
            lines = _LOCKS.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            lock = _parsed(line)
            if lock is None or lock[2] != status.st_ino:
                continue
            pid, device, _, start = lock
            # Some file systems (btrfs, overlayfs) show another device number here: ask the process which file it has.
            if device == status.st_dev or _has_open(pid, status):
                found.append((start != _WRITER_BYTE, pid))
    return (pid for _, pid in sorted(found))


def _parsed(line: str) -> tuple[int, int, int, int] | None:
    """PID, device, inode and first byte of an exclusive lock that is held; ``None`` for any other line."""
    words = line.split()
    try:
        _, kind, _, mode, pid, place, start, _ = words
        major, minor, inode = place.split(":")
        if kind != "POSIX" or mode != "WRITE" or int(pid) <= 0:
            return None
        return int(pid), os.makedev(int(major, 16), int(minor, 16)), int(inode), int(start)
    except ValueError:
        return None


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    folder = Path("/proc") / str(pid) / "fd"
    try:
        return any(os.path.samestat(wanted, entry.stat()) for entry in folder.iterdir())
    except OSError:
        return False


def _process_named(name: str) -> ProcessState | None:
    """The process with the PID in a session's name; ``None`` if it is not on this machine, or has ended."""
    said = _SESSION_NAME.fullmatch(name)
    # A PID means something only on the machine, and since the boot, that it comes from.
    identity = process_with(int(said[1])) if said and said[3] == _short(this_process().boot_id) else None
    return None if identity is None else find(identity)


def _described(name: str, address: Any) -> str:
    said = _SESSION_NAME.fullmatch(name)
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    who = f"process {said[1]} on {said[2]}" if said else f"a session called {plain!r}"
    return f"{who}, connected from {address}" if address else who


def _short(boot_id: str) -> str:
    return hashlib.sha256(boot_id.encode()).hexdigest()[:8]
