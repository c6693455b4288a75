"""Who holds a lease: a process that is at work keeps it, one that is frozen is ended by whoever takes it next."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl import processes
from lumctl.store import Store, store_at
from lumctl.store.clock import SENDS_FOR, LeaseDeadline, since_boot
from lumctl.store.lease import LeaseHeldError, LeaseLostError
from lumctl.store.lease_process import LeaseProcess

HOLDER = """
import sys, time
from lumctl.store import store_at
held = store_at(sys.argv[1]).leases.acquire("r1", "ops@console", term_s=float(sys.argv[2]), now=time.time())
print(held.fence, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = store_at(str(tmp_path))
    yield opened
    opened.close()


def held_by_another(folder: Path, term_s: float = 30.0) -> "subprocess.Popen[str]":
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(term_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "1\n"
    return holder


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    with held_by_another(tmp_path) as process:
        yield process
        process.kill()


def stopped(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def test_a_held_lease_names_the_process(store: Store, holder) -> None:
    with pytest.raises(LeaseHeldError, match=rf"by ops@console; .*process {holder.pid} \(.*python.* is running"):
        store.leases.acquire("r1", "me", term_s=30.0, now=time.time())


def test_and_says_how_to_wake_one_that_is_stopped(store: Store, holder) -> None:
    stopped(holder)
    with pytest.raises(LeaseHeldError, match=r"is stopped$") as refused:
        store.leases.acquire("r1", "me", term_s=30.0, now=time.time())
    assert f"kill -CONT {holder.pid}" in refused.value.hint


def test_one_that_is_stopped_is_ended_once_its_lease_has(store: Store, holder) -> None:
    stopped(holder)
    assert store.leases.acquire("r1", "me", term_s=30.0, now=time.time() + 31).fence == 2
    assert holder.wait() == -signal.SIGKILL


def test_one_that_is_stopped_and_belongs_to_another_user_is_named(store: Store, holder, monkeypatch) -> None:
    """It could wake up between its check and its send, so nothing is done before somebody has ended it."""
    monkeypatch.setattr("lumctl.store.lease_process.kill_and_wait", lambda *_: False)
    stopped(holder)
    with pytest.raises(LeaseHeldError, match=rf"could still write when it wakes up: process {holder.pid} ") as refused:
        store.leases.acquire("r1", "me", term_s=30.0, now=time.time() + 31)
    assert f"kill -KILL {holder.pid}; then repeat this command" in refused.value.hint


def test_a_clock_that_was_set_forward_takes_no_lease_from_a_process_at_work(store: Store, holder) -> None:
    with pytest.raises(LeaseHeldError, match="being changed by ops@console; its lease ends in"):
        store.leases.acquire("r1", "me", term_s=30.0, now=time.time() + 3600)
    assert holder.poll() is None


def test_one_that_gave_its_lease_back_is_left_alone(store: Store, holder) -> None:
    lease = store.leases.acquire("r2", "me", term_s=30.0, now=time.time())
    store.leases.release(replace(lease, rack="r1"))
    stopped(holder)
    assert store.leases.acquire("r1", "me", term_s=30.0, now=time.time()).fence == 2
    assert processes.find(processes.process_with(holder.pid)) is not None


def test_one_of_another_machine_is_left_alone(store: Store, holder, monkeypatch) -> None:
    stopped(holder)
    monkeypatch.setattr(processes, "_boot_id", lambda: "the start of another machine")
    assert store.leases.acquire("r1", "me", term_s=30.0, now=time.time() + 31).fence == 2
    assert holder.poll() is None


def test_whoever_holds_it_sends_for_less_than_its_term(store: Store) -> None:
    asked_at = since_boot()
    lease = store.leases.acquire("r1", "me", term_s=30.0, now=time.time())
    assert asked_at + SENDS_FOR * 30.0 <= lease.deadline.at < asked_at + 30.0
    store.leases.renew(lease, term_s=60.0, now=time.time())
    assert asked_at + SENDS_FOR * 60.0 <= lease.deadline.at < asked_at + 60.0
    store.leases.release(lease)
    assert lease.deadline.has_passed


def test_a_lease_that_was_lost_ends_at_once(store: Store) -> None:
    now = time.time()
    lost = store.leases.acquire("r1", "me", term_s=30.0, now=now)
    store.leases.acquire("r1", "you", term_s=30.0, now=now + 31)
    assert not lost.deadline.has_passed
    with pytest.raises(LeaseLostError):
        store.leases.renew(lost, term_s=30.0, now=now)
    assert lost.deadline.has_passed


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"process": {"pid": 1}, "ends_at": 1}', "\x00"])
def test_what_cannot_be_understood_names_nobody(text: str) -> None:
    assert LeaseProcess.read(text) is None


def test_a_deadline_without_a_lease_never_passes() -> None:
    assert not LeaseDeadline().has_passed
