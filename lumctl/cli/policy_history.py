"""``lumctl policy test``: what policies would have done in the face of a history."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.times import moment, to_the_second
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError
from lumctl.inventory.durations import length_s
from lumctl.printable import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.health.transitions import Transition
    from lumctl.inventory.model import Inventory

HAPPENINGS = (
    OutputColumn("AT", "at"),
    OutputColumn("COMPONENT", "component"),
    OutputColumn("DID", "what"),
    OutputColumn("POLICY", "policy"),
    OutputColumn("BECAUSE", "because"),
)
MOST_TRANSITIONS = 100_000
NOT_SEEN = (
    "what was found without making a state worse",
    "acknowledgements",
    "swaps and other changes by people",
)
"""What the daemon goes by and a history does not have."""


def register(app: typer.Typer) -> None:
    """Add ``test`` to the commands of ``policy``."""
    verb(app, "test")(on_history)


def on_history(
    cx: Invocation,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="A history: one change of a state on each line.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="What the racks' stores recorded: 7d, or since when.")
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--from-capture", metavar="DIR", help="The faults of a capture, at its time.")
    ] = None,
    goes_on: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long it continues after the last change.")
    ] = "2h",
    approve_after: Annotated[
        str | None, typer.Option("--approve-after", metavar="TIME", help="A person approves each plan so much later.")
    ] = None,
) -> None:
    """Test the policies on a history: what they would have done, when, and why not. No device is touched.

    The decisions are those of the daemon, at the times of the history; a swap is assumed to succeed if there is a spare
    of the same kind. A history has one JSON document on each line: at (seconds since the epoch), component,
    kind (accelerator, host, link, device, circuit), before, after (a state), rules, evidence. That is how lumctl health
    explain -o json writes its history; with --target sim and --since it is that of the simulator. It has the
    rules that were active when a state changed. It lacks later findings that did not worsen the state,
    acknowledgements, and what operators changed meanwhile.
    """
    from lumctl.daemon.autopilot.policy import require_sound
    from lumctl.daemon.autopilot.rehearsal import Rehearsal

    require_sound(cx.inventory)
    rows, begins = _history(cx, history, since, capture)
    if not cx.inventory.policies:
        cx.out.narrate("there are no policies: nothing is ever done unasked")
    for name in _strangers(cx.inventory, rows):
        cx.out.narrate(f"warning: {name} is not in {cx.inventory.path}: what the history tells of it is passed over")
    approves_s = length_s(approve_after) if approve_after else None
    ends_at = (rows[-1].at if rows else 0.0) + length_s(goes_on)
    rehearsal = Rehearsal(cx.inventory, cx.target, approve_after_s=approves_s)
    told = [each for each in rehearsal.run(rows, ends_at=ends_at) if each.at >= begins]
    counts = Counter(each.what for each in told)
    if cx.out.structured:
        document = {"target": str(cx.target), "transitions": len(rows), "counts": dict(counts), "not_seen": NOT_SEEN}
        cx.out.document("policy-test", {**document, "happenings": [each.document() for each in told]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.component for each in told if each.what == "applied"])
    else:
        cx.out.table(
            HAPPENINGS,
            [
                {
                    "at": to_the_second(e.at),
                    "component": e.component,
                    "what": e.what,
                    "policy": e.policy,
                    "because": e.because,
                }
                for e in told
            ],
        )
        applied = counts["applied"]
        cx.out.narrate(f"{len(rows)} changes of states: {counted(applied, 'swaps')} would have been made")
        if capture is None:
            cx.out.narrate(f"not in a history, and so not regarded: {', '.join(NOT_SEEN)}")


def _history(
    cx: Invocation, file: Path | None, since: str | None, capture: Path | None
) -> "tuple[Sequence[Transition], float]":
    """The named history, and the time from which decisions are shown."""
    if sum(each is not None for each in (file, since, capture)) != 1:
        raise UsageError("name one history", hint="--history FILE, --since TIME or --from-capture DIR")
    if file is not None:
        from lumctl.daemon.autopilot.rehearsal import read_history

        return read_history(file), 0.0
    if capture is not None:
        from lumctl.cli.from_capture import captured
        from lumctl.health.transitions import transitions

        return transitions(None, captured(cx, capture).report), 0.0
    from lumctl.context import Context

    now = time.time()
    begins = _since(str(since), now)
    with Context(cx.inventory, cx.target) as context:
        # Earlier entries give the states at the beginning.
        kept = [
            t for rack in cx.inventory.racks for t in context.store(rack).health.transitions(limit=MOST_TRANSITIONS)
        ]
    return sorted(kept, key=lambda row: row.at), begins


def _strangers(inventory: "Inventory", rows: "Sequence[Transition]") -> list[str]:
    """Components of a history that the inventory does not have, but for circuits: these come and go."""
    known = {*inventory.hosts, *inventory.accelerators, *inventory.transponders, *inventory.devices}
    return list(dict.fromkeys(row.component for row in rows if row.kind != "circuit" and row.component not in known))


def _since(text: str, now: float) -> float:
    try:
        return now - length_s(text)
    except UsageError:
        return moment(text, now)
