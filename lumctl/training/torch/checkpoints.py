"""Checkpoints on disk: when they are written (atomically, two kept per rank), and which one is loaded."""

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
from lumctl.training.protocol import UNIQUE
from lumctl.training.torch.collectives import level
from lumctl.training.torch.training_state import TrainingState

KEPT = 2
_NAME = re.compile(r"step-(\d+)(?:-rank-(\d+))?\.pt")
_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)
_log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of a job in a folder. ``rank`` is ``None`` for a state that is the same on every rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, tree: Mapping[str, Any], done: int, rank: int | None) -> Path:
        """Write a checkpoint to the disk, and remove all older ones but the newest of them.

        Raises:
            UsageError: the checkpoint cannot be written; existing ones stay.
        """
        path = self.path(done, rank)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_unfinished(rank)
            with beside.open("xb") as file:
                _lock(file)
                torch.save({"format": 1, "done": done, "rank": rank, "state": dict(tree)}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            # The new name must be on the disk too.
            _sync(self.folder)
        except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
            with suppress(OSError):
                beside.unlink()
            raise UsageError(f"checkpoint {path} cannot be written: {error}", hint="free space there") from error
        others = [each for _, each in self.found(rank) if each != path]
        for old in others[KEPT - 1 :]:
            with suppress(OSError):
                old.unlink()
        return path

    def forget_after(self, done: int, rank: int | None, *, but: Collection[Path] = ()) -> None:
        """Remove a rank's checkpoints of states after more than ``done`` steps."""
        for newer, path in self.found(rank):
            if newer > done and path not in but:
                with suppress(OSError):
                    path.unlink()

    def _remove_unfinished(self, rank: int | None) -> None:
        """Remove the unfinished files of killed writers; a writer at work holds a lock."""
        for path in self.folder.glob(".step-*.pt.*"):
            match = _NAME.fullmatch(path.stem[1:])
            if match and match[2] == _rank_text(rank):
                with suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()

    def path(self, done: int, rank: int | None) -> Path:
        """The file of a rank's checkpoint after ``done`` steps."""
        return self.folder / (f"step-{done:08d}.pt" if rank is None else f"step-{done:08d}-rank-{rank}.pt")

    def found(self, rank: int | None) -> list[tuple[int, Path]]:
        """The existing checkpoints of a rank, newest first, as pairs of steps done and file."""
        try:
            named = [(path, _NAME.fullmatch(path.name)) for path in self.folder.iterdir()]
        except OSError:
            return []
        whose = _rank_text(rank)
        return sorted(((int(match[1]), path) for path, match in named if match and match[2] == whose), reverse=True)

    def clear(self) -> None:
        """Remove the checkpoints of all ranks."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                if _NAME.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def whole(self, rank: int | None) -> list[int]:
        """The steps done in each undamaged checkpoint of a rank, newest first."""
        return [done for done, path in self.found(rank) if _whole(path)]

    def newest(self, rank: int | None, *, at_most: int | None = None) -> tuple[int, dict[str, Any]] | None:
        """The newest state that can be read; damaged ones are skipped with a warning."""
        for done, path in self.found(rank):
            if at_most is not None and done > at_most:
                continue
            try:
                return read(path)
            except UsageError as error:
                _log.warning("%s; the previous one is used", error.message)
        return None


def of_rank(path: Path, rank: int) -> Path:
    """The file of one rank in the checkpoint that ``path`` belongs to; ``path`` itself if all ranks share it."""
    match = _NAME.fullmatch(path.name)
    return path if match is None or match[2] is None else path.with_name(f"step-{match[1]}-rank-{rank}.pt")


def read(path: Path) -> tuple[int, dict[str, Any]]:
    """Read a checkpoint; return steps done and state.

    Raises:
        UsageError: the file is missing, damaged, or not a checkpoint.
    """
    try:
        if not _whole(path):
            raise ValueError("it is damaged" if path.exists() else "it does not exist")
        # Anybody may have made the file: weights_only runs no code of it.
        found = torch.load(path, map_location="cpu", weights_only=True)
        done, state = found["done"], found["state"]
        if found["format"] != 1 or not isinstance(done, int) or not isinstance(state, dict):
            raise ValueError("it is not a checkpoint of a job")
    except (*_UNREADABLE, TypeError) as error:
        raise UsageError(f"checkpoint {path} cannot be read: {error}") from error
    return done, state


def _rank_text(rank: int | None) -> str | None:
    return None if rank is None else str(rank)


def _lock(file: BinaryIO) -> None:
    with suppress(OSError):  # on a file system without locks, unfinished files stay
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
"""The folder, in a job's folder on a host, for the checkpoints that a stop writes."""


class Persistence:
    """Writes a job's checkpoints (periodically, at its end, and at a stop), and loads the newest one."""

    def __init__(self, state: TrainingState, folder: Path | None, every: int) -> None:
        self.checkpoints = Checkpoints(folder) if folder is not None else None
        self._state, self._every = state, every
        self._stops_only = False
        self._gone_back_to = 0
        self._written: set[Path] = set()
        """The checkpoints written since the job last returned to an earlier step."""

    def keep_stops_in(self, folder: Path) -> None:
        """Write checkpoints only at stops, into this folder, because the script names no folder."""
        if not self._state.is_empty:
            self.checkpoints, self._every, self._stops_only = Checkpoints(folder), 0, True

    def over(self) -> None:
        """Remove the checkpoints of stops: all steps are done, and the next run starts from the beginning."""
        if self._stops_only and self.checkpoints is not None:
            self.checkpoints.clear()

    def due(self, rank: int) -> bool:
        """Whether this rank writes a checkpoint after the step just done."""
        return self._writes(rank) and self._state.done % self._every == 0

    def due_at_end(self, rank: int) -> bool:
        """Whether this rank writes a last checkpoint when all steps are done."""
        return self._writes(rank) and self._state.done % self._every != 0

    def _writes(self, rank: int) -> bool:
        """Whether this rank writes periodic checkpoints."""
        own = self._state.layout == UNIQUE or rank == 0
        return own and self.checkpoints is not None and self._every > 0

    def save(self, rank: int, *, tree: Mapping[str, Any] | None = None, done: int | None = None) -> Path | None:
        """Write the current state or a given one; return the file, or ``None`` with a warning if that fails."""
        if self.checkpoints is None:
            return None
        if tree is None or done is None:
            tree, done = self._state.tree(), self._state.done
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
        """Note that the job continues from the current step: checkpoints of later steps are invalid.

        The next save removes these checkpoints; otherwise they would count as the newest.
        """
        self._gone_back_to, self._written = self._state.done, set()

    def of(self, rank: int) -> int | None:
        """The rank in the name of a rank's checkpoint; ``None`` if all ranks share one."""
        return rank if self._state.layout == UNIQUE else None

    def resume(self) -> None:
        """Load the newest checkpoint of a replicated state, if there is one.

        A checkpoint that a stop left on this host is not loaded here, but by all ranks together: see :meth:`level`.

        Raises:
            UsageError: the checkpoint does not fit.
        """
        if self.checkpoints is None or self._stops_only:
            return
        if (found := self.checkpoints.newest(None)) is not None:
            self._load(found[1], found[0], None)

    def level(self, rank: int, world: int, device: torch.device) -> None:
        """Bring all ranks to one state: the newest state that a stop left on any rank's host, or the state of rank 0.

        Each host has a folder of its own, and a rank may be on another host than before.

        Raises:
            UsageError: the checkpoint of a stop is damaged, or does not fit.
            RuntimeError: the group broke.
        """
        source = 0
        if self._stops_only and self.checkpoints is not None:
            newest = [done for (done,) in _gathered(self.checkpoints.whole(None)[:1] or [0], world, device)]
            source = newest.index(max(newest))
            if rank == source and newest[source]:
                self._load_newest(newest[source], None)
        if world > 1:
            level(self._state, rank, device, source=source)

    def agree(self, rank: int, world: int, device: torch.device) -> None:
        """Load the newest checkpoint of which every rank has its own part. All ranks call this.

        Raises:
            UsageError: the checkpoint is damaged or does not fit, or checkpoints exist but none for all ranks.
            RuntimeError: the group broke.
        """
        if self.checkpoints is None:
            return
        newest = self.checkpoints.whole(rank)[:KEPT]
        # All lists need one length; 0 stands for no checkpoint.
        theirs = _gathered([*newest, *[0] * (KEPT - len(newest))], world, device)
        done = max(set.intersection(*(set(each) for each in theirs)), default=0)
        if not done and any(map(any, theirs)):
            shown = "; ".join(f"rank {at}: {_steps_text(each)}" for at, each in enumerate(theirs))
            raise UsageError(
                f"{self.checkpoints.folder} has no checkpoint of all ranks ({shown})",
                hint=f"copy the missing ones to the host of their rank, or {self._restart_hint}",
            )
        if newest and newest[0] > done:
            path = self.checkpoints.path(newest[0], rank)
            _log.warning("%s is skipped: not every rank finds its own part", path)
        if done:
            self._load_newest(done, rank)

    def _load_newest(self, done: int, rank: int | None) -> None:
        assert self.checkpoints is not None  # noqa: S101 - the caller has found a checkpoint
        path = self.checkpoints.path(done, rank)
        found = self.checkpoints.newest(rank, at_most=done)
        if found is None or found[0] != done:
            raise UsageError(
                f"{path} is damaged, and another rank has no older checkpoint",
                hint=f"to use earlier checkpoints, remove those after {done} steps of all ranks",
            )
        self._load(found[1], done, rank)
        if self._stops_only:
            _log.warning("the job continues after %d steps, where it was stopped: %s", done, path)

    def _load(self, tree: Mapping[str, Any], done: int, rank: int | None) -> None:
        assert self.checkpoints is not None  # noqa: S101 - as above
        try:
            self._state.load(tree, done)
            self.went_back()
        except (LumctlError, RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{self.checkpoints.path(done, rank)} does not fit this script: {' '.join(str(error).split())}",
                hint=self._restart_hint,
            ) from error

    @property
    def _restart_hint(self) -> str:
        assert self.checkpoints is not None  # noqa: S101 - as above
        where = f"{self.checkpoints.folder}{' on all hosts' if self._stops_only else ''}"
        return f"remove the checkpoints in {where} to start from the beginning"


def _steps_text(dones: list[int]) -> str:
    return ", ".join(str(done) for done in dones if done) or "none"


def _gathered(ours: list[int], world: int, device: torch.device) -> list[list[int]]:
    """The lists of all ranks; all lists have equal lengths."""
    if world == 1:
        return [ours]
    sent = torch.tensor(ours, device=device)
    got = [torch.empty_like(sent) for _ in range(world)]
    dist.all_gather(got, sent)
    return [each.tolist() for each in got]
