"""Expected times are medians of the last runs where there are enough of them, else the inventory's."""

from types import SimpleNamespace

from lumctl.change.plan import Do, Step
from lumctl.store import JournalEntry
from lumctl.swap.draft import timed

STEPS = (
    Step("1", Do.CHECK, "check that s3 is healthy", {}, expected_seconds=0.2),
    Step("2", Do.PROGRAM, "program 9 PUCs of rail2", {}, expected_seconds=0.11),
    Step("3", Do.PROGRAM, "program 9 PUCs of rail3", {}, expected_seconds=0.11),
)


def entry(run, step, kind, at, data):
    return JournalEntry("r1", 1, run, at, kind, step, data, 1, "0.1.0", "0" * 64, "0" * 64)


def journal(*acts, recorded=False):
    """``acts``: run, step, what it does, its title, seconds, and whether it was done.

    The seconds are ``recorded`` in the outcome, or only the times of the entries tell them, as in older journals.
    """
    entries = []
    for at, (run, step, do, title, seconds, done) in enumerate(acts):
        data = {"do": do, "title": title}
        entries.append(entry(run, step, "intent", 100.0 * at, data))
        ended = {"done": True} if done else {"failed": "no light"}
        if recorded:
            ended["seconds"] = seconds
        entries.append(entry(run, step, "outcome", 100.0 * at + (0.9 * 100 if recorded else seconds), ended))
    return SimpleNamespace(journal=SimpleNamespace(latest=lambda _count: tuple(entries)))


def test_steps_of_one_kind_on_one_device_are_compared():
    store = journal(
        *((f"swap-{n}", "6", "program", f"program {n} PUCs of rail2", seconds, True)
          for n, seconds in enumerate([0.5, 0.3, 0.4])),
        ("swap-7", "6", "program", "program 1 PUC of rail2", 9.0, False),
        *((f"swap-{n}", "1", "check", "find which of 2 circuits are sound", 1.0, True) for n in range(2)),
    )  # fmt: skip
    steps, measured = timed(store, STEPS)
    assert [step.expected_seconds for step in steps] == [0.2, 0.4, 0.11]
    assert measured == {"2": 3}


def test_the_seconds_that_an_outcome_records_count_not_when_it_was_written():
    acts = [(f"swap-{run}", "1", "check", "c", 0.25, True) for run in range(3)]
    steps, measured = timed(journal(*acts, recorded=True), STEPS)
    assert (steps[0].expected_seconds, measured) == (0.25, {"1": 3})


def test_a_run_counts_once_with_its_longest_step():
    acts = [(f"swap-{run}", str(step), "check", "c", float(step), True) for run in range(3) for step in (1, 2)]
    steps, measured = timed(journal(*acts), STEPS)
    assert (steps[0].expected_seconds, measured) == (2.0, {"1": 3})


def test_a_clock_that_was_set_back_and_entries_without_a_beginning_count_for_nothing():
    acts = [(f"swap-{run}", "1", "check", "c", -5.0, True) for run in range(5)]
    store = journal(*acts)
    entries = store.journal.latest(1)
    assert timed(store, STEPS) == (STEPS, {})
    assert timed(SimpleNamespace(journal=SimpleNamespace(latest=lambda _: entries[1::2])), STEPS) == (STEPS, {})
