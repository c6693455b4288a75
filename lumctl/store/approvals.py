"""Plans that wait for an operator's approval. The journal also records every request and every answer."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from lumctl.errors import RefusedError, UsageError
from lumctl.store import journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import approvals

ASKED, APPROVED, REJECTED, SPENT = "asked", "approved", "rejected", "spent"
"""The states of a request. It is spent when its plan was applied, or turned out to be stale."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A request to approve a plan, and its answer. Times are in seconds since the epoch.

    ``by`` is the user who answered, empty before that. ``digest`` is the whole digest of the plan: another plan can
    have the same short id. ``by_another``: the user who made the plan or applies it may not approve it.
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
    """The requests to approve plans of one rack, and their answers."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def ask(self, asked: Approval) -> None:
        """Request the approval of a plan, in place of an earlier request for the same plan.

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
            UsageError: there is no request for it.
            RefusedError: it has already been answered, the time to answer has passed, or this user may not approve it.
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            asked, plan = self._one(connection, digest), short_id(digest)
            if asked is None:
                raise UsageError(f"{plan} has no request for approval", hint="see: lumctl autopilot status")
            if asked.state != ASKED:
                raise RefusedError(_settled(asked, plan), hint=_AFTER[asked.state].format(plan=plan))
            if at >= asked.expires_at:
                raise RefusedError(
                    f"the deadline to approve {plan} has passed",
                    hint="see what is faulty and make a new plan: lumctl status",
                )
            # The maker may still reject the plan: that moves no light.
            if state == APPROVED and asked.by_another and person(by) == person(asked.made_by):
                raise RefusedError(
                    f"{plan} was made by {asked.made_by}: policy {asked.policy} requires the approval of another user",
                    hint=f"ask another user to approve it: lumctl swap approve {plan}",
                )
            answer = {"state": state, "by": by, "comment": comment, "answered_at": at}
            connection.execute(update(approvals).where(self._about(digest)).values(**answer))
            self._remarked(connection, {**_named(digest), "state": state, "comment": comment}, at, by)
            return Approval(**{**asdict(asked), **answer})

    def spend(self, digest: str, *, why: str, by: str, at: float) -> None:
        """Close the request for the plan with this digest: it was applied, or is stale.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            mine = (self._about(digest), approvals.c.state != SPENT)
            if connection.execute(update(approvals).where(*mine).values(state=SPENT)).rowcount:
                self._remarked(connection, {**_named(digest), "state": SPENT, "comment": why}, at, by)

    def get(self, digest: str) -> Approval | None:
        """The request for the plan with this digest, and its answer; ``None`` if there is no request."""
        with self._rows.engine.connect() as connection:
            return self._one(connection, digest)

    def all(self, *, since: float = 0.0) -> tuple[Approval, ...]:
        """The requests made since a time, oldest first."""
        with self._rows.engine.connect() as connection:
            mine = (approvals.c.rack == self._rows.rack, approvals.c.asked_at >= since)
            rows = connection.execute(select(approvals).where(*mine).order_by(approvals.c.asked_at, approvals.c.plan))
            return tuple(_approval(row) for row in rows)

    def _one(self, connection: Connection, digest: str) -> Approval | None:
        row = connection.execute(select(approvals).where(self._about(digest))).first()
        return None if row is None else _approval(row)

    def _about(self, digest: str) -> ColumnElement[bool]:
        """The condition that a row is the request for a plan."""
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
    """The user of an origin such as ``ops@console from 10.0.0.7``: on another machine, it is still the same user."""
    return who.partition("@")[0]


def short_id(digest: str) -> str:
    """The short id of the plan with this digest, which operators use."""
    return f"plan-{digest[:8]}"


def _settled(asked: Approval, plan: str) -> str:
    by = f" by {asked.by}" if asked.by else ""
    if asked.state != SPENT:
        return f"{plan} is {asked.state} already{by}"
    return f"{plan} was already applied, or is stale: it no longer waits for approval{f' (answered{by})' if by else ''}"


_AFTER = {
    APPROVED: "apply it: lumctl swap apply {plan}",
    REJECTED: "see what is faulty and make a new plan: lumctl status",
    SPENT: "see the runs: lumctl swap list",
}


def _named(digest: str) -> dict[str, str]:
    return {"plan": short_id(digest), "digest": digest}


def _approval(row: Any) -> Approval:
    values = row._asdict()
    digest = values.pop("plan")
    return Approval(**{**values, "digest": digest, "by_another": bool(row.by_another)})
