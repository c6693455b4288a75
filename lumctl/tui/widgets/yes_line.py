"""The line in which a person says yes; some letters stay keys while it has the focus."""

from textual.widgets import Input


class YesLine(Input):
    """A line that leaves the letters of ``keys`` to the screen: no word that is to be typed here has them."""

    def __init__(self, id: str, keys: str) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id, compact=True)
        self.cursor_blink = False
        self._keys = keys

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Whether a key is text for this line."""
        return character not in set(self._keys) and super().check_consume_key(key, character)
