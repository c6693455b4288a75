"""What agents say of workers and hosts, and what follows from a step that was done."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import JobRun
from lumctl.training.awaiting import Awaiting
from lumctl.training.ends import End
from lumctl.training.failing import EARLY
from lumctl.training.standing import Means, Phase
from lumctl.training.wire import Message, told_line
from lumctl.training.workers import Worker, still_holds

RATE_OVER = 64
"""Over how many steps the rate is told."""
_SHOWN = 200
"""How much is shown of what cannot be understood, in characters."""


class Hearing(Awaiting):
    """Takes in what agents say."""

    def __init__(self, inventory: Inventory, job: Job, run: JobRun, means: Means) -> None:
        super().__init__(inventory, job, run, means)
        self._left: set[str] = set()
        """The hosts whose agents were told to end and have ended, or said no."""
        self._steps_at: deque[float] = deque(maxlen=RATE_OVER)

    @property
    def rate(self) -> float | None:
        """Steps in a second, over the last of them."""
        steps, at = len(self._steps_at) - 1, self._steps_at
        return round(steps / (at[-1] - at[0]), 3) if steps > 0 and at[-1] > at[0] else None

    def all_listed(self) -> bool:
        """Whether it is known of every host of the job what runs there, or that it does not answer."""
        return self.lines.known(self.host_of(name) for name in self.placement)

    def heard(self, host: str, message: Message | None, why: str) -> None:
        """Take in what the agent of a host says; ``None``: the line to it is lost."""
        if message is None:
            self._line_lost(host, why)
            return
        self._understood(host, message, lambda: self._told(host, message))

    def _understood(self, host: str, message: Mapping[str, Any], take_in: Callable[[], None]) -> None:
        """Take something in; where its fields are not what they should be, that is said, and all goes on."""
        try:
            take_in()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            self.means.say(f"{host}: what its agent tells is not understood ({what}): {str(message)[:_SHOWN]}")

    def _told(self, host: str, message: Message) -> None:
        worker = self.roster.get(str(message.get("worker")))
        match message.get("tell"):
            case "list":
                self._list(host, message["workers"])
            case "said" if worker is not None and worker.alive:
                self._said(worker, message["message"], float(message["at"]))
            case "dying" if worker is not None and worker.alive:
                worker.dying, worker.dies_at = True, self.means.now()
                self.gone(worker, _with_why(worker, "dies"), float(message["at"]))
            case "exited" if worker is not None and (worker.alive or worker.dying):
                self._exited(worker, message)
            case "silent" if worker is not None and worker.alive:
                self._silent(worker, message)
            case "taken" if not self.means.who or message.get("by") != self.means.who:
                self.why_ended, self.phase = f"the agent on {host} works for {message.get('by')}", Phase.LEFT
                self.end = End.LEFT
            case "refused" if self.phase.over and message.get("ask") == "quit":
                self._left.add(host)
            case "refused" if worker is None or worker.alive:  # to a dead one something was on its way
                self.means.say(f"{host}: {message.get('why')}")
            case _:
                pass

    def _exited(self, worker: Worker, message: Message) -> None:
        worker.error = worker.error or told_line(str(message.get("printed") or ""))
        worker.code, worker.how = message.get("code"), worker.how or _how(worker, message)
        if worker.dying:
            self.dead(worker, _how(worker, message))
        else:
            self.gone(worker, _how(worker, message), float(message["at"]))

    def _silent(self, worker: Worker, message: Message) -> None:
        for_s = f"{float(message['for_s']):.1f} s"
        what = f"it has been stopped for {for_s}" if message.get("stopped") else f"it has said nothing for {for_s}"
        worker.silent, worker.how = True, f"hangs: {what}"
        self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})
        if not worker.ended:  # how one that has ended its steps comes to its end is told by its exit
            self.gone(worker, worker.how, self.means.now())

    def _line_lost(self, host: str, why: str) -> None:
        if self.phase.over:  # nobody is left there to be waited for
            self._left.add(host)
            for worker in self.roster:
                worker.alive = worker.alive and worker.host != host
            return
        if not self.lines.lost(host, why, self.means.now()):
            return
        self.means.say(f"host {host} is not heard: {why}")
        for worker in self.roster:
            worker.dying = worker.dying and worker.host != host
        for worker in [each for each in self.roster if each.host == host and each.alive]:
            worker.away, worker.how = True, f"is on host {host}, which is not heard"
            self.gone(worker, f"is on host {host}, which is not heard", self.means.now())

    def _list(self, host: str, told: Sequence[Mapping[str, Any]]) -> None:
        """Catch up with a host: what was said meanwhile counts, and what was not answered is told again."""
        now = self.means.now()
        self.lines.told(host)
        self.places.changed()
        before = [worker for worker in self.roster if worker.host == host and worker.alive]
        self._see_again(host, told)
        for each in told:
            if (worker := self.roster.get(str(each["worker"]))) is not None and worker.alive:
                for message in still_holds(each.get("last") or {}):
                    self._understood(host, message, partial(self._said, worker, message, now))
        new = self.roster.listed(host, told)
        for worker in new:
            worker.begun_at = now
        self.most_done = max([self.most_done, *(worker.done for worker in self.roster)])
        if self.group.crew:
            for worker in new:
                self.hold_also(worker)
        for worker in before:
            if not worker.alive:
                self.gone(worker, "ended while its agent was away", now)
        self._tell_again(host)

    def _see_again(self, host: str, told: Sequence[Mapping[str, Any]]) -> None:
        """Those on a host that counted as dead and live: they have their ranks yet, or others have, and they end."""
        back = False
        for each in told:
            worker = self.roster.get(str(each["worker"]))
            if worker is None or worker.alive or not each["alive"]:
                continue
            if worker.away and self.is_member(worker) and self.phase in {Phase.STARTING, Phase.RECOVERING}:
                worker.alive, worker.away, back = True, False, True
                self.means.say(f"{worker.name} is there again")
            else:
                self.means.ask(host, {"ask": "kill", "worker": worker.name})
        if back:
            self.hold()

    def _tell_again(self, host: str) -> None:
        """Orders that were not answered may be lost. Who is told to join twice leaves the group that it has joined."""
        waiting = [(each, each.order) for each in self.roster if each.host == host and each.alive]
        for worker, order in waiting:
            if order is not None and order is worker.order:
                if order.get("do") != "join":
                    self.tell(worker, order)
                elif self.group.told and self.phase in {Phase.STARTING, Phase.RECOVERING}:
                    self.hold()

    def _said(self, worker: Worker, message: Mapping[str, Any], at: float) -> None:
        if self.phase is Phase.STARTING and not self.group.crew:
            worker.takes(message)  # the job may run already: which group is the newest is not known yet
            self.most_done = max(self.most_done, worker.done)
            return
        generation = self.group.generation
        if message.get("generation", generation) != generation:
            worker.recalls(message)  # of a group that is over
            return
        if worker.repeats(message):
            return
        worker.takes(message)
        self.most_done = max(self.most_done, worker.done)
        self._follows(worker, message, at)

    def _follows(self, worker: Worker, message: Mapping[str, Any], at: float) -> None:
        """What follows from what a worker has said."""
        group, story = self.group, self.trouble.story if self.trouble is not None else None
        match message.get("say"):
            case "ready":
                self.standby.over(worker.accelerator)
            case "loaded" if story is not None:
                story.mark("state", at)
            case "held" if story is not None and self.all_parked():
                story.mark("held", at)
            case "unloaded" if group.go_on is not None and not group.told:
                self.unloaded(worker, str(message.get("error", "")))
            case "joined":
                self.joined(worker, at)
            case "broken" if self.phase is Phase.RUNNING or group.told:
                self.broken(worker, str(message.get("error", "")), at)
            case "stepped":
                self._stepped(worker, float(message.get("at", at)))
            case "failed" | "exiting" | "ended":
                self._comes_to_its_end(worker, message, at)
            case _:
                pass

    def _comes_to_its_end(self, worker: Worker, message: Mapping[str, Any], at: float) -> None:
        match message.get("say"):
            case "failed" if worker.script_error is not None and not worker.ended:
                self.script_failed(worker, worker.script_error)
            case "exiting":
                worker.leave_by = min(worker.leave_by, self.means.now() + self.run_as.exit_s)
            case "ended" if self.phase is Phase.STOPPED:
                worker.leave_by = self.means.now() + self.run_as.exit_s
            case "ended" if worker.cut_short and not self.phase.over:
                worker.ended = False
                self.leaves(worker, "was told to end by SIGTERM", at)
            case "ended" if self.phase is Phase.RUNNING and self.is_member(worker) and self._all_ended():
                self.finish()
            case _:
                pass

    def _stepped(self, worker: Worker, at: float) -> None:
        if self.phase in {Phase.STARTING, Phase.RECOVERING} and self.group.told:
            self.formed(at)  # a step is done by all: who has not said yet that it has joined is about to
        if self.phase is not Phase.RUNNING:
            return
        if worker.done > self.stuck_at:
            self.fruitless, self.stuck_at = 0, -1
        self.group.due = self.means.now() + self.run_as.stall_s
        if self.trouble is not None and not self.trouble.look:
            self.trouble.story.mark("step", at)
            self.told.append(self.trouble.story)
            self.trouble = None
            self.means.say(self.told[-1].line())
        if self.group.crew.get(0) == worker.name:
            self._steps_at.append(at)
            self._keep_ready()

    def _keep_ready(self) -> None:
        """Have a worker wait wherever one should."""
        now, lost = self.means.now(), self.vacant.values()
        beside = [name for name in self.placement if name not in lost] if self.run_as.standby else []
        for accelerator in (*self.places.spares, *beside):
            waiting = [w for w in self.roster.on(accelerator) if not self.is_member(w) and not w.ended]
            if waiting or self.roster.is_taken(accelerator, now) or self.standby.waits(accelerator, now):
                continue
            if self.lines.want(self.host_of(accelerator)):
                self.start(accelerator)

    def _all_ended(self) -> bool:
        return all(each.ended for each in self.members())


def _how(worker: Worker, message: Message) -> str:
    signal, code = message.get("signal"), message.get("code")
    how = f"was ended by signal {signal}" if signal else "ended" if code is None else f"ended with exit code {code}"
    return _with_why(worker, how)


def _with_why(worker: Worker, how: str) -> str:
    """How a worker ended, and why, as far as it has said or printed that."""
    when = how if worker.ready else f"{how} {EARLY}"
    return f"{when}: {worker.error}" if worker.error else when
