"""The proof of light against every way in which a neighbour table can mislead."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from lumctl.change.light_proof import LightProof, NotProvedError
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.types import Neighbour
from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.wiring import Circuit, circuits_of, initial_assignment

INVENTORY = load_inventory(example("prototype"))
CIRCUIT: Circuit = circuits_of(INVENTORY, initial_assignment(INVENTORY))[0]  # s0-gpu0-b sends to s1-gpu0-a
SENDER = INVENTORY.transponders[CIRCUIT.a.transponder]
RECEIVER = INVENTORY.transponders[CIRCUIT.b.transponder]
OTHER = INVENTORY.transponders["s2-gpu0-a"]


@dataclass
class Air:
    """The receiver's table as a function of the mark last said by each host, and a clock that a wait moves."""

    table: Callable[[dict[str, str]], tuple[Neighbour, ...]]
    said: dict[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    time: float = 1000.0
    announced: list[tuple[str, str]] = field(default_factory=list)

    def collect(self, hosts, probes):
        assert probes == {"lldp"}
        shown = {RECEIVER.interface: self.table(self.said)}
        snapshots = {
            host: HostSnapshot(host, self.time, reachable=host not in self.off, neighbours=shown) for host in hosts
        }
        return Snapshot(self.time, 0.0, snapshots)

    def transponder(self, name):
        air, host = self, INVENTORY.transponders[name].host

        class Speaker:
            def announce(self, mark):
                if host in air.silent:
                    raise DeviceUnreachableError(f"{host} does not answer")
                air.said[host] = mark
                air.announced.append((host, mark))

        return Speaker()

    def pause(self, seconds):
        self.time += seconds

    def proof(self) -> LightProof:
        return LightProof(INVENTORY, self, self, now=lambda: self.time, clock=lambda: self.time, pause=self.pause)


def neighbour(transponder, mark, age_s=0.0):
    return Neighbour(transponder.host, transponder.interface, age_s, mark)


def test_the_mark_beside_the_right_name_is_the_proof() -> None:
    air = Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),))
    (proof,) = air.proof().prove([CIRCUIT])
    assert (proof.receiver, proof.transmitter, proof.evidence) == (RECEIVER.id, SENDER.id, "lldp")


def test_an_old_neighbour_beside_it_does_no_harm() -> None:
    air = Air(lambda said: (neighbour(OTHER, "00"), neighbour(SENDER, said.get(SENDER.host), 3.0)))
    assert air.proof().prove([CIRCUIT])


def test_light_that_comes_late_is_waited_for() -> None:
    air = Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),) if air.time > 1003.0 else ())
    (proof,) = air.proof().prove([CIRCUIT])
    assert proof.seconds == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(
    ("table", "hears"),
    [
        (lambda _: (), "no transmitter"),
        (lambda said: (neighbour(OTHER, said.get(SENDER.host)),), OTHER.id),  # the right mark from the wrong lane
        (lambda said: (neighbour(OTHER, said.get(OTHER.host)), neighbour(SENDER, None)), OTHER.id),
    ],
)
def test_anything_less_is_no_proof_and_says_what_is_heard_instead(table, hears) -> None:
    air = Air(table)
    with pytest.raises(NotProvedError, match=f"{RECEIVER.id} hears {hears} instead of {SENDER.id}"):
        air.proof().prove([CIRCUIT])
    assert air.time == pytest.approx(1000.0 + INVENTORY.thresholds.light_deadline_s, abs=0.2)


@pytest.mark.parametrize("mark", [None, "0123"], ids=["none", "of-an-earlier-proof"])
def test_an_old_entry_of_the_right_transmitter_is_named_as_such(mark) -> None:
    air = Air(lambda _: (neighbour(SENDER, mark),))
    with pytest.raises(NotProvedError, match=f"{RECEIVER.id} received no new announcement from {SENDER.id}$"):
        air.proof().prove([CIRCUIT])


@pytest.mark.parametrize("end", [SENDER, RECEIVER], ids=lambda lane: lane.host)
def test_a_silent_host_without_which_a_circuit_cannot_be_proved_is_found(end) -> None:
    assert Air(lambda _: ()).proof().silent_hosts([CIRCUIT]) == set()
    air = Air(lambda _: (), off=frozenset({end.host}))
    assert air.proof().silent_hosts([CIRCUIT]) == {end.host}


def test_a_transmitter_whose_host_is_silent_is_not_proved() -> None:
    air = Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),), silent=frozenset({SENDER.host}))
    with pytest.raises(NotProvedError):
        air.proof().prove([CIRCUIT])


def test_every_proof_says_a_mark_of_its_own() -> None:
    air = Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),))
    air.proof().prove([CIRCUIT])
    first = air.said[SENDER.host]
    air.proof().prove([CIRCUIT])
    assert air.said[SENDER.host] != first


