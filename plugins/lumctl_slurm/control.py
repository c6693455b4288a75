"""The kind ``slurm``: requeues and holds a job while its light moves, then releases it at its placement."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl_slurm.cluster import MOST_SAID, Cluster, SlurmError, SlurmHookEntry, SlurmJob, find
from lumctl_slurm.nodes import Held, Nodes, StayDrainedError, without

if TYPE_CHECKING:
    from lumctl.jobs.control import Facts, JobContext, Placement

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 0.5
"""First and longest pause between two polls. Slurm reports no changes of a job, so it is polled; the pause grows."""
T = TypeVar("T")
REVOKED_S = 1.0
"""Wait between the end of a job and its release. A slurmd that gets a job again in the second in which it ended the job
refuses it, and the job fails."""
LEAST_S = 0.5
"""Time limit of a command even if the act's time has passed: our own changes must be undone."""


class Slurm:
    """Drains the node of a failed accelerator, requeues the job, and releases it on the node of the spare."""

    api_version: ClassVar[int] = 1
    entry: ClassVar[type[SlurmHookEntry]] = SlurmHookEntry

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._settings: SlurmHookEntry = context.settings
        self._ended_at: float | None = None
        self._begin("status")

    def status(self) -> str:
        """The state of the job. A job that waits and is not held counts as running: it may start at any moment."""
        self._begin("status")
        return _word(self._found())

    def pause(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """Drain the failed nodes, requeue the job, and wait for its end."""
        nodes = self._begin("pause")
        try:
            job = self._found()
            was, comment = _word(job), self._comment_of(job)
            if was != RUNNING:
                # If this run holds it already, this pause is a repeated one, and the job ran before the first.
                held = Held.read(comment)
                ours = held is not None and held.run == facts.run
                return self._told(job, RUNNING if ours else was, was)
            self._require_placed(job, placement)
            spared = {rank.host for rank in placement if rank.accelerator not in facts.failed}
            spared |= {self._context.host_of(spare) for spare in facts.spares}
            drained = nodes.take_out(facts, {self._settings.node_of(host) for host in spared})
        except StayDrainedError:
            raise
        except UnreachableError as error:  # nothing was changed, or the changes were undone
            raise RefusedError(error.message, hint=error.hint) from error
        try:
            self._hold(job, facts.run, comment)
        except SlurmError as error:
            self._begin("pause")
            if _word(found := self._found()) != RUNNING:
                raise
            if job.waits and found.held:  # otherwise a later requeue would hold it for ever
                self._cluster.tell("release", job.id)
            with suppress(LumctlError):
                self._comment(job, without(comment))
            nodes.put_back(drained, facts.run, error)
            raise RefusedError(f"job {job.id} was not requeued: {error.message}", hint=error.hint) from error
        job = self._await(job, lambda seen: _word(seen) != RUNNING)
        self._ended_at = self._context.now()
        if _word(job) == RUNNING:
            raise UnreachableError(
                f"job {job.id} was asked to end, but is {job.state} after {self._context.timeout_s:g} s",
                hint=f"a node that does not answer delays it: scontrol show job {job.id}",
            )
        return self._told(job, RUNNING, _word(job)) | ({"drained": ",".join(drained)} if drained else {})

    def resume(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """Undrain the nodes that we drained and the job needs, and release the job there if we have held it."""
        nodes = self._begin("resume")
        job = self._found()
        was = _word(job)
        if job.ended:
            raise RefusedError(f"job {job.id} has ended ({job.state})", hint="submit it again: sbatch")
        comment = self._comment_of(job)
        held = Held.read(comment)
        if was == RUNNING and held is None:
            self._require_placed(job, placement)  # before any node is undrained: a refusal changes nothing
        placed = [rank.accelerator for rank in placement]
        wanted = list(dict.fromkeys(self._settings.node_of(rank.host) for rank in placement))
        lost = [at for at, failed in enumerate(facts.failed) if failed not in placed]
        if lost and facts.run:
            nodes.take_out(_only(facts, lost), wanted)
        resumed = nodes.make_usable(wanted, facts.run, placed)
        # Slurm first contacts undrained nodes again, and schedules jobs on them some seconds later.
        self._poll(lambda: self._cluster.nodes(resumed), lambda seen: all(node.answers for node in seen.values()))
        if job.waits:
            self._bind(job, wanted, always=bool(lost))
        if was == RUNNING and held is None:
            return self._told(job, was, was)
        if held is None:
            self._said.append(
                f"job {job.shown} stays {job.state}, because lumctl has not held it: scontrol release {job.id}"
            )
            return self._told(job, was, was)
        if job.waits or job.held:
            self._release(job, held)
        # After the release: a resume that is repeated finds the mark and does the rest.
        self._comment(job, without(comment))
        job = self._await(job, lambda seen: seen.state == RUNNING.upper() or seen.ended)
        self._require_started(job, placement, wanted)
        if job.waits:
            self._said.append(f"job {job.shown} waits: {self._cluster.about(job.id, 'Reason')}")
        return self._told(job, was, RUNNING) | ({"in_use_again": ",".join(resumed)} if resumed else {})

    def scheduled(self, host: str | None) -> list[dict[str, str]]:
        """The job as Slurm reports it, or all jobs that Slurm has on a host."""
        self._begin("status")
        if host is None:
            return [_scheduled(self._found())]
        found = self._cluster.jobs(f"--nodelist={self._settings.node_of(host)}")
        return [_scheduled(job) for job in found if not job.ended]

    @classmethod
    def programs(cls, settings: SlurmHookEntry) -> Mapping[str, Sequence[str]]:
        """Slurm's commands, by name, each with the prefix ``on``."""
        return {name: [*settings.on, name] for name in ("scontrol", "squeue", "sinfo")}

    @classmethod
    def words(cls, settings: SlurmHookEntry) -> str:
        """The scheduler's name, and the setting that identifies the job."""
        which = settings.id_file or settings.id_variable or settings.job
        return "Slurm" + (f" ({which})" if which else "")

    def _begin(self, act: str) -> Nodes:
        """Start the time limit of an act."""
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
        """Wait until the job satisfies ``enough``; return it, or its last state when the time has passed."""
        return self._poll(lambda: self._seen(job), enough)

    def _seen(self, job: SlurmJob) -> SlurmJob:
        if not (seen := self._cluster.jobs(f"--jobs={job.id}")):
            raise UnreachableError(f"job {job.id} is no longer in Slurm's queue", hint="see squeue --all")
        return seen[0]

    def _poll(self, look: Callable[[], T], enough: Callable[[T], bool]) -> T:
        pause_s = FIRST_LOOK_S
        while not enough(seen := look()) and self._left_s():
            self._context.wait(min(pause_s, self._left_s()))
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        return seen

    def _release(self, job: SlurmJob, held: Held) -> None:
        """Release a held job; a requeued job only ``REVOKED_S`` after its end."""
        if held.requeued:
            now = self._context.now()
            ended = now if self._ended_at is None else self._ended_at
            if (left := ended + REVOKED_S - now) > 0:
                self._context.wait(left)
        self._cluster.tell("release", job.id)
        if job.waits and held.requeued:  # Slurm delays a requeued job by two minutes
            self._cluster.tell("update", f"jobid={job.id}", "StartTime=now")

    def _hold(self, job: SlurmJob, run: str, comment: str) -> None:
        """Hold or requeue a job, after noting in its comment that lumctl does so."""
        # The note comes first: without it, resume would take the hold for another user's.
        self._comment(job, Held(run, not job.waits).added_to(comment))
        self._cluster.tell("hold" if job.waits else "requeuehold", job.id)
        if job.waits:
            seen = self._seen(job)
            if not (seen.waits or seen.ended):  # it started before the hold, and Slurm holds running jobs too
                self._comment(job, Held(run, requeued=True).added_to(comment))
                self._cluster.tell("requeuehold", job.id)

    def _require_started(self, job: SlurmJob, placement: "Placement", wanted: Sequence[str]) -> None:
        """Check that a released job has not ended and does not run elsewhere; no refusal, for the job has changed."""
        if job.ended:
            raise UnreachableError(
                f"job {job.id} ended as soon as it was released ({job.state})", hint="see its output"
            )
        if (wrong := self._misplaced(job, placement)) is not None:
            there = f"scontrol update jobid={job.id} ReqNodeList={','.join(wanted)}"
            hint = f"scontrol requeuehold {job.id}; {there}; scontrol release {job.id}"
            raise UnreachableError(f"{wrong}: Slurm started it there", hint=hint)

    def _require_placed(self, job: SlurmJob, placement: "Placement") -> None:
        """Check that a running job runs where lumctl has placed it; otherwise the wrong light would move."""
        if (wrong := self._misplaced(job, placement)) is not None:
            raise RefusedError(wrong, hint="see `nodes` of its hook in the inventory, and lumctl job show")

    def _misplaced(self, job: SlurmJob, placement: "Placement") -> str | None:
        """An error text if the job runs elsewhere than lumctl has placed it; otherwise ``None``."""
        wanted = {self._settings.node_of(rank.host) for rank in placement}
        if job.waits or not job.nodes or wanted <= (held := self._cluster.expanded(job.nodes)):
            return None
        return f"job {job.shown} runs on {job.nodes}, but lumctl has it on {', '.join(sorted(wanted - held))}"

    def _bind(self, job: SlurmJob, wanted: Sequence[str], *, always: bool) -> None:
        """Bind the job to the nodes of its placement; a job that was bound to no nodes only if ``always``."""
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


def _scheduled(job: SlurmJob) -> dict[str, str]:
    return {"id": job.shown, "user": job.user, "state": job.state, "elapsed": job.elapsed, "name": job.name}
