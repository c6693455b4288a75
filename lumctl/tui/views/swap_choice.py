"""The accelerators that the key ``p`` replaces, or why it replaces none; pure.

The key plans for the selection if that is at fault, else for the accelerators in the headline.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lumctl.daemon.notifications.message import cases_of
from lumctl.health.observation import Observation
from lumctl.inventory.model import Inventory
from lumctl.swap.demand_queue import ill_accelerators
from lumctl.tui.views.headline import News, news_of
from lumctl.tui.views.incidents import accelerators_of, case_of, named, replaced_now
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import checked_obstacle, swap_obstacle


@dataclass(frozen=True, slots=True)
class SwapChoice:
    """The accelerators to replace together; if there are none, ``why_none`` is the reason in one line.

    ``left_out`` says of each marked component that is not replaced why it is not.
    """

    accelerators: tuple[str, ...] = ()
    why_none: str = ""
    left_out: tuple[str, ...] = ()


def choice_of(seen: RecordedLook, component: str | None, incident: str = "") -> SwapChoice:
    """What ``p`` plans if this component, or the incident with this key, is selected."""
    selected = swaps_of_selected(seen, component, incident)
    if run := replaced_now(seen, selected):
        return SwapChoice(why_none=f"{run}: 6 shows its steps")
    if selected and (why := checked_obstacle(seen, selected)):
        return SwapChoice(why_none=why)
    if swaps := selected or swaps_of_headline(seen):
        return SwapChoice(swaps)
    return SwapChoice(why_none=_why_none(seen, component, incident))


def swaps_of_selected(seen: RecordedLook, component: str | None, incident: str = "") -> tuple[str, ...]:
    """The accelerators whose replacement repairs this component, or the incident with this key; empty if none does."""
    return swaps_of_incident(seen, incident) if incident else swaps_of_component(seen.observation, component)


def offers_swap(seen: RecordedLook, failed: Sequence[str]) -> bool:
    """Whether a screen offers the key ``p`` for these accelerators: they have a fault that a swap can repair now."""
    return bool(failed) and not replaced_now(seen, failed) and not swap_obstacle(seen, failed)


def choice_of_marked(seen: RecordedLook, components: Iterable[str]) -> SwapChoice:
    """What ``p`` plans if these components are marked: all their accelerators that a spare should replace."""
    names = tuple(components)
    here = set(placed_at(seen.observation, names))
    fail = dict.fromkeys(each for group in _groups(seen.observation) for each in group if each in here)
    left_out = (name for name in names if fail.keys().isdisjoint(placed_at(seen.observation, (name,))))
    return SwapChoice(
        tuple(fail),
        f"{named(names)} has no fault that a spare repairs; d drains healthy components",
        tuple(f"{name} was marked but is not replaced: {_why_left_out(seen, name)}" for name in left_out),
    )


def _why_left_out(seen: RecordedLook, component: str) -> str:
    if component in seen.observation.inventory.accelerators and (why := why_no_swap(seen.observation, component)):
        return why
    return "it has no fault that a spare repairs"


def placed_at(observation: Observation, components: Iterable[str]) -> tuple[str, ...]:
    """The accelerators of these components on which jobs run, in any state of health."""
    placed = observation.places()
    members = (
        member
        for component in components
        for member in (
            (component,) if component in observation.inventory.accelerators else _members_of(observation, component)
        )
    )
    return tuple(dict.fromkeys(member for member in members if member in placed))


def swaps_of_component(observation: Observation, component: str | None) -> tuple[str, ...]:
    """The accelerators whose replacement repairs the fault of a component; empty if there are none.

    Accelerators that fail with one cause are replaced together. For a host, rack, job or circuit, all faults of its
    accelerators must have one cause; else the result is empty.
    """
    if component is None:
        return ()
    if component in observation.inventory.accelerators:
        if why_no_swap(observation, component) is not None:
            return ()
        return next((group for group in _groups(observation) if component in group), (component,))
    within = frozenset(_members_of(observation, component))
    found = {group for group in _groups(observation) if within.intersection(group)}
    return found.pop() if len(found) == 1 else ()


def swaps_of_incident(seen: RecordedLook, key: str) -> tuple[str, ...]:
    """The accelerators whose replacement repairs an incident; empty if there are none or the first runs no rank."""
    case = case_of(seen, key)
    found = accelerators_of(seen, case) if case is not None else ()
    return found if found and why_no_swap(seen.observation, found[0]) is None else ()


def swaps_of_headline(seen: RecordedLook) -> tuple[str, ...]:
    """The accelerators that the headline names with the key ``p``; empty if it does not offer the key."""
    # While a run is in progress, it is the first message, and offers no key.
    first = next(iter(news_of(seen)), None)
    return first.swaps if first is not None and first.by_key else ()


def others_than_headline(seen: RecordedLook, news: Sequence[News]) -> bool:
    """Whether other accelerators than the headline's could be replaced with ``p``, if they were selected.

    ``news`` are the messages of the headline.
    """
    if seen.forbidden:
        return False
    first = next((frozenset(each.swaps) for each in news), frozenset()) | frozenset(seen.moving)
    return any(not first.issuperset(group) for group in _groups(seen.observation))


def swap_groups(seen: RecordedLook) -> Iterator[tuple[str, ...]]:
    """The accelerators that may be offered to be replaced together, the worst fault first; then those that wait."""
    placed = seen.observation.places()
    found = [accelerators_of(seen, case) for case in cases_of(seen.observation.report).values()]
    found += _groups(seen.observation)
    found += [ill_accelerators(seen.observation, demand) for demand in seen.records.waiting]
    return (group for group in found if group and all(name in placed for name in group))


def why_no_swap(observation: Observation, component: str) -> str | None:
    """Why the dashboard plans no swap for a component; ``None`` if it can."""
    if component not in observation.inventory.accelerators:
        return f"{component} is not an accelerator: only accelerators can be swapped"
    if observation.place_of(component) is None:
        return f"{component} runs no job: there is nothing to swap"
    if observation.in_trouble(component):
        return None
    if (cause := observation.cause_elsewhere(component)) is not None:
        return f"{component} is not the faulty component: the cause is {cause.cause}; {cause.words}"
    return f"{component} and its links are ok: only an accelerator with a fault can be swapped here"


def job_of(observation: Observation, accelerators: Iterable[str]) -> str | None:
    """The job of these accelerators; ``None`` if they run ranks of several jobs or of none."""
    jobs = {place[0] for each in accelerators if (place := observation.place_of(each)) is not None}
    return jobs.pop() if len(jobs) == 1 else None


def _why_none(seen: RecordedLook, component: str | None, incident: str) -> str:
    if incident:
        return f"no accelerator is certain to cause the fault of {component}: open it (enter)"
    placed = seen.observation.places()
    fail = dict.fromkeys(each for remedy in seen.observation.remedies for each in remedy.replace if each in placed)
    first = next(iter(news_of(seen)), None)
    if first is not None and first.swaps and (why := checked_obstacle(seen, first.swaps)):
        return why
    if fail:
        return f"select what to replace among the accelerators (2), then press p: {named(fail)}"
    if component in seen.observation.inventory.accelerators and component is not None:
        return why_no_swap(seen.observation, component) or ""
    return "there is no fault that a spare repairs: there is nothing to swap"


def _groups(observation: Observation) -> list[tuple[str, ...]]:
    """For each cause that spares repair, worst first, the accelerators in jobs that are replaced together.

    A cause is omitted if it is uncertain which of several accelerators is at fault.
    """
    placed = observation.places()
    clear = (each for each in observation.remedies if each.certain or len(each.replace) == 1)
    groups = (tuple(name for name in remedy.replace if name in placed) for remedy in clear)
    return [group for group in groups if group]


def _members_of(observation: Observation, component: str) -> Iterable[str]:
    """The accelerators of a job, circuit, host or rack."""
    inventory = observation.inventory
    if component in observation.assignment:
        return observation.assignment[component]
    circuit = observation.report.circuits.get(component)
    if circuit is not None:
        lanes = (inventory.transponders.get(end.transponder) for end in circuit.ends)
        return (lane.accelerator for lane in lanes if lane is not None)
    return (name for name in inventory.accelerators if any(part(inventory, name) == component for part in _PLACES))


_PLACES: tuple[Callable[[Inventory, str], str], ...] = (
    lambda inventory, name: inventory.accelerators[name].host,
    lambda inventory, name: inventory.accelerators[name].rack,
)


def fails_with(seen: RecordedLook, accelerator: str) -> tuple[str, ...]:
    """The other accelerators that fail with the same cause and are replaced together with this one."""
    together = next((group for group in _groups(seen.observation) if accelerator in group), ())
    return tuple(each for each in together if each != accelerator)
