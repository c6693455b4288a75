"""Completes commands in hints and narration with the options that were given to the running command."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from lumctl.cli.nouns import NOUNS

_COMMAND = re.compile(rf"\blumctl (?=(?:{'|'.join(NOUNS)})\b)")
_OPTIONS = (("inventory", "-i", ("-i ", "--inventory ")), ("target", "--target", ("--target ",)))


def completed(hint: str, given: Mapping[str, Any]) -> str:
    """The hint with ``-i`` and ``--target`` in each command that lacks them, if they were ``given`` as options."""
    # Only ``lumctl`` before a noun begins a command; in "lumctl was stopped" it is a word of the sentence.
    first, *commands = _COMMAND.split(hint)
    return first + "".join(f"lumctl {_options(text, given)}{text}" for text in commands)


def _options(text: str, given: Mapping[str, Any]) -> str:
    lacking = [
        f"{option} {shlex.quote(str(given[name]))} "
        for name, option, spellings in _OPTIONS
        if given.get(name) and not any(spelling in text for spelling in spellings)
    ]
    return "".join(lacking)
