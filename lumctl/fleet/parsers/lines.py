"""Lines as a host ends them. Python's own ``splitlines`` also ends one at controls that may stand within a line."""


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return [line.removesuffix("\r") for line in text.split("\n")]
