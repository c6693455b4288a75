"""The state of each spare follows from the assignment, the runs, the journal and what was read just now."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from looks import Looks

from lumctl.change.plan import Do
from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.states import ComponentHealth, Finding, State
from lumctl.inventory.load import example, load_inventory
from lumctl.spares.fitness import unfit_reasons
from lumctl.spares.ledger import OUT, SpareState, ledger_entry
from lumctl.spares.ledger_text import (
    advice,
    brief_words,
    command_of,
    count_words,
    entry_document,
    entry_words,
    history_words,
)
from lumctl.spares.placements import ASSIGN, RankMove, moves_of, rank_moves
from lumctl.store import JournalEntry, StoredRun

AT = 1_800_000_000.0
HOME, SPARE = "s1-gpu0", "s3-gpu0"
WINDOW = MaintenanceWindow("w1", "s3", "ann", "new fan", AT - 60, AT + 3600)
TOOK = RankMove("swap-0001", AT - 600, "finetune", 1, HOME, SPARE)


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("prototype"))


@pytest.fixture
def seen(inventory):
    return Looks(inventory).look(AT)


def swapped(seen):
    return replace(seen, assignment={**seen.assignment, "finetune": ("s0-gpu0", SPARE, "s2-gpu0")})


def with_health(seen, group, name, state, **more):
    found = () if state is State.UNKNOWN else (Finding(name, "test", state, "it fell off the bus", "", AT),)
    health = ComponentHealth(name, group.removesuffix("s"), state, found, otherwise=State.OK, **more)
    report = replace(seen.report, **{group: {**getattr(seen.report, group), name: health}})
    return replace(seen, report=report)


def written(seen, **changes):
    """The observation with other values of the spare in the inventory."""
    some = {**seen.inventory.accelerators, SPARE: replace(seen.inventory.accelerators[SPARE], **changes)}
    return replace(seen, inventory=replace(seen.inventory, accelerators=some))


def entry_of(seen, name=SPARE, **more):
    return ledger_entry(seen, name, unfit=list(unfit_reasons(seen, name)), **more)


def states(seen, name=SPARE, **more):
    entry = entry_of(seen, name, **more)
    return entry.state, entry_words(entry, AT)


def test_a_spare_that_was_read_and_is_ok_is_free(seen):
    assert states(seen) == (SpareState.FREE, "was read just now and is ok")


def test_a_spare_that_was_not_read_is_unknown(seen):
    state, words = states(with_health(seen, "accelerators", SPARE, State.UNKNOWN))
    assert (state, words) == (SpareState.UNKNOWN, "is unknown: it has no reading")


@pytest.mark.parametrize("state", [State.FAILED, State.DEGRADED])
def test_a_faulty_spare_says_why(seen, state):
    assert states(with_health(seen, "accelerators", SPARE, state)) == (
        SpareState(state.value),
        f"is {state}: it fell off the bus",
    )


def test_a_spare_with_a_failed_lane_is_unfit(seen):
    state, words = states(with_health(seen, "links", f"{SPARE}-a", State.FAILED))
    assert (state, words) == (SpareState.UNFIT, f"its lane {SPARE}-a is failed: it fell off the bus")


def test_a_spare_that_is_tied_to_a_failed_one_is_unfit(seen):
    entry = ledger_entry(seen, SPARE, unfit=["is tied to s4-gpu0, which is failed"])
    assert entry.state is SpareState.UNFIT


def test_reserved_for_a_job_or_by_name_only(seen):
    assert states(written(seen, reserved_for="finetune")) == (SpareState.RESERVED, "for finetune")
    assert states(written(seen, reserved=True)) == (
        SpareState.RESERVED,
        f"used only if it is named: --spare {SPARE}",
    )
    state, _ = states(with_health(written(seen, reserved=True), "accelerators", SPARE, State.FAILED))
    assert state is SpareState.FAILED


def test_burning_in_has_its_end(seen):
    entry = entry_of(seen, fresh_until=AT + 7200)
    assert (entry.state, entry.until) == (SpareState.BURNING_IN, AT + 7200)
    for words in (entry_words(entry, AT), brief_words(entry, AT)):
        assert words.startswith("burns in until 20")
        assert words.endswith("(in 2h): new, or out of service lately; it can be used, but swaps take others first")


def test_maintenance_has_its_end_and_reason_once(seen):
    looked = with_health(seen, "accelerators", SPARE, State.OK, maintenance=WINDOW.told, disabled=True)
    looked = with_health(looked, "links", f"{SPARE}-a", State.OK, maintenance=WINDOW.told, disabled=True)
    entry = entry_of(replace(looked, windows=(WINDOW,)))
    assert (entry.state, entry.until) == (SpareState.IN_MAINTENANCE, WINDOW.ends)
    assert entry_words(entry, AT).startswith("is in maintenance: s3 by ann: new fan until 20")
    assert "lane" not in entry_words(entry, AT)


def test_taken_says_by_which_rank_run_and_since_when(seen):
    entry = entry_of(swapped(seen), moves=[TOOK])
    assert (entry.state, entry.place, entry.move) == (SpareState.TAKEN, ("finetune", 1), TOOK)
    assert entry_words(entry, AT).startswith("runs rank 1 of finetune in place of s1-gpu0 since 20")
    assert entry_words(entry, AT).endswith("(10m ago), by swap-0001")
    assert brief_words(entry, AT) == "in place of s1-gpu0"


def test_a_rank_that_returned_home_replaces_nothing_there(seen):
    back = RankMove("rollback-0001", AT - 60, "finetune", 1, SPARE, HOME)
    entry = entry_of(seen, HOME, moves=[TOOK, back])
    words = entry_words(entry, AT)
    assert words.startswith("runs rank 1 of finetune since 20")
    assert words.endswith("by rollback-0001")


def test_without_a_journal_a_spare_is_taken_all_the_same(seen):
    went_back = RankMove("rollback-0001", AT - 60, "finetune", 1, SPARE, HOME)
    for moves in ([], [TOOK, went_back]):
        assert states(swapped(seen), moves=moves) == (SpareState.TAKEN, "runs rank 1 of finetune")


def test_a_swapped_out_one_says_whose_place_it_has_what_returns_it_and_whether_it_is_repaired(seen):
    entry = entry_of(swapped(seen), HOME, moves=[TOOK])
    assert (entry.state, entry.home, entry.taken_by) == (SpareState.REPAIRED, ("finetune", 1), SPARE)
    assert entry.move == TOOK
    assert command_of(entry, "sim") == "lumctl swap plan finetune --back --target sim"
    assert entry_words(entry, AT).endswith("by swap-0001; was read just now and is ok again")
    (said,) = advice([entry], "sim")
    assert said == ("s1-gpu0 is ok again: return 1 rank of finetune", command_of(entry, "sim"))
    ill = entry_of(with_health(swapped(seen), "accelerators", HOME, State.FAILED), HOME, moves=[TOOK])
    assert [said for said, _ in advice([ill], "sim")] == ["repair s1-gpu0; then return 1 rank of finetune"]
    assert "ok again" not in entry_words(ill, AT)
    assert (ill.state, ill.move, command_of(ill, "sim")) == (SpareState.IN_REPAIR, TOOK, command_of(entry, "sim"))


@pytest.mark.parametrize(("name", "assigned"), [(SPARE, False), (SPARE, True), (HOME, False), (HOME, True)])
def test_what_an_open_run_moves_is_moving_whether_or_not_the_rank_has_arrived(seen, name, assigned):
    looked = swapped(seen) if assigned else seen
    going = replace(TOOK, is_open=True)
    entry = entry_of(looked, name, moves=[going])
    assert (entry.state, entry.interrupted) == (SpareState.MOVING, False)
    assert entry_words(entry, AT) == "swap-0001 moves rank 1 of finetune from s1-gpu0 to s3-gpu0"
    assert command_of(entry, "sim") is None
    cut = entry_of(replace(looked, unfinished=("swap-0001",)), name, moves=[going])
    assert entry_words(cut, AT).startswith("swap-0001 was interrupted while it moved rank 1")
    assert command_of(cut, "sim") == (
        "lumctl swap resume swap-0001 --target sim or lumctl swap abort swap-0001 --target sim"
    )


def test_an_accelerator_that_is_no_spare(seen):
    assert states(seen, HOME) == (SpareState.NOT_A_SPARE, "runs rank 1 of finetune")


def test_counts_name_what_is_out(seen):
    entries = [entry_of(swapped(seen), SPARE), entry_of(swapped(seen), HOME), entry_of(seen)]
    assert count_words(entries) == "1 free, 1 taken, 1 out (1 repaired)"
    ill = entry_of(with_health(swapped(seen), "accelerators", HOME, State.FAILED), HOME)
    assert count_words([ill]) == "0 free, 0 taken, 1 out (1 in repair)"
    assert SpareState.NOT_A_SPARE not in OUT
    assert SpareState.TAKEN not in OUT


def test_the_document_of_an_entry(seen):
    document = entry_document(entry_of(swapped(seen), HOME, moves=[TOOK]), "H100", "sim", AT)
    assert (document["state"], document["usable"], document["job"], document["rank"]) == (
        "repaired",
        False,
        "finetune",
        1,
    )
    assert (document["taken_by"], document["run"], document["since"][:4]) == (SPARE, "swap-0001", "2027")


def run_of(name, state="done", *, before=(HOME,), after=(SPARE,), started=AT):
    data = {"assignment": {"finetune": list(after)}, "before": {"finetune": list(before)}}
    plan = {"steps": [{"id": "1", "do": "check", "data": {}}, {"id": "8", "do": ASSIGN, "data": data}]}
    kind = name.partition("-")[0]
    return StoredRun(name, "r", "sim", kind, "", plan, "", "", "", "", 1, state, started, None, None)


def entries_of(*kinds, at=AT, step="8"):
    facts = {"outcome": {"done": True}, "undo-outcome": {"undone": True}, "failed": {"failed": "no"}}
    return [
        JournalEntry(
            "r", seq, "", at + seq, kind.replace("failed", "outcome"), step, facts.get(kind, {}), 1, "", "", ""
        )
        for seq, kind in enumerate(kinds)
    ]


def test_the_step_that_assigns_ranks_has_the_name_that_plans_write():
    assert Do.ASSIGN.value == ASSIGN


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["intent"], []),
        (["intent", "failed"], []),
        (["intent", "outcome"], [(HOME, SPARE, False)]),
        (["outcome", "intent", "outcome"], [(HOME, SPARE, False)]),  # a resumed run did it again
        (["outcome", "undo-outcome"], [(HOME, SPARE, False), (SPARE, HOME, True)]),
        (["undo-outcome"], []),
    ],
)
def test_a_move_counts_once_its_outcome_is_in_the_journal(kinds, found):
    moves = moves_of(run_of("swap-0001"), entries_of(*kinds))
    assert [(move.before, move.after, move.undone) for move in moves] == found


def test_moves_of_slices_and_of_lane_orders():
    placed = run_of("slice-0001", before=(), after=("a", "b"))
    assert [(m.rank, m.before, m.after) for m in moves_of(placed, entries_of("outcome"))] == [
        (0, None, "a"),
        (1, None, "b"),
    ]
    data = {"assignment": {"shape of s": ["2", "a", "b"]}, "before": {}}
    shape = replace(placed, plan={"steps": [{"id": "8", "do": ASSIGN, "data": data}]})
    assert list(moves_of(shape, entries_of("outcome"))) == []


def test_moves_are_in_the_order_of_the_journal_and_open_ones_last():
    journal = {
        "swap-0002": [],
        "rollback-0001": entries_of("outcome", at=AT + 50),
        "swap-0001": entries_of("outcome"),
        "other-0001": entries_of("outcome"),
    }
    runs = (
        run_of("swap-0002", "half-done", started=AT + 90),
        run_of("rollback-0001", before=(SPARE,), after=(HOME,)),
        run_of("swap-0001"),
        run_of("other-0001", before=("x",), after=("y",)),
    )
    store = SimpleNamespace(
        runs=SimpleNamespace(all=lambda: runs), journal=SimpleNamespace(of_run=lambda run: journal[run])
    )
    moves = rank_moves(store, [SPARE])
    assert [(move.run, move.is_open) for move in moves] == [
        ("swap-0001", False),
        ("rollback-0001", False),
        ("swap-0002", True),
    ]
    assert [history_words(move, SPARE) for move in moves] == [
        "took rank 0 of finetune from s1-gpu0",
        "gave up rank 0 of finetune to s1-gpu0",
        "took rank 0 of finetune from s1-gpu0, not ended",
    ]
