"""The example rings: whatever fails and returns, in whatever order, finds a way beside the circuits that stand."""

import random
from functools import cache

import pytest

from lumctl.devices.types import PucState
from lumctl.fabric import changes, mesh, route
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import circuits_of

load = cache(load_inventory)


class Ring:
    """Who runs where in the ring of an example, and what its mesh holds; swaps assert that they can be routed."""

    def __init__(self, name):
        self.inventory = load(example(name))
        geometry = self.inventory.devices["mesh"].geometry
        self.mesh = mesh(geometry.columns, geometry.rows)
        self.home = self.inventory.jobs["train"].ranks
        self.spares = [a.id for a in self.inventory.accelerators.values() if a.role is Role.SPARE]
        self.states = dict.fromkeys(range(self.mesh.puc_count), PucState.BAR)
        self.ranks = ()
        self.place(self.home)

    def circuits(self):
        return circuits_of(self.inventory, {"train": self.ranks}) if self.ranks else ()

    def place(self, ranks):
        """Run on these accelerators now: new circuits find ways, the others stay where they are."""
        before = self.circuits()
        self.ranks = tuple(ranks)
        after = self.circuits()
        live = [c.ports for c in after if c in before]
        wanted = [c.ports for c in after if c not in before]
        self.states |= changes(self.states, route(self.mesh, wanted, states=self.states, live=live))

    def replace(self, pairs):
        self.place(pairs.get(a, a) for a in self.ranks)

    def free(self):
        return [spare for spare in self.spares if spare not in self.ranks]

    def of_host(self, host):
        return [a for a in self.ranks if self.inventory.accelerators[a].host == host]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["ring4", "ring8"])
def test_failures_and_returns_in_any_order_find_their_ways(name, seed):
    ring, rng = Ring(name), random.Random(seed)  # noqa: S311 - seeded on purpose
    for _ in range(40):
        away = {a: home for a, home in zip(ring.ranks, ring.home, strict=True) if a != home}
        if away and (not ring.free() or rng.random() < 0.5):
            back = list(away) if rng.random() < 0.5 else [rng.choice(list(away))]
            ring.replace({a: away[a] for a in back})
            continue
        failed = [rng.choice(ring.ranks)]
        mates = ring.of_host(ring.inventory.accelerators[failed[0]].host)
        if len(mates) <= len(ring.free()) and rng.random() < 0.5:
            failed = mates
        ring.replace(dict(zip(failed, rng.sample(ring.free(), len(failed)), strict=True)))


def test_a_host_of_ring8_has_as_many_accelerators_as_there_are_spares():
    ring = Ring("ring8")
    assert len(ring.spares) == 2
    assert len({ring.inventory.accelerators[spare].host for spare in ring.spares}) == 1
    for host in ("h1", "h2", "h3", "h4"):
        assert len(ring.of_host(host)) == 2
