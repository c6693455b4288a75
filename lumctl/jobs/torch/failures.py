"""Which errors are a failure of the process group, and which are the script's own."""

import re

import torch.distributed as dist

_OF_A_COLLECTIVE = re.compile(r"\bgloo\b|NCCL|Connection (closed|reset)|Broken pipe", re.IGNORECASE)


def of_group(error: BaseException) -> bool:
    """Whether an error comes from a collective whose peer is gone. gloo tells it as a mere ``RuntimeError``."""
    if isinstance(error, dist.DistError):
        return True
    return type(error) is RuntimeError and _OF_A_COLLECTIVE.search(str(error)) is not None


def in_short(error: BaseException) -> str:
    """The first line of an error, without a path of somebody else's building machine."""
    first = (str(error) or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^\]]*/([^\]/]+)\]", r"[\1]", first)[:300]
