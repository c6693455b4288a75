"""Swaps that were rolled back because light did not arrive, and the PUCs that may be stuck: for the next plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumctl.change.run_end import one_of
from lumctl.context import Context, Observation
from lumctl.errors import RefusedError
from lumctl.store import StoredRun

REMEMBERED_S = 86_400.0
"""An attempt that failed longer ago says nothing about the rack as it is now."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The newest swap of some accelerators, if it was rolled back; ``pucs`` may be stuck, by all attempts of late."""

    run: str
    pucs: tuple[str, ...]

    @property
    def words(self) -> str:
        """What happened."""
        return f"{self.run} tried it, and light was lost: {one_of(self.pucs)} may be stuck"

    def refusal(self, around: str) -> RefusedError:
        """Why the same swap is not planned again; ``around`` is the command that plans another one."""
        return RefusedError(self.words, hint=f"plan around it: {around}")


def failed_attempt(context: Context, seen: Observation, failed: Sequence[str]) -> FailedAttempt | None:
    """The newest swap of these accelerators, if it was rolled back at PUCs that may be stuck.

    Raises:
        StoreError: the store cannot be read.
    """
    store, wanted = context.store(seen.inventory.accelerators[failed[0]].rack), set(failed)
    runs = store.runs.moves(since=seen.at - REMEMBERED_S, now=seen.at)
    tried = sorted((run for run in runs if _replaced(run) == wanted), key=lambda run: -run.started_at)
    found: list[tuple[str, ...]] = []
    for run in tried:
        if run.state != "rolled-back":
            break
        if pucs := tuple(map(str, store.journal.of_run(run.id)[-1].data.get("pucs", ()))):
            found.append(pucs)
    if not found:
        return None
    in_all = tuple(puc for puc in found[0] if all(puc in others for others in found))
    return FailedAttempt(tried[0].id, in_all or found[0])


def _replaced(run: StoredRun) -> set[str]:
    return {str(each.get("failed")) for each in run.plan.get("replacements", ())}
