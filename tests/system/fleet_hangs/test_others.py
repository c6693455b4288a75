"""What one host's trouble costs the others: nothing."""

import statistics
import threading
import time

import paramiko
import pytest

from lumctl.fleet.readings import ProbeStatus

OK = ProbeStatus.OK
TICKS = 12


def silent(loop):
    loop.take_program()
    loop.twin.let_go.wait(20)


def half_an_answer(loop):
    loop.begin()
    for _ in loop.asked():
        loop.say(b"= 3 1 0 100\nno more\n")
        loop.twin.let_go.wait(20)


def nonsense(loop):
    loop.begin()
    for _ in loop.asked():
        loop.say(b"what?\n")


def new_keys(loop):
    loop.begin()
    loop.answer(*next(loop.asked()))
    loop.twin.begin_new_keys()


def ends(loop):
    loop.channel.close()


TROUBLES = {
    "no banner": {"mute_from": 0},
    "no keys": {"mute_from": 300},
    "frozen at the login": {"frozen": "login"},
    "frozen at the channel": {"frozen": "open"},
    "frozen at the command": {"frozen": "exec"},
    "no sessions": {"opens": paramiko.OPEN_FAILED_RESOURCE_SHORTAGE},
    "no commands": {"runs": False},
    "no greeting": {"script": silent},
    "half an answer": {"script": half_an_answer},
    "nonsense": {"script": nonsense},
    "new keys for ever": {"script": new_keys},
    "its shell ends": {"script": ends},
}


@pytest.fixture
def troubled(twins):
    made = dict(zip(TROUBLES, twins(len(TROUBLES)), strict=True))
    for trouble, twin in made.items():
        for name, value in TROUBLES[trouble].items():
            setattr(twin, name, value)
    return made


def ours(theirs):
    """The threads of the client: its workers, its connections, and the watch over handshakes."""
    servers = {transport.packetizer for twin in theirs for transport in twin.transports}
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(("fleet-", "ssh"))
        or (isinstance(thread, threading.Timer) and thread.function.__self__ not in servers)
    ]


def tick_s(fleet, names):
    """The middle one of some ticks, in each of which these hosts answered."""
    taken = []
    for _ in range(TICKS):
        snapshot = fleet.tick()
        taken.append(snapshot.seconds)
        for name in names:
            net = snapshot.hosts[name].probes["net"]
            assert (net.status, net.taken_at >= snapshot.taken_at - 0.01) == (OK, True), (name, net)
    return statistics.median(taken)


def test_ticks_take_no_longer_beside_hosts_in_trouble(twins, troubled, fleet_of):
    healthy = twins(3)
    names = [twin.name for twin in healthy]
    alone, together = fleet_of(*healthy), fleet_of(*healthy, *troubled.values())
    for fleet in (alone, together):
        for _ in range(2):
            assert fleet.tick(patience_s=2.0).seconds < 4.0
    alone_s, together_s = tick_s(alone, names), tick_s(together, names)
    # A tick that waited for one of them would take its whole patience, a second.
    assert together_s < 3 * alone_s + 0.05


def test_readings_take_no_longer_beside_hosts_in_trouble(twins, troubled, fleet_of):
    healthy = twins(3)
    fleet = fleet_of(*healthy, *troubled.values())
    for _ in range(2):
        snapshot = fleet.collect()
        assert snapshot.seconds < 5.0
        for twin in healthy:
            net = snapshot.hosts[twin.name].probes["net"]
            assert net.status is OK  # so it took less than its deadline of 0.4 s


