"""Of several spares that could be taken, the first criterion in which they differ decides; every plan says which."""

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from lumctl.change.plan import PlannedChange
from lumctl.errors import RefusedError
from lumctl.health.states import ComponentHealth, Finding, State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError
from lumctl.swap.choice import choose
from lumctl.swap.explanations import Considered, candidates_of
from lumctl.swap.light_paths import LightPaths
from lumctl.swap.ranking import (
    BURN_IN_S,
    LATELY_S,
    UNKNOWN,
    AcceleratorRecord,
    Score,
    records_of,
    score,
    why_behind,
)

NOW = 1_800_000_000.0
PLAIN = Score(0, 1, 0.0, 0, 0, 0, 0, 0, 0, 0, 4.0, 12, 5, 3)
WORSE = Score(1, 2, 61.0, 1, 1, 1, 3, 1, 2, 1, 4.5, 20, 9, 4)
NAMES = [item.name for item in fields(Score)]


@pytest.mark.parametrize("name", NAMES)
def test_each_criterion_decides_over_all_that_come_after_it(name):
    later = NAMES[NAMES.index(name) + 1 :]
    worse = replace(PLAIN, **{name: getattr(WORSE, name)})
    better = replace(PLAIN, **{other: getattr(WORSE, other) for other in later})
    assert better.cost < worse.cost
    assert worse.decided_by(better) == name
    assert why_behind(worse, better) not in {"", "they are alike"}


def test_costs_add_up_criterion_by_criterion():
    many = [replace(PLAIN, loss_db=1e6, pucs=9999, cells=9999)] * 64
    assert sum(each.cost for each in many) < replace(PLAIN, thin=1).cost + 63 * PLAIN.cost


RACK = """
lumctl: 1
racks: {r: {}}
hosts:
  - {name: "w[1-2]", accelerators: [{id: "{host}-x", model: M, memory_gib: 80}]}
  - {name: near, accelerators: [{id: "{host}-x", model: M, memory_gib: 80, role: spare NEAR}]}
  - {name: far, accelerators: [{id: "{host}-x", model: M, memory_gib: 80, role: spare FAR}]}
devices:
  - {id: m, kind: mesh, driver: smartlight, address: "m.example:1", geometry: {columns: 4, rows: 3}}
"""


@pytest.fixture
def rack(tmp_path):
    def make(near="", far=""):
        path = tmp_path / "rack.yaml"
        text = RACK.replace(" NEAR", near).replace(" FAR", far)
        lanes = "".join(
            f"  - {{id: {host}-a, accelerator: {host}-x, interface: eth0, device: m, port: {port}}}\n"
            for host, port in (("w1", 3), ("w2", 9), ("near", 5), ("far", 23))
        )
        jobs = "".join(
            f"  - {{name: {name}, ranks: {ranks}, links: [{links}]}}\n"
            for name, ranks, links in (("job", '"w[1-2]-x"', "{kind: pairs, pairs: [[0, 1]]}"),)
        )
        path.write_text(f"{text}transponders:\n{lanes}jobs:\n{jobs}")
        return load_inventory(path)

    return make


def chosen(observe, programmed_cells, inventory, records=None, named=()):
    seen = replace(observe(inventory), at=NOW)
    return choose(seen, programmed_cells(inventory), ["w1-x"], named, records=records)


@pytest.fixture
def programmed_cells():
    from lumctl.devices.types import PucState
    from lumctl.fabric import changes, mesh, route

    def make(_inventory):
        shape = mesh(4, 3)
        blank = dict.fromkeys(range(shape.puc_count), PucState.BAR)
        return {"m": blank | changes(blank, route(shape, [(3, 9)], states=blank))}

    return make


def reason(choice, spare):
    return next(c.reasons[0] for c in choice.candidates if c.spare == spare)


def test_alike_in_all_else_the_spare_with_less_loss_is_taken(rack, observe, programmed_cells):
    choice = chosen(observe, programmed_cells, rack())
    assert choice.replacements[0].spare == "near-x"
    assert [c.rank for c in choice.candidates] == [1, 2]
    assert "its worst new circuit loses" in reason(choice, "far-x")


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (AcceleratorRecord(faults=2, last_fault_at=NOW - 60),
            "degraded or failed 2 times in the last 7 days, the other never"),
        (AcceleratorRecord(back_at=NOW - BURN_IN_S / 2), "it has not run for long since it was repaired"),
        (AcceleratorRecord(burned_in_at=NOW + 60), "it has not run for long since it was repaired"),
    ],
)  # fmt: skip
def test_a_spare_with_a_past_is_left_for_one_that_loses_more_light(rack, observe, programmed_cells, record, says):
    choice = chosen(observe, programmed_cells, rack(), {"near-x": record})
    assert choice.replacements[0].spare == "far-x"
    assert says in reason(choice, "near-x")


def test_a_spare_with_a_lane_that_is_not_ok_is_left_too(rack, observe, programmed_cells):
    inventory = rack()
    seen = observe(inventory)
    seen.report.links["near-a"] = replace(seen.report.links["near-a"], state=State.UNKNOWN)
    choice = choose(seen, programmed_cells(inventory), ["w1-x"])
    assert choice.replacements[0].spare == "far-x"
    assert reason(choice, "near-x").endswith("1 lane is not ok now, against 0 of the other")


