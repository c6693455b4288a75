"""What a worker works on: model, optimiser and whatever else belongs to the state, and how many steps are in it."""

import copy
import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lumctl.errors import UsageError
from lumctl.training.torch.states import Layout, StateSnapshot, lay_out

REPLICATED, UNIQUE = "replicated", "unique"


class StatefulPart(Protocol):
    """What has a state: a model, an optimiser, a scheduler, a sampler."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Take a state over."""
        ...


class TrainingState:
    """The state that steps change.

    Between :meth:`begin` and :meth:`end` a step is under way. The optimiser's step makes it count; until then
    :meth:`undo` takes back what the forward pass has changed: buffers of modules, and small parts that are no modules.
    """

    def __init__(
        self,
        parts: Mapping[str, StatefulPart],
        *,
        layout: str,
        seed: int | None,
        shape: Callable[[int, int], None] | None,
    ) -> None:
        self.layout = layout
        self.done = 0
        self.counted = False
        """The step that is under way is in the state already."""
        self._parts = dict(parts)
        self._seed = seed
        self._shape = shape
        self._shaped: tuple[int, int] | None = None
        self._under_way = False
        self._buffers: list[tuple[nn.Module, str, Tensor, Tensor]] = []
        self._small: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that has a state."""
        return not self._parts

    def shape(self, rank: int, world: int) -> None:
        """Bring the parts into the shape that a rank needs, unless they have it."""
        if self._shape is not None and self._shaped != (rank, world):
            self._shape(rank, world)
            self._shaped = (rank, world)

    # -- steps

    def begin(self, rank: int) -> None:
        """A step begins: note what it may have to take back, and draw its random numbers anew."""
        self._under_way, self.counted = True, False
        self._buffers = [
            (module, name, buffer, buffer.detach().clone())
            for part in self._parts.values()
            if isinstance(part, nn.Module)
            for module in part.modules()
            for name, buffer in module._buffers.items()  # noqa: SLF001 - the public ways name no owner
            if buffer is not None
        ]
        self._small = {
            name: copy.deepcopy(part.state_dict())
            for name, part in self._parts.items()
            if not isinstance(part, nn.Module | torch.optim.Optimizer)
        }
        if self._seed is not None:
            drawn = hashlib.blake2b(f"{self._seed}/{self.done}/{rank}".encode(), digest_size=8).digest()
            random.seed(drawn)
            torch.manual_seed(int.from_bytes(drawn, "big"))

    def stepped(self) -> None:
        """The optimiser has stepped.

        Raises:
            UsageError: for the second time in one step: no failure in between could be made good.
        """
        if not self._under_way:
            return
        if self.counted:
            raise UsageError(
                f"the optimiser stepped twice in step {self.done - 1}",
                hint="one `with step:` holds one step of the optimiser; sum up gradients before it",
            )
        self.counted = True
        self.done += 1

    def end(self) -> None:
        """The body of a step came to its end; without an optimiser's step it counts now."""
        if self._under_way and not self.counted:
            self.stepped()
        self._forget()

    def undo(self) -> None:
        """The body of a step broke: unless it counts already, the state is what it was before."""
        if self._under_way and not self.counted:
            for module, name, buffer, kept in self._buffers:
                with torch.no_grad():
                    buffer.copy_(kept)
                module._buffers[name] = buffer  # noqa: SLF001 - where the forward pass put another in its place
            for name, kept_state in self._small.items():
                self._parts[name].load_state_dict(kept_state)
        self._forget()
        self._drop_gradients()

    def _forget(self) -> None:
        self._under_way = self.counted = False
        self._buffers, self._small = [], {}

    def _drop_gradients(self) -> None:
        for part in self._parts.values():
            if isinstance(part, nn.Module | torch.optim.Optimizer):
                part.zero_grad(set_to_none=True)

    # -- the state as a whole

    def tree(self) -> dict[str, Any]:
        """The state of all parts, by their names; its tensors are the live ones."""
        return {name: part.state_dict() for name, part in self._parts.items()}

    def laid_out(self) -> Layout:
        """Where the live tensors lie, for a worker that is parked."""
        return lay_out(self.tree())

    def snapshot(self, *, into: Tensor | None = None) -> StateSnapshot:
        """A copy of the state, in the place of an earlier one if it fits."""
        return StateSnapshot.take(self.tree(), self.done, into=into)

    def load(self, tree: Mapping[str, Any], done: int) -> None:
        """Replace the whole state.

        Raises:
            UsageError: the state is of other parts; nothing was replaced.
        """
        if set(tree) != set(self._parts):
            raise UsageError(
                f"a state of {', '.join(sorted(tree))} does not fit a script that has {', '.join(sorted(self._parts))}",
                hint="all workers must run the same script",
            )
        for name, part in self._parts.items():
            part.load_state_dict(tree[name])
        self._drop_gradients()
        self.done = done
