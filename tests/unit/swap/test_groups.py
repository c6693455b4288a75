"""Accelerators that are tied to each other are replaced together, by spares that are tied too, and return together."""

from types import SimpleNamespace

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError
from lumctl.inventory.wiring import initial_assignment
from lumctl.swap import plan_return, plan_swap
from lumctl.swap.groups import group_choices

RACK = """
lumctl: 1
racks: {r: {}}
hosts:
  - {name: "h[0-1]", accelerators: [{id: "{host}-g[0-1]", model: M, memory_gib: 1, tied: "{host}-board"}]}
  - {name: h2, accelerators: [{id: "{host}-g[0-1]", model: M, memory_gib: 1}]}
  - {name: s0, accelerators: [{id: "{host}-g0", model: M, memory_gib: 1, role: spare}]}
  - {name: "s[1-2]", accelerators: [{id: "{host}-g[0-1]", model: M, memory_gib: 1, role: spare, tied: "{host}-board"}]}
devices:
  - {id: m, kind: mesh, driver: smartlight, address: "m.example:1", geometry: {columns: 9, rows: 9}}
transponders:
  - id: "t-h[0-2]-[0-1]"
    accelerator: "h[0-2]-g[0-1]"
    interface: [eth0, eth1, eth0, eth1, eth0, eth1]
    device: m
    port: [4, 8, 14, 18, 24, 28]
  - {id: "t-s0", accelerator: s0-g0, interface: eth0, device: m, port: 34}
  - id: "t-s[1-2]-[0-1]"
    accelerator: "s[1-2]-g[0-1]"
    interface: [eth0, eth1, eth0, eth1]
    device: m
    port: [44, 50, 56, 62]
jobs:
  - {name: j, ranks: "h[0-2]-g[0-1]", links: [{kind: pairs, pairs: [[0, 2], [1, 4], [3, 5]]}]}
"""


@pytest.fixture
def made(tmp_path, programmed):
    """A rack of this text with its circuits programmed, as something that is planned for."""

    def make(text=RACK):
        path = tmp_path / "rack.yaml"
        path.write_text(text)
        inventory, held = load_inventory(path), programmed(path)
        store = SimpleNamespace(
            health=SimpleNamespace(transitions=lambda **_: ()),
            journal=SimpleNamespace(latest=lambda _: ()),
            demands=SimpleNamespace(waiting=tuple),
            runs=SimpleNamespace(moves=lambda **_: ()),
        )
        drivers = SimpleNamespace(changing=lambda _: SimpleNamespace(capabilities=frozenset()))
        return SimpleNamespace(
            inventory=inventory,
            target="sim",
            store=lambda _: store,
            devices=drivers,
            known_cells=lambda device: {puc: str(state) for puc, state in held[device].items()},
            assignment=lambda: initial_assignment(inventory),
        )

    return make


def pairs(plan):
    return {r.failed: r.spare for r in plan.replacements}


def test_who_is_tied_to_a_failed_one_goes_with_it_to_spares_of_one_board(made, observe):
    context = made()
    plan = plan_swap(context, None, ["h1-g0"], seen=observe(context.inventory, failed={"h1-g0": State.FAILED}))
    assert pairs(plan).keys() == {"h1-g0", "h1-g1"}
    assert set(pairs(plan).values()) in ({"s1-g0", "s1-g1"}, {"s2-g0", "s2-g1"})
    assert plan.why[0] == "h1-g1 is also replaced: it is tied to h1-g0 (h1-board)"
    assert any("is not tied to s" in line for line in plan.why)
    # The single spare is left for one that is tied to nobody, and no board is taken apart for that one.
    alone = plan_swap(context, None, ["h2-g0"], seen=observe(context.inventory, failed={"h2-g0": State.FAILED}))
    assert pairs(alone) == {"h2-g0": "s0-g0"}
    behind = [c.reasons[0] for c in alone.candidates if c.rank == 2]
    assert behind == ["behind s0-g0: it is tied to other spares, which are left for jobs that need them together"]