def test_a_spare_that_is_kept_for_the_job_goes_first(rack, observe, programmed_cells):
    choice = chosen(observe, programmed_cells, rack(far=", reserved_for: job"))
    assert choice.replacements[0].spare == "far-x"
    assert reason(choice, "near-x").endswith("the other is reserved for this job")


def test_a_reserved_spare_is_taken_only_by_name(rack, observe, programmed_cells):
    inventory = rack(near=", reserved: true")
    choice = chosen(observe, programmed_cells, inventory)
    assert choice.replacements[0].spare == "far-x"
    assert reason(choice, "near-x") == "is reserved: --spare near-x uses it nevertheless"
    assert chosen(observe, programmed_cells, inventory, named=["near-x"]).replacements[0].spare == "near-x"
    none_left = rack(near=", reserved: true", far=", reserved: true")
    with pytest.raises(RefusedError, match="near-x: is reserved: --spare near-x"):
        chosen(observe, programmed_cells, none_left)


@pytest.mark.parametrize(
    ("near", "says"),
    [
        (", reserved_for: jib", "job 'jib' is not known"),
        (", reserved: true, reserved_for: job", "found both 'reserved' and 'reserved_for'"),
        (", burned_in: 2026-02-30", "not a valid date"),
        (", burned_in: soon", "a date such as 2026-03-31"),
    ],
)
def test_what_is_written_of_a_spare_is_checked(rack, near, says):
    with pytest.raises(InventoryError, match=says):
        rack(near=near)


def test_only_spares_are_reserved(rack):
    path = rack().path
    path.write_text(path.read_text().replace("role: spare", "role: disabled, reserved: true", 1))
    with pytest.raises(InventoryError, match="'reserved' for an accelerator that is disabled, expected a spare"):
        load_inventory(path)


def history(*rows):
    def transitions(since):
        found = [Transition(NOW + at, who, kind, before, after, (), "") for at, who, kind, before, after in rows]
        return tuple(each for each in found if each.at >= since)

    return SimpleNamespace(health=SimpleNamespace(transitions=transitions))


def test_the_store_s_history_tells_faults_lanes_and_returns(rack):
    inventory = rack()
    near = inventory.accelerators["near-x"]
    store = history(
        (-LATELY_S - 5, "near-x", "accelerator", State.OK, State.FAILED),
        (-7000, "near-x", "accelerator", State.OK, State.DEGRADED),
        (-6000, "near-x", "accelerator", State.DEGRADED, State.FAILED),
        (-5000, "near-x", "accelerator", State.FAILED, State.OK),
        (-4000, "near-a", "link", State.OK, State.FAILED),
        (-3000, "far-a", "link", State.OK, State.FAILED),
        (-2000, "near-x", "host", State.OK, State.FAILED),
        (-1000, "near-x", "accelerator", State.OK, State.UNKNOWN),
    )
    assert records_of(store, inventory, [near], NOW) == {
        "near-x": AcceleratorRecord(faults=2, last_fault_at=NOW - 4000, back_at=NOW - 5000)
    }


def test_what_was_before_the_burn_in_does_not_count(rack):
    inventory = rack(near=", burned_in: 2027-01-15")  # NOW is some hours into that day
    near = inventory.accelerators["near-x"]
    store = history(
        (-40_000, "near-x", "accelerator", State.OK, State.FAILED),
        (-30_000, "near-x", "accelerator", State.FAILED, State.OK),
    )
    record = records_of(store, inventory, [near], NOW)["near-x"]
    assert (record.faults, record.back_at, record.fresh_until(NOW)) == (0, None, None)
    later = rack(near=", burned_in: 2027-01-20")
    assert records_of(store, later, [later.accelerators["near-x"]], NOW)["near-x"].fresh_until(NOW) > NOW


def test_a_spare_without_circuits_of_its_own_is_not_said_to_lose_nothing():
    """All its links lead to others that are replaced too, so its light is known only when all are routed together."""
    alone = Considered("w1-x", "near", "", PLAIN, LightPaths())
    (candidate,) = candidates_of([alone], {"w1-x": "near"})
    assert "its circuits depend on the other spares" in candidate.reasons
    assert not any("dB" in reason for reason in candidate.reasons)


def test_a_spare_whose_mesh_does_not_answer_ranks_behind_one_that_can_be_used_now(rack64, observe):
    seen = observe(rack64)
    silent = Finding("rail2", "device.unreachable", State.FAILED, "connection refused", "", 99.0)
    mesh = ComponentHealth("rail2", "device", State.FAILED, (silent,))
    seen = replace(seen, report=replace(seen.report, devices={"rail2": mesh}))
    old, new = (rack64.accelerators[name] for name in ("h03-gpu2", "h16-gpu2"))
    written, idle = (
        LightPaths(writes={"rail2": cells}) for cells in ((PlannedChange("rail2", 1, "bar", "cross"),), ())
    )
    needs, spares = (score(seen, "train-a", old, new, UNKNOWN, paths) for paths in (written, idle))
    assert (needs.silent, spares.silent) == (1, 0)
    assert why_behind(needs, spares) == "a device that is written for it does not answer now"
