"""Where the racks stood when a run began: the placement of that moment, and what each device held."""

from collections.abc import Iterable, Mapping

from lumctl.change.start import Start
from lumctl.inventory.lane_orders import PREFIX, is_order, misfit
from lumctl.inventory.model import Inventory
from lumctl.site import Site
from lumctl.store import Run


def stood(site: Site, run: Run) -> dict[str, Start]:
    """Each rack as it stood when a run began, as far as the stores tell and the inventory still has it.

    A run says what it was to change, as that was before. What no run since has changed stands as it did then. What the
    run itself was to write and did not know is left out.
    """
    placed = site.assignment(sound=False)
    return {rack: _stood(site, rack, run, placed) for rack in site.inventory.racks}


def _stood(site: Site, rack: str, run: Run, placed: Mapping[str, tuple[str, ...]]) -> Start:
    inventory, store = site.inventory, site.store(rack)
    jobs = {job.name for job in inventory.jobs.values() if job.rack == rack}
    here = [device.id for device in inventory.devices.values() if device.rack == rack and device.kind.carries_light]
    found = Start.of(
        {name: ranks for name, ranks in placed.items() if name in jobs or name in store.assignment()},
        {device: held for device in here if (held := site.known_cells(device))},
    )
    # The earliest of the runs since has the last word: it began nearest to this one.
    for later in sorted(store.runs(), key=lambda each: -each.started_at):
        if later.started_at >= run.started_at and (later.rack, later.id) != (run.rack, run.id):
            found = _over(found, _known(Start.from_document(later.plan["start"]), inventory))
    if rack != run.rack:
        return found
    start = Start.from_document(run.plan["start"])
    written = {str(step["data"]["device"]) for step in run.plan["steps"] if "changes" in step["data"]}
    return _over(_without(found, written), start)


def _over(below: Start, above: Start) -> Start:
    return Start(
        {**below.assignment, **above.assignment}, {**below.crosses, **above.crosses}, {**below.joins, **above.joins}
    )


def _without(start: Start, devices: Iterable[str]) -> Start:
    out = set(devices)
    return Start(
        start.assignment,
        {device: held for device, held in start.crosses.items() if device not in out},
        {device: held for device, held in start.joins.items() if device not in out},
    )


def _known(start: Start, inventory: Inventory) -> Start:
    """What the inventory still has: it may have been changed since."""
    return Start(
        {name: ranks for name, ranks in start.assignment.items() if _fits(name, ranks, inventory)},
        {device: held for device, held in start.crosses.items() if device in inventory.devices},
        {device: held for device, held in start.joins.items() if device in inventory.devices},
    )


def _fits(name: str, ranks: tuple[str, ...], inventory: Inventory) -> bool:
    if is_order(name):
        return not ranks or misfit(inventory, name.removeprefix(PREFIX), ranks) is None
    job = inventory.jobs.get(name)
    return job is not None and len(job.ranks) == len(ranks) and all(rank in inventory.accelerators for rank in ranks)
