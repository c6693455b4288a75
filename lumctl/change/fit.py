"""Whether what a run touched is still what it was: the inventory may have been edited since."""

from lumctl.change.plan import Plan
from lumctl.errors import RefusedError
from lumctl.site import Site


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
