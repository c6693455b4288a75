"""The light of a job with phases as its coordinator knows it, and how it is changed."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from lumctl.training.phase_control import PhaseControl
from lumctl.training.phase_permission import PhasePermit
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
    rest: Callable[[], None]
    """End all changes, and give all devices the phase on record."""


@dataclass
class ChangingLight:
    """The light of a job with phases."""

    effects: PhaseEffects
    permit: PhasePermit | None = None
    """The permit of the group; ``None`` until one is found that fits."""
    control: PhaseControl | None = None
    """Decides while a group runs; ``None`` between groups."""
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
    changes: int = 0
    failed_changes: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were refused, by reason: not proved, of a former group, for an unknown phase."""

    def change_s(self, rank: int) -> float:
        """How long the last change of a rank's light took."""
        at = self.control.rail_of(rank) if self.control is not None else None
        return 0.0 if at is None else round(self.took_s.get(at, 0.0), 6)

    def hold(self) -> None:
        """The ranks leave their group: the light rests."""
        self.permit = self.control = None
        self.is_void = self.is_sought
        self.rest()

    def rest(self) -> None:
        """Give the devices the phase on record, unless they have it, or are being given it."""
        if not (self.is_at_rest or self.is_resting):
            self.is_resting = True
            self.effects.rest()
