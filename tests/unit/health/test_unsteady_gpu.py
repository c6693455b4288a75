"""A GPU that is lost and comes back, or fails and recovers, again and again, is degraded until it has been stable."""

import pytest

from lumctl.health.acknowledgements import EventClear, MaintenanceWindow
from lumctl.health.rulebook import verdict
from lumctl.health.states import State

GPU, HOST = "h03-gpu2", "h03"


@pytest.fixture
def flapping(watched):
    watched.rack.host(HOST, boot_id="first")
    watched.look()
    return Flapping(watched)


class Flapping:
    def __init__(self, watched):
        self.watched = watched
        self.listed = watched.rack.hosts[HOST].gpus

    def lose(self):
        self.watched.rack.lose_gpu(GPU)
        return self.watched.look()

    def come_back(self):
        self.watched.rack.host(HOST, gpus=self.listed)
        return self.watched.look()

    def boot(self, boot_id):
        self.watched.rack.host(HOST, reachable=False, error="no route to host", attempts=9)
        self.watched.look(120)
        self.watched.rack.host(HOST, reachable=True, error=None, attempts=0, boot_id=boot_id, gpus=self.listed)
        return self.watched.look(60)

    @property
    def found(self):
        health = self.watched.report.accelerators[GPU]
        return health.state, [f"{f.rule}/{f.case}" for f in health.findings]


DEGRADED = (State.DEGRADED, ["gpu.unsteady/lost-again"])


def test_twice_lost_and_back_is_no_flap(flapping):
    for _ in range(2):
        flapping.lose()
        assert flapping.found[0] is State.FAILED
        flapping.come_back()
        assert flapping.found == (State.OK, [])


def test_three_times_lost_and_back_is_degraded_at_the_look_that_finds_it_back(flapping):
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    assert flapping.found == DEGRADED
    (finding,) = flapping.watched.report.accelerators[GPU].findings
    assert finding.evidence == "it was lost and came back without a reboot 3 times in the last day"
    assert "reseat" in finding.advice


def test_while_it_is_lost_that_is_named_first(flapping):
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    flapping.lose()
    assert flapping.found == (State.FAILED, ["gpu.lost/not-listed", "gpu.unsteady/lost-again"])


def test_it_stays_degraded_until_it_has_been_stable(flapping):
    line = verdict("gpu.unsteady", "lost-again")
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    began = flapping.watched.now
    while flapping.found == DEGRADED:
        flapping.watched.look(600)
    assert flapping.found == (State.OK, [])
    assert flapping.watched.now - began >= line.window_s + line.clears_after_s - 600


@pytest.mark.parametrize("rule", [None, "gpu.unsteady"])
def test_an_operator_ends_what_was_counted_and_later_losses_count_again(flapping, rule):
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    assert flapping.found == DEGRADED
    flapping.watched.said["cleared"] = [EventClear(GPU, rule, "ops@bastion", "reseated", flapping.watched.now)]
    flapping.watched.look()
    assert flapping.found == (State.OK, [])
    for times in range(3):
        assert flapping.found == (State.OK, []), times
        flapping.lose()
        flapping.come_back()
    assert flapping.found == DEGRADED


@pytest.mark.parametrize(("component", "rule"), [("h03-gpu1", None), (GPU, "gpu.xid")])
def test_a_clear_of_another_component_or_rule_ends_nothing(flapping, component, rule):
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    flapping.watched.said["cleared"] = [EventClear(component, rule, "ops@bastion", "x", flapping.watched.now)]
    flapping.watched.look()
    assert flapping.found == DEGRADED


def test_what_was_seen_survives_the_process(flapping):
    for _ in range(3):
        flapping.lose()
        flapping.watched.restart()
        flapping.come_back()
        flapping.watched.restart()
    assert flapping.found == DEGRADED


def test_a_reboot_explains_why_it_is_back(flapping):
    for number in range(4):
        flapping.lose()
        flapping.boot(f"boot-{number}")
        assert flapping.found == (State.OK, [])


def test_a_host_that_does_not_answer_for_a_while_has_lost_no_gpu(flapping):
    for _ in range(4):
        flapping.boot("first")
        assert flapping.found == (State.OK, [])


def test_work_in_a_maintenance_window_does_not_count(flapping):
    watched = flapping.watched
    for _ in range(2):
        flapping.lose()
        flapping.come_back()
    watched.said["windows"] = [MaintenanceWindow("m1", HOST, "kim", "reseats it", watched.now, watched.now + 900)]
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    flapping.lose()
    watched.said["windows"] = []
    flapping.come_back()
    assert flapping.found == (State.OK, [])


def test_one_that_fails_and_recovers_three_times_is_degraded(flapping):
    watched = flapping.watched
    for number in range(3):
        assert flapping.found == (State.OK, []), number
        watched.rack.gpu(GPU, reset_required=True)
        assert watched.look().accelerators[GPU].state is State.FAILED
        watched.rack.gpu(GPU, reset_required=False)
        watched.look()
    assert flapping.found == (State.DEGRADED, ["gpu.unsteady/failed-again"])


def test_its_neighbours_and_hosts_of_other_gpus_are_not_touched(flapping):
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    ill = {name for name, health in flapping.watched.report.accelerators.items() if health.state is not State.OK}
    assert ill == {GPU}


def test_an_accelerator_out_of_service_is_not_counted(flapping):
    watched = flapping.watched
    watched.said["disabled"] = {GPU}
    for _ in range(3):
        flapping.lose()
        flapping.come_back()
    del watched.said["disabled"]
    watched.look()
    assert flapping.found == (State.OK, [])
