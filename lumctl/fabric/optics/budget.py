"""The loss budget: does enough of what a transmitter sends arrive at the receiver, and with how much to spare?"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a loss budget comes to."""

    AMPLE = "ample"
    THIN = "thin"
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class LossBudget:
    """One direction of a circuit: what it is sent with, what it loses, what its receiver needs.

    ``wanted_margin_db`` is what should be to spare, for drift and ageing. ``loss_db`` may be an estimate from the
    number of PUCs, or what the waves give: what was sent less the signal that is received.
    """

    transmit_dbm: float
    loss_db: float
    sensitivity_dbm: float
    wanted_margin_db: float = 0.0

    @property
    def received_dbm(self) -> float:
        """The power at the receiver."""
        return self.transmit_dbm - self.loss_db

    @property
    def margin_db(self) -> float:
        """What is to spare; negative: so much is missing."""
        return self.received_dbm - self.sensitivity_dbm

    @property
    def verdict(self) -> Verdict:
        """Ample, thin (it is received, with less to spare than wanted) or short (it is not)."""
        if self.margin_db < 0:
            return Verdict.SHORT
        return Verdict.THIN if self.margin_db < self.wanted_margin_db else Verdict.AMPLE
