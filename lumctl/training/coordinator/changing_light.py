"""The light of a job with phases as its coordinator knows it, and how it is changed."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.context.phase_log import ENTRY_EVERY_S
from lumctl.store.journal import LIGHT_CHANGES
from lumctl.training.phase_control import PhaseControl, ProofManner
from lumctl.training.phase_evidence import PhaseEvidence
from lumctl.training.phase_permission import PhasePermit
from lumctl.training.phase_profile import PhaseProfiles
from lumctl.training.phase_record import PhaseRecord


@dataclass(frozen=True)
class PhaseEffects:
    """How the light of a job with phases is changed. Results are posted to ``phase_light``."""

    obtain: Callable[[bool], None]
    """Obtain a permit; if asked to, prove each phase again."""
    begin: Callable[[PhasePermit], None]
    """Change light under this permit from now on."""
    change: Callable[[int, str, int], None]
    """Give a rail the light of a phase; the number is that of the change."""
    prove: Callable[[PhasePermit, int, str], None]
    """Prove that a phase has its light on a rail, as the permit says."""
    rest: Callable[[], None]
    """End all changes, and give all devices the phase on record."""
    journal: Callable[[str, Mapping[str, Any]], None]
    """Add an entry to the journal, of kind ``LIGHT_CHANGES`` or ``LIGHT_FAILED``."""


@dataclass
class ChangingLight:
    """The light of a job with phases."""

    effects: PhaseEffects
    profiles: PhaseProfiles
    """The windows between the phases, under each permit."""
    permit: PhasePermit | None = None
    """The permit of the group; ``None`` until one is found that fits."""
    control: PhaseControl | None = None
    """Decides while a group runs; ``None`` between groups."""
    evidence: PhaseEvidence | None = None
    """What is known of the light of the newest group."""
    most_steps: int | None = None
    """The most steps that may count as done in the next group: the light of later ones was wrong. ``None``: all."""
    is_sought: bool = False
    """Whether a permit is being obtained, for which each phase may have to be lit."""
    is_at_rest: bool = True
    """Whether the devices have the phase on record, as far as is known."""
    is_resting: bool = False
    """Whether the devices are being given that phase."""
    retry_at: float = -math.inf
    """When rest or a permit is tried again that something passing has prevented."""
    why: str = ""
    """Why rest or a permit has failed, while it is tried again."""
    again: bool = True
    """Whether each phase must be proved: this lumctl has not seen that, or light did not arrive."""
    is_void: bool = False
    """Whether the ranks have left a group since the permit was sought."""
    began_at: dict[int, float] = field(default_factory=dict)
    """By rail, when its last change began."""
    took_s: dict[int, float] = field(default_factory=dict)
    """By rail, how long its last change took until all devices had confirmed it."""
    record: PhaseRecord = field(default_factory=PhaseRecord)
    """What the changes cost the ranks in the last steps."""
    entry_at: float = math.inf
    """When the next entry of the journal is due."""
    counts_at_entry: tuple[int, ...] = ()
    """What the last entry counted."""
    worst_s: float = 0.0
    """How long the longest change since that entry took."""
    changes: int = 0
    failed_changes: int = 0
    unproved: dict[int, str] = field(default_factory=dict)
    """By rail, why its last proof was not possible; empty if it was."""
    failed_proofs: int = 0
    """How often a receiver was shown to hear another transmitter than it should, or none."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were refused, by reason: not proved, of a former group, for an unknown phase."""

    def change_s(self, rank: int) -> float:
        """How long the last change of a rank's light took."""
        at = self.control.rail_of(rank) if self.control is not None else None
        return 0.0 if at is None else round(self.took_s.get(at, 0.0), 6)

    def write_entry(self, now: float) -> None:
        """Write into the journal what has changed and was shown since the last entry, if anything.

        At the end of a group (``now`` is infinite) it always says that nothing is shown any more.
        """
        evidence, permit = self.evidence, self.permit
        if evidence is None or permit is None:
            return
        counts = (self.changes, evidence.by_traffic, evidence.by_proof, evidence.proven)
        is_last = now == math.inf
        if is_last or counts != self.counts_at_entry:
            names = ("changes", "by_traffic", "by_proof", "proven_steps")
            shown = {} if is_last else {phase: round(at, 3) for phase, at in evidence.shown.items()}
            data = {**dict(zip(names, counts, strict=True)), "worst_s": round(self.worst_s, 6), "shown": shown}
            self.effects.journal(LIGHT_CHANGES, {"plan": permit.plan, "permit": permit.name, **data})
        self.counts_at_entry, self.worst_s, self.entry_at = counts, 0.0, now + ENTRY_EVERY_S

    def doubts(self) -> str:
        """Which of the last steps had light that was not shown to be right, in words; empty if none."""
        if self.evidence is None or not self.evidence.provisional:
            return ""
        how = "was wrong" if self.most_steps is not None else "was not shown to be right"
        return f"the light of the steps after {self.evidence.proven} {how}"

    def proof_manner(self, rail: int, phase: str) -> ProofManner:
        """How the light of a phase is proved on a rail."""
        circuits = self.permit.of_rail(rail, phase) if self.permit is not None else ()
        return ProofManner.ALONE if any(each.blinks for each in circuits) else ProofManner.BESIDE

    def proof_due_at(self) -> float:
        """When light that ranks use must be proved beside their traffic; infinity if none must."""
        return min((at for _, at in self._proofs_due()), default=math.inf)

    def begin_proofs(self, now: float) -> None:
        """Begin the proofs that are due."""
        control, permit = self.control, self.permit
        for rail, at in list(self._proofs_due()):
            phase = control.rails[rail].lit if control is not None else None
            if control is not None and permit is not None and phase is not None and at <= now:
                control.begin_proof(rail)
                self.effects.prove(permit, rail, phase)

    def _proofs_due(self) -> Iterator[tuple[int, float]]:
        """By rail, when its light must be proved beside traffic."""
        if self.control is None or self.evidence is None:
            return
        for at, light in enumerate(self.control.rails):
            is_used = light.lit is not None and light.holders and light.proof is None
            if is_used and self.proof_manner(at, light.lit or "") is ProofManner.BESIDE:
                yield at, self.evidence.due_at(at)

    def hold(self) -> None:
        """The ranks leave their group: the light rests."""
        self.write_entry(math.inf)
        self.permit = self.control = None
        self.is_void = self.is_sought
        self.rest()

    def rest(self) -> None:
        """Give the devices the phase on record, unless they have it, or are being given it."""
        if not (self.is_at_rest or self.is_resting):
            self.is_resting = True
            self.effects.rest()
