"""The base of all screens: it binds the screen's keys from the registry, and the key to go back."""

from typing import Any, ClassVar, TypeVar

from textual.screen import Screen

from lumctl.tui.keys import KEYS, ScreenKeys, bindings
from lumctl.tui.screens.requests import WorkKind, WorkWanted
from lumctl.tui.views.subject import WorkSubject

Result = TypeVar("Result")


class KeyedScreen(Screen[Result]):
    """A screen that binds the keys of the registry for the name ``keys`` of its class."""

    KEYS: ClassVar[ScreenKeys]

    def __init_subclass__(cls, keys: str = "", **kwargs: Any) -> None:
        """Bind the keys of this name; without a name, keep those of the base class."""
        if keys:
            cls.KEYS = KEYS[keys]
            cls.BINDINGS = bindings(cls.KEYS.actions)  # type: ignore[assignment]
        super().__init_subclass__(**kwargs)  # last: Textual collects the bindings of the class here

    def subject(self) -> WorkSubject:
        """The selection on this screen, for the keys that open tools for it."""
        return WorkSubject()

    def action_work(self, work: str) -> None:
        """Open a tool for the selection."""
        self.post_message(WorkWanted(WorkKind(work), self.subject()))

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()
