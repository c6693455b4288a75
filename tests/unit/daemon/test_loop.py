"""The daemon's loop: fixed beats, changes as lines, and a beat after every error."""

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.history import LatestObservation, TransitionQueue
from lumctl.daemon.loop import PAUSE_S, REMEMBER_S, Cadence, Daemon, DaemonOrder, Sinks, WatchedClock, transition_lines
from lumctl.daemon.metrics.exporter import SelfMetrics
from lumctl.daemon.notifications.ledger import NotificationFile, NotificationLedger
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UnreachableError, UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import example, load_inventory

GPU = "s1-gpu0"


class Stage:
    """A daemon's surroundings: eyes that see what they are told or fail, a store that is full on command."""

    def __init__(self, seen, clock, said, folder):
        self.seen, self.clock, self.said = seen, clock, said
        self.error = None
        self.full = False
        self.set_by = 0.0
        self.opened = []
        self.closed = 0
        self.asked = []
        self.rows = []
        self.told = []
        self.looks = 0
        self.on_look = lambda: None
        self.notes = NotificationFile(folder / "watch.json")
        self.history = TransitionQueue(self.write, monotonic=clock)
        self.newest = LatestObservation(clock)
        self.errors = ErrorLog(said.append)
        self.self_metrics = SelfMetrics(self.newest, 1.0, self.errors, self.history, None)
        self.ledger = NotificationLedger(self.notes)
        self.load = lambda _: seen.inventory
        self.known = {}

    def daemon(self, **options):
        outbox = SimpleNamespace(put=self.told.append)
        sinks = Sinks(self.newest, self.history, self.notes, self.ledger, outbox, self.self_metrics, self.errors)
        return Daemon(
            self.seen.inventory,
            self.open,
            sinks,
            self.said.append,
            interval_s=options.get("interval_s", 1.0),
            known=self.known,
            load=self.load,
            clock=WatchedClock(lambda: self.clock() + self.set_by, options.get("monotonic", self.clock)),
        )

    def open(self, inventory):
        self.opened.append(inventory)
        if isinstance(self.error, UnreachableError):
            raise self.error
        return self

    def observe(self, *, tick, remember):
        assert tick
        self.asked.append(remember)
        self.looks += 1
        self.on_look()
        if self.error is not None:
            raise self.error
        self.seen.not_kept = "no room" if self.full and remember else None
        return self.seen.look()

    def close(self):
        self.closed += 1

    def write(self, rack, changes):
        if self.full:
            raise OSError(28, "No space left on device")
        self.rows += [(rack, change.component, change.after.value) for change in changes]


@pytest.fixture
def stage(seen, clock, said, tmp_path):
    return Stage(seen, clock, said, tmp_path)


def test_a_change_is_a_line_and_a_message_once(stage, said):
    daemon = stage.daemon()
    daemon.beat()
    assert said == []
    stage.seen.find(GPU)
    daemon.beat()
    daemon.beat()
    assert said == ["accelerator s1-gpu0 ok -> failed: gpu.lost was seen (gpu.lost)"]
    assert [n.occasion.value for n in stage.told] == ["opened"]
    stage.seen.heal()
    daemon.beat()
    assert said[1:] == ["accelerator s1-gpu0 failed -> ok"]
    assert [n.occasion.value for n in stage.told] == ["opened", "resolved"]
    assert stage.newest.look.report.accelerators[GPU].state is State.OK


def test_the_first_look_of_the_next_daemon_goes_on_where_the_last_one_ended(stage, said):
    stage.known = {(GPU, "accelerator"): State.FAILED, ("s2-gpu0", "accelerator"): State.FAILED}
    stage.seen.find(GPU)
    stage.daemon().beat()
    assert said == ["accelerator s2-gpu0 failed -> ok"]


def test_the_first_look_of_all_tells_what_is_not_well(stage, said):
    stage.seen.find(GPU)
    stage.daemon().beat()
    assert said == ["accelerator s1-gpu0 new -> failed: gpu.lost was seen (gpu.lost)"]


def not_read_yet(stage, *components):
    """As a look shows it before the first answers: the components behind a host are unknown, without any finding."""
    stage.seen.awaited = ("s1",)
    stage.seen.states.update(dict.fromkeys(components, State.UNKNOWN))


def counted_changes(stage):
    return [
        sample for family in stage.self_metrics._counts() for sample in family.samples if "transitions" in sample.name
    ]