def test_one_announcement_speaks_for_all_lanes_of_a_host() -> None:
    circuits = circuits_of(INVENTORY, initial_assignment(INVENTORY))
    lanes = {end.transponder for circuit in circuits for end in (circuit.a, circuit.b)}
    air = Air(lambda _: ())
    air.proof().sound(circuits)
    hosts = {INVENTORY.transponders[lane].host for lane in lanes}
    marks = {mark for _, mark in air.announced}
    assert len(lanes) == 2 * len(hosts)
    assert sorted(air.announced) == sorted((host, mark) for host in hosts for mark in marks)


def test_sound_is_what_shows_itself_within_a_moment() -> None:
    assert Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),)).proof().sound([CIRCUIT]) == {
        RECEIVER.id: SENDER.id
    }
    stale = Air(lambda _: (neighbour(SENDER, None),))
    assert stale.proof().sound([CIRCUIT]) == {}
    assert stale.time == pytest.approx(1000.5, abs=0.2)


def test_only_what_was_sound_is_proved_again() -> None:
    silent = Air(lambda _: ())
    assert silent.proof().prove([], kept=[CIRCUIT], sound={}) == []
    with pytest.raises(NotProvedError):
        silent.proof().prove([], kept=[CIRCUIT], sound={RECEIVER.id: SENDER.id})


@pytest.mark.parametrize("end", [SENDER, RECEIVER], ids=lambda lane: lane.host)
def test_a_circuit_of_others_whose_host_has_lost_its_power_is_passed_over(end) -> None:
    air = Air(lambda _said: (), silent=frozenset({end.host}), off=frozenset({end.host}))
    sound = {RECEIVER.id: SENDER.id}
    assert air.proof().prove([], kept=[CIRCUIT], sound=sound) == []
    with pytest.raises(NotProvedError, match=RECEIVER.id):  # but not one that is to be made
        air.proof().prove([CIRCUIT], sound=sound)
    with pytest.raises(NotProvedError, match=RECEIVER.id):  # nor where both hosts answer
        Air(lambda _said: ()).proof().prove([], kept=[CIRCUIT], sound=sound)


def test_one_that_is_to_be_made_is_not_passed_over_for_being_called_kept_as_well() -> None:
    air = Air(lambda _said: (), silent=frozenset({SENDER.host}), off=frozenset({SENDER.host}))
    with pytest.raises(NotProvedError, match=RECEIVER.id):
        air.proof().prove([CIRCUIT], kept=[CIRCUIT], sound={RECEIVER.id: SENDER.id})


def test_who_hears_somebody_else_was_led_astray_though_the_other_host_is_off() -> None:
    other = next(c for c in circuits_of(INVENTORY, initial_assignment(INVENTORY)) if OTHER.id == c.a.transponder)
    air = Air(
        lambda said: (neighbour(OTHER, said.get(OTHER.host)),),
        silent=frozenset({SENDER.host}),
        off=frozenset({SENDER.host, INVENTORY.transponders[other.b.transponder].host}),
    )
    with pytest.raises(NotProvedError, match=f"{RECEIVER.id} hears {OTHER.id} instead of {SENDER.id}"):
        air.proof().prove([], kept=[CIRCUIT, other], sound=dict([*CIRCUIT.receivers, *other.receivers]))


def test_a_host_that_was_missed_once_is_not_off() -> None:
    air, looks = Air(lambda _said: ()), []
    read = air.collect

    def misses_the_last_of_the_proof(hosts, probes):
        air.off = frozenset()
        if air.time >= 1000.0 + INVENTORY.thresholds.light_deadline_s:
            looks.append(hosts)
            air.off = frozenset({SENDER.host} if len(looks) == 2 else ())  # the first after the last table
        return read(hosts, probes)

    air.collect = misses_the_last_of_the_proof
    with pytest.raises(NotProvedError, match=RECEIVER.id):
        air.proof().prove([], kept=[CIRCUIT], sound={RECEIVER.id: SENDER.id})
    assert looks[-1] == {SENDER.host}


def test_a_second_look_tells_wrong_light_from_light_that_was_not_seen() -> None:
    right = Air(lambda said: (neighbour(SENDER, said.get(SENDER.host)),))
    assert right.proof().recheck([CIRCUIT]) == ({}, {})
    wrong = Air(lambda said: (neighbour(OTHER, said.get(SENDER.host)),))
    astray = {CIRCUIT.id: f"{RECEIVER.id} hears {OTHER.id} instead of {SENDER.id}"}
    assert wrong.proof().recheck([CIRCUIT]) == (astray, astray)
    dark = Air(lambda _said: ())
    unheard = {CIRCUIT.id: f"{RECEIVER.id} hears no transmitter instead of {SENDER.id}"}
    assert dark.proof().recheck([CIRCUIT]) == (unheard, {})
    old = Air(lambda _said: (neighbour(OTHER, "00aabb"),))
    assert old.proof().recheck([CIRCUIT]) == (astray, {})
