"""Faults of lumctl, ranks and switches in drawn sequences, while a job changes its light through a gateway process.

Ten by default, 200 with LUMCTL_CAMPAIGN set; LUMCTL_DRAWN="17" or "17-40" does those alone. The switches' own log of
writes says what they hold. A device that reports other states than it holds is no part of this: only a proof of light
finds it.
"""

import os
import random

import pytest
from lit_cluster import LitCluster
from lit_rack import shared_switches

from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobStage
from lumctl.training.protocol import phase_mac

CAMPAIGN, SAMPLE = 200, 10
FIRST, _, LAST = os.environ.get("LUMCTL_DRAWN", "").partition("-")
SEEDS = (
    range(int(FIRST), int(LAST or FIRST) + 1)
    if FIRST
    else range(CAMPAIGN if "LUMCTL_CAMPAIGN" in os.environ else SAMPLE)
)
PROVES_ONE_IN = 20
DIES_ONE_IN, STEPS_IN_THE_DARK = 4, 10
EVENTS = 300
DEVICE_FAULTS = ("device-down", "device-refuse", "device-half", "device-cut", "device-lying", "device-slow")
SLOW_S = 0.05
PASSES_S = 0.05


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    with shared_switches(tmp_path_factory.mktemp("g")) as (made, simulator):
        made.sim = simulator
        yield made


class Faults:
    """What befalls a job, as drawn from a seed."""

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.draw = random.Random(seed)  # noqa: S311 - the same choices in every run
        self.met = []
        """The faults that were drawn."""

    def strike(self):
        """One fault."""
        kinds = [self.kill, self.stop, self.wake, self.stall, self.take_over, self.wrong, self.twice, self.contrary]
        kinds += [self.guess, self.break_device, self.break_device, self.mend_devices]
        kind = self.draw.choice(kinds)
        if (names := self.cluster.living()) or kind not in {self.kill, self.stop, self.wrong, self.twice}:
            self.met.append(kind.__name__)
            kind(*([self.draw.choice(names)] if kind in {self.kill, self.stop, self.wrong, self.twice} else []))

    def kill(self, name):
        """A rank is killed: before its request, while it waits, or while it uses the light."""
        self.cluster.kill(name)

    def stop(self, name):
        """A rank is stopped by a signal; perhaps its agent notices."""
        self.cluster.mute.add(name)
        if self.draw.random() < 0.5:
            silent = {"tell": "silent", "worker": name, "for_s": 60.0, "stopped": True}
            host = self.cluster.processes[name].host
            self.cluster.later(name, lambda: self.cluster.hears(host, silent))

    def wake(self):
        """The stopped ranks go on."""
        self.cluster.wake()

    def stall(self):
        """More time passes than any time-out allows."""
        self.cluster.at += self.cluster.run.stall_s + 1

    def take_over(self):
        """lumctl is killed, perhaps in the middle of a change, and another takes over."""
        if not self.cluster.light.is_healing:
            self.cluster.restart_lumctl()

    def wrong(self, name):
        """A request is of another group or rank, truncated, or garbled."""
        rank, phase = self.cluster.ranks[name], self.draw.choice([*self.cluster.rack.cells])
        ahead_of_all = rank.number + 100
        other = self.draw.choice(sorted(self.cluster.processes))
        wrong = [
            {"generation": rank.generation - 1},
            {"generation": rank.generation + 1},
            {"mac": None},
            {"mac": "00"},
            {"number": None},
            {"number": "x"},
            {"phase": "no such phase"},
            {"phase": None},
        ]
        if other != name:
            wrong.append({"mac": phase_mac("another secret", other, rank.generation, ahead_of_all, phase)})
        self.cluster.request(name, phase, **({"number": ahead_of_all} | self.draw.choice(wrong)))

    def twice(self, name):
        """A rank repeats its newest request."""
        rank = self.cluster.ranks[name]
        if rank.number:
            self.cluster.request(name, rank.asked, ahead=rank.needs is None and bool(rank.asked), number=rank.number)

    def contrary(self):
        """Ranks need a phase that their partners do not."""
        for name in self.cluster.living():
            if not self.cluster.ranks[name].in_collective and self.draw.random() < 0.3:
                self.cluster.request(name, self.draw.choice([*self.cluster.rack.cells]))

    def guess(self):
        """Ranks ask ahead, perhaps for the wrong phase."""
        for name in self.cluster.living():
            rank = self.cluster.ranks[name]
            if not rank.in_collective and not rank.lit and self.draw.random() < 0.5:
                self.cluster.request(name, self.draw.choice([*self.cluster.rack.cells]), ahead=True)

    def break_device(self):
        """A switch refuses, makes half of a change or none, is cut off, slow, restarts or dies."""
        fault = self.draw.choice(DEVICE_FAULTS)
        self.met.append(fault)
        value = SLOW_S if fault == "device-slow" else None
        self.cluster.rack.sim.inject(self.draw.choice(["rail0", "rail1"]), fault, value)
        if self.draw.random() < 0.3:
            self.cluster.patience_s += 31.0

    def mend_devices(self):
        """The switches are well again."""
        self.cluster.rack.sim.clear()


