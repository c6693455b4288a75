"""Schedules of collectives: built, checked, costed, exported, and advised for or against. No I/O."""

from lumctl.collectives.arrivals import ArrivalStep, LateRank, late_rank
from lumctl.collectives.baselines import direct, halving_doubling, reduce_scatter, ring
from lumctl.collectives.schedule import Algorithm, Schedule, ScheduleRound, Send
from lumctl.collectives.stragglar import stragglar
from lumctl.collectives.verification import ScheduleFault, first_fault

__all__ = [
    "Algorithm",
    "ArrivalStep",
    "LateRank",
    "Schedule",
    "ScheduleFault",
    "ScheduleRound",
    "Send",
    "direct",
    "first_fault",
    "halving_doubling",
    "late_rank",
    "reduce_scatter",
    "ring",
    "stragglar",
]
