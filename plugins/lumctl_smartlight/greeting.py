"""What a greeting line tells: little, for nothing about its form is published."""

import re

_BETWEEN_PARTS = re.compile(r"[,;|()\[\]]")
_COUNT = re.compile(r"(?:(?P<first>[0-9]{1,6}) ?PUCs?|PUCs? ?[:=] ?(?P<last>[0-9]{1,6}))", re.IGNORECASE)


def stated_puc_count(greeting: str) -> int | None:
    """How many PUCs the controller says that its mesh has; ``None`` where it does not say so beyond doubt.

    Only a part of the line that punctuation sets off, and that is nothing but a number and the word (``72 PUCs``,
    ``PUCs: 72``), is a count. ``3 PUCs stuck``, ``PUC 7``, a version or an address is none, and two different counts
    are none either: a controller must not be locked out for a number that means something else.
    """
    parts = (part.strip(" \t.!") for part in _BETWEEN_PARTS.split(greeting))
    found = [match for part in parts if (match := _COUNT.fullmatch(part))]
    counts = {int(match["first"] or match["last"]) for match in found}
    return counts.pop() if len(counts) == 1 else None