@pytest.mark.parametrize("how", ["deaf", "new keys for ever"])
def test_a_host_that_begins_to_hang_costs_one_tick_its_patience_and_no_more(twins, fleet_of, until, how):
    well, hangs = twins(2)
    fleet = fleet_of(well, hangs)
    assert fleet.tick(patience_s=5.0).hosts[hangs.name].probes["net"].status is OK
    if how == "deaf":
        hangs.wires[-1].hears.clear()
    else:
        threading.Thread(target=hangs.begin_new_keys, daemon=True).start()
        assert until(lambda: not fleet._sessions[hangs.name].transport().clear_to_send.is_set())
    assert fleet.tick(patience_s=0.1).seconds < 1.0

    def is_late():
        snapshot = fleet.tick(patience_s=5.0)
        assert snapshot.seconds < 1.0
        assert snapshot.hosts[well.name].probes["net"].status is OK
        return snapshot.hosts[hangs.name].probes["net"].status is ProbeStatus.TIMED_OUT

    assert until(is_late)
    assert is_late()


def test_tries_come_at_growing_distances(twins, fleet_of):
    (twin,) = twins()
    twin.greets = lambda sock: sock.close()
    fleet = fleet_of(twin)
    ends = time.monotonic() + 3.2
    attempts = []
    while time.monotonic() < ends:
        attempts.append(fleet.tick(patience_s=0.5).hosts[twin.name].attempts)
        threading.Event().wait(0.02)
    # At once; 0.5 to 1 s later; 1 to 2 s after that; and then not before 2 s have passed.
    assert 2 <= len(twin.connects) <= 3
    gaps = [after - before for before, after in zip(twin.connects, twin.connects[1:], strict=False)]
    assert gaps[0] >= 0.5
    assert all(gap >= 1.0 for gap in gaps[1:])
    assert sorted(attempts) == attempts
    assert attempts[-1] == len(twin.connects)
    # Who asks deliberately does not wait for the next try's time.
    twin.heal()
    host = fleet.collect(probes=["net"]).hosts[twin.name]
    assert (host.error, host.probes["net"].status) == (None, OK)
    assert fleet.tick().hosts[twin.name].attempts == 0


def test_a_lost_host_is_found_again_without_being_asked_for(twins, fleet_of, until):
    (twin,) = twins()
    twin.runs = False
    fleet = fleet_of(twin)
    assert fleet.tick(patience_s=5.0).hosts[twin.name].probes["net"].status is ProbeStatus.FAILED
    twin.heal()
    assert until(lambda: fleet.tick().hosts[twin.name].probes["net"].status is OK, within_s=5.0)


def test_nothing_is_asked_twice_while_it_runs(troubled, fleet_of):
    twin = troubled["half an answer"]
    fleet = fleet_of(twin)
    for _ in range(5):
        fleet.tick(patience_s=0.1)
        fleet.collect()
    # The host reads no further than to the first of them, and is sent no more than one request for each.
    assert len(twin.asked) == 1
    assert twin.commands == ["exec sh"]
    assert not twin.channels[0].recv_ready()


def test_a_closed_fleet_leaves_no_thread(twins, troubled, fleet_of, until):
    healthy = twins(2)
    everybody = [*healthy, *troubled.values()]
    assert not ours(everybody)
    fleet = fleet_of(*everybody)
    fleet.tick(patience_s=0.2)
    fleet.collect(probes=["net"])
    assert len(ours(everybody)) > len(healthy)
    started = time.monotonic()
    fleet.close()
    assert time.monotonic() - started < 1.0
    # A handshake that is under way ends with the time it has.
    assert until(lambda: not ours(everybody), within_s=5.0), ours(everybody)


def test_a_fleet_that_is_closed_while_it_connects(troubled, fleet_of, until):
    fleet = fleet_of(*troubled.values())
    fleet.tick(patience_s=0.0)
    fleet.close()
    assert until(lambda: not ours(troubled.values()), within_s=5.0), ours(troubled.values())


def test_the_watch_over_a_handshake_ends_with_it(troubled, fleet_of, until):
    twin = troubled["no keys"]
    fleet_of(twin).collect()
    watches = [thread for thread in ours([twin]) if isinstance(thread, threading.Timer)]
    # Its own time is a second longer than ours, and a program waits for it before it ends.
    assert until(lambda: not any(watch.is_alive() for watch in watches), within_s=0.5)
