"""Words from the command line that are stored."""


def kept_text(text: str | None) -> str | None:
    """What can be recorded of a text: bytes that are no UTF-8 become marks of a lost character."""
    return None if text is None else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
