"""The threads that change, prove and record the light of a job with phases, for its coordinator."""

from collections.abc import Callable

from lumctl.change.light_proof import LightProof
from lumctl.context import Context
from lumctl.inventory.model import Job
from lumctl.training.coordinator import phase_light
from lumctl.training.coordinator.changing_light import PhaseEffects
from lumctl.training.coordinator.state import Post
from lumctl.training.healer import Healer, LightOrder
from lumctl.training.phase_journal import PhaseJournal
from lumctl.training.phase_permission import PhasePermit
from lumctl.training.phase_prover import PhaseProver
from lumctl.training.phase_writer import PhaseWriter


class PhaseThreads:
    """What changes, proves and records the light of a job. They start with its first group of ranks."""

    def __init__(self, context: Context, job: Job, who: str, post: Post, say: Callable[[str], None]) -> None:
        self._job = job.name
        self._writer = PhaseWriter(
            lambda plan, device, phase: context.devices.phases(job.rack).light(job.name, plan, device, phase),
            lambda permit, rail, number: post(phase_light.confirmed, permit, rail, number),
            lambda permit, rail, number, why: post(phase_light.failed, permit, rail, number, why),
        )
        self._prover = PhaseProver(
            lambda pause: LightProof(context.inventory, context.fleet, context.devices, now=context.now, pause=pause),
            lambda permit, result: post(phase_light.proof_ended, permit, result),
            context.inventory.thresholds.light_deadline_s,
        )
        self._journal = PhaseJournal(context.store(job.rack), who, say)

    def effects(self, healer: Healer) -> PhaseEffects:
        """How the coordinator changes light."""
        return PhaseEffects(
            obtain=lambda again: healer.light(LightOrder.OBTAIN_AGAIN if again else LightOrder.OBTAIN),
            begin=self._begin,
            change=self._writer.change,
            prove=self._prover.prove,
            rest=lambda: healer.light(LightOrder.REST),
            journal=lambda kind, data: self._journal.write(kind, {"job": self._job, **data}),
        )

    def stop(self) -> None:
        """Begin no further change or proof, and wait until the changes that have begun have ended."""
        self._prover.stop()
        self._writer.stop()

    def close(self) -> None:
        """Stop, write what the journal lacks, and end the threads."""
        self._prover.close()
        self._writer.close()
        self._journal.close()

    def _begin(self, permit: PhasePermit) -> None:
        self._writer.begin(permit)
        self._prover.begin()
