"""A job with fake agents, workers and healer: what they say arrives at once, or when a test says so.

The workers play by the rules of the real ones and complain about whatever breaks them: a step is done by all or by
none, only a parked worker is given a state, and a group is joined with the state of the step that it continues from.
"""

import math
import random
from collections import deque
from pathlib import Path

from fake_agents import FakeAgents
from fake_light import FakeLight
from fake_processes import FakeProcess, FakeProcesses
from fake_runs import FakeRuns

from lumctl.inventory.job_run import JobRun, WithoutSpare
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory, Role
from lumctl.training.coordinator import agent_reports
from lumctl.training.coordinator.coordinator import Coordinator
from lumctl.training.coordinator.state import Effects, JobStage, JobState

INVENTORY = """
lumctl: 1
racks: {r: {}}
hosts:
  - name: h[0-LAST]
    accelerators: [{id: "{host}-a", model: M, memory_gib: 1}]
  - name: h[SPARES]
    accelerators: [{id: "{host}-a", model: M, memory_gib: 1, role: spare}]
jobs:
  - name: train
    ranks: h[0-LAST]-a
    run: {command: [train]}
"""

TOKEN = "the secret of the job"  # noqa: S105 - of no job


class FakeCluster(FakeAgents, FakeRuns, FakeProcesses):
    """Plays everything but the coordinator. Messages wait in ``says`` and arrive in an order drawn by ``seed``."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int = 0,
        layout: str = "replicated",
        without_spare: WithoutSpare = WithoutSpare.WAIT,
        standby: bool = False,
        restarts: int = 3,
        start_s: float = 86_400.0,
        ranks: int = 4,
        phases: bool = False,
        inventory: Inventory | None = None,
    ) -> None:
        self.inventory = inventory or self._own_inventory(folder, ranks)
        job = self.inventory.jobs["train"]
        self.run = JobRun(("train",), without_spare=without_spare, standby=standby, restarts=restarts, start_s=start_s)
        self.layout = layout
        self.random = random.Random(seed)  # noqa: S311 - the same choices in every run
        self.processes: dict[str, FakeProcess] = {}
        self.placed = list(job.ranks)
        self.broken: set[str] = set()
        self.dead_hosts: set[str] = set()
        self.no_light = False
        self.dark = ""
        self.mute: set[str] = set()
        self.death_watches = bool(seed % 3)
        self.said: list[str] = []
        self.says: deque = deque()
        self.dead: list[FakeProcess] = []
        self.lines: set[str] = set()
        self.late: dict[str, list] = {}
        """What is said on a line before it was told who lives there."""
        self.refuses: dict[str, int] = {}
        """How often a host lets nobody in yet."""
        self.opened: list[str] = []
        self.locked = False
        """A run is under way."""
        self.moves = False
        """Light moves: nobody may form a group."""
        self.patient: list = []
        """What the healer looks at again when something has happened."""
        self.runs = 0
        self.at = 1000.0
        self.light = self.make_light() if phases else None
        self.effects = Effects(
            ask=self.ask,
            open=self.open,
            examine=self.examine,
            placement=lambda: list(self.placed),
            ready_on=self.spares,
            environment=lambda _host: {},
            say=self.said.append,
            now=lambda: self.at,
            phases=self.light.effects() if self.light else None,
            token=TOKEN,
        )
        self.coordinator = Coordinator(JobState(self.inventory, job, self.run, self.effects))

    @staticmethod
    def _own_inventory(folder: Path, ranks: int) -> Inventory:
        path = folder / "fake_cluster.yaml"
        path.write_text(INVENTORY.replace("LAST", str(ranks - 1)).replace("SPARES", f"{ranks}-{ranks + 1}"))
        return load_inventory(path)

    def make_light(self):
        """What lights the phases of the job."""
        return FakeLight(self)

    @property
    def state(self):
        """What the coordinator knows."""
        return self.coordinator.state

    # What the coordinator acts through.

    def spares(self):
        return [
            name
            for name, each in self.inventory.accelerators.items()
            if each.role is Role.SPARE and name not in self.placed
        ]

    def restart_lumctl(self):
        """lumctl is killed, and the next one takes the job over."""
        hosts = {each.host for each in self.inventory.accelerators.values()}
        self.says = deque((who, work) for who, work in self.says if who not in {"healer", *hosts})
        self.patient.clear()
        self.lines.clear()
        self.late.clear()
        self.coordinator = Coordinator(JobState(self.inventory, self.inventory.jobs["train"], self.run, self.effects))
        for host in self.state.hosts():
            self.state.lines.open(host)

    def ask(self, host, message):
        if host in self.dead_hosts or host not in self.lines:
            return False
        match message["ask"]:
            case "start":
                process = FakeProcess(message["worker"], message["accelerator"], host, self.layout)
                self.processes[process.name] = process
                self.say(process, self.ready(process), before=lambda: setattr(process, "ready", True))
            case "kill":
                self.kill(message["worker"])
            case "tell":
                for name, own in message.get("orders", {message.get("worker"): {}}).items():
                    if (process := self.processes.get(name)) is not None:
                        self.told(process, {**message["message"], **own})
        return True

    # What happens.

    def group(self):
        """Who has a rank."""
        return set(self.state.group.members.values())

    def well(self, accelerator):
        return accelerator not in self.broken and self.host_of(accelerator) not in self.dead_hosts

    def host_of(self, accelerator):
        return self.inventory.accelerators[accelerator].host

    def later(self, who, work):
        self.says.append((who, work))

    def say(self, process, message, before=lambda: None):
        self.later(process.name, lambda: self.says_now(process, message, before))

    def says_now(self, process, message, before):
        """A process says something, if it still can."""
        if process.name in self.processes and process.name not in self.mute and process.host not in self.dead_hosts:
            before()
            said = message() if callable(message) else message
            process.last.pop(said["say"], None)
            process.last[said["say"]] = said
            self.hears(process.host, {"tell": "said", "worker": process.name, "message": said, "at": self.at})

    def kill(self, name):
        process = self.processes.pop(name, None)
        if process is not None:
            self.dead.append(process)
            dying = {"tell": "dying", "worker": name, "at": self.at}
            if self.death_watches:
                self.later(name, lambda: self.hears(process.host, dying))
            told = {"tell": "exited", "worker": name, "code": None, "signal": 9, "at": self.at}
            self.later(name, lambda: self.hears(process.host, told))

    def exit(self, name, code=0):
        """A process ends by itself."""
        process = self.processes.pop(name)
        process.code = code
        self.dead.append(process)
        told = {"tell": "exited", "worker": name, "code": code, "signal": None, "at": self.at}
        self.later(name, lambda: self.hears(process.host, told))

    def kill_host(self, host):
        self.dead_hosts.add(host)
        self.lines.discard(host)
        self.late.pop(host, None)
        for name in [p.name for p in self.processes.values() if p.host == host]:
            del self.processes[name]
        self.later(host, lambda: agent_reports.receive(self.state, host, None, "connection lost"))

    def turn(self):
        """Something that waits to be said is said; of one speaker, in order."""
        self.at += 0.01
        if self.says:
            waits, self.patient = self.patient, []
            first = {}
            for number, (who, _) in enumerate(self.says):
                first.setdefault(who, number)
            number = self.random.choice(sorted(first.values()))
            _, work = self.says[number]
            del self.says[number]
            self.coordinator.post(lambda _state: work())
            self.coordinator.turn()
            self.says.extend(("healer", each) for each in waits)
            return True
        return False

    def does_a_step(self):
        """The job runs, and all its ranks do a step."""
        assert self.state.phase is JobStage.RUNNING, self.said
        assert self.step()
        self.settle()

    def settle(self, turns=2000):
        """Play until nobody has anything to say."""
        for _ in range(turns):
            if not self.turn():
                return
        raise AssertionError(f"it does not come to rest: {self.said[-5:]}")

    def wait(self, seconds):
        """Time passes in which nobody says anything."""
        self.at += seconds
        self.coordinator.post(lambda _state: None)
        self.coordinator.turn()
        self.settle()

    def come_to_rest(self):
        """Play until nothing follows any more, with time for what is tried again."""
        for _ in range(5):
            self.settle()
            trouble, away = self.state.recovery, self.state.lines.next_at != math.inf
            if self.state.phase.over or not (away or (trouble is not None and trouble.retry_at is not None)):
                return
            self.at += 10
            self.coordinator.turn()

    def start(self):
        for host in self.state.hosts():
            self.open(host)
        self.settle()
        assert self.state.phase is JobStage.RUNNING, self.said


def at_work(cluster):
    """Have its job start and do a step."""
    cluster.start()
    cluster.does_a_step()
    return cluster
