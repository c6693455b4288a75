"""How many of something, in words."""


def counted(number: int, many: str, one: str = "") -> str:
    """``1 rack``, ``2 racks``. What one is called is ``many`` without its last letter, if not given."""
    return f"{number} {(one or many[:-1]) if number == 1 else many}"


def stay(number: int, many: str, one: str = "") -> str:
    """That so many are not touched."""
    return f"{counted(number, many, one)} {'stays as it is' if number == 1 else 'stay as they are'}"
