"""A job of Slurm's: requeued and held while its light moves, released where it is placed then."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl_slurm.cluster import MOST_SAID, Cluster, SlurmError, SlurmJob
from lumctl_slurm.job_search import find
from lumctl_slurm.nodes import Held, Nodes, StayDrainedError, without
from lumctl_slurm.settings import SlurmHookEntry

if TYPE_CHECKING:
    from lumctl.jobs.control import Facts, JobContext, Placement

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 0.5
"""Slurm tells nobody that a job has changed: it is asked again after a while that grows."""
T = TypeVar("T")
REVOKED_S = 1.0
"""A node's slurmd refuses whatever of a job was allotted in the second in which it ended the job, and the job fails."""
LEAST_S = 0.5
"""What a command is given even if the time is over: what is ours must be undone."""


class Slurm:
    """Drains the node of a failed accelerator, requeues its job, and releases it where its spare is."""

    api_version: ClassVar[int] = 1
    entry: ClassVar[type[SlurmHookEntry]] = SlurmHookEntry

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._settings: SlurmHookEntry = context.settings
        self._ended_at: float | None = None
        self._begin("status")

    def status(self) -> str:
        """What the job does. One that waits and is not held may begin at any moment: it is running."""
        self._begin("status")
        return _word(self._found())

    def pause(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """Drain what failed, requeue the job, and see it end."""
        nodes = self._begin("pause")
        try:
            job = self._found()
            was, comment = _word(job), self._comment_of(job)
            if was != RUNNING:
                held = Held.read(comment)
                ours = held is not None and held.run == facts.run
                return self._told(job, RUNNING if ours else was, was)
            self._require_placed(job, placement)
            spared = {rank.host for rank in placement if rank.accelerator not in facts.failed}
            spared |= {self._context.host_of(spare) for spare in facts.spares}
            drained = nodes.take_out(facts, {self._settings.node_of(host) for host in spared})
        except StayDrainedError:
            raise
        except UnreachableError as error:  # nothing was done yet, or it was undone
            raise RefusedError(error.message, hint=error.hint) from error
        try:
            self._hold(job, facts.run, comment)
        except SlurmError as error:
            self._begin("pause")
            if _word(found := self._found()) != RUNNING:
                raise
            if job.waits and found.held:  # it would wait for ever when it is requeued one day
                self._cluster.tell("release", job.id)
            with suppress(LumctlError):
                self._comment(job, without(comment))
            nodes.put_back(drained, facts.run, error)
            raise RefusedError(f"job {job.id} was not requeued: {error.message}", hint=error.hint) from error
        job = self._await(job, lambda seen: _word(seen) != RUNNING)
        self._ended_at = self._context.now()
        if _word(job) == RUNNING:
            raise UnreachableError(
                f"job {job.id} was told to end, and is {job.state} after {self._context.timeout_s:g} s",
                hint=f"a node that does not answer holds it up: scontrol show job {job.id}",
            )
        return self._told(job, RUNNING, _word(job)) | ({"drained": ",".join(drained)} if drained else {})

    def resume(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """Give back the nodes that it needs and that are ours, and release the job there, if we have held it."""
        nodes = self._begin("resume")
        job = self._found()
        was = _word(job)
        if job.ended:
            raise RefusedError(f"job {job.id} has ended ({job.state})", hint="submit it again: sbatch")
        comment = self._comment_of(job)
        held = Held.read(comment)
        if was == RUNNING and held is None:
            self._require_placed(job, placement)  # before any node is given back: a refusal leaves all as it was
        placed = [rank.accelerator for rank in placement]
        wanted = list(dict.fromkeys(self._settings.node_of(rank.host) for rank in placement))
        lost = [at for at, failed in enumerate(facts.failed) if failed not in placed]
        if lost and facts.run:
            nodes.take_out(_only(facts, lost), wanted)
        resumed = nodes.make_usable(wanted, facts.run, placed)
        # Slurm asks them again whether they are there, and looks for work for them some seconds later.
        self._poll(lambda: self._cluster.nodes(resumed), lambda seen: all(node.answers for node in seen.values()))
        if job.waits:
            self._bind(job, wanted, always=bool(lost))
        if was == RUNNING and held is None:
            return self._told(job, was, was)
        if held is None:
            self._said.append(
                f"job {job.shown} is left {job.state}, for lumctl has not held it: scontrol release {job.id}"
            )
            return self._told(job, was, was)
        if job.waits or job.held:
            self._release(job, held)
        self._comment(job, without(comment))
        job = self._await(job, lambda seen: seen.state == RUNNING.upper() or seen.ended)
        self._require_started(job, placement, wanted)
        if job.waits:
            self._said.append(f"job {job.shown} waits: {self._cluster.about(job.id, 'Reason')}")
        return self._told(job, was, RUNNING) | ({"in_use_again": ",".join(resumed)} if resumed else {})

    @classmethod
    def programs(cls, settings: SlurmHookEntry) -> Mapping[str, Sequence[str]]:
        """Slurm's commands, or what leads to them."""
        return {name: [*settings.on, name] for name in ("scontrol", "squeue", "sinfo")}

    @classmethod
    def words(cls, settings: SlurmHookEntry) -> str:
        """Whose it is, and where it is found."""
        which = settings.id_file or settings.id_variable or settings.job
        return "Slurm" + (f" ({which})" if which else "")

    def _begin(self, act: str) -> Nodes:
        """Let the time of an act begin."""
        self._ends = self._context.now() + self._context.timeout_s
        self._said: list[str] = []

        def run(command: Sequence[str], limit_s: float) -> Any:
            return self._context.run(command, act=act, timeout_s=limit_s, most_said=MOST_SAID)

        self._cluster = Cluster(self._settings.on, run, lambda: max(self._left_s(), LEAST_S))
        return Nodes(self._cluster, lambda name: self._settings.node_of(self._context.host_of(name)), self._said)

    def _left_s(self) -> float:
        return max(self._ends - self._context.now(), 0.0)

    def _found(self) -> SlurmJob:
        return find(self._cluster, self._settings, self._context.job, self._context.inventory.parent)

    def _await(self, job: SlurmJob, enough: Callable[[SlurmJob], bool]) -> SlurmJob:
        """The job once it is so, or as it is when the time is over."""
        return self._poll(lambda: self._seen(job), enough)

    def _seen(self, job: SlurmJob) -> SlurmJob:
        if not (seen := self._cluster.jobs(f"--jobs={job.id}")):
            raise UnreachableError(f"job {job.id} is gone from Slurm's queue", hint="see squeue --all")
        return seen[0]

    def _poll(self, look: Callable[[], T], enough: Callable[[T], bool]) -> T:
        pause_s = FIRST_LOOK_S
        while not enough(seen := look()) and self._left_s():
            self._context.wait(min(pause_s, self._left_s()))
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        return seen

    def _release(self, job: SlurmJob, held: Held) -> None:
        """Have Slurm start a job again that is held; what was requeued not in the second in which it ended."""
        if held.requeued:
            now = self._context.now()
            ended = now if self._ended_at is None else self._ended_at
            if (left := ended + REVOKED_S - now) > 0:
                self._context.wait(left)
        self._cluster.tell("release", job.id)
        if job.waits and held.requeued:  # Slurm lets a requeued job wait for two minutes
            self._cluster.tell("update", f"jobid={job.id}", "StartTime=now")

    def _hold(self, job: SlurmJob, run: str, comment: str) -> None:
        """Have Slurm keep a job back, and say there before that it is us."""
        self._comment(job, Held(run, not job.waits).added_to(comment))
        self._cluster.tell("hold" if job.waits else "requeuehold", job.id)
        if job.waits:
            seen = self._seen(job)
            if not (seen.waits or seen.ended):  # it has begun before it was held, and Slurm holds what runs as well
                self._comment(job, Held(run, requeued=True).added_to(comment))
                self._cluster.tell("requeuehold", job.id)

    def _require_started(self, job: SlurmJob, placement: "Placement", wanted: Sequence[str]) -> None:
        """Require of a job that was released that it has not ended, and runs nowhere else; it is not as it was."""
        if job.ended:
            raise UnreachableError(
                f"job {job.id} ended as soon as it was released ({job.state})", hint="see its output"
            )
        if (wrong := self._misplaced(job, placement)) is not None:
            there = f"scontrol update jobid={job.id} ReqNodeList={','.join(wanted)}"
            hint = f"scontrol requeuehold {job.id}; {there}; scontrol release {job.id}"
            raise UnreachableError(f"{wrong}: Slurm started it there", hint=hint)

    def _require_placed(self, job: SlurmJob, placement: "Placement") -> None:
        """Require that a job that runs does so where lumctl has it: else the wrong light moves, on the wrong nodes."""
        if (wrong := self._misplaced(job, placement)) is not None:
            raise RefusedError(wrong, hint="see `nodes` of its hook in the inventory, and lumctl job show")

    def _misplaced(self, job: SlurmJob, placement: "Placement") -> str | None:
        """That a job runs elsewhere than lumctl has it; ``None`` if it does not."""
        wanted = {self._settings.node_of(rank.host) for rank in placement}
        if job.waits or not job.nodes or wanted <= (held := self._cluster.expanded(job.nodes)):
            return None
        return f"job {job.shown} runs on {job.nodes}, and lumctl has it on {', '.join(sorted(wanted - held))}"

    def _bind(self, job: SlurmJob, wanted: Sequence[str], *, always: bool) -> None:
        """Have Slurm start the job where its light is; one that was bound to no nodes only if it must be."""
        bound = self._cluster.expanded(self._cluster.about(job.id, "ReqNodes"))
        if bound != set(wanted) and (bound or always):
            self._cluster.tell("update", f"jobid={job.id}", f"ReqNodeList={','.join(wanted)}")

    def _comment_of(self, job: SlurmJob) -> str:
        text = self._cluster.about(job.id, "admin_comment")
        return "" if text == "(null)" else text

    def _comment(self, job: SlurmJob, text: str) -> None:
        self._cluster.tell("update", f"jobid={job.id}", f"AdminComment={text}")

    def _told(self, job: SlurmJob, was: str, now: str) -> dict[str, str]:
        said = {"said": "\n".join(self._said)} if self._said else {}
        return {"was": was, "is": now, "slurm_job": job.id, **said}


def _word(job: SlurmJob) -> str:
    if job.ended:
        return STOPPED
    return PAUSED if (job.waits and job.held) or job.state in {"SUSPENDED", "REQUEUE_HOLD"} else RUNNING


def _only(facts: "Facts", which: Sequence[int]) -> "Facts":
    return type(facts)(facts.run, [facts.failed[at] for at in which], [facts.spares[at] for at in which])
