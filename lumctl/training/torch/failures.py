"""What is told of an error, and whether it can be a consequence of another rank's failure."""

import re
import traceback

import torch.distributed as dist

TOLD_LINES, LONGEST_LINE = 12, 200
"""Of a traceback, which is told from its end."""


def of_group(error: BaseException, *, is_broken: bool) -> bool:
    """Whether an error comes from a collective whose peer failed first, by its type and by what is left of the group.

    gloo's errors are mere ``RuntimeError``, as are many others: they are the group's if a peer has left it by then.
    """
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and is_broken)


def in_short(error: BaseException) -> str:
    """The first line of an error, without a path of somebody else's building machine."""
    first = (str(error) or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^\]]*/([^\]/]+)\]", r"[\1]", first)[:300]


def tail(error: BaseException) -> list[str]:
    """The last lines of an error's traceback, without those of the errors that have led to it."""
    shown = traceback.TracebackException.from_exception(error)
    lines = "".join([*shown.stack.format(), *shown.format_exception_only()]).splitlines()
    return [line[:LONGEST_LINE] for line in lines[-TOLD_LINES:]]