def test_what_was_not_read_yet_is_no_change(stage, said):
    stage.known = {(GPU, "accelerator"): State.OK, ("s1", "host"): State.OK}
    not_read_yet(stage, GPU, "s1")
    daemon = stage.daemon()
    for _ in range(3):
        daemon.beat()
        assert stage.newest.look is None, "nobody is given such a look: neither check nor a scrape of metrics"
    stage.seen.awaited = ()
    stage.seen.heal()
    daemon.beat()
    assert stage.newest.look is not None
    assert (said, stage.told, stage.rows, counted_changes(stage)) == ([], [], [], [])


def test_what_the_first_complete_look_finds_is_reported(stage, said):
    stage.known = {(GPU, "accelerator"): State.OK}
    not_read_yet(stage, GPU)
    daemon = stage.daemon()
    daemon.beat()
    stage.seen.awaited = ()
    stage.seen.find(GPU)
    daemon.beat()
    daemon.beat()
    assert said == ["accelerator s1-gpu0 ok -> failed: gpu.lost was seen (gpu.lost)"]
    assert [n.occasion.value for n in stage.told] == ["opened"]


def test_a_restart_beside_a_fault_reports_nothing_twice(stage, said):
    stage.seen.find(GPU)
    first = stage.daemon()
    first.beat()
    for notification in stage.told:
        stage.ledger.delivered(notification)
    said.clear()
    stage.told.clear()
    stage.known = {(GPU, "accelerator"): State.FAILED}
    found = dict(stage.seen.findings)
    stage.seen.heal()
    not_read_yet(stage, GPU)
    stage.ledger = NotificationLedger(stage.notes)
    again = stage.daemon()
    again.beat()
    stage.seen.awaited, stage.seen.findings = (), found
    stage.seen.states[GPU] = State.FAILED
    again.beat()
    assert (said, stage.told) == ([], [])


def test_a_rack_that_is_opened_again_is_awaited_again(stage, said):
    daemon = stage.daemon()
    daemon.beat()
    newest = stage.newest.look
    stage.set_by = 7200.0
    not_read_yet(stage, GPU)
    daemon.beat()
    assert stage.newest.look is newest
    stage.seen.awaited = ()
    stage.seen.heal()
    daemon.beat()
    assert [line for line in said if "->" in line] == []


def test_evidence_of_several_lines_is_one_line(stage, said):
    stage.seen.find(GPU)
    finding = stage.seen.findings[GPU][0]
    stage.seen.findings[GPU] = [replace(finding, evidence="two\n  lines")]
    stage.daemon().beat()
    assert said[0].endswith("failed: two lines (gpu.lost)")


def test_a_look_that_fails_is_told_once_and_the_next_one_comes(stage, said):
    daemon = stage.daemon()
    daemon.beat()
    for stage.error in (UsageError("the store is gone"), UsageError("the store is gone"), KeyError("h01")):
        daemon.beat()
    assert stage.newest.look is not None
    assert [line.partition(" at ")[0] for line in said] == [
        "look: the store is gone",
        "look: unexpected KeyError: 'h01'",
    ]
    stage.error = None
    daemon.beat()
    assert said[2:] == ["look: ok again after 3 failures"]


def test_an_error_that_is_known_keeps_the_sessions_and_a_bug_begins_anew(stage, clock):
    daemon = stage.daemon()
    stage.error = UsageError("the store is gone")
    daemon.beat()
    assert (len(stage.opened), stage.closed) == (1, 0)
    stage.error = KeyError("h01")
    daemon.beat()
    daemon.beat()
    daemon.beat()
    assert (len(stage.opened), stage.closed) == (2, 1)
    clock.at += PAUSE_S
    daemon.beat()
    assert stage.closed == 2


def test_a_simulator_that_is_started_again_is_found(stage, clock):
    daemon = stage.daemon()
    daemon.beat()
    stage.seen.silent_hosts = set(stage.seen.inventory.hosts)
    daemon.beat()
    assert stage.closed == 1
    stage.error = UnreachableError("no simulator is running")
    daemon.beat()
    daemon.beat()
    assert stage.errors.counts() == {("look", "UnreachableError"): 2}
    stage.error = None
    stage.seen.silent_hosts = set()
    daemon.beat()
    assert stage.newest.look.snapshot.hosts["s1"].reachable
    clock.at += PAUSE_S
    daemon.beat()
    assert stage.closed == 1


