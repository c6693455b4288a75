"""One execution of a plan under a lease: each step journalled before and after, and undone in reverse."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

from lumctl.change.circuits import circuits_before_and_after, placed_by
from lumctl.change.guarded import TOUCHED, Cover, one_way
from lumctl.change.light import Proof
from lumctl.change.plan import Do, Plan, Step, from_document, to_document
from lumctl.change.steps import ACTIONS, Bench, Evidence, Verify
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.errors import LumctlError
from lumctl.inventory.switching import own_cells
from lumctl.site import Site
from lumctl.store import Entry, Lease, LeaseLostError, Record, Store, StoreError
from lumctl.store import Run as StoredRun

NOTHING_SENT = (DeviceUnreachableError, DeviceRefusedError, UnsupportedError)
"""Errors after which a device surely holds what it held."""

States = Mapping[str, Mapping[int, str]]


class Run:
    """A run in progress. ``perform`` its steps in order, then ``end`` it; or ``undo`` and ``end`` it."""

    def __init__(
        self, site: Site, plan: Plan, store: Store, lease: Lease, run_id: str, *, cover: Cover, by: str | None = None
    ) -> None:
        self.id = run_id
        self.plan = plan
        self.complete = False
        """Whether every step was done when this process took the run over."""
        self.adrift: Step | None = None
        """The step that was acting while somebody else took the run over: it may have acted since."""
        self._site, self._store, self._lease, self._cover = site, store, lease, cover
        self._bench = Bench(site, *circuits_before_and_after(site, plan), covered=cover.names)
        self._attempted: list[Step] = []
        self._wrote = False
        self._evidence: dict[str, Evidence] = {}
        self._signed = {"by": by} if by else {}

    @classmethod
    def begun(cls, site: Site, plan: Plan, store: Store, lease: Lease, who: str, cover: Cover) -> Self:
        """A run that begins now."""
        values = {
            "kind": plan.kind,
            "target": plan.target,
            "title": plan.title,
            "plan_digest": plan.digest,
            "inventory_digest": plan.inventory_digest,
            "who": who,
        }
        run_id = store.begin_run(lease, values, to_document(plan), now=site.now())
        return cls(site, plan, store, lease, run_id, cover=cover)

    @classmethod
    def resumed(cls, site: Site, store: Store, lease: Lease, stored: StoredRun, by: str) -> Self:
        """A run that another process began, as its journal has it; ``by`` signs what is added."""
        run = cls(site, from_document(stored.plan), store, lease, stored.id, cover=Cover(), by=by)
        run._recall(store.entries(stored.id))
        return run

    def _recall(self, entries: Iterable[Entry]) -> None:
        said: dict[str, dict[str, Mapping[str, Any]]] = {}
        for entry in entries:
            said.setdefault(entry.kind, {})[entry.step] = entry.data
        outcomes, undone = said.get("outcome", {}), said.get("undo-outcome", {})
        tried = [step for step in self.plan.steps if step.id in said.get("intent", {})]
        self._wrote = any(step.do is Do.PROGRAM for step in tried)
        self._attempted = [
            step
            for step in tried
            if not outcomes.get(step.id, {}).get("nothing_sent") and not undone.get(step.id, {}).get("undone")
        ]
        self._evidence = {step: data for step, data in outcomes.items() if data.get("done")}
        for evidence in self._evidence.values():
            self._bench.sound |= evidence.get("sound", {})
            self._bench.powers |= evidence.get("powers", {})
        ended_well = {step.id for step in self.plan.steps if step.id in self._evidence or not step.required}
        self.complete = "undo-intent" not in said and ended_well & outcomes.keys() == {s.id for s in self.plan.steps}

    @property
    def state(self) -> str:
        """The state of the run in the store."""
        return self._store.run(self.id).state

    @property
    def overtaken(self) -> bool:
        """Whether a revert guard has taken this run over."""
        with suppress(StoreError):
            return self._store.run(self.id).fence != self._lease.fence
        return False

    @property
    def touched(self) -> bool:
        """Whether any step may have changed something."""
        return any(step.do not in {Do.CHECK, Do.VERIFY} for step in self._attempted)

    @property
    def wrote_whole(self) -> bool:
        """Whether a device was written whose states before were not known: there is no way back from that."""
        return any(one_way(step) for step in self._attempted)

    def proofs(self) -> tuple[Proof, ...]:
        """The light that was proved so far."""
        return tuple(Proof(**proof) for evidence in self._evidence.values() for proof in evidence.get("proofs", ()))

    def perform(self, step: Step) -> str:
        """Do one step; a remark says why a step that is not required was passed over."""
        device = _device(step)
        held = self._site.known_cells(device) if device else {}
        self._attempted.append(step)  # before the journal: an interrupt may come between the two
        self._store.intend(self._lease, self.id, self._record("intent", step, _named(step)), unsure=device)
        try:
            evidence = ACTIONS[step.do].act(self._bench, step)
        except NOTHING_SENT as error:
            self._attempted.remove(step)
            nothing = {"failed": error.message, "nothing_sent": True}
            self._conclude("outcome", step, nothing, {device: held} if device and held else {})
            return self._passed_over(step, error)
        except LumctlError as error:
            self._conclude("outcome", step, {"failed": error.message})
            return self._passed_over(step, error)
        self._evidence[step.id] = evidence
        placed = placed_by(step.data["assignment"]) if step.do is Do.ASSIGN else {}
        self._conclude("outcome", step, {"done": True, **evidence}, self._certain_after(step), placed)
        return ""

    def undo(self) -> list[str]:
        """Take back every attempted step in reverse, as far as each goes; what went wrong is returned, in words."""
        troubles: list[str] = []
        for step in reversed(self._attempted):
            if one_way(step):
                troubles.append(f"{step.data['device']} was written whole: what it held before was not known")
                continue
            try:
                self._undo(step)
            except LeaseLostError as error:
                return [*troubles, error.message]
            except Exception as error:  # noqa: BLE001 - one step's trouble must not keep the others from being undone
                said = error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
                troubles.append(f"{step.title}: {said}")
        if not troubles and (self._wrote or any(step.do is Do.PROGRAM for step in self._attempted)):
            troubles += self._light_as_before()
        return troubles

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state."""
        record = Record(self._site.now(), "end", "", {"state": state, **data, **self._signed})
        self._store.end_run(self._lease, self.id, record, state, undid=undid)

    def doubt(self) -> None:
        """Write down that nobody knows what a step that went adrift did, nor when; not even who holds the lease now."""
        device = _device(self.adrift) if self.adrift else None
        if device:
            with suppress(StoreError):
                self._store.doubt(device, self.id)

    def _passed_over(self, step: Step, error: LumctlError) -> str:
        if step.required:
            raise error
        return f"passed over ({error.message})"

    def _undo(self, step: Step) -> None:
        device = _device(step)
        with suppress(
            StoreError
        ):  # its first intent is on disk: the undo may act even where nothing more can be written
            self._store.intend(self._lease, self.id, self._record("undo-intent", step, _named(step)), unsure=device)
        try:
            undone = {"undone": True, **ACTIONS[step.do].undo(self._bench, step, self._evidence.get(step.id))}
        except LumctlError as error:
            if step.required:
                self._conclude("undo-outcome", step, {"undone": False, "failed": error.message})
                raise
            undone = {"undone": False, "failed": error.message}
        placed = placed_by(step.data["before"]) if step.do is Do.ASSIGN else {}
        states = {device: self._states(device, step, after=False)} if device else {}
        self._conclude("undo-outcome", step, undone, states, placed)

    def _light_as_before(self) -> list[str]:
        """Circuits that were sound before the run must be sound again, or the rack is not as it was."""
        try:
            for step in self.plan.steps:
                if step.do is Do.CHECK:
                    Verify.prove_still_sound(
                        self._bench, [*step.data["kept"], *step.data["replaced"]], self._bench.before
                    )
        except LumctlError as error:
            return [f"the cells were put back, but {error.message}"]
        return []

    def _certain_after(self, step: Step) -> States:
        """What a step makes certain: written cells, unless the device may yet revert them by itself."""
        armed = {d for d, receipt in self._bench.receipts.items() if receipt.revert_armed}
        if step.do is Do.PROGRAM and step.data["device"] not in armed:
            return {step.data["device"]: self._states(step.data["device"], step, after=True)}
        if step.do is Do.CONFIRM:
            programs = [s for s in self._attempted if s.do is Do.PROGRAM and s.data["device"] in step.data["devices"]]
            return {s.data["device"]: self._states(s.data["device"], s, after=True) for s in programs}
        return {}

    def _states(self, device: str, step: Step, *, after: bool) -> dict[int, str]:
        """All states of a device, with the cells of one step as they are after it or as they were before it."""
        own = own_cells(self._site.inventory, self._site.inventory.devices[device])
        held = self.plan.start.cells(device, own) or {}
        return held | {int(change[0]): str(change[2 if after else 1]) for change in step.data["changes"]}

    def _record(self, kind: str, step: Step, data: Mapping[str, Any]) -> Record:
        self._cover.alive(self._site, step)
        return Record(self._site.now(), kind, step.id, {**data, **self._signed})

    def _conclude(
        self,
        kind: str,
        step: Step,
        data: Mapping[str, Any],
        states: States | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        try:
            self._store.conclude(self._lease, self.id, self._record(kind, step, data), states=states, placed=placed)
        except LeaseLostError:
            undone_alike = kind == "undo-outcome" and self.overtaken
            if step.do in TOUCHED and not undone_alike:
                self.adrift = step
                self.doubt()
            raise


def _device(step: Step) -> str | None:
    """The device whose cells a step writes."""
    return str(step.data["device"]) if step.do is Do.PROGRAM else None


def _named(step: Step) -> dict[str, str]:
    return {"do": step.do.value, "title": step.title}
