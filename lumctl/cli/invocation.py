"""One run of a command: which inventory, aimed at what, printed how."""

import os
import sys
from collections.abc import Mapping
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
    """What a command acts on."""

    RACK = "rack"
    SIM = "sim"


@dataclass(frozen=True)
class Invocation:
    """The input of every command. The inventory is read on first use."""

    inventory_path: str | None
    target: Target
    out: Output
    target_was_named: bool = False

    @classmethod
    def compose(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> "Invocation":
        """Merge the options before the noun with those after it; the latter win."""
        said = {key: after.get(key) or before.get(key) for key in {**before, **after}}
        target = said.get("target") or os.environ.get("LUMCTL_TARGET")
        return cls(
            inventory_path=said.get("inventory"),
            target=_one_of(Target, target or Target.RACK, "target"),
            target_was_named=bool(target),
            out=Output(
                format=_one_of(OutputFormat, said.get("output") or OutputFormat.TABLE, "output format"),
                ascii_only=bool(said.get("ascii_only")),
                quiet=bool(said.get("quiet")),
                verbose=bool(said.get("verbose")),
            ),
        )

    @cached_property
    def inventory(self) -> "Inventory":
        """The inventory, found and validated.

        Raises:
            UsageError: there is none, or it has errors.
        """
        from lumctl.inventory.files import writable_by_others
        from lumctl.inventory.load import find_inventory, load_inventory

        path = find_inventory(self.inventory_path)
        if reason := writable_by_others(path):
            self.out.narrate(f"warning: another user can change what this command does: {reason}")
        return load_inventory(path)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask the operator for a yes, unless ``--yes`` was given.

        Raises:
            UsageError: there is no terminal to ask on and ``--yes`` was not given.
            RefusedError: the operator said no.
        """
        from lumctl.errors import RefusedError

        if yes:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError("this needs a yes and there is no terminal to ask on", hint="add --yes")
        asked = printable(f"{question} [target: {self.target}] [y/N] ", lines=True)
        print(asked, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise RefusedError("not confirmed; nothing was done")


def _one_of(kind: type[Any], word: str, what: str) -> Any:
    words = [member.value for member in kind]
    if word in words:
        return kind(word)
    near = nearest(word, words)
    raise UsageError(
        f"{what} {word!r} is not known", hint=f"did you mean {near}?" if near else f"one of: {', '.join(words)}"
    )
