"""An observation as bytes, between the daemon and those who ask it.

The inventory is left out, for both sides have it; so are the unread leaves of nvidia-smi, which nobody asks for.
JSON has no infinities, and no light is minus infinity: it is written as Python's ``json`` writes it.
"""

from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from lumctl import __version__
from lumctl.inventory.model import Inventory
from lumctl.site.observation import Observation

SCHEMA = f"lumctl/daemon-state/v1 {__version__}"
"""Both sides must be of one version: the fields are those of its own types."""
_LEFT_OUT = {"snapshot": {"hosts": {"__all__": {"gpus": {"__all__": {"raw"}}}}}}


def encode(observation: Observation) -> bytes:
    """All of an observation but its inventory; what is as its type has it anyway is left out, for most of it is."""
    look = _model().model_construct(**{name: getattr(observation, name) for name in _names()})
    return look.model_dump_json(exclude=_LEFT_OUT, exclude_defaults=True).encode()


def decode(data: bytes, inventory: Inventory) -> Observation:
    """The observation of this inventory.

    Raises:
        ValueError: this is none.
    """
    look = _model().model_validate_json(data)
    return Observation(inventory=inventory, **{name: getattr(look, name) for name in _names()})


@cache
def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Observation) if field.name != "inventory")


@cache
def _model() -> type[BaseModel]:
    """Made from the observation's own fields when first needed: it takes longer than to find that no daemon runs."""
    hints = get_type_hints(Observation)
    members: dict[str, Any] = {name: (hints[name], ...) for name in _names()}
    return create_model("Look", __config__=ConfigDict(ser_json_inf_nan="constants"), **members)
