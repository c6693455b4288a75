"""What one look leaves for the next, in one process and in another; what operators said; what runs move."""

from dataclasses import replace

import pytest

from lumctl.context import Context
from lumctl.context.health_memory import Moved, moving
from lumctl.fleet.readings import Snapshot
from lumctl.health.acknowledgements import Acknowledgement, EventClear, MaintenanceWindow
from lumctl.health.states import State
from lumctl.store import COMES_TO_REST_S, Record, StoreError, store_at

GPU, HOST = "h03-gpu2", "h03"
RUN = {"kind": "swap", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}
PLAN = {
    "digest": "d",
    "circuits": {
        "add": [{"id": "train-a/0-1", "ends": [{"lane": "h01-gpu0-b"}, {"lane": "h02-gpu0-a"}]}],
        "remove": [{"id": "train-a/1-2", "ends": [{"lane": "h02-gpu0-b"}, {"lane": "h03-gpu0-a"}]}],
        "keep": [{"id": "train-b/0-1", "ends": [{"lane": "h09-gpu0-b"}, {"lane": "h10-gpu0-a"}]}],
    },
    "steps": [{"id": "1", "data": {"transponder": "h16-gpu0-a"}}, {"id": "2", "data": {"device": "rail0"}}],
}
MOVED = {"train-a/0-1", "train-a/1-2", "h01-gpu0-b", "h02-gpu0-a", "h02-gpu0-b", "h03-gpu0-a", "h16-gpu0-a"}


class Rack:
    """A context whose hosts say what a test arranged, at the time that it says."""

    capabilities = frozenset()

    def __init__(self, collected, folder) -> None:
        self.collected = collected
        self.folder = folder
        self.now = collected.observation().at
        self.store = store_at(str(folder))
        self.sites = []
        self.ticks = 0

    def context(self):
        """As another process opens it."""
        context = Context(self.collected.inventory, "sim", store=lambda _: self.store, now=lambda: self.now)
        context.fleet = context.devices = self
        self.sites.append(context)
        return context

    def look(self, context=None, *, after=1.0, **how):
        self.now += after
        return (context or self.context()).observe(**how)

    def collect(self, **_):
        return Snapshot(self.now, 0.1, {name: self.fresh(host) for name, host in self.collected.hosts.items()})

    def tick(self, patience_s):
        assert patience_s > 0
        self.ticks += 1
        return self.collect()

    def fresh(self, host):
        """The arranged readings of a host, read now."""
        late = self.now - 0.5
        return replace(
            host,
            taken_at=late,
            probes={name: replace(probe, taken_at=late) for name, probe in host.probes.items()},
            gpus=tuple(replace(gpu, taken_at=late) for gpu in host.gpus),
            interfaces={name: replace(each, taken_at=late) for name, each in host.interfaces.items()},
            optics={name: replace(each, taken_at=late) for name, each in host.optics.items()},
        )

    def changing(self, device):
        return self.mesh(device)

    def mesh(self, _device):
        return self

    def identify(self):
        return "a mesh"

    def close(self):
        """The context closes what it was given."""

    def begin_run(self, *, now, plan=PLAN, term_s=30.0):
        lease = self.store.leases.acquire("rack64", "me", term_s=term_s, now=now)
        return lease, self.store.runs.begin(lease, RUN, plan, now=now)


@pytest.fixture
def seen(rack, tmp_path):
    made = Rack(rack, tmp_path / "store")
    yield made
    for context in made.sites:
        context._device_answers.close()
    made.store.close()


def since(observation):
    return observation.report.accelerators[GPU].findings[0].since


def told(store):
    return [(t.component, t.before, t.after) for t in store.health.transitions()]


# -- memory -----------------------------------------------------------------------------------------------------------


def test_a_finding_stands_since_it_was_first_seen_also_for_another_process(seen, rack):
    seen.look(remember=True)
    rack.gpu(GPU, ecc_volatile_uncorrectable=2)
    first = seen.look(remember=True)
    assert since(first) == since(seen.look(after=60.0)) <= seen.now - 60.0


