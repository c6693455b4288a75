"""Named receivers of notifications as they are written, and from there to the model. No secret stands in the file."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.hook_entries import Command
from lumctl.inventory.policies import Receiver

if TYPE_CHECKING:
    from lumctl.inventory.scope import Scope

MOST_TIME_S = 600.0
_DEFAULT = Receiver("")


class ReceiverEntry(Entry):
    """Somebody to whom a policy escalates: a webhook or a program."""

    name: Text
    webhook_file: Text | None = Field(None, description="A file that holds the URL to post to.")
    token_file: Text | None = Field(None, description="A file that holds its bearer token.")
    command: Command | None = Field(
        None, description="Program and arguments, instead of a webhook: it gets the document on its standard input."
    )
    timeout_s: Annotated[float, Field(gt=0, le=MOST_TIME_S, allow_inf_nan=False)] = Field(
        _DEFAULT.timeout_s, description="Seconds within which it must have taken a message."
    )
    give_up_after_s: Annotated[float, Field(ge=0, le=7 * 86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.give_up_after_s, description="For how long a message that it does not take is tried again."
    )


def resolve_receivers(entries: Iterable[ReceiverEntry], scope: "Scope") -> dict[str, Receiver]:
    """The receivers by name; what does not make sense is reported."""
    found: dict[str, Receiver] = {}
    for entry in entries:
        if entry.name in found:
            scope.problems.add(entry.mark("name"), f"receiver {entry.name!r} is defined twice")
        found[entry.name] = _resolved(entry, scope)
    return found


def _resolved(entry: ReceiverEntry, scope: "Scope") -> Receiver:
    both = entry.webhook_file is not None and entry.command is not None
    neither = entry.webhook_file is None and entry.command is None
    if (both or neither) and not entry.cut("webhook_file", "command"):
        scope.problems.add(
            entry.mark("command"), f"found {'both' if both else 'neither'}, expected one of webhook_file and command"
        )
    if entry.token_file is not None and entry.webhook_file is None and not entry.cut("webhook_file"):
        scope.problems.add(entry.mark("token_file"), "a token needs a webhook_file")
    command = tuple(entry.command or ())
    if command and "/" not in command[0]:
        # A daemon has no PATH of its operator's.
        scope.problems.add(
            entry.mark("command", 0, len(command)), f"found {command[0]!r}, expected the path of a program"
        )
    elif command:
        command = (str(scope.path(command[0], entry.mark("command", 0, len(command)))), *command[1:])
    return Receiver(
        entry.name,
        scope.path(entry.webhook_file, entry.mark("webhook_file")) if entry.webhook_file else None,
        scope.path(entry.token_file, entry.mark("token_file")) if entry.token_file else None,
        command,
        entry.timeout_s,
        entry.give_up_after_s,
    )
