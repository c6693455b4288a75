"""Actions that change no device: acknowledgements, maintenance and policies, done and recorded as a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lumctl.change.origin import origin
from lumctl.change.plan import Do
from lumctl.context import Context
from lumctl.errors import LumctlError
from lumctl.health.acknowledgements import MaintenanceWindow, acknowledgement_from, covered
from lumctl.health.states import Finding
from lumctl.runbook.document import RecordedStep
from lumctl.runbook.files import save
from lumctl.store import Act

SEEDED_S = 3600.0
"""Length of a maintenance window that is seeded so that a replay can end it."""

Said = Mapping[str, Any]
"""One step of an action: its ``title``, and as ``data`` the act; see :mod:`lumctl.store.actions`."""


def acknowledge(
    rack: str,
    component: str,
    rule: str | None,
    comment: str,
    for_s: float | None,
    findings: Iterable[Finding] | None = None,
) -> Said:
    """The step that acknowledges findings of a component, for a time or (``None``) until they clear.

    Without ``findings`` it covers the findings of the next observation.
    """
    data = {"act": str(Act.ACKNOWLEDGE), "rack": rack, "component": component, "rule": rule, "comment": comment}
    covers = {} if findings is None else {"covers": [list(entry) for entry in covered(findings)]}
    title = f"acknowledge {rule or 'all findings'} of {component}"
    return {"title": title, "data": {**data, "for_s": for_s, **covers}}


def unacknowledge(rack: str, component: str, rule: str | None) -> Said:
    """The step that undoes an acknowledgement of a component: of one rule, or of all rules."""
    data = {"act": str(Act.UNACKNOWLEDGE), "rack": rack, "component": component, "rule": rule}
    return {"title": f"undo the acknowledgement of {component}", "data": data}


def open_window(rack: str, component: str, comment: str, *, starts_in_s: float, for_s: float) -> Said:
    """The step that opens a maintenance window for a component: when it starts, and how long it lasts."""
    data = {"act": str(Act.OPEN_WINDOW), "rack": rack, "component": component, "comment": comment}
    return {"title": f"maintenance of {component}", "data": {**data, "starts_in_s": starts_in_s, "for_s": for_s}}


def end_window(rack: str, component: str) -> Said:
    """The step that ends the maintenance of a component."""
    return {
        "title": f"end the maintenance of {component}",
        "data": {"act": str(Act.END_WINDOW), "rack": rack, "component": component},
    }


def record(context: Context, kind: str, said: Sequence[Said], *, at: float, title: str = "") -> str:
    """Do the actions and record them as a run with a runbook; return the run's id.

    Raises:
        RefusedError: there is nothing to undo; nothing was done.
        StoreError: the store cannot be written; nothing was done.
    """
    rack = str(said[0]["data"]["rack"])
    store = context.store(rack)
    return store.actions.record(
        kind,
        title or "; ".join(str(each["title"]) for each in said),
        said,
        who=origin(),
        inventory_digest=context.inventory.digest,
        target=context.target,
        at=at,
        end=max(at, context.now()),
    )


def save_quietly(context: Context, run: str, rack: str) -> str | None:
    """Write the runbook of a run to its store's folder.

    Return the reason if that failed; the journal has the run anyway.
    """
    try:
        save(context, run, rack)
    except LumctlError as error:
        return f"{error.message}; the journal contains it: lumctl runbook show {run}"
    return None


def seed_acts(context: Context, recorded: Iterable[RecordedStep]) -> None:
    """Prepare a fresh simulator for recorded actions: record there the earlier actions that they undid or repeated."""
    now = context.now()
    for one in recorded:
        data, was = one.step.data, (one.outcome or {}).get("was")
        if one.step.do is not Do.RECORD or not was:
            continue
        store = context.store(str(data["rack"]))
        if data["act"] == Act.END_WINDOW:
            for _ in was:
                store.health.add_window(
                    MaintenanceWindow("", str(data["component"]), origin(), "as then", now, now + SEEDED_S)
                )
        elif data["act"] in {Act.ACKNOWLEDGE, Act.UNACKNOWLEDGE}:
            for said in was:
                # Its recorded end may have passed by now: then there would be nothing to undo.
                store.health.acknowledge(acknowledgement_from({**said, "until": None}))
