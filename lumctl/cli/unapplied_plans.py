"""Plans that were made and never applied, as ``lumctl swap list`` shows them below the runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.change.plan import SLICE, Do, Start, read_circuits
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import aimed
from lumctl.context import Context
from lumctl.inventory.wiring import Assignment, moved_words, own_cells
from lumctl.store import APPROVED, ASKED, Store
from lumctl.time_text import age_text, iso_text, moment_text, seconds_of

MOST_SHOWN = 10
"""How many plans are shown to people; documents have all."""
_COLUMNS = (
    OutputColumn("NOT APPLIED", "plan"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("MADE", "made", wide=True),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("TO DO", "title"),
    OutputColumn("REMARK", "remark", gives_way=1),
)


def unapplied_plans(cx: Invocation, context: Context, most: int | None = None) -> tuple[list[dict[str, Any]], int]:
    """The plans of all racks that were never applied and may still be, newest first, and how many are left out.

    Only the contents of the ``most`` newest are read. ``next`` is the command to apply or approve a plan; of a stale
    one, and of one that writes a device that did not answer when it was made, the command that shows it.
    """
    found = []
    for rack in context.inventory.racks:
        store = context.store(rack)
        answers = _answers(store, context.now())
        for made_at, plan, digest in store.runs.plans_without_run():
            if (answer := answers.get(digest, "")) != _OVER:
                found.append((made_at, plan, rack, answer == ASKED))
    newest = sorted(found, key=lambda each: each[0], reverse=True)
    chosen = newest[:most]
    placed = context.assignment(sound=False) if chosen else {}
    recorded: dict[str, dict[int, str]] = {}
    rows = []
    for _, plan, rack, is_asked in chosen:
        document = context.store(rack).runs.plan(plan)
        if document is not None:  # it may be gone meanwhile
            stale = _stale(context, document, placed, recorded)
            rows.append(_row(cx, rack, document, stale, is_asked=is_asked))
    return rows, len(newest) - len(chosen)


def show_unapplied(cx: Invocation, rows: Sequence[Mapping[str, Any]], left_out: int, now: float) -> None:
    """Print the plans as a table, and a command for the newest of each kind."""
    if not rows:
        return
    shown = [
        {**row, "made": moment_text(at), "age": age_text(now - at), "remark": _remark(row)}
        for row, at in ((row, seconds_of(row["made"])) for row in rows)
    ]
    cx.out.text()
    cx.out.table(_COLUMNS, shown)
    if left_out:
        cx.out.narrate(f"{left_out} older ones were not applied either; all of them: lumctl swap list -o json")
    usable = [row for row in rows if not (row["stale"] or row["unanswered"])]
    cx.out.narrate(f"look at one: {_look_at((usable or rows)[0])}")
    for row in {_words(row): row for row in reversed(usable)}.values():
        cx.out.narrate(f"{_words(row)[1]} it: {_command(row)}")


_OVER = "over"


def _answers(store: Store, now: float) -> dict[str, str]:
    """Whether the request to approve a plan waits for an answer, or the plan can no longer be applied; by digest."""
    found = {}
    for each in store.approvals.all():
        may_be = each.state in {ASKED, APPROVED} and now < each.expires_at
        found[each.digest] = each.state if may_be else _OVER
    return found


def _row(
    cx: Invocation, rack: str, document: Mapping[str, Any], stale: str | None, *, is_asked: bool
) -> dict[str, Any]:
    """A plan as a row of a table or of a document."""
    row = {
        "plan": document["id"],
        "kind": document["kind"],
        "title": document["title"],
        "target": document["target"],
        "rack": rack,
        "made": iso_text(document["created_at"]),
        "waits_for_approval": is_asked,
        "stale": stale,
        "unanswered": list(document.get("unanswered", ())),
    }
    return {**row, "next": aimed(cx, _look_at(row) if stale or row["unanswered"] else _command(row))}


def _stale(
    context: Context, document: Mapping[str, Any], placed: Assignment, recorded: dict[str, dict[int, str]]
) -> str | None:
    """Why a plan is certainly stale, from the inventory and the records of placement and devices; no device is asked.

    ``recorded`` keeps the recorded states of each device for the next plan.
    """
    if document["inventory_digest"] != context.inventory.digest:
        return "the inventory has changed since"
    start = Start.from_document(document["start"])
    for job, ranks in start.assignment.items():
        if placed.get(job, ()) != ranks:
            return f"{moved_words(job)} when it was made"
    for name in _required_devices(document):
        if name not in recorded:
            recorded[name] = context.known_cells(name)
        before = start.cells(name, own_cells(context.inventory, context.inventory.devices[name]))
        # Without a certain record, apply may read the device, which nothing here does.
        if before and recorded[name] and before != recorded[name]:
            return f"{name} is not in the state that it had when it was made"
    return None


def _required_devices(document: Mapping[str, Any]) -> dict[str, None]:
    """The devices that must be as they were when a plan was made: it writes them, or its new circuits pass them."""
    written = [str(step["data"]["device"]) for step in document["steps"] if step["do"] == Do.PROGRAM]
    passed = [device for circuit in read_circuits(document["circuits"]["add"]) for device in circuit.devices]
    return dict.fromkeys([*written, *passed])


def _words(row: Mapping[str, Any]) -> tuple[str, str]:
    """The noun and the verb of the command that a plan waits for."""
    if row["waits_for_approval"]:
        return "swap", "approve"
    return "slice" if row["kind"] == SLICE else "swap", "apply"


def _command(row: Mapping[str, Any]) -> str:
    return f"lumctl {' '.join(_words(row))} {row['plan']} --target {row['target']}"


def _look_at(row: Mapping[str, Any]) -> str:
    return f"lumctl swap show {row['plan']} --target {row['target']}"


def _remark(row: Mapping[str, Any]) -> str:
    if row["stale"]:
        return f"stale: {row['stale']}"
    if row["unanswered"]:
        return f"when it was made, {' and '.join(row['unanswered'])} did not answer"
    return "waits for approval" if row["waits_for_approval"] else ""
