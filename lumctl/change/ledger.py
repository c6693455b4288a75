"""What a run writes down under its lease, in as few transactions as its safety allows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from lumctl.change.guard_scope import Cover
from lumctl.change.heartbeat import LEASE_TERM_S
from lumctl.change.job_step import Evidence, seen_before
from lumctl.change.outcomes import Due, States
from lumctl.change.plan import Do, Plan, Step, to_document
from lumctl.devices.errors import OutcomeUnknownError, StaleFenceError
from lumctl.devices.permission import require_permission, sending_with
from lumctl.errors import LumctlError
from lumctl.site import Site
from lumctl.store import Lease, LeaseLostError, Record, Store, StoreError

BY_HAND = ("resume", "abort")
"""Entries by which a person has taken over a run that was cut."""

Placed = Mapping[str, tuple[str, ...]]


def begin(site: Site, plan: Plan, store: Store, lease: Lease, who: str) -> str:
    """Write down a run that begins now; gives its id."""
    values = {
        "kind": plan.kind,
        "target": plan.target,
        "title": plan.title,
        "plan_digest": plan.digest,
        "inventory_digest": plan.inventory_digest,
        "who": who,
    }
    return store.begin_run(lease, values, to_document(plan), now=site.now())


class Ledger:
    """The journal of one run. Outcomes are ``due`` until they go to disk with the next intents, or with the end."""

    def __init__(
        self, site: Site, plan: Plan, store: Store, lease: Lease, run: str, cover: Cover, *, by: str | None
    ) -> None:
        self.due = Due()
        self.adrift: tuple[Step, ...] = ()
        """The steps that were acting while somebody else took the run over: they may have acted since."""
        self._site, self._plan, self._store, self._lease, self._run, self._cover = site, plan, store, lease, run, cover
        self._signed = {"by": by} if by else {}

    @property
    def state(self) -> str:
        """The state of the run in the store."""
        return self._store.run(self._run).state

    @property
    def overtaken(self) -> bool:
        """Whether a revert guard has taken this run over."""
        with suppress(StoreError):
            return self._store.run(self._run).fence != self._lease.fence
        return False

    @property
    def taken_over_by(self) -> tuple[str, str] | None:
        """Who has gone on with this run or taken it back since by hand, and by which act; ``None`` if nobody did."""
        with suppress(StoreError):
            for entry in self._store.entries(self._run):
                if entry.kind in BY_HAND and entry.fence > self._lease.fence:
                    return str(entry.data.get("by", "somebody")), entry.kind
        return None

    @contextmanager
    def sending(self) -> Iterator[None]:
        """What one step sends to devices, from this thread: each send needs the lease to last at that instant.

        A lease that has ended is renewed before anything is sent, or nothing is: this process may have been frozen.

        Raises:
            StaleFenceError: the lease is lost, or cannot be renewed; nothing was sent.
            OutcomeUnknownError: so it is, and this step has sent something before.
        """
        has_sent = False

        def require() -> None:
            nonlocal has_sent
            if self._lease.deadline.has_passed or self._cover.is_in_doubt:
                try:
                    self._store.renew(self._lease, term_s=LEASE_TERM_S, now=self._site.now())
                except LumctlError as error:
                    kind, what = (OutcomeUnknownError, "no more") if has_sent else (StaleFenceError, "nothing")
                    raise kind(f"{error.message}; {what} was sent") from error
            has_sent = True

        with sending_with(require):
            require_permission()  # also for what does not send through our transports: hooks, foreign drivers
            has_sent = False
            yield

    def record(self, kind: str, step: Step, data: Mapping[str, Any]) -> Record:
        """An entry of now."""
        return Record(self._site.now(), kind, step.id, {**data, **self._signed})

    def vouched(self, said: Mapping[str, str]) -> None:
        """What somebody has vouched for, if anybody has: on disk before anything is done."""
        if said:
            self.due.entries.append(Record(self._site.now(), "vouched", "", said))

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Have on disk what is about to be done beside the steps; where nothing can be written, it stays due."""
        self.due.entries.append(Record(self._site.now(), kind, "", {**data, **self._signed}))
        try:
            self.settle()
        except LeaseLostError:
            raise
        except StoreError:
            pass  # it is due

    def seen_before(self, steps: Sequence[Step]) -> dict[str, Evidence]:
        """What the jobs do that are about to be paused, by step; each hook may take its time to tell."""
        return seen_before(self._site, steps, lambda step: self._cover.alive(self._site, [step]))

    def intend(self, steps: Sequence[Step], found: Mapping[str, Mapping[str, Any]]) -> None:
        """Have on disk that steps are about to act, together with what is due, and what they ``found`` (by step).

        What is about steps that only read is due itself: it need not be there before they act.

        Raises:
            StoreError: it is not on disk.
            LeaseLostError: somebody else may act now.
        """
        if all(step.do is Do.CHECK for step in steps):
            self._cover.alive(self._site, steps)
            self.due.entries += (self.record("intent", step, _named(step)) for step in steps)
        else:
            self._advance("intent", steps, found)

    def settle(self) -> None:
        """Have on disk whatever is due."""
        if self.due.entries:
            self._advance()

    def intend_undo(self, step: Step) -> None:
        """Have on disk that a step is about to be taken back.

        Its first intent is there: it may be taken back even where nothing more can be written, and that stays due.
        """
        try:
            self._advance("undo-intent", [step])
        except StoreError:
            self.due.entries.append(self.record("undo-intent", step, _named(step)))

    def conclude_undo(
        self, step: Step, data: Mapping[str, Any], states: States | None = None, placed: Placed | None = None
    ) -> None:
        """Have on disk how it went to take a step back, and what is certain since; or due, where nothing is written."""
        self.due.entries.append(self.record("undo-outcome", step, data))  # behind what could not be written so far
        self.due.states |= states or {}
        self.due.placed |= placed or {}
        try:
            self.settle()
        except LeaseLostError:
            if not self.overtaken:  # a guard has undone it alike
                self._lost_hold_of([step])
            raise
        except StoreError:
            pass  # it is due

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state, together with what is due."""
        due, entry = self.due, Record(self._site.now(), "end", "", {"state": state, **data, **self._signed})
        try:
            self._store.end_run(
                self._lease,
                self._run,
                entry,
                state,
                undid=undid,
                outcomes=due.entries,
                states=due.states,
                placed=due.placed,
            )
        except LeaseLostError:
            self._lost_hold_of(due.steps)
            raise
        self.due = Due()

    def leave(self) -> None:
        """Leave the run half done, where its end cannot be written; nothing may act under its lease after this."""
        self._store.leave(self._lease, self._run)

    def doubt(self) -> None:
        """Write down that nobody knows what a step that went adrift did, nor when; not even who holds the lease now."""
        for step in self.adrift:
            if device := step.writes:
                with suppress(StoreError):
                    self._store.doubt(device, self._run)

    def _advance(
        self, kind: str = "", steps: Sequence[Step] = (), found: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> None:
        due = self.due
        self._cover.alive(self._site, steps)
        entries = [
            *due.entries,
            *(self.record(kind, step, {**_named(step), **found.get(step.id, {})}) for step in steps),
        ]
        unsure = [device for step in steps if (device := step.writes) is not None]
        unsure += [device for step in steps for device in step.data.get("doubted", ())]
        try:
            self._store.advance(self._lease, self._run, entries, states=due.states, placed=due.placed, unsure=unsure)
        except LeaseLostError:
            self._lost_hold_of(due.steps)
            raise
        self.due = Due()

    def _lost_hold_of(self, acted: Sequence[Step]) -> None:
        """The lease was lost while these steps acted, or after they did.

        Behind a gateway what was let through had ended before a newer lease wrote, and nothing is let through since.
        """
        if self._site.is_gated(self._plan.rack):
            return
        if touching := tuple(step for step in acted if step.touches):
            self.adrift = touching
            self.doubt()


def _named(step: Step) -> dict[str, str]:
    return {"do": step.do.value, "title": step.title}
