"""Checkpoints on disk: whole or not there, the newest two of each rank."""

import fcntl
import logging
import os
import pickle
import re
import secrets
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch

from lumctl.errors import UsageError

KEPT = 2
_NAME = re.compile(r"step-(\d+)(?:-rank-(\d+))?\.pt")
_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)
_log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of a job in a folder. ``rank`` is ``None`` for a state that is the same on every rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, tree: Mapping[str, Any], done: int, rank: int | None) -> Path:
        """Write a checkpoint; it is on the disk when this returns, and then only the newest of the others is left.

        Raises:
            UsageError: it cannot be written; those that were there still are.
        """
        path = self.path(done, rank)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_halves(rank)
            with beside.open("xb") as file:
                _lock(file)
                torch.save({"format": 1, "done": done, "rank": rank, "state": dict(tree)}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            _sync(self.folder)
        except (OSError, RuntimeError) as error:  # torch tells a full disk as the latter
            with suppress(OSError):
                beside.unlink()
            raise UsageError(f"checkpoint {path} cannot be written: {error}", hint="make room for it there") from error
        others = [each for _, each in self.found(rank) if each != path]
        for old in others[KEPT - 1 :]:
            with suppress(OSError):
                old.unlink()
        return path

    def forget_after(self, done: int, rank: int | None, *, but: Collection[Path] = ()) -> None:
        """Remove those of a rank that are of more steps."""
        for newer, path in self.found(rank):
            if newer > done and path not in but:
                with suppress(OSError):
                    path.unlink()

    def _remove_halves(self, rank: int | None) -> None:
        """Remove what writers of a rank have left who were killed; one that is at work holds a lock."""
        for path in self.folder.glob(".step-*.pt.*"):
            match = _NAME.fullmatch(path.stem[1:])
            if match and match[2] == _whose(rank):
                with suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()

    def path(self, done: int, rank: int | None) -> Path:
        """Where the checkpoint of a rank after so many steps lies."""
        return self.folder / (f"step-{done:08d}.pt" if rank is None else f"step-{done:08d}-rank-{rank}.pt")

    def found(self, rank: int | None) -> list[tuple[int, Path]]:
        """The checkpoints that are there, newest first: steps done, file."""
        try:
            named = [(path, _NAME.fullmatch(path.name)) for path in self.folder.iterdir()]
        except OSError:
            return []
        whose = _whose(rank)
        return sorted(((int(match[1]), path) for path, match in named if match and match[2] == whose), reverse=True)

    def clear(self) -> None:
        """Remove those of all ranks."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                if _NAME.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def whole(self, rank: int | None) -> list[int]:
        """After how many steps there are checkpoints whose bytes are as they were written, newest first."""
        return [done for done, path in self.found(rank) if _whole(path)]

    def newest(self, rank: int | None, *, at_most: int | None = None) -> tuple[int, dict[str, Any]] | None:
        """The newest state that can be read; one that is damaged is passed over with a warning."""
        for done, path in self.found(rank):
            if at_most is not None and done > at_most:
                continue
            try:
                return read(path)
            except UsageError as error:
                _log.warning("%s; the one before is taken", error.message)
        return None


def of_rank(path: Path, rank: int) -> Path:
    """The part of one rank in the checkpoint that a file is a part of; the file itself where all have the same."""
    match = _NAME.fullmatch(path.name)
    return path if match is None or match[2] is None else path.with_name(f"step-{match[1]}-rank-{rank}.pt")


def read(path: Path) -> tuple[int, dict[str, Any]]:
    """Read a checkpoint: steps done, state.

    Raises:
        UsageError: it is not there, damaged, or none of ours.
    """
    try:
        if not _whole(path):
            raise ValueError("it is damaged" if path.exists() else "it is not there")
        found = torch.load(path, map_location="cpu", weights_only=True)
        done, state = found["done"], found["state"]
        if found["format"] != 1 or not isinstance(done, int) or not isinstance(state, dict):
            raise ValueError("it is none of ours")
    except (*_UNREADABLE, TypeError) as error:
        raise UsageError(f"checkpoint {path} cannot be read: {error}") from error
    return done, state


def _whose(rank: int | None) -> str | None:
    return None if rank is None else str(rank)


def _lock(file: BinaryIO) -> None:
    with suppress(OSError):  # a file system that has no locks keeps what killed writers leave
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except _UNREADABLE:
        return False


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
