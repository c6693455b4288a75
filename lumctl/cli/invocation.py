"""The common input of a command: inventory, target and output format."""

import os
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lumctl.cli.output import Output, OutputFormat
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.printable import printable

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory


class Target(StrEnum):
    """The target that a command acts on."""

    RACK = "rack"
    SIM = "sim"


@dataclass(frozen=True)
class Invocation:
    """The common input of a command. The inventory is read on first use."""

    inventory_path: str | None
    target: Target
    out: Output
    target_was_named: bool = False
    target_option: str | None = None
    """The value of ``--target`` on this command line; ``None`` if the option was not given."""

    @classmethod
    def compose(cls, before: Mapping[str, Any], after: Mapping[str, Any], formats: Sequence[str] = ()) -> "Invocation":
        """Merge the options before the noun with those after it, which override them.

        ``formats`` are output formats that only this command has.

        Raises:
            UsageError: the target or the output format does not exist.
        """
        said = {key: after.get(key) or before.get(key) for key in {**before, **after}}
        wanted = said.get("output") or OutputFormat.TABLE.value
        target = said.get("target") or os.environ.get("LUMCTL_TARGET")
        place = "target" if said.get("target") else "target (in $LUMCTL_TARGET)"
        return cls(
            inventory_path=said.get("inventory"),
            target=_one_of(Target, target or Target.RACK, place),
            target_was_named=bool(target),
            target_option=said.get("target"),
            out=Output(
                format=OutputFormat.TABLE
                if wanted in formats
                else _one_of(OutputFormat, wanted, "output format", formats),
                own_format=wanted if wanted in formats else "",
                ascii_only=bool(said.get("ascii_only")),
                quiet=bool(said.get("quiet")),
                verbose=bool(said.get("verbose")),
                options={name: said.get(name) for name in ("inventory", "target")},
            ),
        )

    @cached_property
    def inventory(self) -> "Inventory":
        """The inventory, found and validated.

        Raises:
            UsageError: there is no inventory, or it has errors.
        """
        from lumctl.inventory.files import writable_by_others
        from lumctl.inventory.load import find_inventory, load_inventory

        path = find_inventory(self.inventory_path)
        if reason := writable_by_others(path):
            self.out.narrate(f"warning: another user can change what this command does: {reason}")
        return load_inventory(path)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask the operator to confirm, unless ``--yes`` was given.

        Raises:
            UsageError: there is no terminal to ask on and ``--yes`` was not given.
            RefusedError: the operator declined.
        """
        from lumctl.errors import RefusedError

        if yes:
            return
        # Not stdout: the data of the command may go into a pipe while the operator answers.
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                "confirmation required, but stdin is not a terminal", hint="to confirm in advance, add --yes"
            )
        asked = printable(f"{question} [target: {self.target}] [y/N] ", lines=True)
        # Input that was typed before the question is discarded: it does not answer the question.
        with suppress(OSError, termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        print(asked, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise RefusedError("not confirmed; nothing was done")


def _one_of(kind: type[Any], word: str, what: str, others: Sequence[str] = ()) -> Any:
    words = [*(member.value for member in kind), *others]
    if word in words:
        return kind(word)
    near = nearest(word, words)
    raise UsageError(
        f"{word!r} is not a known {what}", hint=f"did you mean {near}?" if near else f"one of: {', '.join(words)}"
    )
