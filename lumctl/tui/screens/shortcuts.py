"""What every screen begins with: its keys come from the registry, help is a key away, and it can be left."""

from typing import Any, ClassVar, TypeVar

from textual.screen import Screen

from lumctl.tui.keys import KEYS, ScreenKeys, bindings

Result = TypeVar("Result")


class KeyedScreen(Screen[Result]):
    """A screen that binds the keys which the registry has under the name that its class is given."""

    KEYS: ClassVar[ScreenKeys]

    def __init_subclass__(cls, keys: str = "", **kwargs: Any) -> None:
        """Bind the keys of this name; without one, those of the class beneath."""
        if keys:
            cls.KEYS = KEYS[keys]
            cls.BINDINGS = bindings(cls.KEYS.actions)  # type: ignore[assignment]
        super().__init_subclass__(**kwargs)

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()
