"""Plans that wait for a person's yes. Every question and every answer is remarked in the journal as well."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from lumctl.errors import RefusedError, UsageError
from lumctl.store import journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import approvals

ASKED, APPROVED, REJECTED, SPENT = "asked", "approved", "rejected", "spent"
"""The states of a question; one is spent when its plan was applied, or has turned out to be stale."""


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


class Approvals:
    """The questions about plans of one rack, and their answers."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def ask(self, asked: Approval) -> None:
        """Put a plan to people, in place of an earlier question about the same plan.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            connection.execute(delete(approvals).where(self._about(asked.digest)))
            values = {**asdict(asked), "rack": self._rows.rack, "by_another": int(asked.by_another)}
            connection.execute(insert(approvals).values(plan=values.pop("digest"), **values))
            said = {**_named(asked.digest), "state": ASKED, "policy": asked.policy, "until": asked.expires_at}
            self._remarked(connection, said, asked.asked_at, asked.made_by)

    def answer(self, digest: str, state: str, *, by: str, comment: str, at: float) -> Approval:
        """Approve or reject the plan with this digest.

        Raises:
            UsageError: nobody asked about it.
            RefusedError: it was answered before, it is too late, or it is not for this person to say.
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
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

    def spend(self, digest: str, *, why: str, by: str, at: float) -> None:
        """Note that the plan with this digest was applied, or is stale: the question is settled.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            mine = (self._about(digest), approvals.c.state != SPENT)
            if connection.execute(update(approvals).where(*mine).values(state=SPENT)).rowcount:
                self._remarked(connection, {**_named(digest), "state": SPENT, "comment": why}, at, by)

    def get(self, digest: str) -> Approval | None:
        """What was asked about the plan with this digest, and answered; ``None`` if nobody asked."""
        with self._rows.engine.connect() as connection:
            return self._one(connection, digest)

    def all(self, *, since: float = 0.0) -> tuple[Approval, ...]:
        """The questions that were asked since a time, oldest first."""
        with self._rows.engine.connect() as connection:
            mine = (approvals.c.rack == self._rows.rack, approvals.c.asked_at >= since)
            rows = connection.execute(select(approvals).where(*mine).order_by(approvals.c.asked_at, approvals.c.plan))
            return tuple(_approval(row) for row in rows)

    def _one(self, connection: Connection, digest: str) -> Approval | None:
        row = connection.execute(select(approvals).where(self._about(digest))).first()
        return None if row is None else _approval(row)

    def _about(self, digest: str) -> ColumnElement[bool]:
        """The row of the question about a plan."""
        return (approvals.c.rack == self._rows.rack) & (approvals.c.plan == digest)

    def _remarked(self, connection: Connection, said: dict[str, Any], at: float, who: str) -> None:
        journal.append(
            connection,
            rack=self._rows.rack,
            run="",
            at=at,
            kind="approval",
            step="",
            data={**said, "who": who},
            fence=journal.NO_FENCE,
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


def _named(digest: str) -> dict[str, str]:
    return {"plan": short_id(digest), "digest": digest}


def _approval(row: Any) -> Approval:
    values = row._asdict()
    digest = values.pop("plan")
    return Approval(**{**values, "digest": digest, "by_another": bool(row.by_another)})
