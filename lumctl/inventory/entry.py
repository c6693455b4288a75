"""What every mapping of an inventory file has in common: it remembers where it was written."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, StringConstraints, model_validator

from lumctl.inventory.positions import MarkedDict, MarkedList
from lumctl.inventory.problems import Mark

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class Entry(BaseModel):
    """A mapping of the file that remembers where it was written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    _written: MarkedDict = PrivateAttr(default_factory=lambda: MarkedDict(Mark(1, 1)))

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, MarkedDict):
            return handler(data)
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
        """The place of the value of ``key``, or of the entry if the key was not written.

        If the value is a list of ``of`` items, the place of item number ``item``.
        """
        value = self._written.get(key)
        if isinstance(value, MarkedList) and 0 <= item < of == len(value):
            return value.item_marks[item]
        return self._written.value_marks.get(key, self._written.at)

    def cut(self, *keys: str) -> bool:
        """Whether one of these keys was written and taken out, because its value did not fit: do not miss it."""
        return any(key in self._written.cut and key not in self._written for key in keys)

    def item_mark(self, key: str, item: Any) -> Mark:
        """The place of the value of ``item`` in the mapping under ``key``."""
        value = self._written.get(key)
        return value.key_marks.get(item, value.at) if isinstance(value, MarkedDict) else self.mark(key)
