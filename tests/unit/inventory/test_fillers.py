"""Filler jobs of an inventory: jobs without links, on spares, with a hook."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.inventory.filler_records import running_fillers, stopped_filler, stopped_fillers
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError

Write = Callable[[str | bytes], Path]
HOOK = "hook: {pause: [stop-it], resume: [start-it]}"
SPARE = """  - name: h4
    accelerators:
      - {id: h4-gpu0, model: X100, memory_gib: 80, role: spare}
      - {id: h4-gpu1, model: X100, memory_gib: 80}
"""


def with_filler(small: str, entry: str) -> str:
    return f"{small.replace('devices:', f'{SPARE}devices:', 1)}fillers:\n  - {entry}\n"


def test_a_filler_job_is_no_job_of_the_placement(write: Write, small: str):
    inventory = load_inventory(write(with_filler(small, f"{{name: batch, ranks: h4-gpu0, {HOOK}}}")))
    (filler,) = inventory.fillers.values()
    assert (filler.ranks, filler.links, filler.hook.pause) == (("h4-gpu0",), (), ("stop-it",))
    assert "batch" not in inventory.jobs
    assert inventory.controlled.get("batch") is filler
    placed = {stopped_filler("batch"): ("h4-gpu0",)}
    assert (running_fillers(inventory, {}), stopped_fillers(inventory, {})) == ({"h4-gpu0": filler}, [])
    assert (running_fillers(inventory, placed), stopped_fillers(inventory, placed)) == ({}, [filler])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (f"{{name: batch, ranks: h4-gpu1, {HOOK}}}", "rank 0 runs on h4-gpu1, which is active, expected a spare"),
        (f"{{name: batch, ranks: h9-gpu0, {HOOK}}}", "accelerator 'h9-gpu0' is not known"),
        (f"{{name: job, ranks: h4-gpu0, {HOOK}}}", "filler job 'job' is defined twice"),
        (f"{{name: batch, ranks: [h4-gpu0, h4-gpu0], {HOOK}}}", "accelerator h4-gpu0 is used twice"),
        ("{name: batch, ranks: h4-gpu0}", "key 'hook' is missing"),
        (f"{{name: batch, ranks: h4-gpu0, links: [], {HOOK}}}", "key 'links' is not known"),
    ],
)
def test_one_mistake_is_one_line_with_its_place(write: Write, small: str, entry: str, expected: str):
    with pytest.raises(InventoryError) as error:
        load_inventory(write(with_filler(small, entry)))
    assert len(error.value.problems) == 1
    assert expected in str(error.value.problems[0])
    assert error.value.problems[0].mark.line == small.count("\n") + SPARE.count("\n") + 2


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ("{hosts: both}", "found 'both', expected any, same or different"),
        ("{most_loss_db: 0}", "found 0, expected a number above 0"),
        ("{driver: []}", "expected at least 1"),
        ("{free_memory_gib: -1}", "found -1, expected a number above 0"),
        ("{memory: 80}", "key 'memory' is not known"),
    ],
)
def test_one_mistake_in_what_a_job_requires_of_its_spares_is_one_line(write, small, constraints, expected):
    text = small.replace("jobs:\n  - name: job\n", f"jobs:\n  - name: job\n    spares: {constraints}\n", 1)
    assert text != small
    with pytest.raises(InventoryError) as error:
        load_inventory(write(text))
    assert len(error.value.problems) == 1
    assert expected in str(error.value.problems[0])
