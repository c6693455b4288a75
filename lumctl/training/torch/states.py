"""States as raw bytes and a description in JSON: what goes from one worker to another carries no pickle."""

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lumctl.errors import UsageError

ALIGNED = 64
"""Each tensor begins at a multiple of so many bytes: any kind of number may be read in place."""

_PLAIN = (str, int, float, bool, type(None))


class BrokenStateError(ValueError):
    """A description does not fit its bytes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tensors of a state lie in its bytes. They are the state's own, not copies."""

    meta: Any
    tensors: tuple[Tensor, ...]
    size: int

    def pieces(self) -> Iterator[memoryview]:
        """The bytes in order, padding included. Tensors that are not in the memory of the host are brought there."""
        for tensor in self.tensors:
            here = tensor.detach().contiguous().cpu()
            data = memory(here)
            yield data
            if padding := -len(data) % ALIGNED:
                yield memoryview(bytes(padding))


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A state as it was after ``done`` steps; ``data`` are its bytes."""

    done: int
    meta: Any
    data: Tensor

    @classmethod
    def take(cls, tree: Mapping[str, Any], done: int, *, into: Tensor | None = None) -> "StateSnapshot":
        """Copy a state, into the bytes of an earlier snapshot if these are as many."""
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
        """The state again.

        An optimiser keeps the tensors it is given: without a copy, its next step changes this snapshot.

        Raises:
            BrokenStateError: the description does not fit.
        """
        try:
            found = _build(self.meta, self.data, copied=copied)
        except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            raise BrokenStateError(f"a state that cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise BrokenStateError("a state that is no dictionary")
        return found


def lay_out(tree: Mapping[str, Any]) -> Layout:
    """Describe a state and list its tensors.

    Raises:
        UsageError: it holds what is neither a tensor nor plain data.
    """
    tensors: list[Tensor] = []
    size = 0

    def describe(value: Any, path: str) -> Any:
        nonlocal size
        if isinstance(value, Tensor):
            if type(value) not in {Tensor, torch.nn.Parameter, torch.nn.Buffer} or value.layout != torch.strided:
                raise UsageError(
                    f"{path} is a {type(value).__name__}, which cannot be handed from one worker to another",
                    hint="let state_dict give the part of this rank as plain tensors",
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
            f"{path} is a {type(value).__name__}, which cannot be handed from one worker to another",
            hint="state_dict may hold tensors, numbers, texts, lists and dictionaries",
        )

    return Layout(describe(tree, "state"), tuple(tensors), size)


def memory(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor in the host's memory, in place; the tensor must outlive them."""
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
            raise BrokenStateError("a tensor that is not in its bytes")
        found = data[meta["at"] : meta["at"] + meta["n"]].view(dtype).reshape(meta["shape"])
        return found.clone() if copied else found
    if "d" in meta:
        return {_build(key, data, copied=copied): _build(item, data, copied=copied) for key, item in meta["d"]}
    items = [_build(item, data, copied=copied) for item in meta["l" if "l" in meta else "u"]]
    return items if "l" in meta else tuple(items)