def test_two_boards_go_to_two_boards_and_named_spares_must_be_as_many(made, observe):
    context = made()
    dead = {"h0-g1": State.FAILED, "h1-g0": State.FAILED}
    both = pairs(plan_swap(context, "j", ["h0-g1", "h1-g0"], seen=observe(context.inventory, failed=dead)))
    assert both.keys() == {"h0-g0", "h0-g1", "h1-g0", "h1-g1"}
    assert {both["h0-g0"][:2], both["h1-g0"][:2]} == {"s1", "s2"}
    assert all(both[f"{host}-g0"][:2] == both[f"{host}-g1"][:2] for host in ("h0", "h1"))
    with pytest.raises(
        UsageError, match=r"2 accelerators failed \(h1-g0, h1-g1: they are tied\), but 1 spare is given"
    ):
        plan_swap(context, "j", ["h1-g0"], ["s1-g0"], seen=observe(context.inventory, failed=dead))


def test_a_board_of_which_one_is_dead_is_no_spare(made, observe):
    context = made()
    dead = {"h1-g0": State.FAILED, "s1-g1": State.FAILED, "s2-g0": State.FAILED}
    with pytest.raises(RefusedError, match="s1-g0: is tied to s1-g1, which is failed"):
        plan_swap(context, None, ["h1-g0"], seen=observe(context.inventory, failed=dead))
    del dead["s2-g0"]
    assert set(pairs(plan_swap(context, None, ["h1-g0"], seen=observe(context.inventory, failed=dead))).values()) == {
        "s2-g0",
        "s2-g1",
    }


def test_where_no_spares_are_tied_any_will_do(made, observe):
    context = made(RACK.replace(', role: spare, tied: "{host}-board"', ", role: spare"))
    plan = plan_swap(context, None, ["h1-g0"], seen=observe(context.inventory, failed={"h1-g0": State.FAILED}))
    assert pairs(plan).keys() == {"h1-g0", "h1-g1"}


def test_a_board_returns_whole_or_not_at_all(made, observe):
    context = made()
    away = {"j": ("h0-g0", "h0-g1", "s1-g0", "s1-g1", "h2-g0", "h2-g1")}
    context.assignment = lambda: away
    seen = observe(context.inventory, assignment=away, failed={"h1-g1": State.FAILED})
    with pytest.raises(RefusedError, match="rank 2 stays on s1-g0: h1-g0 is tied to h1-g1, which stays out"):
        plan_return(context, "j", seen=seen)


def test_the_cheapest_way_that_tears_no_board_apart_comes_first(made):
    inventory = made().inventory
    spares = ["s0-g0", "s1-g0", "s1-g1", "s2-g0", "s2-g1"]
    costs = [[0, 1, 9, 5, 5], [0, 9, 1, 4, 7]]
    found = list(group_choices(inventory, ["h1-g0", "h1-g1"], ["j", "j"], spares, costs))
    assert found == [(1, 2), (4, 3), (3, 4), (2, 1)]
    assert len(list(group_choices(inventory, ["h2-g0", "h2-g1"], ["j", "j"], spares, costs))) == 20


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"{host}-board"}]}\n  - {name: h2', "board}]}\n  - {name: h2", "tie 'board' has accelerators of h0 and of h1"),
        ('"{host}-board"}]}\n  - {name: h2', '"{hosts}-b"}]}\n  - {name: h2', "found '{hosts}', expected '{host}'"),
        (
            "1}]}\n  - {name: s0",
            '1, tied: ["a", "b"]}]}\n  - {name: s0',
            "tie 'a' has h2-g0 alone, expected two or more",
        ),
    ],
)
def test_a_tie_that_is_wrongly_written_says_so_with_its_place(tmp_path, old, new, says):
    assert old in RACK
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.replace(old, new))
    with pytest.raises(InventoryError, match=says) as error:
        load_inventory(path)
    assert "rack.yaml:" in str(error.value)
