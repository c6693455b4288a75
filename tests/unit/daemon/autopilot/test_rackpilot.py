"""What the autopilot of a rack does at each look, on a real store: only how a plan is made and applied is played."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from lumctl.change.plan import Plan, Replacement, Start
from lumctl.daemon.autopilot import pilot, stop_switch
from lumctl.daemon.autopilot.attempt import AttemptResult
from lumctl.daemon.autopilot.pilot import RETRY_S, RackPilot
from lumctl.errors import RefusedError
from lumctl.inventory.policies import How
from lumctl.store import APPROVED, Store, StoreError, store_at
from lumctl.store.database import writing
from lumctl.store.schema import approvals

GPU, RACK = "h03-gpu2", "rack64"


class Flight:
    """A rack pilot with all that it meets: looks, a store, receivers, and runs that end as a test says."""

    def __init__(self, scene, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scene, self.store = scene, store
        self.told: list[str] = []
        self.applied: list[str] = []
        self.ends = AttemptResult("done", "swap-0001")
        self.refuses: str | None = None
        self.before_apply = lambda: None
        self.stopped: str | None = None
        monkeypatch.setattr(pilot, "plan_for", self._plan)
        monkeypatch.setattr(pilot, "carry_out", self._carry_out)
        self.begin()

    def begin(self) -> None:
        """A daemon that starts now: it knows what the store knows."""
        self.pilot = RackPilot(
            RACK,
            self.store,
            self._context,
            lambda occasion, _text, _data: self.told.append(str(occasion)),
            lambda _line: None,
            stopped=lambda: self.stopped,
            now=lambda: self.scene.now,
        )

    def look(self, seconds: float = 0.0) -> None:
        self.scene.now += seconds
        look = self.scene.look()
        inventory = replace(look.inventory, policies=tuple(self.scene.policies))
        self.pilot.consider(replace(look, inventory=inventory))

    @contextmanager
    def _context(self, inventory) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(
            observe=lambda: replace(self.scene.look(), inventory=inventory),
            store=lambda _rack: self.store,
            now=lambda: self.scene.now,
            inventory=inventory,
        )

    def _plan(self, _context, decision, _seen) -> Plan:
        if self.refuses is not None:
            raise RefusedError(self.refuses)
        (job,) = decision.fault.jobs
        replaced = tuple(Replacement(job, 0, failed, "h16-gpu2") for failed in decision.fault.jobs[job])
        start = Start({job: ()})
        return Plan("swap", "t", RACK, "rack", self.scene.now, "d", start, replacements=replaced).sealed()

    def _carry_out(self, _context, plan, _policy, _progress, require_wanted) -> AttemptResult:
        self.before_apply()
        try:
            require_wanted()
        except RefusedError as error:
            return AttemptResult("refused", told=error.message)
        self.applied.append(plan.id)
        return self.ends

    def events(self) -> list[str]:
        return [remark.data["event"] for remark in self.store.journal.remarks("autopilot")]


@pytest.fixture
def flight(scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flight]:
    for name, variable in (("run", "XDG_RUNTIME_DIR"), ("state", "XDG_STATE_HOME")):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(tmp_path / name))
    store = store_at(str(tmp_path / "store"), rack=RACK)
    yield Flight(scene, store, monkeypatch)
    store.close()


def test_the_attempt_is_on_disk_before_anything_moves(flight):
    flight.scene.policy()
    flight.scene.fail(GPU)
    flight.look()
    flight.before_apply = lambda: pytest.fail("no attempt") if flight.events() != ["attempt"] else None
    flight.look(31)
    assert len(flight.applied) == 1
    assert (flight.events(), flight.told) == (["attempt", "outcome"], ["applied"])


def test_a_decision_is_written_down_once(flight):
    flight.scene.policy()
    flight.scene.fail(GPU)
    for _ in range(20):
        flight.look(1)
    (remark,) = flight.store.journal.remarks("decision")
    (told,) = remark.data["decisions"]
    assert (told["component"], told["act"], told["reason"]) == (GPU, "nothing", "stands")
    assert [c["name"] for c in told["conditions"]] == ["stands"]
    flight.begin()
    flight.look(1)
    assert len(flight.store.journal.remarks("decision")) == 1
    flight.scene.heal(GPU)
    flight.look(1)
    flight.look(1)
    assert [d["because"] for d in flight.store.journal.remarks("decision")[1].data["decisions"]] == ["it is over"]
    assert len(flight.store.journal.remarks("decision")) == 2


def test_what_is_over_by_a_fresh_reading_is_left(flight):
    flight.scene.policy()
    flight.scene.fail(GPU)
    look = flight.scene.look
    stale = replace(look(), inventory=replace(look().inventory, policies=tuple(flight.scene.policies)))
    flight.scene.heal(GPU)
    flight.scene.now += 31
    flight.pilot.consider(replace(stale, at=flight.scene.now))
    assert (flight.applied, flight.events()) == ([], [])


def test_an_outcome_that_nobody_knows_stops_it_also_after_a_restart(flight):
    flight.scene.policy(cool_down_s=0.0)
    flight.ends = AttemptResult(None, "swap-0001", "the database is gone")
    flight.scene.fail(GPU)
    flight.look(31)
    assert (flight.told, flight.events()) == (["halted"], ["attempt", "halt", "outcome"])
    flight.scene.fail("h12-gpu0")
    flight.look(31)
    flight.begin()
    flight.look(1)
    assert len(flight.applied) == 1
    assert "the result of plan-" in str(flight.pilot.memory.halted)


def test_one_who_dies_in_mid_swap_finds_out_how_it_ended(flight):
    flight.scene.policy(cool_down_s=0.0)

    def dies() -> None:
        raise SystemExit

    flight.before_apply = dies
    flight.scene.fail(GPU)
    with pytest.raises(SystemExit):
        flight.look(31)
    flight.before_apply = lambda: None
    flight.begin()
    flight.look(1)
    assert flight.events()[:2] == ["attempt", "outcome"]
    assert flight.store.journal.remarks("autopilot")[1].data["outcome"] == "refused"  # its run had not begun
    assert flight.pilot.memory.halted is None


def test_a_stop_in_the_last_moment_counts(flight):
    flight.scene.policy()
    flight.scene.fail(GPU)
    remark = flight.store.journal.remark

    def stopped_meanwhile(kind, data, **more):
        entry = remark(kind, data, **more)
        if data.get("event") == "attempt":
            remark("autopilot", {"event": "stop"}, at=more["at"], who="ops@elsewhere")
        return entry

    flight.store.journal.remark = stopped_meanwhile
    flight.look(31)
    assert flight.applied == []
    assert flight.events() == ["attempt", "stop", "outcome"]


@pytest.mark.parametrize("said", ["journal", "file", "daemon"])
def test_a_stop_after_the_attempt_was_written_down_is_seen_by_the_run_that_begins(flight, said):
    flight.scene.policy()
    flight.scene.fail(GPU)

    def stop():
        if said == "journal":
            flight.store.journal.remark("autopilot", {"event": "stop"}, at=flight.scene.now, who="ops@elsewhere")
        elif said == "file":
            stop_switch.throw(stop_switch.places([RACK], [flight.store.files]), "ops")
        else:
            flight.stopped = "by ops"

    flight.before_apply = stop
    flight.look()
    flight.look(31)
    assert "attempt" in flight.events()
    assert flight.applied == []
    assert flight.told == ["failed"]


@pytest.mark.parametrize("way", ["file", "process"])
def test_each_way_stops(flight, way):
    flight.scene.policy()
    flight.scene.fail(GPU)
    if way == "file":
        stop_switch.throw(stop_switch.places([RACK], alone=True)[:1], "ops")
    else:
        flight.stopped = "by ops"
    flight.look(31)
    assert flight.applied == []
    assert flight.pilot.decisions[0].reason == "switch"


def test_without_a_store_nothing_is_done(flight):
    flight.scene.policy()
    flight.scene.fail(GPU)

    def full(*_: object, **__: object) -> None:
        raise StoreError("the store cannot be written: no room")

    flight.store.journal.remark = full
    with pytest.raises(StoreError):
        flight.look(31)
    assert flight.applied == []


def test_where_there_is_no_plan_people_are_told_now_and_then(flight):
    flight.scene.policy()
    flight.refuses = "no spare is left"
    flight.scene.fail(GPU)
    flight.look(31)
    for _ in range(5):
        flight.look(5)
    assert flight.told == ["failed"]
    flight.look(RETRY_S)
    assert flight.told == ["failed", "failed"]


def test_a_plan_is_applied_after_a_yes_and_people_are_reminded_before(flight):
    flight.scene.policy(How.APPROVE)
    flight.scene.fail(GPU)
    flight.look(31)
    flight.look(1)
    (asked,) = flight.store.approvals.all()
    assert (flight.told, flight.applied) == (["approval-wanted"], [])
    flight.look(900)
    flight.look(1)
    assert flight.told == ["approval-wanted", "approval-overdue"]
    flight.store.approvals.answer(asked.digest, APPROVED, by="ops@console", comment="", at=flight.scene.now)
    flight.look(1)
    assert (flight.applied, flight.told[-1]) == ([asked.plan], "applied")
    assert flight.store.approvals.get(asked.digest).state == "spent"


def test_a_storm_is_told_once(flight):
    flight.scene.policy()
    for host in range(1, 11):
        for gpu in range(4):
            flight.scene.fail(f"h{host:02}-gpu{gpu}")
        flight.look(1)
    flight.look(60)
    assert (flight.told, flight.applied) == (["breaker-opened"], [])
    assert flight.events() == ["breaker-opened"]


def test_what_was_approved_under_a_name_that_another_plan_has_now_is_not_applied(flight):
    flight.scene.policy(How.APPROVE)
    flight.scene.fail(GPU)
    flight.look(31)
    (asked,) = flight.store.approvals.all()
    flight.store.approvals.answer(asked.digest, APPROVED, by="ops@console", comment="", at=flight.scene.now)
    with writing(flight.store._engine) as connection:
        connection.execute(update(approvals).values(plan=asked.digest[:8] + "0" * 56))
    flight.look(1)
    assert flight.applied == []
    assert flight.told[-1] == "failed"
