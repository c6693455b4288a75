"""Commands in hints, completed with the options that this command was given.

Without them a command that is copied from a hint would act on another inventory or another target.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from lumctl.cli.nouns import NOUNS

_COMMAND = re.compile(rf"\blumctl (?=(?:{'|'.join(NOUNS)})\b)")
_OPTIONS = (("inventory", "-i", ("-i ", "--inventory ")), ("target", "--target", ("--target ",)))


def completed(hint: str, given: Mapping[str, Any]) -> str:
    """The hint with ``-i`` and ``--target`` in each command that lacks them, if they were ``given`` as options."""
    first, *commands = _COMMAND.split(hint)
    return first + "".join(f"lumctl {_options(text, given)}{text}" for text in commands)


def _options(text: str, given: Mapping[str, Any]) -> str:
    lacking = [
        f"{option} {shlex.quote(str(given[name]))} "
        for name, option, spellings in _OPTIONS
        if given.get(name) and not any(spelling in text for spelling in spellings)
    ]
    return "".join(lacking)
