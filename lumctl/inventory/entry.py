"""The base of all mappings of an inventory file: each remembers its place in the file."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    Tag,
    model_validator,
)

from lumctl.inventory.positions import MarkedDict, MarkedList
from lumctl.inventory.problems import Mark

MOST_TEXT = 1024
Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_TEXT)]
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""The pattern of an environment variable's name."""
Number = Annotated[int, Field(ge=0, le=1_000_000)]
T = TypeVar("T")


def one_or_many(value: Any) -> str:
    """The variant of :data:`OneOrMany` that a value is of."""
    return "many" if isinstance(value, list) else "one"


# The variant is chosen by the value's type, not by trial. So an item of a wrong type is reported once, at the item.
OneOrMany = Annotated[
    Annotated[T, Tag("one")] | Annotated[list[T], Field(min_length=1), Tag("many")], Discriminator(one_or_many)
]


class Entry(BaseModel):
    """A mapping of the file that remembers its position."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    _written: MarkedDict = PrivateAttr(default_factory=lambda: MarkedDict(Mark(1, 1)))

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, MarkedDict):
            return handler(data)
        # Before validation, because the error for an unknown key lists the valid ones.
        data.valid_keys = tuple(cls.model_fields)
        entry = handler(data)
        entry._written = data  # noqa: SLF001 - its own
        return entry

    @property
    def written(self) -> MarkedDict:
        """The mapping in the file."""
        return self._written

    @property
    def at(self) -> Mark:
        """The place of the entry."""
        return self._written.at

    def mark(self, key: str, item: int = 0, of: int = 0) -> Mark:
        """The place of the value of ``key``, or of the entry if the file does not have the key.

        If the value is a list of ``of`` items, it is the place of item number ``item``.
        """
        value = self._written.get(key)
        # A list of folded names stands for more names than it has items: then only the whole has a place.
        if isinstance(value, MarkedList) and 0 <= item < of == len(value):
            return value.item_marks[item]
        return self._written.value_marks.get(key, self._written.at)

    def cut(self, *keys: str) -> bool:
        """Whether one of these keys was removed because its value was invalid: then it is not reported as missing."""
        return any(key in self._written.cut and key not in self._written for key in keys)

    def item_mark(self, key: str, item: Any) -> Mark:
        """The place of the value of ``item`` in the mapping under ``key``."""
        value = self._written.get(key)
        return value.key_marks.get(item, value.at) if isinstance(value, MarkedDict) else self.mark(key)


MOST_TIME_S = 3600.0
Time = Annotated[float, Field(gt=0, le=MOST_TIME_S, allow_inf_nan=False)]


class JobKindEntry(Entry):
    """The settings that all installed kinds of control share; the operator's own programs have others."""

    kind: Text = Field(description="How the job is controlled: the name of an installed kind.")
    timeout_s: Time = Field(30.0, description="Time limit in seconds for pausing or resuming the job.")
    on_sim: bool = Field(default=False, description="Also act on target sim: for a job that runs on the simulator.")

    def complaints(self, hosts: Collection[str]) -> Iterator[tuple[Mark, str]]:
        """Errors with regard to the rest of the inventory. ``hosts`` are the names of the hosts in the job's rack."""
        del hosts
        yield from ()
