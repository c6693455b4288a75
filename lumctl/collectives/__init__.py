"""Schedules of collectives: built, checked, costed, exported, and advised for or against. No I/O."""

from lumctl.collectives.baselines import direct, halving_doubling, ring
from lumctl.collectives.schedule import Algorithm, Round, Schedule, Send
from lumctl.collectives.stragglar import stragglar
from lumctl.collectives.verification import first_fault

__all__ = ["Algorithm", "Round", "Schedule", "Send", "direct", "first_fault", "halving_doubling", "ring", "stragglar"]
