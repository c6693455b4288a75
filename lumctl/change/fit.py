"""Whether what a run touched is still what it was: the inventory may have been edited since."""

from lumctl.change.plan import Plan
from lumctl.errors import RefusedError
from lumctl.site import Site


def require_fit(site: Site, run: str, plan: Plan) -> None:
    """Require of an inventory that a run's circuits end where they did.

    Raises:
        RefusedError: a lane is elsewhere now, or no more.
    """
    for circuit in (*plan.remove, *plan.add, *plan.keep):
        for end in circuit.ends:
            lane = site.inventory.transponders.get(str(end["lane"]))
            if lane is None or lane.lane.device != circuit.device or end["port"] not in lane.lane.ports:
                raise RefusedError(
                    f"{run} cannot be taken back: {end['lane']} is not on {circuit.device} port {end['port']} any "
                    f"more in {site.inventory.path}",
                    hint="program what the jobs need now: lumctl fabric apply",
                )