def play(cluster, draw, faults):
    """Ranks work while faults befall the job."""
    for _ in range(draw.randrange(EVENTS // 2, EVENTS)):
        chance = draw.random()
        cluster.at += PASSES_S  # so that light which is used for long is proved
        if chance < 0.05:
            faults.strike()
        elif chance < 0.5:
            cluster.act()
        elif not cluster.turn() and draw.random() < 0.3:
            cluster.settle()
        cluster.check_foreign()
        if cluster.state.phase.over:
            return


def come_to_rest(cluster, faults):
    """All faults end, and all time-outs pass."""
    faults.mend_devices()
    for _ in range(20):
        cluster.come_to_rest()
        is_stopped = bool(cluster.mute & cluster.processes.keys())
        if cluster.state.phase.over or (cluster.state.phase is JobStage.RUNNING and not is_stopped):
            return
        cluster.wait(cluster.run.stall_s + 1 if is_stopped else 1.0)
        for name in cluster.mute & cluster.processes.keys() - cluster.group():
            cluster.kill(name)


def ends_well(cluster, faults):
    """Whether the job completes a step, or has stopped with a reason; at the latest after one stall.

    A rank that left a phase before its partner's collective in it leaves that one waiting, as it would without phases.
    """
    for _ in range(2):
        come_to_rest(cluster, faults)
        if cluster.state.phase.over:
            return bool(cluster.state.why_ended)
        if cluster.works_on():
            return True
        cluster.wait(cluster.run.stall_s + 1)
    return False


def says_which_switch_is_dead(cluster):
    """Whether a job whose switch is dead completes a step in the light that it has, or says what it waits for."""
    cluster.rack.sim.inject("rail0", "device-down")
    steps = 0
    while steps < STEPS_IN_THE_DARK and cluster.works_on():
        steps += 1
    cluster.come_to_rest()
    status = requests.document(cluster.state)
    return steps == STEPS_IN_THE_DARK or "rail0" in (status["why"] or cluster.state.why_ended)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_no_rank_uses_other_light_and_the_job_goes_on_or_says_why_not(tmp_path, rack, seed):
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    layout = draw.choice(["replicated", "unique"])
    cluster = LitCluster(tmp_path, rack, seed, layout=layout, restarts=50, proves=seed % PROVES_ONE_IN == 0)
    faults = Faults(cluster, seed + 1)
    rack.log.moved.clear()
    try:
        cluster.start()
        assert cluster.works_on()
        play(cluster, draw, faults)
        assert ends_well(cluster, faults), (cluster.state.phase, requests.document(cluster.state)["why"], cluster.said)
        if seed % DIES_ONE_IN == 0 and not cluster.state.phase.over:
            assert says_which_switch_is_dead(cluster), (cluster.state.phase, cluster.said)
            assert ends_well(cluster, faults), (cluster.state.phase, cluster.said)
        cluster.check_foreign()
    finally:
        rack.sim.clear()
        cluster.light.let_go()
