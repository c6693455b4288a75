"""Plans that wait for a person's yes. Every question and every answer is remarked in the journal as well."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, inspect, select, update

from lumctl.errors import RefusedError, UsageError
from lumctl.store import journal
from lumctl.store.actions import ActionStore
from lumctl.store.database import writing
from lumctl.store.schema import approvals, plans

ASKED, APPROVED, REJECTED, SPENT = "asked", "approved", "rejected", "spent"
"""The states of a question; one is spent when its plan was applied, or has turned out to be stale."""
_NO_FENCE = 0


@dataclass(frozen=True, slots=True)
class Approval:
    """A plan that was put to people. Times are in seconds since the epoch; ``by`` is who answered, empty before that.

    ``digest`` is the plan's whole one: another plan can be made that has the same short id.
    ``by_another``: whoever made the plan, and whoever applies it, may not be the one who approves it.
    """

    rack: str
    digest: str
    policy: str
    made_by: str
    asked_at: float
    expires_at: float
    by_another: bool
    state: str = ASKED
    by: str = ""
    comment: str = ""
    answered_at: float | None = None

    @property
    def plan(self) -> str:
        """The plan's short id."""
        return short_id(self.digest)


class ApprovalStore(ActionStore):
    """The part of a store that knows what was asked and answered."""

    def ask_approval(self, asked: Approval) -> None:
        """Put a plan to people, in place of an earlier question about the same plan.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            connection.execute(delete(approvals).where(self._about(asked.digest)))
            values = {**asdict(asked), "rack": self._rack, "by_another": int(asked.by_another)}
            connection.execute(insert(approvals).values(plan=values.pop("digest"), **values))
            said = {**_named(asked.digest), "state": ASKED, "policy": asked.policy, "until": asked.expires_at}
            self._remarked(connection, said, asked.asked_at, asked.made_by)

    def answer_approval(self, digest: str, state: str, *, by: str, comment: str, at: float) -> Approval:
        """Approve or reject the plan with this digest.

        Raises:
            UsageError: nobody asked about it.
            RefusedError: it was answered before, it is too late, or it is not for this person to say.
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            asked, plan = self._one(connection, digest), short_id(digest)
            if asked is None:
                raise UsageError(f"nobody asked for an approval of {plan}", hint="see: lumctl autopilot status")
            if asked.state != ASKED:
                raise RefusedError(_settled(asked, plan), hint=_AFTER[asked.state].format(plan=plan))
            if at >= asked.expires_at:
                raise RefusedError(
                    f"the time to approve {plan} is over", hint="see what is in trouble, and plan again: lumctl status"
                )
            if state == APPROVED and asked.by_another and person(by) == person(asked.made_by):
                raise RefusedError(
                    f"{plan} was made by {asked.made_by}: policy {asked.policy} asks for the approval of another user",
                    hint=f"another user approves it: lumctl swap approve {plan}",
                )
            answer = {"state": state, "by": by, "comment": comment, "answered_at": at}
            connection.execute(update(approvals).where(self._about(digest)).values(**answer))
            self._remarked(connection, {**_named(digest), "state": state, "comment": comment}, at, by)
            return Approval(**{**asdict(asked), **answer})

    def spend_approval(self, digest: str, *, why: str, by: str, at: float) -> None:
        """Note that the plan with this digest was applied, or is stale: the question is settled.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            mine = (self._about(digest), approvals.c.state != SPENT)
            if connection.execute(update(approvals).where(*mine).values(state=SPENT)).rowcount:
                self._remarked(connection, {**_named(digest), "state": SPENT, "comment": why}, at, by)

    @cached_property
    def _knows_approvals(self) -> bool:
        """An older store that cannot be written could not be brought up to date: nobody has asked anything there."""
        return inspect(self._engine).has_table(approvals.name)

    def approval(self, digest: str) -> Approval | None:
        """What was asked about the plan with this digest, and answered; ``None`` if nobody asked."""
        if not self._knows_approvals:
            return None
        with self._engine.connect() as connection:
            return self._one(connection, digest)

    def approvals(self, *, since: float = 0.0) -> tuple[Approval, ...]:
        """The questions that were asked since a time, oldest first."""
        if not self._knows_approvals:
            return ()
        with self._engine.connect() as connection:
            mine = (approvals.c.rack == self._rack, approvals.c.asked_at >= since)
            rows = connection.execute(_QUESTIONS.where(*mine).order_by(approvals.c.asked_at, approvals.c.plan))
            return tuple(_approval(row) for row in rows)

    def _one(self, connection: Connection, digest: str) -> Approval | None:
        row = connection.execute(_QUESTIONS.where(self._about(digest))).first()
        return None if row is None else _approval(row)

    def _about(self, digest: str) -> ColumnElement[bool]:
        """The question about a plan; one of before there were digests here stands under the short id of a kept plan."""
        kept = (
            select(plans.c.digest).where(plans.c.rack == self._rack, plans.c.id == short_id(digest)).scalar_subquery()
        )
        before = (approvals.c.plan == short_id(digest)) & (kept == digest)
        return (approvals.c.rack == self._rack) & ((approvals.c.plan == digest) | before)

    def _remarked(self, connection: Connection, said: dict[str, Any], at: float, who: str) -> None:
        journal.append(
            connection,
            rack=self._rack,
            run="",
            at=at,
            kind="approval",
            step="",
            data={**said, "who": who},
            fence=_NO_FENCE,
        )


def person(who: str) -> str:
    """The user of an origin such as ``ops@console from 10.0.0.7``: another machine makes nobody another person."""
    return who.partition("@")[0]


def short_id(digest: str) -> str:
    """The name by which people call the plan with this digest."""
    return f"plan-{digest[:8]}"


def _settled(asked: Approval, plan: str) -> str:
    by = f" by {asked.by}" if asked.by else ""
    if asked.state != SPENT:
        return f"{plan} is {asked.state} already{by}"
    return f"{plan} was applied already, or is stale: it waits for nothing any more{f' (answered{by})' if by else ''}"


_AFTER = {
    APPROVED: "apply it: lumctl swap apply {plan}",
    REJECTED: "see what is in trouble, and plan again: lumctl status",
    SPENT: "see the runs: lumctl swap list",
}
_QUESTIONS = select(approvals, plans.c.digest).outerjoin(
    plans, (plans.c.rack == approvals.c.rack) & (plans.c.id == approvals.c.plan)
)
"""With the digest of the kept plan, where a question of an older version names that by its short id."""


def _named(digest: str) -> dict[str, str]:
    return {"plan": short_id(digest), "digest": digest}


def _approval(row: Any) -> Approval:
    values = row._asdict()
    about, kept = values.pop("plan"), values.pop("digest")
    digest = kept or about.removeprefix("plan-")  # nobody knows more of one that was asked about and not kept
    return Approval(**{**values, "digest": digest, "by_another": bool(row.by_another)})
