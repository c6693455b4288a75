"""A swap as plan, journal and run, for the tests of what follows it."""

from lumctl.store import JournalEntry
from lumctl.tui.views.runs import run_view

TITLES = (
    "check that r1-h4-g0 is healthy",
    "program 14 cells of mesh1",
    "show that each receiver hears its transmitter",
)
ENDS = (
    {"lane": "r1-h2-g0-l1", "device": "mesh1", "port": 9},
    {"lane": "r1-h4-g0-l0", "device": "mesh1", "port": 24},
)
PLAN = {
    "steps": [{"id": str(number), "title": title} for number, title in enumerate(TITLES, start=1)],
    "circuits": {
        "add": [{"id": "llm/4-5", "owner": "llm", "direction": "duplex", "ends": ENDS, "segments": []}],
    },
}


PROOFS = [
    {
        "circuit": "llm/4-5",
        "receiver": ends[0]["lane"],
        "transmitter": ends[1]["lane"],
        "evidence": "lldp",
        "seconds": 0.02,
    }
    for ends in (ENDS, ENDS[::-1])
]


def entry(at, kind, step="", **data):
    """One entry of the journal of that swap."""
    return JournalEntry("r1", int(at * 10), "swap-0007", at, kind, step, data, 7, "0.1.0", "0" * 64, "0" * 64)


def begun(start):
    """The journal of a swap whose first step is done and whose second one is under way."""
    return (
        entry(start, "begin"),
        entry(start + 0.1, "intent", "1"),
        entry(start + 0.4, "outcome", "1", done=True, powers={"r1-h2-g0-l1": -5.5}),
        entry(start + 0.4, "intent", "2"),
    )


def done(start):
    """The journal of one that was done."""
    return (
        *begun(start),
        entry(start + 0.5, "outcome", "2", done=True),
        entry(start + 0.5, "intent", "3"),
        entry(start + 1.6, "outcome", "3", done=True, seconds=1.1, proofs=PROOFS),
        entry(start + 1.6, "end", state="done"),
    )


def rolled_back(start):
    """The journal of one whose second step failed, and all of which was undone but that step."""
    return (
        *begun(start),
        entry(start + 0.5, "outcome", "2", failed="mesh1 refused cell 17"),
        entry(start + 0.6, "undo-intent", "2"),
        entry(start + 0.7, "undo-outcome", "2", undone=False, failed="no session to mesh1"),
        entry(start + 0.7, "undo-intent", "1"),
        entry(start + 0.7, "undo-outcome", "1", undone=True),
        entry(start + 0.8, "end", state="half-done", failed="mesh1 refused cell 17"),
    )


def view(kit, state="done", journal=done, *, cut=False):
    """That swap as its screen shows it."""
    found = kit.run(state=state, plan=PLAN)
    return run_view(found, journal(found.started_at), cut=cut)
