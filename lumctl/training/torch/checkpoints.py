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
import torch.distributed as dist

from lumctl.errors import LumctlError, UsageError
from lumctl.training.torch.collectives import level
from lumctl.training.torch.states import UNIQUE, TrainingState

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


STOPS = "checkpoints"
"""Where in a job's folder on a host the checkpoints of stops lie."""


class Persistence:
    """Checkpoints of a job: every so many steps, at its end, and when it is told to stop."""

    def __init__(self, work: TrainingState, folder: Path | None, every: int) -> None:
        self.checkpoints = Checkpoints(folder) if folder is not None else None
        self._work, self._every = work, every
        self._stops_only = False
        self._gone_back_to = 0
        self._written: set[Path] = set()
        """Checkpoints written since."""

    def keep_stops_in(self, folder: Path) -> None:
        """Use this folder for the checkpoints of stops alone: the script names none."""
        if not self._work.is_empty:
            self.checkpoints, self._every, self._stops_only = Checkpoints(folder), 0, True

    def over(self) -> None:
        """All ranks have done all steps: the next run begins again, unless the script names a folder."""
        if self._stops_only and self.checkpoints is not None:
            self.checkpoints.clear()

    def due(self, rank: int) -> bool:
        """Whether the step that was just done is one after which this rank writes a checkpoint."""
        return self._writes(rank) and self._work.done % self._every == 0

    def due_at_end(self, rank: int) -> bool:
        """Whether this rank writes the state that is reached when all steps are done."""
        return self._writes(rank) and self._work.done % self._every != 0

    def _writes(self, rank: int) -> bool:
        """Whether this rank writes a checkpoint every so many steps."""
        own = self._work.layout == UNIQUE or rank == 0
        return own and self.checkpoints is not None and self._every > 0

    def save(self, rank: int, *, tree: Mapping[str, Any] | None = None, done: int | None = None) -> Path | None:
        """Write the state that is reached, or another one; ``None``, with a warning, if that cannot be done."""
        if self.checkpoints is None:
            return None
        if tree is None or done is None:
            tree, done = self._work.tree(), self._work.done
        if self._gone_back_to:
            self.checkpoints.forget_after(self._gone_back_to, self.of(rank), but=self._written)
        try:
            path = self.checkpoints.save(tree, done, self.of(rank))
        except LumctlError as error:
            _log.warning("%s (%s)", error.message, error.hint)
            return None
        self._written.add(path)
        return path

    def went_back(self) -> None:
        """The job goes on from the step that is reached now: what is there of later ones is no part of it any more.

        It would be kept in the place of those that all ranks have, so the next one that is written replaces it.
        """
        self._gone_back_to, self._written = self._work.done, set()

    def of(self, rank: int) -> int | None:
        """Whose checkpoint a rank writes: its own, or that of all."""
        return rank if self._work.layout == UNIQUE else None

    def go_on(self) -> None:
        """Take over the newest checkpoint of a state that is the same on every rank, if there is one.

        What a stop has left on this host is not taken before all ranks know of it: see :meth:`level`.

        Raises:
            UsageError: it does not fit.
        """
        if self.checkpoints is None or self._stops_only:
            return
        if (found := self.checkpoints.newest(None)) is not None:
            self._load(found[1], found[0], None)

    def level(self, rank: int, world: int, device: torch.device) -> None:
        """Bring all ranks to one state: the newest that a stop has left with any of them, else that of rank 0.

        Each host has a folder of its own, and a rank may be on another host than before.

        Raises:
            UsageError: what a stop has left is damaged, or does not fit.
            RuntimeError: the group broke.
        """
        source = 0
        if self._stops_only and self.checkpoints is not None:
            newest = [done for (done,) in _gathered(self.checkpoints.whole(None)[:1] or [0], world, device)]
            source = newest.index(max(newest))
            if rank == source and newest[source]:
                self._take_over(newest[source], None)
        if world > 1:
            level(self._work, rank, device, source=source)

    def agree(self, rank: int, world: int, device: torch.device) -> None:
        """Take over the newest checkpoint that every rank has of its own part. All ranks call this.

        Raises:
            UsageError: it is damaged, or does not fit; or there are some, and none of all ranks.
            RuntimeError: the group broke.
        """
        if self.checkpoints is None:
            return
        newest = self.checkpoints.whole(rank)[:KEPT]
        theirs = _gathered([*newest, *[0] * (KEPT - len(newest))], world, device)
        done = max(set.intersection(*(set(each) for each in theirs)), default=0)
        if not done and any(map(any, theirs)):
            told = "; ".join(f"rank {at}: {_told(each)}" for at, each in enumerate(theirs))
            raise UsageError(
                f"no checkpoint in {self.checkpoints.folder} is there of every rank ({told})",
                hint=f"copy those that lack to where their rank is now, or {self._to_begin_anew}",
            )
        if newest and newest[0] > done:
            path = self.checkpoints.path(newest[0], rank)
            _log.warning("%s is passed over: not every rank finds its own part of it", path)
        if done:
            self._take_over(done, rank)

    def _take_over(self, done: int, rank: int | None) -> None:
        assert self.checkpoints is not None  # noqa: S101 - whoever calls this has found one there
        path = self.checkpoints.path(done, rank)
        found = self.checkpoints.newest(rank, at_most=done)
        if found is None or found[0] != done:
            raise UsageError(
                f"{path} is damaged, and another rank has no older one",
                hint=f"remove the checkpoints after {done} steps of all ranks to begin with those before",
            )
        self._load(found[1], done, rank)
        if self._stops_only:
            _log.warning("the job goes on after %d steps, where it was stopped: %s", done, path)

    def _load(self, tree: Mapping[str, Any], done: int, rank: int | None) -> None:
        assert self.checkpoints is not None  # noqa: S101 - as above
        try:
            self._work.load(tree, done)
            self.went_back()
        except (LumctlError, RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{self.checkpoints.path(done, rank)} does not fit this script: {' '.join(str(error).split())}",
                hint=self._to_begin_anew,
            ) from error

    @property
    def _to_begin_anew(self) -> str:
        assert self.checkpoints is not None  # noqa: S101 - as above
        where = f"{self.checkpoints.folder}{' on all hosts' if self._stops_only else ''}"
        return f"remove the checkpoints in {where} to begin anew"


def _told(dones: list[int]) -> str:
    return ", ".join(str(done) for done in dones if done) or "none"


def _gathered(ours: list[int], world: int, device: torch.device) -> list[list[int]]:
    """The numbers of all ranks, as many of each."""
    if world == 1:
        return [ours]
    sent = torch.tensor(ours, device=device)
    got = [torch.empty_like(sent) for _ in range(world)]
    dist.all_gather(got, sent)
    return [each.tolist() for each in got]
