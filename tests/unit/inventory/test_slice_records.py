"""Jobs that no inventory names: the records of slices in an assignment, and what they stand for."""

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.slice_records import (
    is_job,
    is_shape,
    record_of,
    shape_of,
    slice_misfit,
    slice_record,
    slices_among,
    slices_in,
    torus_links,
    with_slices,
)
from lumctl.inventory.wiring import circuits_of, initial_assignment, jobs_in, order_of, orders_in, record_misfit

FIRST = tuple(f"h01-gpu{n}" for n in range(4))
NOW = ("h16-gpu0", *FIRST[1:])


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("torus64"))


def recorded(job="tenant", shape=(2, 2, 1), ranks=NOW):
    return {job: ranks, shape_of(job): slice_record(shape, FIRST)}


def test_a_record_is_no_job_and_no_order_of_lanes(inventory):
    placed = initial_assignment(inventory) | recorded() | {order_of("h01-gpu1"): ()}
    assert set(jobs_in(placed)) == {"train", "tenant"}
    assert orders_in(placed) == {}
    assert [name for name in placed if is_shape(name)] == ["shape of tenant"]
    assert [name for name in placed if is_job(name)] == ["train", "tenant"]


def test_whoever_has_the_assignment_has_the_job(inventory):
    job = slices_in(inventory, recorded())["tenant"]
    assert (job.name, job.rack, job.ranks, torus_links(job).shape) == ("tenant", "torus64", FIRST, (2, 2, 1))
    assert job.is_slice
    assert (job.hook, job.run, job.needs_no_pause) == (None, None, False)
    circuits = [c for c in circuits_of(inventory, initial_assignment(inventory) | recorded()) if c.owner == "tenant"]
    assert sorted(c.id for c in circuits) == sorted(
        f"tenant/{a}-{b}" for a, b in ["02", "20", "13", "31", "01", "10", "23", "32"]
    )
    lanes = {end.transponder.rpartition("-")[0] for c in circuits for end in (c.a, c.b)}
    assert lanes == set(NOW)


def test_a_link_of_several_circuits_takes_lanes_of_dimensions_that_join_nothing(inventory):
    ranks = tuple(f"h01-gpu{n}" for n in range(2))
    placed = {"tenant": ranks, shape_of("tenant"): slice_record((2, 1, 1), ranks, (3, 1, 1))}
    assert placed[shape_of("tenant")][0] == "2x1x1*3x1x1"
    assert record_of(slices_in(inventory, placed)["tenant"]) == placed[shape_of("tenant")]
    circuits = [c for c in circuits_of(inventory, initial_assignment(inventory) | placed) if c.owner == "tenant"]
    assert [c.id for c in circuits] == [f"tenant/{way}{more}" for way in ("0-1", "1-0") for more in ("", ".2", ".3")]
    assert {end.transponder for c in circuits for end in (c.a, c.b)} == {
        lane.id for name in ranks for lane in inventory.transponders_of(name)
    }


def test_the_circuits_are_the_same_whether_or_not_the_inventory_has_the_slice(inventory):
    placed = initial_assignment(inventory) | recorded()
    whole = with_slices(inventory, placed)
    assert list(whole.jobs) == ["train", "tenant"]
    assert circuits_of(whole, placed) == circuits_of(inventory, placed)
    assert with_slices(whole, placed) is whole
    assert with_slices(whole, {}) == inventory
    released = initial_assignment(inventory) | {"tenant": (), shape_of("tenant"): ()}
    assert circuits_of(whole, released) == circuits_of(inventory, initial_assignment(inventory))


def test_only_records_of_the_named_jobs_are_taken():
    placed = recorded() | recorded("other") | {"train": ("h04-gpu0",)}
    assert slices_among(placed, ["other", "train"]) == recorded("other")


@pytest.mark.parametrize(
    ("job", "record", "why"),
    [
        ("tenant", ("2x2x1", *FIRST[:3]), "2x2x1 is not the shape of 3 accelerators"),
        ("tenant", ("2xtwo", *FIRST), "2xtwo is not the shape of 4 accelerators"),
        ("tenant", ("", *FIRST), " is not the shape of 4 accelerators"),
        ("tenant", ("2x2x1", *FIRST[:3], "h99-gpu0"), "h99-gpu0 is not in it"),
        ("train", ("2x2x1", *FIRST), "train is a job of the inventory too"),
        ("tenant", (), None),
        ("tenant", ("2x2x1", *FIRST), None),
    ],
)
def test_a_record_that_does_not_fit_is_ignored_and_says_why(inventory, job, record, why):
    assert slice_misfit(inventory, shape_of(job), record) == why
    assert record_misfit(inventory, shape_of(job), record) == why
    found = slices_in(inventory, {job: FIRST, shape_of(job): record})
    assert bool(found) is (why is None and bool(record))


def test_the_torus_says_how_its_slices_are_run(inventory, tmp_path):
    text = inventory.path.read_text(encoding="utf-8")
    old = '      wraps: ["x[1-8]w", "y[1-8]w", "z[1-4]w"]\n'
    assert old in text
    path = tmp_path / "torus64.yaml"
    path.write_text(text.replace(old, f"{old}      slices: {{run: {{command: [train.py]}}}}\n"), encoding="utf-8")
    job = slices_in(load_inventory(path), recorded())["tenant"]
    assert job.run_settings().command == ("train.py",)
    assert job.hook is not None
    path.write_text(text.replace(old, f"{old}      slices: {{needs_no_pause: true}}\n"), encoding="utf-8")
    assert slices_in(load_inventory(path), recorded())["tenant"].needs_no_pause
