"""What has changed since a run was cut or left half done: later runs wrote over it, or the inventory was edited.

Such a run is neither continued nor rolled back where that would undo what came later.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.change.circuits import placed_by
from lumctl.change.plan import Do, Plan, Step, from_document
from lumctl.change.trail import Trail
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.wiring import circuits_of, moved_words
from lumctl.site import Site
from lumctl.store import Entry, Store
from lumctl.store import Run as StoredRun

LIGHT = frozenset({Do.CHECK, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN})
"""Steps that only make sense together: a job runs where its circuits lead, and these need their transmitters."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The steps of a run whose work later runs have written over, and in words how; nothing where there is none."""

    steps: tuple[Step, ...] = ()
    why: tuple[str, ...] = ()


NOTHING = Overtaken()


def overtaken(site: Site, run: StoredRun, trail: Trail) -> Overtaken:
    """What of a run is no longer as it left it, as far as our record tells.

    Raises:
        StoreError: the store cannot be read.
    """
    store = site.store(run.rack)
    why = [*_written_over(store, run, trail), *_moved(site, trail)]
    steps = {step.id for step in trail.tried if why and step.do in LIGHT and not _darkened(site, step)}
    for step, later in _set_since(store, run, trail):
        steps.add(step.id)
        why.append(f"{' '.join(_key(step) or ())} was last set by {later}")
    return Overtaken(tuple(step for step in trail.tried if step.id in steps), tuple(why))


def _written_over(store: Store, run: StoredRun, trail: Trail) -> list[str]:
    devices = dict.fromkeys(str(step.data["device"]) for step in trail.tried if step.do is Do.PROGRAM)
    writers = {device: store.last_written_by(device) for device in devices}
    return [f"{device} was last written by {by}" for device, by in writers.items() if by not in {None, run.id}]


def _darkened(site: Site, step: Step) -> bool:
    """Whether a step put out a transmitter that a job needs where it runs now: it is right to light it in any case."""
    if step.do is not Do.TRANSMIT or step.data["enabled"]:
        return False
    standing = circuits_of(site.inventory, site.assignment(sound=False))
    return step.data["transponder"] in {end.transponder for circuit in standing for end in (circuit.a, circuit.b)}


def _moved(site: Site, trail: Trail) -> list[str]:
    """The jobs that do not run where the run left them. Whoever only sets something is not hindered by swaps."""
    plan = trail.plan
    if all(step.do is Do.SET for step in plan.steps):
        return []
    standing = dict(plan.start.assignment)
    for step in trail.tried:
        if step.do is Do.ASSIGN and step.id in trail.ended:
            standing |= placed_by(step.data["assignment"])
    placed = site.assignment(sound=False)
    return [moved_words(job) for job, ranks in standing.items() if placed.get(job, ()) != ranks]


def _set_since(store: Store, run: StoredRun, trail: Trail) -> list[tuple[Step, str]]:
    """The steps after which another run has set the same thing, with that run."""
    mine = _last_intents(store.entries(run.id))
    meant = {key: step for step in trail.tried if (key := _key(step)) is not None}
    if not meant:
        return []
    others = [other for other in store.runs() if other.id != run.id]
    undone = {other.id for other in others if other.state == "undone"}
    found: dict[str, tuple[Step, str]] = {}
    for other in others:  # the newest first
        if other.id in undone or other.plan.get("undoes") in undone:
            continue  # what these did is as it was before them
        for key, at in _keys_of(store, other, meant).items():
            step = meant[key]
            if at > mine.get(step.id, 0):
                found.setdefault(step.id, (step, other.id))
    return list(found.values())


def _keys_of(store: Store, run: StoredRun, meant: Mapping[Key, Step]) -> dict[Key, int]:
    """Which of some things a run has set that may still stand, each with the number of its intent in the journal."""
    try:
        plan: Plan = from_document(run.plan)
    except UsageError:  # of an action, which sets nothing
        return {}
    if not any(_key(step) in meant for step in plan.steps):
        return {}
    entries = store.entries(run.id)
    at = _last_intents(entries)
    tried = Trail.of(plan, entries).tried
    return {key: at[step.id] for step in tried if (key := _key(step)) in meant and key is not None}


def _key(step: Step) -> Key | None:
    """What a step sets: a component, and which of its settings. Transmitters are switched by swaps and by hand."""
    if step.do is Do.SET:
        return str(step.data["component"]), str(step.data["setting"])
    return (str(step.data["transponder"]), "transmit") if step.do is Do.TRANSMIT else None


def _last_intents(entries: tuple[Entry, ...]) -> dict[str, int]:
    return {entry.step: entry.seq for entry in entries if entry.kind == "intent"}


def require_fit(site: Site, run: str, plan: Plan, *, is_open: bool = False) -> None:
    """Require of an inventory that a run's circuits end where they did.

    One that ``is_open`` is closed once the circuits of the jobs are programmed as the inventory is now.

    Raises:
        RefusedError: a lane is elsewhere now, or no more.
    """
    apply = f"lumctl fabric apply --rewrite --rack {plan.rack} --target {site.target}"
    hint = f"program the circuits of the jobs as they are now: {apply}"
    if is_open:
        hint += f"; then close the run: lumctl swap abort {run} --leave-later --target {site.target}"
    for circuit in (*plan.remove, *plan.add, *plan.keep):
        for end in circuit.ends:
            lane = site.inventory.transponders.get(str(end["lane"]))
            if lane is None or lane.lane.device != circuit.device or end["port"] not in lane.lane.ports:
                raise RefusedError(
                    f"{run} can neither go on nor be undone: {end['lane']} is no longer on {circuit.device} port "
                    f"{end['port']} in {site.inventory.path}",
                    hint=hint,
                )
