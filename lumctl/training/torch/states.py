"""The training state of a worker, and states as raw bytes with a JSON description, so that no pickle is transferred."""

import copy
import ctypes
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lumctl.errors import UsageError

ALIGNED = 64
"""The alignment of tensors in bytes: numbers of any type can be read in place."""

_PLAIN = (str, int, float, bool, type(None))


class BrokenStateError(ValueError):
    """A description does not fit its bytes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a state's tensors in its bytes. The tensors belong to the state; they are not copies."""

    meta: Any
    tensors: tuple[Tensor, ...]
    size: int

    def pieces(self) -> Iterator[memoryview]:
        """The bytes in order, padding included. Tensors on other devices are copied to the host."""
        for tensor in self.tensors:
            here = tensor.detach().contiguous().cpu()
            data = memory(here)
            yield data
            if padding := -len(data) % ALIGNED:
                yield memoryview(bytes(padding))


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A copy of a state after ``done`` steps; ``data`` holds its bytes."""

    done: int
    meta: Any
    data: Tensor

    @classmethod
    def take(cls, tree: Mapping[str, Any], done: int, *, into: Tensor | None = None) -> "StateSnapshot":
        """Copy a state; reuse ``into``, the bytes of an earlier snapshot, if the sizes are equal."""
        laid = lay_out(tree)
        data = into if into is not None and len(into) == laid.size else torch.empty(laid.size, dtype=torch.uint8)
        at = 0
        for tensor in laid.tensors:
            n = tensor.numel() * tensor.element_size()
            if n:
                data[at : at + n].view(tensor.dtype).copy_(tensor.detach().reshape(-1))
            at += n + -n % ALIGNED
        return cls(done, laid.meta, data)

    def tree(self, *, copied: bool = True) -> dict[str, Any]:
        """The state as a tree.

        An optimiser keeps the tensors that it loads: without a copy, its next step changes this snapshot.

        Raises:
            BrokenStateError: the description does not fit the bytes.
        """
        try:
            found = _build(self.meta, self.data, copied=copied)
        except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            raise BrokenStateError(f"an unreadable state: {error}") from error
        if not isinstance(found, dict):
            raise BrokenStateError("a state that is not a dictionary")
        return found


def lay_out(tree: Mapping[str, Any]) -> Layout:
    """Describe a state and list its tensors.

    Raises:
        UsageError: the state contains something other than tensors and plain data.
    """
    tensors: list[Tensor] = []
    size = 0

    def describe(value: Any, path: str) -> Any:
        nonlocal size
        if isinstance(value, Tensor):
            # A sparse tensor, or a subclass such as DTensor, does not hold its values in one piece of memory.
            if type(value) not in {Tensor, torch.nn.Parameter, torch.nn.Buffer} or value.layout != torch.strided:
                raise UsageError(
                    f"{path} is a {type(value).__name__}, which cannot be sent from one worker to another",
                    hint="let state_dict return the part of this rank as plain tensors",
                )
            n = value.numel() * value.element_size()
            found = {"t": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "at": size, "n": n}
            tensors.append(value)
            size += n + -n % ALIGNED
            return found
        if isinstance(value, Mapping):
            return {"d": [[describe(key, path), describe(item, f"{path}.{key}")] for key, item in value.items()]}
        if isinstance(value, list | tuple):
            kind = "l" if isinstance(value, list) else "u"
            return {kind: [describe(item, f"{path}[{index}]") for index, item in enumerate(value)]}
        if type(value) in _PLAIN:
            return value
        raise UsageError(
            f"{path} is a {type(value).__name__}, which cannot be sent from one worker to another",
            hint="state_dict may contain tensors, numbers, texts, lists and dictionaries",
        )

    return Layout(describe(tree, "state"), tuple(tensors), size)


def memory(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the host, in place; the tensor must outlive them."""
    n = tensor.numel() * tensor.element_size()
    if not n:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * n).from_address(tensor.data_ptr())).cast("B")


def _build(meta: Any, data: Tensor, *, copied: bool) -> Any:
    if not isinstance(meta, dict):
        if type(meta) in _PLAIN:
            return meta
        raise BrokenStateError(f"a {type(meta).__name__}")
    if "t" in meta:
        dtype = getattr(torch, meta["t"])
        if not isinstance(dtype, torch.dtype) or not 0 <= meta["at"] <= meta["at"] + meta["n"] <= len(data):
            raise BrokenStateError("a tensor that its bytes do not contain")
        found = data[meta["at"] : meta["at"] + meta["n"]].view(dtype).reshape(meta["shape"])
        return found.clone() if copied else found
    if "d" in meta:
        return {_build(key, data, copied=copied): _build(item, data, copied=copied) for key, item in meta["d"]}
    items = [_build(item, data, copied=copied) for item in meta["l" if "l" in meta else "u"]]
    return items if "l" in meta else tuple(items)


class StatefulPart(Protocol):
    """A part with a state: a model, an optimiser, a scheduler, a sampler."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Replace its state."""
        ...


class TrainingState:
    """The state that steps change.

    A training step runs from :meth:`begin` to :meth:`end`, and counts as done when the optimiser has stepped. Until
    then :meth:`undo` reverts changes of the forward pass: buffers of modules, and small parts that are not modules.
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
        """Whether the state already contains the current step."""
        self._parts = dict(parts)
        self._seed = seed
        self._shape = shape
        self._shaped: tuple[int, int] | None = None
        self._under_way = False
        self._buffers: list[tuple[nn.Module, str, Tensor, Tensor]] = []
        self._small: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there are no parts."""
        return not self._parts

    def shape(self, rank: int, world: int) -> None:
        """Give the parts the shape that a rank needs, unless they already have it."""
        if self._shape is not None and self._shaped != (rank, world):
            self._shape(rank, world)
            self._shaped = (rank, world)

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
        if self._seed is not None:
            drawn = hashlib.blake2b(f"{self._seed}/{self.done}/{rank}".encode(), digest_size=8).digest()
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
        self._forget()

    def undo(self) -> None:
        """Revert an interrupted step, unless the step counts already."""
        if self._under_way and not self.counted:
            for module, name, buffer, kept in self._buffers:
                with torch.no_grad():
                    buffer.copy_(kept)
                module._buffers[name] = buffer  # noqa: SLF001 - the forward pass may have replaced it
            for name, kept_state in self._small.items():
                self._parts[name].load_state_dict(kept_state)
        self._forget()
        # An interrupted average may have replaced some of them.
        self._drop_gradients()

    def _forget(self) -> None:
        self._under_way = self.counted = False
        self._buffers, self._small = [], {}

    def _drop_gradients(self) -> None:
        for part in self._parts.values():
            if isinstance(part, nn.Module | torch.optim.Optimizer):
                part.zero_grad(set_to_none=True)

    def tree(self) -> dict[str, Any]:
        """The state of all parts, by name, with the live tensors."""
        return {name: part.state_dict() for name, part in self._parts.items()}

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
        if set(tree) != set(self._parts):
            raise UsageError(
                f"a state of {', '.join(sorted(tree))} does not fit a script that has {', '.join(sorted(self._parts))}",
                hint="all workers must run the same script",
            )
        for name, part in self._parts.items():
            part.load_state_dict(tree[name])
        self._drop_gradients()
        self.done = done
