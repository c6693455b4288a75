"""The light of a fake cluster's job with phases: permits, rest and changes, as the healer and the gateway do them."""

from dataclasses import replace

from lumctl.training.coordinator import phase_light
from lumctl.training.coordinator.changing_light import PhaseEffects
from lumctl.training.phase_control import RankPath, rails_of
from lumctl.training.phase_permission import PhasePermit
from lumctl.training.phase_prover import ProofResult

PIPELINE, GRADIENTS = "pipeline", "gradients"


def permit_for(ranks):
    """The permit of a job on one switch: neighbours in one phase, in the other ranks that are two apart."""
    pairs = [(PIPELINE, (at, at + 1)) for at in range(0, ranks - 1, 2)]
    pairs += [(GRADIENTS, (at, at + 2)) for at in range(ranks - 2) if at % 4 < 2]
    return PhasePermit("plan-1", rails_of([RankPath(phase, pair, ("rail0",)) for phase, pair in pairs]), PIPELINE)


class FakeLight:
    """Plays healer and gateway; complains if light moves where a rank may rely on it."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.permit = permit_for(len(cluster.placed))
        self.lit = PIPELINE
        self.proved = 0
        self.changes = []
        """The changes that the gateway was asked for, if they are ``held``; else they end by themselves."""
        self.held = False
        self.entries = []
        """What was written into the journal: kind and data."""
        self.proofs = []
        """The proofs that were asked for and have not ended."""

    def effects(self):
        return PhaseEffects(self._obtain, lambda _permit: None, self._change, self._prove, self._rest, self._journal)

    def end_change(self):
        """The gateway confirms the oldest change."""
        permit, rail, phase, number = self.changes.pop(0)
        self.lit = phase
        phase_light.confirmed(self._cluster.state, permit, rail, number)

    def _obtain(self, again):
        def obtained():
            assert self.lit == PIPELINE, "phases are proved while another has light"
            assert not self._cluster.state.group.join_sent, "phases are proved while ranks may use the light"
            self.proved += again
            proved = frozenset({PIPELINE, GRADIENTS} if again else ())
            permit = replace(permit_for(len(self._cluster.placed)), proved=proved)
            phase_light.permitted(self._cluster.state, permit)

        self._cluster.later("healer", obtained)

    def _rest(self):
        def rested():
            self.lit = PIPELINE
            phase_light.rested(self._cluster.state, None)

        self._cluster.later("healer", rested)

    def _journal(self, kind, data):
        self.entries.append((kind, data))

    def _prove(self, permit, rail, phase):
        self.proofs.append((permit, rail, phase))
        if not self.held:
            self._cluster.later("prover", self.end_proof)

    def end_proof(self, **found):
        """The oldest proof ends."""
        permit, rail, phase = self.proofs.pop(0)
        result = ProofResult(rail, phase, self._cluster.at, **found)
        phase_light.proof_ended(self._cluster.state, permit, result)

    def _change(self, rail, phase, number):
        permit = self._cluster.state.light.permit

        def changed():
            if self._cluster.state.light.permit is permit:
                self.changes.append((permit, rail, phase, number))
                self.end_change()

        if self.held:
            self.changes.append((permit, rail, phase, number))
        else:
            self._cluster.later("gateway", changed)
