"""The daemon and the spares: when it says that few are left, what it ends and announces of the queue, its metrics."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lumctl.daemon.metrics.exporter import SpareMetrics
from lumctl.daemon.spare_watcher import SpareWatcher
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import NEEDLESS, WAITING, StoreError, store_at

RACK, JOB, LOST, SPARE = "prototype", "finetune", "s1-gpu0", "s3-gpu0"
CLASS, DAY_S = "NVIDIA RTX 6000 Ada Generation", 86_400.0


class Watched:
    """A watcher of a store, with what it said and told."""

    def __init__(self, folder, seen):
        self.seen, self.said, self.told = seen, [], []
        self.store = store_at(str(folder), rack=RACK)
        self.low = []
        self.watcher = SpareWatcher(lambda _: self.store, self._say, self._tell)

    def _say(self, line):
        if not line.startswith("spares: "):
            self.said.append(line)

    def _tell(self, occasion, text, data):
        (self.low if occasion == "spares-low" else self.told).append((occasion, text, data))

    def ask(self):
        at = self.seen.now - 60
        return self.store.demands.ask(RACK, {JOB: (LOST,)}, why="no spare is free", who="ann@console", at=at)

    def look(self):
        self.watcher.see(self.seen.look())

    def look_after(self, *seconds):
        """Look again after each of these times."""
        for each in seconds:
            self.seen.now += each
            self.look()

    def metrics(self):
        registry = CollectorRegistry()
        registry.register(SpareMetrics(self.watcher, lambda: self.seen.now))
        families = text_string_to_metric_families(generate_latest(registry).decode())
        return {sample.name: sample.value for family in families for sample in family.samples}


@pytest.fixture
def watched(tmp_path, seen):
    made = Watched(tmp_path, seen)
    yield made
    made.watcher.close()


def test_spares_that_can_be_had_are_announced_once_and_again_if_they_change(watched, seen):
    seen.find(LOST, State.FAILED, "gpu.lost")
    seen.find(SPARE, State.FAILED, "gpu.lost")
    watched.ask()
    watched.look()
    assert (watched.said, watched.told) == ([], [])
    assert watched.metrics() == {"lumctl_spare_demands": 1.0, "lumctl_spare_demand_oldest_seconds": 60.0}

    del seen.states[SPARE], seen.findings[SPARE]
    for _ in range(3):
        watched.look()
    ((occasion, text, data),) = watched.told
    assert (occasion, data["spares"], data["demand"]) == ("spare-free", [SPARE], "demand-0001")
    assert text.endswith(f"waits for: lumctl swap plan {JOB} --failed {LOST} --target sim")
    assert watched.said == [f"queue: {text}"]

    seen.find(SPARE, State.FAILED, "gpu.lost")
    watched.look()
    del seen.states[SPARE], seen.findings[SPARE]
    watched.look()
    assert len(watched.told) == 2


def test_a_spare_is_announced_once_a_swap_can_use_it(watched, seen):
    hindered, asked = ["mesh does not answer"], []

    def obstacle(_look, failed):
        asked.append(tuple(failed))
        return hindered[0]

    watched.watcher = SpareWatcher(lambda _: watched.store, watched._say, watched._tell, obstacle)
    seen.find(LOST, State.FAILED, "gpu.lost")
    watched.ask()
    watched.look_after(1, 1)
    assert (watched.told, asked) == ([], [(LOST,)] * 2)
    hindered[0] = ""
    watched.look_after(1, 1)
    assert len(watched.told) == 1
    assert len(asked) == 3, "no plan is made for a spare that was announced"


def test_that_few_spares_are_left_is_told_once_and_again_after_more_were_there(watched, seen):
    watched.look()
    assert watched.low == []  # the only one of its class, and free
    seen.find(SPARE, State.UNKNOWN, "host.missed")
    watched.look()
    seen.heal()
    watched.look()
    seen.find(SPARE, State.FAILED, "gpu.lost")
    watched.look_after(0, 59)
    assert watched.low == []  # not for long enough
    watched.look_after(1, 100)
    ((_, text, data),) = watched.low
    assert text == f"{RACK}: 0 of 1 spare of {CLASS} are free: lumctl spare list --rack {RACK}"
    assert data == {"rack": RACK, "class": CLASS, "free": 0, "spares": 1}
    seen.heal()
    watched.look()
    seen.find(SPARE, State.FAILED, "gpu.lost")
    watched.look_after(0, 60)
    assert len(watched.low) == 2


def test_how_often_accelerators_fail_is_counted_from_the_history_now_and_then(watched, seen):
    def fails(name, days_ago):
        at = seen.now - days_ago * DAY_S
        watched.store.health.add_transitions([Transition(at, name, "accelerator", None, State.FAILED, (), "")])

    fails(SPARE, 20)
    fails("s0-gpu0", 0)
    watched.look()
    assert watched.metrics()["lumctl_spare_failures_per_day"] == pytest.approx(4 / 60, rel=1e-3)
    before = dict(watched.watcher.forecasts)
    fails("s2-gpu0", 0)
    seen.now += 1
    watched.look()
    assert watched.watcher.forecasts == before
    seen.now += 600
    watched.look()
    (forecast,) = watched.watcher.forecasts.values()
    assert forecast.failures > next(iter(before.values())).failures


def test_what_was_read_before_it_was_queued_does_not_end_a_demand(watched, seen):
    watched.store.demands.ask(RACK, {JOB: (LOST,)}, why="", who="ann@console", at=seen.now)
    watched.look()  # its readings are a second old
    assert [each.state for each in watched.store.demands.all()] == [WAITING]
    seen.now += 2
    watched.look()
    assert [each.state for each in watched.store.demands.all()] == [NEEDLESS]


def test_a_lane_that_is_not_ok_keeps_a_demand_although_no_spare_is_left(watched, seen):
    seen.find(f"{LOST}-a", State.FAILED, "optics.dark")
    seen.find(SPARE, State.FAILED, "gpu.lost")
    watched.ask()
    watched.look()
    assert [each.state for each in watched.store.demands.all()] == [WAITING]


def test_a_store_that_fails_is_opened_again(watched, seen, monkeypatch):
    seen.find(LOST, State.FAILED, "gpu.lost")
    watched.ask()
    opened = []
    watched.watcher._store = lambda rack: opened.append(rack) or watched.store
    monkeypatch.setattr(watched.store, "close", lambda: None)
    with monkeypatch.context() as broken:
        broken.setattr(type(watched.store.demands), "waiting", lambda _: (_ for _ in ()).throw(StoreError("disk")))
        with pytest.raises(StoreError):
            watched.look()
    watched.look()
    assert opened == [RACK, RACK]
    assert len(watched.told) == 1


def test_a_demand_ends_when_its_accelerator_is_ok_but_not_while_it_is_unknown(watched, seen):
    seen.find(LOST, State.UNKNOWN, "host.down")
    watched.ask()
    watched.look()
    assert [each.state for each in watched.store.demands.all()] == [WAITING]
    seen.heal()
    watched.look()
    (ended,) = watched.store.demands.all()
    assert (ended.state, ended.why) == (NEEDLESS, f"{LOST} is ok again")
    assert watched.said[-1:] == [f"queue: demand-0001 of {JOB} ends: {LOST} is ok again"]
    assert watched.metrics() == {"lumctl_spare_demands": 0.0}
