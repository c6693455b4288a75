"""Policies as the inventory file has them."""

from typing import Annotated, Literal

from pydantic import Field

from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.job_entries import Command
from lumctl.inventory.policies import (
    ApprovalTerms,
    Breaker,
    Escalation,
    How,
    Limits,
    NotificationReceiver,
    PolicySubject,
)
from lumctl.inventory.sharing import Preemption, Sharing

_LIMITS, _BREAKER, _APPROVAL, _ESCALATION = Limits(), Breaker(), ApprovalTerms(), Escalation()
_SHARING = Sharing()
WEEK_S = 7 * 86_400

Seconds = Annotated[float, Field(ge=0, le=WEEK_S, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1000)]
HowWord = Annotated[How, Field(strict=False)]
SubjectWord = Annotated[PolicySubject, Field(strict=False)]
Patterns = Annotated[list[Text], Field(min_length=1)]


class LimitsEntry(Entry):
    """How many swaps may be tried; missing settings have default values."""

    accelerator_week: Count = Field(_LIMITS.accelerator_week, description="Limit for one accelerator in seven days.")
    rack_hour: Count = Field(_LIMITS.rack_hour, description="Limit for one rack in an hour.")
    rack_day: Count = Field(_LIMITS.rack_day, description="Limit for one rack in a day.")


class BreakerEntry(Entry):
    """When so much of a rack fails at once that no automatic action is taken."""

    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        _BREAKER.share, description="It opens when more than this share of the accelerators or of the hosts fail ..."
    )
    window_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = Field(
        _BREAKER.window_s, description="... within this many seconds ..."
    )
    least: Annotated[int, Field(ge=1, le=1000)] = Field(
        _BREAKER.least, description="... and at least this many of them, for small racks."
    )
    quiet_s: Seconds = Field(_BREAKER.quiet_s, description="It closes when nothing more has failed for this long.")


class HoursEntry(Entry):
    """A time of day at which a policy may act."""

    days: Annotated[list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]], Field(min_length=1)] | None = Field(
        None, description="The days on which it begins (default: all)."
    )
    begins: Text = Field("00:00", description="HH:MM in the policy's time zone.")
    ends: Text = Field("24:00", description="HH:MM; if earlier than the beginning: on the next day.")


class ApprovalEntry(Entry):
    """The requirements of an approval."""

    by_another: bool = Field(
        _APPROVAL.by_another,
        description="The approval must come from someone who neither made the plan nor applies it.",
    )
    expires_s: Annotated[float, Field(gt=0, le=WEEK_S, allow_inf_nan=False)] = Field(
        _APPROVAL.expires_s, description="How long a plan waits for its approval, and how long an approval is valid."
    )
    by_hand: bool = Field(
        _APPROVAL.by_hand, description="Swaps planned by operators for the faults of this policy also need an approval."
    )


class EscalationEntry(Entry):
    """Whom to notify again."""

    after_s: Seconds = Field(
        _ESCALATION.after_s, description="Time without an approval after which the plan is escalated."
    )
    hook: Text | None = Field(None, description="The name of one of `receivers`, which is also notified.")


class PolicyEntry(Entry):
    """What may be done automatically about findings of one kind."""

    name: Text
    how: HowWord = Field(description="How far the autopilot may go.")
    rules: Patterns = Field(
        description="Rules, or RULE/CASE, as `lumctl health rules` lists them; * matches anything.",
        examples=[["gpu.lost", "gpu.xid/restart-machine"]],
    )
    kinds: Annotated[list[SubjectWord], Field(min_length=1)] = Field(
        [PolicySubject.ACCELERATOR], description="The kind of component that the finding is about."
    )
    states: Annotated[list[Literal["degraded", "failed"]], Field(min_length=1)] = Field(["failed"])
    components: Patterns | None = Field(None, description="Patterns of names (default: all).")
    jobs: Patterns | None = Field(
        None, description="Only accelerators, hosts and devices that these jobs use (default: of any job)."
    )
    racks: Patterns | None = Field(None, description="Only in these racks (default: in all).")
    quiet: Patterns | None = Field(None, description="Patterns of names that are always left alone.")
    stands_s: Seconds = Field(30.0, description="How long a finding must have lasted.")
    oldest_s: Seconds = Field(
        900.0, description="A finding older than this is left to operators, unless it waits for spares."
    )
    cool_down_s: Seconds = Field(600.0, description="How long after any change of the rack the autopilot does nothing.")
    limits: LimitsEntry | None = None
    breaker: BreakerEntry | None = None
    timezone: Text = Field("UTC", description="Time zone of the hours, such as Europe/Berlin.")
    hours: Annotated[list[HoursEntry], Field(min_length=1)] | None = Field(
        None, description="When the policy may act (default: at any time)."
    )
    approval: ApprovalEntry | None = None
    escalate: EscalationEntry | None = None


Weight = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


class SharingEntry(Entry):
    """Who gets which spares if several jobs need them at the same time."""

    policy: Text = Field(
        _SHARING.policy,
        description="A sharing policy: best-fit, fifo, random, srsf, las, priority, scarce, or one of a plug-in.",
    )
    weights: dict[Text, Weight] = Field({}, description="Weights of jobs, for policies that use them (default: 1).")
    reserve: dict[Text, Count] = Field(
        {},
        description=(
            "Free spares of a class that are held back, in each rack, from jobs that another class could serve too."
        ),
    )
    ageing_s: Annotated[float, Field(gt=0, le=WEEK_S, allow_inf_nan=False)] = Field(
        _SHARING.ageing_s, description="How long a job waits until it weighs one more, with policy: priority."
    )
    preemption: Annotated[Preemption, Field(strict=False)] = Field(
        _SHARING.preemption, description="Which jobs on spares give them up to a job that needs one: fillers, or never."
    )
    return_cost_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        None,
        description=(
            "Accelerator-seconds that a job may stand still to move back after a repair: its ranks times its pause "
            "(default: no limit)."
        ),
    )


MOST_TIME_S = 600.0
_RECEIVER = NotificationReceiver("")


class ReceiverEntry(Entry):
    """A receiver to which a policy escalates: a webhook or a program."""

    name: Text
    webhook_file: Text | None = Field(None, description="A file that contains the URL to post to.")
    token_file: Text | None = Field(None, description="A file that contains its bearer token.")
    command: Command | None = Field(
        None, description="Program and arguments, instead of a webhook: it reads the document from its standard input."
    )
    timeout_s: Annotated[float, Field(gt=0, le=MOST_TIME_S, allow_inf_nan=False)] = Field(
        _RECEIVER.timeout_s, description="Time limit in seconds for accepting a message."
    )
    give_up_after_s: Annotated[float, Field(ge=0, le=7 * 86_400, allow_inf_nan=False)] = Field(
        _RECEIVER.give_up_after_s, description="How long delivery of a rejected message is retried."
    )
