"""Which spare is taken: shortest light paths among those that are well, alike and free; else every reason is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.context import Observation
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import exits, mesh
from lumctl.health.states import State
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import circuits_of
from lumctl.swap.choice import choose

Observe = Callable[..., Observation]
Programmed = Callable[[Path], dict[str, dict[int, PucState]]]
OtherText = Callable[[Inventory, str, str], Inventory]


def test_every_accelerator_of_a_job_can_be_swapped_without_touching_any_other_circuit(
    inventory: Inventory, observe: Observe, programmed: Programmed
) -> None:
    states = programmed(inventory.path)
    seen = observe(inventory)
    for job, ranks in seen.assignment.items():
        for failed in ranks:
            choice = choose(seen, states, [failed])
            after = {device: dict(held) for device, held in states.items()}
            for device, cells in choice.paths.writes.items():
                for cell in cells:
                    assert after[device][cell.puc].value == cell.before
                    after[device][cell.puc] = PucState(cell.after)
            placed = [choice.replacements[0].spare if a == failed else a for a in ranks]
            for circuit in circuits_of(inventory, {**seen.assignment, job: tuple(placed)}):
                geometry = inventory.devices[circuit.a.device].geometry
                assert geometry is not None
                shape = mesh(geometry.columns, geometry.rows)
                assert exits(shape, after[circuit.a.device])[circuit.ports[0]] == circuit.ports[1]
            written = {(c.device, c.puc) for cells in choice.paths.writes.values() for c in cells}
            assert not written & {puc for kept in choice.paths.keep for puc in kept.pucs}


def test_only_the_spare_on_the_same_rail_fits_and_the_others_say_why(
    rack64: Inventory, observe: Observe, programmed: Programmed
) -> None:
    choice = choose(observe(rack64), programmed(rack64.path), ["h03-gpu2"])
    assert choice.replacements[0].spare == "h16-gpu2"
    reasons = {c.spare: c.reasons for c in choice.candidates}
    assert "no fibres lead from" in reasons["h16-gpu0"][0]
    assert [c.spare for c in choice.candidates if c.chosen] == ["h16-gpu2"]
    assert "9 PUCs to write" in reasons["h16-gpu2"][1]


def test_two_failures_of_one_job_take_two_spares(rack64: Inventory, observe: Observe, programmed: Programmed) -> None:
    choice = choose(observe(rack64), programmed(rack64.path), ["h03-gpu2", "h05-gpu1"])
    assert {(r.failed, r.spare) for r in choice.replacements} == {("h03-gpu2", "h16-gpu2"), ("h05-gpu1", "h16-gpu1")}
    assert set(choice.paths.writes) == {"rail1", "rail2"}


def test_two_failures_on_one_rail_find_one_spare_only(
    rack64: Inventory, observe: Observe, programmed: Programmed
) -> None:
    with pytest.raises(RefusedError, match="h16-gpu2: this plan already uses it"):
        choose(observe(rack64), programmed(rack64.path), ["h03-gpu2", "h05-gpu2"])


@pytest.mark.parametrize("state", [State.FAILED, State.DEGRADED, State.UNKNOWN])
def test_a_spare_that_is_not_ok_is_refused_with_its_finding(
    rack64: Inventory, observe: Observe, programmed: Programmed, state: State
) -> None:
    seen = observe(rack64, failed={"h16-gpu2": state})
    with pytest.raises(RefusedError, match=f"h16-gpu2: is {state}: it fell off the bus"):
        choose(seen, programmed(rack64.path), ["h03-gpu2"])


def test_a_spare_in_maintenance_is_not_taken_nor_one_whose_lane_is(
    rack64: Inventory, observe: Observe, programmed: Programmed
) -> None:
    seen = observe(rack64)
    spare, lane = "h16-gpu2", rack64.transponders_of("h16-gpu2")[0].id
    told = "h16 by ops@console: new fans"
    groups = {"accelerators": seen.report.accelerators, "links": seen.report.links}
    for group, component, why in (("accelerators", spare, "is"), ("links", lane, f"its lane {lane} is")):
        health = replace(groups[group][component], state=State.DISABLED, maintenance=told)
        report = replace(seen.report, **{group: {**groups[group], component: health}})
        with pytest.raises(RefusedError, match=f"{spare}: {why} in maintenance: {told}"):
            choose(replace(seen, report=report), programmed(rack64.path), ["h03-gpu2"])


def test_a_named_spare_is_held_to_the_same_rules(rack64: Inventory, observe: Observe, programmed: Programmed) -> None:
    states = programmed(rack64.path)
    with pytest.raises(RefusedError, match="h09-gpu2: runs rank 14 of train-b"):
        choose(observe(rack64), states, ["h03-gpu2"], ["h09-gpu2"])
    assert choose(observe(rack64), states, ["h03-gpu2"], ["h16-gpu2"]).replacements[0].spare == "h16-gpu2"


def test_a_smaller_accelerator_is_no_spare(
    rack64: Inventory, observe: Observe, programmed: Programmed, other_text: OtherText
) -> None:
    spare = "role: spare"
    changed = other_text(rack64, f"memory_gib: 80\n        {spare}", f"memory_gib: 40\n        {spare}")
    with pytest.raises(RefusedError, match="with 40 GiB"):
        choose(observe(changed), programmed(changed.path), ["h03-gpu2"])


def test_a_path_that_loses_too_much_light_is_refused(
    rack64: Inventory, observe: Observe, programmed: Programmed, other_text: OtherText
) -> None:
    geometry = "geometry: {columns: 9, rows: 9}"
    changed = other_text(rack64, geometry, f"{geometry}\n    loss_per_puc_db: 3.0")
    with pytest.raises(RefusedError, match=r"would arrive with -\d+.* its receiver needs -15.8 dBm"):
        choose(observe(changed), programmed(changed.path), ["h03-gpu2"])


def test_a_new_path_goes_round_what_is_damaged_and_stands_as_what_is_stuck(
    rack64: Inventory, observe: Observe, programmed: Programmed, other_text: OtherText
) -> None:
    states = programmed(rack64.path)
    usual = choose(observe(rack64), states, ["h03-gpu2"]).paths
    kept = {puc for circuit in usual.keep for _, puc in circuit.pucs}
    (device,) = usual.add[0].devices
    way = [puc for _, puc in usual.add[0].pucs]
    damaged, stuck = [puc for puc in way[len(way) // 2 :] if puc not in kept][:2]
    mark = states[device][stuck].word
    geometry = "geometry: {columns: 9, rows: 9}"
    changed = other_text(rack64, geometry, f"{geometry}\n    damaged: [{damaged}]\n    stuck: {{{stuck}: {mark}}}")
    found = choose(observe(changed), states, ["h03-gpu2"]).paths
    assert all((device, damaged) not in circuit.pucs for circuit in found.add)
    assert stuck not in {cell.puc for cell in found.writes[device]}


def test_a_planned_loss_counts_what_single_ports_lose(
    rack64: Inventory, observe: Observe, programmed: Programmed, other_text: OtherText
) -> None:
    states = programmed(rack64.path)
    usual = choose(observe(rack64), states, ["h03-gpu2"]).paths.add[0]
    geometry, port = "geometry: {columns: 9, rows: 9}", usual.ends[0]["port"]
    changed = other_text(rack64, geometry, f"{geometry}\n    port_loss_db: {{{port}: 0.7}}")
    found = choose(observe(changed), states, ["h03-gpu2"]).paths.add[0]
    assert found.pucs == usual.pucs
    assert found.loss_db == pytest.approx((usual.loss_db or 0.0) + 0.7)
    assert found.expected_rx_dbm == pytest.approx((usual.expected_rx_dbm or 0.0) - 0.7)


def test_a_rack_whose_spares_are_all_used_says_so(
    inventory: Inventory, observe: Observe, programmed: Programmed
) -> None:
    spares = [a.id for a in inventory.accelerators.values() if a.role == "spare"]
    job = next(iter(inventory.jobs))
    placed = dict(observe(inventory).assignment)
    ranks = list(placed[job])
    failed = ranks[-1]
    device_of = {a: inventory.transponders_of(a)[0].lane.device for a in inventory.accelerators}
    for spare in spares:
        rank = next(r for r, a in enumerate(ranks) if a not in spares and device_of[a] == device_of[spare])
        ranks[rank] = spare
    seen = observe(inventory, assignment={**placed, job: tuple(ranks)})
    with pytest.raises(RefusedError, match=f"has no spare left for {failed}"):
        choose(seen, programmed(inventory.path), [failed])