def test_a_full_disk_loses_no_transition_and_blinds_nobody(stage, said, clock):
    daemon = stage.daemon()
    daemon.beat()
    stage.full = True
    stage.seen.find(GPU)
    daemon.beat()
    stage.seen.heal()
    daemon.beat()
    clock.at += 1
    stage.seen.find(GPU)
    daemon.beat()
    assert stage.asked == [True, False, True, False]
    assert stage.newest.look.report.accelerators[GPU].state is State.FAILED
    assert stage.rows == []
    assert "memory: no room" in said
    assert sum("No space left" in line for line in said) == 1
    stage.full = False
    clock.at += PAUSE_S
    daemon.beat()
    assert stage.rows == [("prototype", GPU, "failed"), ("prototype", GPU, "ok"), ("prototype", GPU, "failed")]
    assert said[-2:] == ["history: ok again after 1 failures", "memory: ok again after 1 failures"]
    clock.at += PAUSE_S
    daemon.beat()
    assert len(stage.rows) == 3


def test_a_site_that_was_opened_on_a_full_disk_is_opened_anew(stage, clock):
    daemon = stage.daemon()
    stage.full = True
    stage.seen.find(GPU)
    daemon.beat()
    clock.at += PAUSE_S
    stage.write = stage.history.write = lambda *_: None
    daemon.beat()
    assert stage.closed == 1


def test_a_verdict_that_cannot_be_handed_on_does_not_end_the_daemon(stage, said):
    daemon = stage.daemon()
    stage.ledger.review = lambda _: {}["bug"]
    daemon.beat()
    daemon.beat()
    assert [line.partition(" at ")[0] for line in said] == ["verdict: unexpected KeyError: 'bug'"]
    assert stage.looks == 2


def test_readings_that_cannot_be_folded_cost_nothing_else(stage, said):
    def fails(_look):
        raise KeyError("h01")

    daemon = stage.daemon()
    daemon._sinks = replace(daemon._sinks, readings=SimpleNamespace(see=fails))
    stage.seen.find(GPU)
    daemon.beat()
    daemon.beat()
    assert stage.looks == 2
    assert [line.partition(" at ")[0] for line in said[1:]] == ["folding: unexpected KeyError: 'h01'"]
    assert [n.occasion.value for n in stage.told] == ["opened"]


def run_in_thread(daemon):
    thread = threading.Thread(target=daemon.run)
    thread.start()
    return thread


