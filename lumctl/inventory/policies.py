"""The automatic actions that the inventory allows: for which findings, how far, how often, and when.

:mod:`lumctl.daemon.autopilot` decides by them. Without a policy it never does anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from lumctl.inventory.problems import Mark

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60


class How(StrEnum):
    """How far a policy lets the autopilot go, the most cautious first."""

    NOTIFY = "notify"
    PLAN = "plan"
    """Make a plan, keep it, and notify."""
    APPROVE = "approve"
    """Make a plan, and apply it after an operator approves."""
    APPLY = "apply"


class PolicySubject(StrEnum):
    """The kinds of components that a finding can be about."""

    ACCELERATOR = "accelerator"
    HOST = "host"
    LINK = "link"
    CIRCUIT = "circuit"
    DEVICE = "device"
    RACK = "rack"


SWAPPABLE = frozenset({PolicySubject.ACCELERATOR, PolicySubject.HOST, PolicySubject.LINK})
"""Subjects that a swap can replace. For other subjects a policy can only notify."""


@dataclass(frozen=True, slots=True)
class Selector:
    """The findings that a policy covers.

    All fields except ``kinds`` and ``states`` hold glob patterns; an empty field matches everything. A rule
    is written ``RULE`` or ``RULE/CASE``.
    """

    rules: tuple[str, ...]
    kinds: tuple[PolicySubject, ...] = (PolicySubject.ACCELERATOR,)
    states: tuple[str, ...] = ("failed",)
    components: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()

    def covers(self, rack: str, jobs: Sequence[str], components: Sequence[str]) -> bool:
        """Whether its patterns match the rack, one of the jobs and one of the components."""
        meant = ((self.racks, [rack]), (self.jobs, jobs), (self.components, components))
        return all(
            not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
            for patterns, names in meant
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """How many swaps may be attempted: per accelerator and week, per rack and hour, and per rack and day."""

    accelerator_week: int = 1
    rack_hour: int = 1
    rack_day: int = 3


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stops automatic actions if too much fails at once for the faults to be independent.

    It opens if, within ``window_s``, more than ``share`` of a rack's accelerators or hosts, and at least ``least`` of
    them, have become faulty. It closes when nothing more has failed for ``quiet_s``.
    """

    share: float = 0.1
    window_s: float = 300.0
    least: int = 2
    quiet_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of the day (minutes since midnight) on some days (0 is Monday); past midnight if ``ends`` < ``begins``."""

    days: frozenset[int]
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """Who must approve a plan, and how long an approval is valid.

    ``by_another``: the operator who made or applies the plan may not approve it. ``by_hand``: swaps that operators plan
    for the policy's components also need an approval.
    """

    by_another: bool = False
    expires_s: float = 3600.0
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class NotificationReceiver:
    """A receiver of escalations: a webhook, whose URL and token are in files, or a program with its arguments.

    ``timeout_s`` limits one attempt; ``give_up_after_s`` limits all attempts to deliver a message.
    """

    name: str
    webhook_file: Path | None = None
    token_file: Path | None = None
    command: tuple[str, ...] = ()
    timeout_s: float = 10.0
    give_up_after_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Escalation:
    """An additional receiver. It is notified if an approval is missing for ``after_s``, and of failures at once.

    ``hook`` names one of the inventory's receivers.
    """

    after_s: float = 900.0
    hook: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy. Times are in seconds; ``rule_marks`` are the places of its rules in the file."""

    name: str
    how: How
    matching: Selector
    quiet: tuple[str, ...] = ()
    stands_s: float = 30.0
    oldest_s: float = 900.0
    cool_down_s: float = 600.0
    limits: Limits = Limits()
    breaker: Breaker = Breaker()
    timezone: str = "UTC"
    hours: tuple[Hours, ...] = ()
    approval: ApprovalTerms = ApprovalTerms()
    escalation: Escalation = Escalation()
    rule_marks: tuple[Mark, ...] = field(default=(), compare=False)
