"""A played job whose light is real: the writer of phases, a gateway process and simulated switches; ranks that use it.

Ranks ask for phases as scripts do, and do collectives in pairs. When two ranks begin and end a collective, the switches
must hold exactly the states of its phase, by their own log, and no write may lie between. What threads report arrives
in an order drawn with all else that is said.
"""

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from fake_cluster import TOKEN, FakeCluster
from lit_rack import FOREIGN, JOB, KillableGateway, LitRack

from lumctl.change.light_proof import LightProof
from lumctl.errors import LumctlError
from lumctl.training.coordinator import phase_light
from lumctl.training.coordinator.changing_light import PhaseEffects
from lumctl.training.coordinator.state import JobStage
from lumctl.training.phase_permission import PhasePermit, rest
from lumctl.training.phase_prover import PhaseProver
from lumctl.training.phase_writer import PhaseWriter
from lumctl.training.protocol import DARK, LIT, NO_PHASE, phase_mac
from lumctl.workers import Workers

ANSWERED_WITHIN_S = 60.0
LOOKS_EVERY_S = 0.02
ACTS = 500
"""More than a training step of eight ranks takes: 4 phases, each with a request, a beginning and an end for each."""


@dataclass
class LitRank:
    """What a rank does in one group: the phases of its training step, and what it has asked for."""

    generation: int
    left: list[str]
    number: int = 0
    asked: str | None = None
    lit: bool = False
    is_dark: bool = False
    in_collective: bool = False
    needs: str | None = None
    """The phase of its newest request that was not ahead."""


@dataclass
class Collective:
    """A collective of two ranks under way, and the newest write when it began."""

    phase: str
    pair: tuple[str, str]
    devices: tuple[str, ...]
    began: int


class GatewayLight:
    """Lights phases for the coordinator of a played job: what one lumctl process does, until it is killed."""

    def __init__(self, cluster: "LitCluster", rack: LitRack) -> None:
        self._cluster, self._rack = cluster, rack
        self.life = 0
        """The number of the lumctl process."""
        self._workers = Workers("healer")
        self._lives: list[tuple[KillableGateway, PhaseWriter, PhaseProver]] = []
        self.entries: list[tuple[Any, ...]] = []
        """What was written into the journal: kind and data."""
        self._begin()

    def effects(self) -> PhaseEffects:
        return PhaseEffects(
            obtain=lambda again: self._order(phase_light.not_permitted, partial(self._obtain, again)),
            begin=self._begin_group,
            change=self._change,
            prove=self._prove,
            journal=lambda *entry: self.entries.append(entry),
            rest=lambda: self._order(phase_light.rested, self._rest),
        )

    def restart(self) -> None:
        """The process is killed, with its connections, and another begins; what it had begun may yet be done."""
        self.kill()
        self._begin()

    def kill(self) -> None:
        """End as a killed process does: nothing is said any more."""
        self.life += 1
        self._gateway.kill()
        self.writer._stop.set()  # a dead process tries nothing again
        self.prover.stop()

    def let_go(self) -> None:
        """Wait for what the threads have begun, and end them."""
        for gateway, writer, prover in self._lives:
            prover.close()
            writer.close()
            gateway.close()
        self._workers.close()

    @property
    def is_healing(self) -> bool:
        """Whether the light is being put to rest, or a permit obtained."""
        return self.healing > 0

    @property
    def is_awaited(self) -> bool:
        """Whether a thread will still report something."""
        return self.changing > 0 or self.proving > 0 or self.is_healing

    def _begin(self) -> None:
        self.changing = self.healing = self.proving = 0
        self._gateway = KillableGateway(self._rack.gateway)
        light, life = self._gateway.phases.light, self.life
        self.writer = PhaseWriter(
            lambda plan, device, phase: light(JOB, plan, device, phase),
            lambda *said: self._report(life, "changing", partial(phase_light.confirmed, self._cluster.state), *said),
            lambda *said: self._report(life, "changing", partial(phase_light.failed, self._cluster.state), *said),
            clock=lambda: self._cluster.patience_s,
        )
        rack = self._rack.context
        self.prover = PhaseProver(
            lambda pause: LightProof(rack.inventory, rack.fleet, rack.devices, now=rack.now, pause=pause),
            lambda *said: self._report(life, "proving", partial(phase_light.proof_ended, self._cluster.state), *said),
            rack.inventory.thresholds.light_deadline_s,
            now=lambda: self._cluster.at,
        )
        self._lives.append((self._gateway, self.writer, self.prover))

    def _begin_group(self, permit: PhasePermit) -> None:
        self.writer.begin(permit)
        self.prover.begin()

    def _prove(self, permit: PhasePermit, rail: int, phase: str) -> None:
        self.proving += 1
        self.prover.prove(permit, rail, phase)

    def _change(self, rail: int, phase: str, number: int) -> None:
        self.changing += 1
        self.writer.change(rail, phase, number)

    def _order(self, failed: Any, work: Any) -> None:
        self.healing += 1
        life = self.life

        def follow() -> None:
            try:
                event, said = work()
            except LumctlError as error:
                event, said = failed, error
            self._report(life, "healing", partial(event, self._cluster.state), said)

        self._workers.submit(follow)

    def _report(self, life: int, count: str, event: Any, *said: Any) -> None:
        """Have the coordinator hear this at a drawn time, unless its process is dead by then."""

        def heard() -> None:
            if life == self.life:
                setattr(self, count, max(0, getattr(self, count) - 1))
                event(*said)

        self._cluster.arrived.put((count, heard))

    def _rest(self) -> tuple[Any, None]:
        self.prover.stop()
        self.proving = 0  # a proof that was stopped reports nothing
        self.writer.stop()
        rest(self._rack.context, JOB)
        return phase_light.rested, None

    def _obtain(self, again: bool) -> tuple[Any, Any]:
        proves = again and self._cluster.proves
        return phase_light.permitted, self._rack.obtain(again=proves)


