"""The automatic actions that the inventory allows: for which findings, how far, how often, and when.

:mod:`lumctl.daemon.autopilot` decides by them; without a policy nothing is ever done.
"""

from dataclasses import dataclass, field
from enum import StrEnum
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
    """Make a plan and apply it once a person has approved it."""
    APPLY = "apply"


class PolicySubject(StrEnum):
    """What a finding can be about."""

    ACCELERATOR = "accelerator"
    HOST = "host"
    LINK = "link"
    CIRCUIT = "circuit"
    DEVICE = "device"
    RACK = "rack"


SWAPPABLE = frozenset({PolicySubject.ACCELERATOR, PolicySubject.HOST, PolicySubject.LINK})
"""What a swap can take the work off; of the others a policy can only notify."""


@dataclass(frozen=True, slots=True)
class Selector:
    """The findings that a policy covers. Each field but ``kinds`` and ``states`` has glob patterns; empty matches all.

    A rule is written ``RULE`` or ``RULE/CASE``.
    """

    rules: tuple[str, ...]
    kinds: tuple[PolicySubject, ...] = (PolicySubject.ACCELERATOR,)
    states: tuple[str, ...] = ("failed",)
    components: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """How many swaps may be tried: of one accelerator in a week, in one rack in an hour and in a day."""

    accelerator_week: int = 1
    rack_hour: int = 1
    rack_day: int = 3


@dataclass(frozen=True, slots=True)
class Breaker:
    """When too much fails at once for it to be single faults.

    It opens when more than ``share`` of a rack's accelerators or of its hosts, and ``least`` of them at least, have
    begun to be at fault within ``window_s``; it closes once nothing more has failed for ``quiet_s``.
    """

    share: float = 0.1
    window_s: float = 300.0
    least: int = 2
    quiet_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Hours:
    """A time of day (minutes since midnight) on some days (0 is Monday); past midnight if it ends before it begins."""

    days: frozenset[int]
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """Who must approve and how long an approval is valid.

    ``by_another``: the person who made or applies the plan may not approve it. ``by_hand``: swaps that operators plan
    for the policy's components need an approval as well.
    """

    by_another: bool = False
    expires_s: float = 3600.0
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class NotificationReceiver:
    """A receiver of escalations: a webhook, whose URL and token are in files, or a program with its arguments.

    ``timeout_s`` limits one attempt, ``give_up_after_s`` all attempts of a message.
    """

    name: str
    webhook_file: Path | None = None
    token_file: Path | None = None
    command: tuple[str, ...] = ()
    timeout_s: float = 10.0
    give_up_after_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Escalation:
    """An additional receiver, and how long after a missing approval it is notified; of a failure at once.

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
