"""Schedules of collectives: built, checked, costed, exported, and advised for or against. No I/O."""

from lumctl.collectives.baselines import direct, halving_doubling, ring, rounds_of
from lumctl.collectives.schedule import Schedule, ScheduleRound, Send
from lumctl.collectives.stragglar import stragglar
from lumctl.collectives.verification import first_fault

__all__ = [
    "Schedule",
    "ScheduleRound",
    "Send",
    "direct",
    "first_fault",
    "halving_doubling",
    "ring",
    "rounds_of",
    "stragglar",
]
