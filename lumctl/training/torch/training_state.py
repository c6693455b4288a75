"""The training state of a worker: what steps change, what a failed step reverts, and what another worker loads."""

import copy
import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lumctl.errors import UsageError
from lumctl.training.protocol import REPLICATED, UNIQUE
from lumctl.training.torch.parts import StatefulPart, load_part, local_state, sharded_names
from lumctl.training.torch.states import Layout, StateSnapshot, lay_out


class TrainingState:
    """The state that steps change.

    A training step runs from :meth:`begin` to :meth:`end`, and counts as done when the optimiser has stepped. Until
    then :meth:`undo` reverts changes of the forward pass: buffers of modules, and small parts that are not modules.

    With ``parts=None`` the script makes new parts for each process group: it hands them over by :meth:`build`, and
    :meth:`undo` stores their state as plain tensors and releases them.
    """

    def __init__(
        self,
        parts: Mapping[str, StatefulPart] | None,
        *,
        layout: str,
        seed: int | None,
        shape: Callable[[int, int], None] | None = None,
    ) -> None:
        self.layout = layout
        self.done = 0
        self.counted = False
        """Whether the state already contains the current step."""
        self.is_built = parts is not None
        """Whether the parts are there."""
        self._made_per_group = parts is None
        self._stored: Mapping[str, Any] = {}
        """The state while there are no parts; empty before the first."""
        self._parts = dict(parts or {})
        self._seed = seed
        self._shape = shape
        self._shaped: tuple[int, int] | None = None
        self._under_way = False
        self._buffers: list[tuple[nn.Module, str, Tensor, Tensor]] = []
        self._small: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the script has no state."""
        return not self._parts and not self._made_per_group

    def shape(self, rank: int, world: int) -> None:
        """Give the parts the shape that a rank needs, unless they already have it."""
        if self._shape is not None and self._shaped != (rank, world):
            self._shape(rank, world)
            self._shaped = (rank, world)

    def build(self, parts: Mapping[str, StatefulPart]) -> None:
        """Take the parts that the script has made for the present group, and load the stored state into them.

        Raises:
            UsageError: the state does not fit the parts, or their layout is not that of the job.
        """
        sharded = [name for part in parts.values() for name in sharded_names(part)]
        if sharded and self.layout == REPLICATED:
            raise UsageError(
                f"each rank has a part of {sharded[0]}, but the layout of the job is {REPLICATED!r}",
                hint=f"pass layout={UNIQUE!r}",
            )
        self._parts, self.is_built = dict(parts), True
        stored, self._stored = self._stored, {}
        if stored:
            try:
                self.load(stored, self.done)
            except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
                raise UsageError(
                    f"the state after {self.done} steps does not fit these parts: {' '.join(str(error).split())}",
                    hint="make the same model in each call, or remove the checkpoints to start from the beginning",
                ) from error

    def begin(self, rank: int) -> None:
        """Begin a step: save the data that :meth:`undo` needs, and seed the random numbers."""
        self._under_way, self.counted = True, False
        self._buffers = [
            (module, name, buffer, buffer.detach().clone())
            for part in self._parts.values()
            if isinstance(part, nn.Module)
            for module in part.modules()
            for name, buffer in module._buffers.items()  # noqa: SLF001 - public methods do not return the owner
            if buffer is not None
        ]
        self._small = {
            name: copy.deepcopy(part.state_dict())
            for name, part in self._parts.items()
            if not isinstance(part, nn.Module | torch.optim.Optimizer)
        }
        self.seed_random(f"{self.done}/{rank}")

    def seed_random(self, place: str) -> None:
        """Seed the random numbers of `torch` and `random` for a place in the job, if the job has a seed."""
        if self._seed is not None:
            drawn = hashlib.blake2b(f"{self._seed}/{place}".encode(), digest_size=8).digest()
            random.seed(drawn)
            torch.manual_seed(int.from_bytes(drawn, "big"))

    def stepped(self) -> None:
        """Count the step: the optimiser has stepped.

        Raises:
            UsageError: the optimiser stepped twice in one training step; a failure in between could not be undone.
        """
        if not self._under_way:
            return
        if self.counted:
            raise UsageError(
                f"the optimiser stepped twice in step {self.done - 1}",
                hint="step the optimiser once in each `with step:`; accumulate gradients before it",
            )
        self.counted = True
        self.done += 1

    def end(self) -> None:
        """End a step; without an optimiser, the step counts now."""
        if self._under_way and not self.counted:
            self.stepped()
        self.cancel()

    def cancel(self) -> None:
        """End a step that has done nothing."""
        self._under_way = self.counted = False
        self._buffers, self._small = [], {}

    def undo(self) -> None:
        """Revert an interrupted step, unless the step counts already."""
        kept: dict[str, Any] = {}
        if self._under_way and not self.counted:
            kept = self._small
            for module, name, buffer, before in self._buffers:
                with torch.no_grad():
                    buffer.copy_(before)
                module._buffers[name] = buffer  # noqa: SLF001 - the forward pass may have replaced it
        self.cancel()
        if self._made_per_group:
            self._store(kept)
            return
        for name, kept_state in kept.items():
            self._parts[name].load_state_dict(kept_state)
        # An interrupted average may have replaced some of them.
        self._drop_gradients()

    def _store(self, kept: Mapping[str, Any]) -> None:
        """Store the state, with ``kept`` instead of what these parts have now, and release the parts."""
        if self.is_built:
            tree = {name: kept[name] if name in kept else local_state(part) for name, part in self._parts.items()}
            self._stored = StateSnapshot.take(tree, self.done).tree(copied=False)
            self._parts, self.is_built = {}, False

    def _drop_gradients(self) -> None:
        for part in self._parts.values():
            if isinstance(part, nn.Module | torch.optim.Optimizer):
                part.zero_grad(set_to_none=True)

    def tree(self) -> Mapping[str, Any]:
        """The state of all parts, by name, with the live tensors of this rank."""
        return {name: local_state(part) for name, part in self._parts.items()} if self.is_built else self._stored

    def laid_out(self) -> Layout:
        """The layout of the live tensors, for a parked worker."""
        return lay_out(self.tree())

    def snapshot(self, *, into: Tensor | None = None) -> StateSnapshot:
        """Copy the state; reuse ``into``, the bytes of an earlier snapshot, if the sizes are equal."""
        return StateSnapshot.take(self.tree(), self.done, into=into)

    def load(self, tree: Mapping[str, Any], done: int) -> None:
        """Replace the whole state.

        Raises:
            UsageError: the state has other parts; nothing was replaced.
        """
        if not self.is_built:
            self._stored, self.done = tree, done
            return
        if set(tree) != set(self._parts):
            raise UsageError(
                f"a state of {', '.join(sorted(tree))} does not fit a script that has {', '.join(sorted(self._parts))}",
                hint="all workers must run the same script",
            )
        for name, part in self._parts.items():
            load_part(part, tree[name])
        self._drop_gradients()
        self.done = done