def test_an_event_is_known_to_another_process_and_ends_there_too(seen, rack):
    rack.host(HOST, boot_id="boot-1", booted_at=seen.now - 86_400)
    rack.xid(GPU, 79, at=seen.now)
    seen.look(remember=True)
    rack.host(HOST, xids=())
    daemon = seen.context()
    assert seen.look(daemon, remember=True).report.accelerators[GPU].state is State.FAILED
    # A check before a step of a run judges one reading, and knows of it as well.
    assert seen.context().recollection.events(seen.collect(), seen.now)[HOST].xids[0].xid == 79
    # The age of what was remembered, a day without a look, does not end it.
    assert seen.look(after=3 * 86_400.0).report.accelerators[GPU].state is State.FAILED
    seen.store.health.clear_events(EventClear(GPU, None, "kim", "reseated", seen.now))
    assert seen.look().report.accelerators[GPU].state is State.OK
    assert seen.look(daemon, remember=True).report.accelerators[GPU].state is State.OK


def test_a_look_that_is_not_to_be_remembered_writes_nothing(seen, rack):
    context = seen.context()
    rack.lose_gpu(GPU)
    seen.look(context)
    assert seen.store.health.last_look() is None
    assert seen.store.health.transitions() == ()
    assert since(seen.look(context, after=30.0)) <= seen.now - 30.0  # but this process knows


def test_an_older_look_does_not_replace_a_newer_one(seen):
    slow = seen.context()
    seen.look(remember=True)
    newest = seen.now
    seen.now -= 30.0
    seen.look(slow, remember=True)
    assert seen.store.health.last_look()[0] == newest


def test_a_look_that_cannot_be_kept_says_why_and_is_given_all_the_same(seen, rack, monkeypatch):
    def full(*_, **__):
        raise StoreError("the store cannot be written: disk full")

    context = seen.context()
    rack.lose_gpu(GPU)
    with monkeypatch.context() as broken:
        broken.setattr(seen.store.health, "remember", full)
        blind = seen.look(context, remember=True)
    assert blind.not_kept == "the store cannot be written: disk full"
    assert blind.report.accelerators[GPU].state is State.FAILED
    assert seen.look(context, remember=True).not_kept is None
    assert told(seen.store) == [(GPU, None, State.FAILED)]  # nothing of it is lost


def test_ticks_ask_for_what_is_due_and_remember_as_well(seen):
    assert seen.look(tick=True, remember=True).report.accelerators[GPU].state is State.OK
    assert seen.ticks == 1
    assert seen.store.health.last_look()[0] == seen.now


def test_a_memory_that_makes_no_sense_is_as_good_as_none(seen):
    seen.store.health.remember({"version": 1, "standing": ["?"], "history": 7}, now=seen.now)
    assert seen.look(remember=True).report.accelerators[GPU].state is State.OK


# -- history ----------------------------------------------------------------------------------------------------------


def test_changes_between_processes_are_in_the_history_once(seen, rack):
    seen.look(remember=True)
    assert told(seen.store) == []
    rack.lose_gpu(GPU)
    context = seen.context()
    seen.look(context, remember=True)
    seen.look(context, remember=True)
    seen.look(remember=True)
    assert told(seen.store) == [(GPU, State.OK, State.FAILED)]
    rack.hosts[HOST] = rack._well(rack.inventory.hosts[HOST])
    for _ in range(3):
        seen.look(after=7200.0, remember=True)
    assert told(seen.store) == [(GPU, State.OK, State.FAILED), (GPU, State.FAILED, State.OK)]


# -- what operators said ----------------------------------------------------------------------------------------------


def test_an_acknowledgement_is_laid_over_the_report_and_forgotten_when_it_is_spent(seen, rack):
    rack.gpu(GPU, ecc_volatile_uncorrectable=2)
    context = seen.context()
    seen.look(context, remember=True)
    said = Acknowledgement(GPU, None, "ops", "known", seen.now)
    seen.store.health.acknowledge(said)
    known = seen.look(context, remember=True)
    assert known.report.accelerators[GPU].findings[0].acknowledged == "by ops: known"
    assert known.acknowledgements == (said,)
    rack.gpu(GPU, ecc_volatile_uncorrectable=0)
    for _ in range(3):
        over = seen.look(context, after=7200.0)
    assert over.acknowledgements == ()
    assert seen.store.health.acknowledgements(now=seen.now) == (said,)  # status writes nothing
    seen.look(context, remember=True)
    assert seen.store.health.acknowledgements(now=seen.now) == ()