def test_systemd_is_told_of_the_end_before_anything_is_closed(stage, tmp_path_factory, monkeypatch):
    address = str(tmp_path_factory.mktemp("n") / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(address)
        supervisor.settimeout(0.0)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        heard = []

        def close():
            with suppress(BlockingIOError):
                while True:
                    heard.append(supervisor.recv(64))

        stage.close = close
        daemon = stage.daemon()
        daemon.orders.put(DaemonOrder.STOP)
        daemon.run()
        assert heard == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_stop_ends_it_and_gives_everything_back(stage):
    import time

    daemon = stage.daemon(interval_s=3600.0, monotonic=time.monotonic)
    looked = threading.Event()
    stage.on_look = looked.set
    thread = run_in_thread(daemon)
    assert looked.wait(20)
    daemon.orders.put(DaemonOrder.STOP)
    thread.join(20)
    assert not thread.is_alive()
    assert (stage.looks, stage.closed) == (1, 1)


def test_looks_that_take_too_long_are_left_out_and_counted(stage, clock):
    daemon = stage.daemon()

    def slow():
        clock.at += 3.5
        daemon.orders.put(DaemonOrder.STOP)

    stage.on_look = slow
    daemon.run()
    counted = {family.name: family.samples for family in stage.self_metrics.collect()}
    assert counted["lumctl_watch_overruns"][0].value == 3


def reload_once(stage):
    daemon = stage.daemon()
    daemon.orders.put(DaemonOrder.RELOAD)
    daemon.orders.put(DaemonOrder.STOP)
    daemon.run()
    return daemon


def test_an_inventory_that_is_unchanged_changes_nothing(stage, said):
    reload_once(stage)
    assert said == ["inventory: read again, unchanged"]
    assert len(stage.opened) == 1


def test_a_broken_inventory_is_said_and_the_old_one_kept(stage, said, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("lumctl: 1\nracks: [\n")
    stage.load = lambda _: load_inventory(broken)
    daemon = reload_once(stage)
    assert said[0].startswith("inventory: the new version cannot be used, the old one stays in force: ")
    assert daemon.inventory is stage.seen.inventory
    assert len(stage.opened) == 1


def test_a_new_inventory_is_in_force_at_once(stage, said, tmp_path):
    text = example("prototype").read_text() + "\n# changed\n"
    (tmp_path / "new.yaml").write_text(text)
    stage.load = lambda _: load_inventory(tmp_path / "new.yaml")
    daemon = reload_once(stage)
    assert daemon.inventory.path == tmp_path / "new.yaml"
    assert stage.opened[1].digest == daemon.inventory.digest
    assert stage.closed == 2
    assert said[0].endswith("read again and is in force")


def test_memory_is_written_when_something_is_found_and_else_rarely(stage, clock):
    daemon = stage.daemon()
    for _ in range(3):
        daemon.beat()
        clock.at += 1
    stage.seen.find(GPU)
    for _ in range(3):
        daemon.beat()
        clock.at += 1
    assert stage.asked == [True, False, False, False, True, False]
    clock.at += REMEMBER_S
    daemon.beat()
    assert stage.asked[-1] is True


def test_a_change_is_in_the_history_by_the_end_of_its_beat(stage):
    daemon = stage.daemon()
    daemon.beat()
    stage.seen.find(GPU)
    daemon.beat()
    assert stage.asked[-1] is False
    assert stage.rows == [("prototype", GPU, "failed")]


@pytest.mark.parametrize("by", [3600.0, -3600.0])
def test_when_the_clock_was_set_everything_is_read_anew(stage, said, by):
    daemon = stage.daemon()
    daemon.beat()
    stage.set_by = 0.4
    daemon.beat()
    assert stage.closed == 0
    stage.set_by += by
    daemon.beat()
    daemon.beat()
    assert stage.closed == 1
    assert len(stage.opened) == 2
    assert said == [f"clock: set by {by:+.0f} s; everything is read again"]


def test_a_supervisor_hears_of_it_between_beats_that_are_far_apart(stage, monkeypatch):
    import time

    told, enough = [], threading.Event()

    def tell(state):
        told.append(state)
        if told.count("WATCHDOG=1") >= 3:
            enough.set()

    monkeypatch.setattr("lumctl.daemon.loop.notify_systemd", tell)
    monkeypatch.setattr("lumctl.daemon.loop.ALIVE_S", 0.01)
    daemon = stage.daemon(interval_s=3600.0, monotonic=time.monotonic)
    thread = run_in_thread(daemon)
    assert enough.wait(20)
    daemon.orders.put(DaemonOrder.STOP)
    thread.join(20)
    assert stage.looks == 1


def test_a_short_look_waits_for_the_next_beat(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 0.25
    assert cadence.to_next() == (0.75, 0)


def test_a_long_look_misses_beats_and_keeps_the_time(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 3.25
    assert cadence.to_next() == (0.75, 3)
    clock.at += 0.75
    assert cadence.to_next() == (1.0, 0)


def test_a_look_that_takes_just_one_interval_misses_none(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 1.0
    assert cadence.to_next() == (0.0, 0)


@given(st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.lists(st.integers(0, 200), max_size=20))
def test_every_beat_stands_on_the_grid_and_none_lies_in_the_past(interval, looks):
    at = [1000.0]
    cadence = Cadence(interval, lambda: at[0])
    beats = 0
    for eighths in looks:
        at[0] += eighths / 8
        wait, missed = cadence.to_next()
        beats += missed + 1
        assert 0 <= wait <= interval
        assert missed >= 0
        at[0] += wait
        assert at[0] == 1000.0 + beats * interval


def change(component, kind, after=State.UNKNOWN, evidence="", *rules):
    return Transition(1.0, component, kind, State.OK, after, rules, evidence)


def test_a_host_that_is_lost_is_two_lines_and_its_own_comes_first():
    changes = [change(f"h05-gpu{n}", "accelerator") for n in range(4)]
    changes.append(change("h05", "host", State.FAILED, "it is down", "host.unreachable"))
    assert list(transition_lines(changes)) == [
        "host h05 ok -> failed: it is down (host.unreachable)",
        "4 accelerators h05-gpu[0-3] ok -> unknown",
    ]


def test_what_was_seen_otherwise_is_another_line():
    changes = [change("a1", "link", State.FAILED, "no light", "x"), change("a2", "link", State.FAILED, "down", "y")]
    assert list(transition_lines(changes)) == ["link a1 ok -> failed: no light (x)", "link a2 ok -> failed: down (y)"]


def test_every_name_is_told():
    names = ["train-a/3-4", "train-a/4-5", "train-b/0-1"]
    (line,) = transition_lines(change(name, "circuit") for name in names)
    assert line.startswith("3 circuits ")
    assert all(name in line for name in names)
