"""Load the state that the job resumes from into a parked worker."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.training.torch.agent_link import AgentLink
from lumctl.training.torch.checkpoints import of_rank, read
from lumctl.training.torch.copies import Copies
from lumctl.training.torch.environment import Membership
from lumctl.training.torch.failures import in_short
from lumctl.training.torch.state_transfer import Fetcher, NotHereError, StateTransferError, WantedState
from lumctl.training.torch.states import BrokenStateError, Layout, StateSnapshot
from lumctl.training.torch.training_state import REPLICATED, UNIQUE, TrainingState
from lumctl.training.wire import Message


class StateLoader:
    """Finds states for other workers, and loads states from others, from own copies, or from a file."""

    def __init__(self, work: TrainingState, membership: Membership, copies: Copies, token: str) -> None:
        self.fetcher = Fetcher(token)
        self._work, self._membership, self._copies = work, membership, copies

    def find(self, wanted: WantedState) -> Layout:
        """A state that another worker asks for; this one is parked.

        Raises:
            NotHereError: it is not here.
        """
        if self._work.layout == REPLICATED:
            if wanted.done != self._work.done:
                raise NotHereError(f"this worker has done {self._work.done} steps, not {wanted.done}")
            return self._work.laid_out()
        kept = self._kept(wanted)
        return Layout(kept.meta, (kept.data,), len(kept.data))

    def load(self, order: Message, control: AgentLink, holds: int) -> None:
        """Take over the state that the coordinator has chosen, and say so.

        Raises:
            UsageError: it does not fit this script, or the script cannot have the rank that it is for.
        """
        began = time.monotonic()
        wanted = WantedState(int(order["done"]), None if order.get("of") is None else int(order["of"]))
        if order.get("world") is not None and wanted.of is not None:
            self._work.shape(wanted.of, int(order["world"]))
        try:
            tree, size = self._found(order, wanted, lambda: control.holds == holds)
        except (StateTransferError, NotHereError, BrokenStateError) as error:
            if control.holds == holds:
                control.say("unloaded", done=wanted.done, error=in_short(error))
            return
        if tree is not None:
            self._work.load(tree, wanted.done)
        control.say("loaded", done=wanted.done, bytes=size, seconds=time.monotonic() - began)

    def _found(
        self, order: Message, wanted: WantedState, still: Callable[[], bool]
    ) -> tuple[dict[str, Any] | None, int]:
        """A state and its size in bytes; ``None`` if the current state is the one."""
        if order.get("file"):
            path = of_rank(Path(order["file"]), wanted.of or 0)
            try:
                done, tree = read(path)
            except UsageError as error:
                raise NotHereError(error.message) from error
            if done != wanted.done:
                raise NotHereError(f"{path} is the state after {done} steps")
            return tree, path.stat().st_size
        if order.get("source"):
            host, port = order["source"]
            fetched = self.fetcher.fetch((str(host), int(port)), wanted, still=still)
            if self._work.layout == UNIQUE and wanted.of is not None:
                self._copies.keep(wanted.of, fetched)  # a second failure may find nobody else who has it
                return fetched.tree(), len(fetched.data)
            return fetched.tree(copied=False), len(fetched.data)
        if self._work.layout == REPLICATED and wanted.done == self._work.done:
            return None, 0
        kept = self._kept(wanted)
        return kept.tree(), len(kept.data)

    def _kept(self, wanted: WantedState) -> StateSnapshot:
        rank = self._membership.rank if wanted.of is None else wanted.of
        kept = self._copies.find(rank, wanted.done)
        if kept is None:
            raise NotHereError(f"no state of rank {rank} after {wanted.done} steps is kept here")
        return kept
