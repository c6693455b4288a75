"""The parts of a training state, among them the shards of FSDP2 and of tensor parallelism (DTensor).

A rank stores and sends the local tensor of a shard. The rank that loads it has made the same shards, so their mesh and
placement are known there.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lumctl.errors import UsageError


class StatefulPart(Protocol):
    """A part with a state: a model, an optimiser, a scheduler, a sampler."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Replace its state."""
        ...


def local_state(part: StatefulPart) -> Any:
    """The state of a part, with the local tensors of shards.

    Raises:
        UsageError: the state of an optimiser is divided in another way than its parameters.
    """
    state = part.state_dict()
    if _dtensor() is not None and isinstance(part, torch.optim.Optimizer):
        _require_alike(part, state)
    return _local(state)


def sharded_names(part: StatefulPart) -> Iterator[str]:
    """The names of the tensors of a module of which this rank has a part only."""
    if isinstance(part, nn.Module) and _dtensor() is not None:
        for name, value in part.state_dict().items():
            if _is_shard(value) and not all(placement.is_replicate() for placement in value.placements):
                yield name


def load_part(part: StatefulPart, state: Any) -> None:
    """Load a state with local tensors into a part, whose shards stay shards."""
    if not isinstance(part, nn.Module | torch.optim.Optimizer):
        state = _cloned(state)
    elif _dtensor() is not None:
        if isinstance(part, nn.Module):
            own = part.state_dict()
            state = {name: _as(value, own.get(name)) for name, value in state.items()}
        else:
            parameters = _parameters(part)
            state = {**state, "state": {i: _as_all(each, parameters[i]) for i, each in state["state"].items()}}
    part.load_state_dict(state)


def _dtensor() -> Any:
    """The class of shards; ``None`` if nothing has imported it, so that there are no shards. The import takes long."""
    module = sys.modules.get("torch.distributed.tensor")
    return None if module is None else module.DTensor


def _is_shard(value: Any) -> bool:
    kind = _dtensor()
    return kind is not None and isinstance(value, kind)


def _local(value: Any) -> Any:
    if _is_shard(value):
        return value.to_local()
    if isinstance(value, Mapping):
        return {key: _local(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_local, value)) if type(value) in {list, tuple} else value
    return value


def _cloned(value: Any) -> Any:
    """A copy in which no tensor is a view: `torch.Generator.set_state` ignores the offset of one."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: _cloned(item) for key, item in value.items()}
    return type(value)(map(_cloned, value)) if type(value) in {list, tuple} else value


def _as(local: Any, like: Any) -> Any:
    """A local tensor as a shard like the given one; unchanged if that is none."""
    if not _is_shard(like) or not isinstance(local, Tensor):
        return local
    here = local.to(like.to_local().device)
    return _dtensor().from_local(
        here, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def _as_all(state: Mapping[str, Any], parameter: Tensor) -> dict[str, Any]:
    """The state of one parameter: a tensor of the local shape is divided as the parameter is."""
    if not _is_shard(parameter):
        return dict(state)
    shape = parameter.to_local().shape  # type: ignore[attr-defined]
    alike = {name: isinstance(value, Tensor) and value.shape == shape for name, value in state.items()}
    return {name: _as(value, parameter) if alike[name] else value for name, value in state.items()}


def _require_alike(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    parameters = _parameters(optimizer)
    for index, each in state["state"].items():
        for name, value in each.items():
            if _is_shard(value) and value.placements != parameters[index].placements:
                raise UsageError(
                    f"{type(optimizer).__name__} divides its {name} in another way than the parameter",
                    hint="use an optimiser whose state has the shape of its parameters, such as AdamW",
                )


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The parameters in the order in which an optimiser numbers them."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
