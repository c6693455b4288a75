"""The nearest valid word, for errors about a word that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` was probably meant to be, or ``None``."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