def test_maintenance_disables_a_host_and_all_on_it_while_it_lasts(seen, rack):
    rack.lose_gpu(GPU)
    window = MaintenanceWindow("w1", HOST, "ops", "new fans", seen.now + 10, seen.now + 20)
    seen.store.health.add_window(window)
    context = seen.context()
    states = []
    for after in (5.0, 10.0, 10.0):
        look = seen.look(context, after=after)
        health = look.report.accelerators[GPU]
        states.append((health.state, health.maintenance, bool(health.findings), look.windows))
    work = (State.DISABLED, "h03 by ops: new fans", True, (window,))
    assert states == [(State.FAILED, None, True, (window,)), work, (State.FAILED, None, True, ())]


# -- what runs move ---------------------------------------------------------------------------------------------------


def moved(seen, *, since):
    return moving(seen.store.runs.moves(since=since, now=seen.now))


def test_a_run_at_work_moves_what_its_plan_adds_and_removes_and_switches(seen):
    seen.begin_run(now=seen.now)
    assert moved(seen, since=seen.now) == MOVED


def test_a_run_that_ended_moved_it_until_then(seen):
    lease, run = seen.begin_run(now=seen.now)
    seen.store.runs.end(lease, run, Record(seen.now + 5, "end", "", {}), "done")
    seen.store.leases.release(lease)
    seen.now += 60
    assert moved(seen, since=seen.now - 56) == MOVED
    assert moved(seen, since=seen.now - 54) == frozenset()


def test_when_light_was_last_moved_is_known_for_as_long_as_readings_are_of_use(seen):
    moves = Moved(keep_s=600.0)
    lease, run = seen.begin_run(now=seen.now)
    assert set(moves.taking(seen.store.runs.all(), seen.now).values()) == {seen.now}
    seen.store.runs.end(lease, run, Record(seen.now + 9, "end", "", {}), "done")  # by a clock that is ahead of ours
    ended = moves.taking(seen.store.runs.all(), seen.now + 5)
    assert (ended.keys(), set(ended.values())) == (MOVED, {seen.now + 5})
    assert moves.taking(seen.store.runs.all(), seen.now + 10) == ended
    assert moves.taking([], seen.now + 604) == ended
    assert moves.taking([], seen.now + 605) == {}


def test_a_run_that_ended_far_in_the_future_says_nothing_of_when_it_was(seen):
    lease, run = seen.begin_run(now=seen.now)
    seen.store.runs.end(lease, run, Record(seen.now + 60, "end", "", {}), "done")  # the clock was set back since
    assert Moved(keep_s=600.0).taking(seen.store.runs.all(), seen.now + 5) == {}


def test_what_a_cut_run_left_in_motion_comes_to_rest(seen):
    began = seen.now
    seen.begin_run(now=began, term_s=30.0)
    seen.now += 40  # its lease has ended
    assert seen.store.runs.unfinished(now=seen.now)
    assert moved(seen, since=began + COMES_TO_REST_S - 1) == MOVED
    assert moved(seen, since=began + COMES_TO_REST_S + 1) == frozenset()


def test_a_receiver_that_goes_dark_while_a_run_moves_it_is_no_fault(seen, rack):
    context = seen.context()
    seen.look(context, remember=True)
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    seen.begin_run(now=seen.now)
    assert seen.look(context).report.circuits["train-a/0-1"].state is State.UNKNOWN


def test_a_receiver_that_is_dark_after_a_run_is_a_fault(seen, rack):
    context = seen.context()
    seen.look(context, remember=True)
    lease, run = seen.begin_run(now=seen.now)
    seen.store.runs.end(lease, run, Record(seen.now + 5, "end", "", {}), "done")
    seen.store.leases.release(lease)
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    assert seen.look(after=10.0).report.circuits["train-a/0-1"].state is State.FAILED  # as `status` looks: kept nowhere
    assert seen.look(context, after=100.0, remember=True).report.circuits["train-a/0-1"].state is State.FAILED