class LitCluster(FakeCluster):
    """Plays a job over real light. ``proves``: a permit is obtained by proving each phase, as lumctl does; slow."""

    def __init__(self, folder: Path, rack: LitRack, seed: int, *, proves: bool = False, **more: Any) -> None:
        self.rack, self.proves = rack, proves
        self.arrived: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.patience_s = 0.0
        """The time of the writer."""
        self.drawn = random.Random(seed)  # noqa: S311 - the same choices in every run
        self.ranks: dict[str, LitRank] = {}
        self.collectives: list[Collective] = []
        self.steps_done = self.collectives_done = 0
        self._unsaid: list[tuple[Any, Any, Any]] = []
        """What stopped processes have not said yet."""
        super().__init__(folder, seed=seed, phases=True, inventory=rack.context.inventory, **more)

    def make_light(self) -> GatewayLight:
        return GatewayLight(self, self.rack)

    # What threads report.

    def turn(self) -> bool:
        while not self.arrived.empty():
            self.later(*self.arrived.get())
        return super().turn()

    def settle(self, turns: int = 20_000) -> None:
        """Play until nobody has anything to say, and no thread is at work."""
        waited_s = 0.0
        for _ in range(turns):
            if self.turn():
                continue
            if not self.light.is_awaited:
                return
            try:
                self.later(*self.arrived.get(timeout=LOOKS_EVERY_S))
            except Empty:
                waited_s += LOOKS_EVERY_S
                self.patience_s += 1.0  # a device that does not come back is given up
                assert waited_s < ANSWERED_WITHIN_S, f"no thread reports anything: {self.said[-5:]}"
        raise AssertionError(f"it does not come to rest: {self.said[-5:]}")

    def restart_lumctl(self) -> None:
        """lumctl is killed, and the next one takes the job over, while a change may be on its way to a device."""
        self.light.restart()
        self.says = type(self.says)((who, work) for who, work in self.says if who not in {"changing", "healing"})
        super().restart_lumctl()

    # What ranks are told.

    def told(self, process: Any, message: dict[str, Any]) -> None:
        if message["do"] in {LIT, DARK}:
            for _ in range(self.drawn.choice([1, 1, 1, 2])):  # an answer may come twice, and late
                self.later(f"to {process.name}", partial(self._answered, process.name, message))
            return
        if message["do"] in {"hold", "stop"}:
            self._leaves(process.name)
        super().told(process, message)
        if message["do"] == "join":
            self.ranks[process.name] = LitRank(message["generation"], self._phases(message["generation"]))

    def kill(self, name: str) -> None:
        self._leaves(name)
        super().kill(name)

    def says_now(self, process: Any, message: Any, before: Any) -> None:
        if process.name in self.mute:
            self._unsaid.append((process, message, before))
        else:
            super().says_now(process, message, before)

    def wake(self) -> None:
        """Stopped ranks go on, and say what they had to say."""
        self.mute.clear()
        unsaid, self._unsaid = self._unsaid, []
        for each in unsaid:
            self.say(*each)

    def _phases(self, generation: int) -> list[str]:
        """The phases of the next training step: the same on all ranks."""
        draw = random.Random(1000 * generation + self.steps_done)  # noqa: S311 - the same choices in every run
        return [draw.choice([*self.rack.cells]) for _ in range(draw.randrange(1, 5))]

    def _leaves(self, name: str) -> None:
        """A rank gives up its group: its collectives end without a result."""
        self.ranks.pop(name, None)
        for each in [each for each in self.collectives if name in each.pair]:
            self.collectives.remove(each)
            for other in each.pair:
                if other in self.ranks:
                    self.ranks[other].in_collective = False

    def _answered(self, name: str, message: dict[str, Any]) -> None:
        rank = self.ranks.get(name)
        if rank is None or (message["generation"], message["number"]) != (rank.generation, rank.number):
            return
        if rank.lit or rank.is_dark:
            return
        rank.lit, rank.is_dark = message["do"] == LIT, message["do"] == DARK
        if rank.is_dark and rank.needs == rank.asked:
            self.say(
                self.processes[name], {"say": "broken", "generation": rank.generation, "error": str(message["why"])}
            )

    # What ranks do.

    def living(self) -> list[str]:
        """The ranks that are at work."""
        return [name for name in sorted(self.ranks) if name in self.processes and name not in self.mute]

    def act(self) -> None:
        """A drawn rank asks for what it needs next, or two do a collective, or all end their training step."""
        for name in self.drawn.sample(self.living(), len(self.living())):
            rank = self.ranks[name]
            if rank.left and not rank.in_collective and not (rank.needs == rank.left[0] and rank.asked == rank.needs):
                self.request(name, rank.left[0])
                return
            if self._begin_collective(name):
                return
        if self.collectives:
            self._end_collective(self.drawn.choice(self.collectives))
        elif self.ranks and all(not rank.left for rank in self.ranks.values()) and super().step():
            self.steps_done += 1
            for rank in self.ranks.values():
                rank.left = self._phases(rank.generation)
                rank.needs = rank.needs if rank.lit else None

    def request(self, name: str, phase: str, /, *, ahead: bool = False, **wrong: Any) -> None:
        """A rank leaves its phase and asks for another. With ``wrong``, the request has other fields than it should."""
        rank = self.ranks[name]
        if not wrong:
            rank.number += 1
            rank.asked, rank.needs, rank.lit, rank.is_dark = phase, None if ahead else phase, False, False
        number, generation = wrong.get("number", rank.number), rank.generation
        said = {"say": "wants", "generation": generation, "number": number, "phase": phase, "ahead": ahead}
        said["mac"] = phase_mac(TOKEN, name, generation, number, phase)
        said |= wrong
        self.say(self.processes[name], {key: value for key, value in said.items() if value is not None})

    def _partner(self, name: str, phase: str) -> str | None:
        """The rank of the same group at the other end of the circuit, if it is at work."""
        at, generation = self.processes[name].rank, self.ranks[name].generation
        wanted = sum(next(pair for pair in self.rack.permit.pairs[phase] if at in pair)) - at
        found = (each for each in self.living() if self.ranks[each].generation == generation)
        return next((each for each in found if self.processes[each].rank == wanted), None)

    def _begin_collective(self, name: str) -> bool:
        rank = self.ranks[name]
        if not rank.left or rank.in_collective or not (rank.lit and rank.needs == rank.left[0]):
            return False
        phase = rank.left[0]
        if (partner := self._partner(name, phase)) is None:
            return False
        other = self.ranks[partner]
        if not (not other.in_collective and other.lit and other.needs == phase and len(other.left) == len(rank.left)):
            return False
        rail = next(rail for rail in self.rack.permit.rails if self.processes[name].rank in rail.ranks)
        self.check_light(phase, rail.devices)
        self.collectives.append(Collective(phase, (name, partner), rail.devices, self.rack.log.read))
        rank.in_collective = other.in_collective = True
        return True

    def _end_collective(self, collective: Collective) -> None:
        if self.mute & set(collective.pair):
            return
        self.check_light(collective.phase, collective.devices, since=collective.began)
        self.collectives.remove(collective)
        self.collectives_done += 1
        for name in collective.pair:
            rank = self.ranks[name]
            rank.in_collective = False
            rank.left.pop(0)
            if self.drawn.random() < 0.3 and not (rank.left and rank.left[0] == collective.phase):
                self.request(name, NO_PHASE)

    # What must always hold.

    def check_light(self, phase: str, devices: tuple[str, ...], *, since: int | None = None) -> None:
        """Check that switches hold exactly the states of a phase, and that nothing was written to them since."""
        self.rack.log.catch_up()
        for device in devices:
            where = f"{device} while phase {phase} is used: {self.rack.log.joins[device]}; {self.said[-5:]}"
            assert self.rack.log.holds(device, self.rack.cells[phase][device]), where
            assert since is None or self.rack.log.newest(device) <= since, where

    def check_foreign(self) -> None:
        """Check that no write has moved the join of another job."""
        self.rack.log.catch_up()
        assert not [pair for _, pair in self.rack.log.moved if set(pair) & set(FOREIGN)]
        assert all(FOREIGN in joins for joins in self.rack.log.joins.values())

    def works_on(self) -> bool:
        """Whether the ranks end a training step now."""
        done = self.steps_done
        for _ in range(ACTS):
            self.act()
            self.settle()
            if self.steps_done > done or self.state.phase is not JobStage.RUNNING:
                break
        return self.steps_done > done
