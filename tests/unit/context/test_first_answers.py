"""A look counts once each host and device has answered, or is known not to."""

import pytest

from lumctl.context.device_answers import WAIT_S, FirstAnswers
from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.health.rulebook import verdict

MISSES = int(verdict("host.missed", "missed").limit)


class Clock:
    at = 0.0

    def __call__(self):
        return self.at


def snapshot(*hosts):
    return Snapshot(1.0, 0.1, {host.host: host for host in hosts})


def host(name, *, reachable=True, **fields):
    return HostSnapshot(name, 1.0, reachable=reachable, **fields)


@pytest.mark.parametrize(
    ("found", "is_awaited"),
    [
        (host("h1"), False),
        (host("h1", awaited=True), True),
        (host("h1", reachable=False, awaited=True), True),
        (host("h1", reachable=False, awaited=True, error="refused", attempts=MISSES - 1), True),
        (host("h1", reachable=False, awaited=True, error="refused", attempts=MISSES), False),
        (host("h1", reachable=False, awaited=True, error="changed", host_key_problem=True, attempts=1), False),
    ],
)
def test_a_host_is_awaited_until_it_answers_or_missed_three_times(found, is_awaited):
    assert FirstAnswers(["h1"]).outstanding(snapshot(found), ()) == (("h1",) if is_awaited else ())


def test_a_device_is_awaited_until_it_is_told_of():
    first = FirstAnswers(["h1", "mesh"])
    assert first.outstanding(snapshot(host("h1")), ()) == ("mesh",)
    assert first.outstanding(snapshot(host("h1")), {"mesh": None}) == ()


def test_one_that_has_answered_once_is_awaited_no_more():
    first = FirstAnswers(["h1", "h2"])
    assert first.outstanding(snapshot(host("h1"), host("h2", awaited=True)), ()) == ("h2",)
    lost = host("h1", reachable=False, error="gone", attempts=1)
    assert first.outstanding(snapshot(lost, host("h2")), ()) == ()


def test_nobody_is_awaited_for_ever():
    clock = Clock()
    first = FirstAnswers(["h1"], clock)
    clock.at = WAIT_S - 1
    assert first.outstanding(snapshot(host("h1", awaited=True)), ()) == ("h1",)
    clock.at = WAIT_S
    assert first.outstanding(snapshot(host("h1", awaited=True)), ()) == ()
