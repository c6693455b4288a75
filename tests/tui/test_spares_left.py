"""The spares left, in the strip and on their screen: only those that were read and are fit for any job."""

from dataclasses import replace

import pytest
from looks import Looks
from rack_states import dark_rack, silent_hosts

from lumctl.cli.output import GLYPHS
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Job
from lumctl.inventory.sharing import Preemption
from lumctl.spares.fitness import spares_by_pool
from lumctl.tui.look.marks import Marks
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import groups_of, spare_lines
from lumctl.tui.views.strip import strip_lines

MARKS = Marks(GLYPHS)
START = 1_795_000_000.0


def strip(seen):
    return strip_lines(RecordedLook(seen), MARKS, START, 300)[0].plain


def look(failed=()):
    return Looks(load_inventory(example("rack64")), target="sim").look(START, failed=failed)


def with_spares(seen, **changed):
    """The same look where some spares are written otherwise in the inventory."""
    spares = {name.replace("_", "-"): fields for name, fields in changed.items()}
    written = {n: replace(a, **spares.get(n, {})) for n, a in seen.inventory.accelerators.items()}
    return replace(seen, inventory=replace(seen.inventory, accelerators=written))


@pytest.mark.parametrize("seen", [silent_hosts(["h16"]), dark_rack()], ids=["their-host", "the-rack"])
def test_spares_that_were_not_read_are_neither_left_nor_gone(seen):
    """Nothing is known of them: a number would claim that they are usable, or that none is."""
    assert "spares left rail0 unknown, rail1 unknown, rail2 unknown, rail3 unknown" in strip(seen)
    assert [group.unread for group in groups_of(seen)] == [(f"h16-gpu{n}",) for n in range(4)]
    told = "\n".join(line.plain for line in spare_lines(seen, MARKS))
    assert "rail0: 0 free, 1 not read, 0 used" in told
    assert "h16-gpu0       is unknown: its host h16 is failed: no route to host" in told


@pytest.mark.parametrize(
    ("failed", "silent", "low"),
    [
        ([], ["h16"], False),
        (["h16-gpu0", "h16-gpu1", "h16-gpu2"], [], True),
        (["h16-gpu0", "h16-gpu1"], [], False),
    ],
    ids=["none-read", "one-left", "two-left"],
)
def test_few_are_left_only_if_that_is_certain(failed, silent, low):
    seen = silent_hosts(silent) if silent else look(failed=failed)
    (pool,) = spares_by_pool(seen).values()
    assert pool.is_low() is low


def test_a_spare_that_failed_is_known_to_be_none_left():
    assert "spares left rail0 1, rail1 0, rail2 1, rail3 1" in strip(look(failed=["h16-gpu1"]))


def test_the_strip_counts_the_spares_that_the_metrics_count():
    seen = with_spares(look(), h16_gpu1={"reserved": True}, h16_gpu2={"reserved_for": "train-a"})
    assert "spares left rail0 1, rail1 0, rail2 0, rail3 1" in strip(seen)
    free = {spare for pool in spares_by_pool(seen).values() for spare in pool.free}
    assert {spare for group in groups_of(seen) for spare in group.free} == free
    assert dict(unfit for group in groups_of(seen) for unfit in group.unfit) == {
        "h16-gpu1": "is reserved",
        "h16-gpu2": "is reserved for train-a",
    }


def test_of_many_groups_those_without_a_spare_and_those_not_read_are_named(monkeypatch):
    monkeypatch.setattr("lumctl.tui.views.strip._MOST_GROUPS", 3)
    assert "spares left 3 in 4 groups, none in rail1  " in strip(look(failed=["h16-gpu1"]))
    seen, unread = look(failed=["h16-gpu1"]), silent_hosts(["h16"])
    accelerators = {**seen.report.accelerators, "h16-gpu2": unread.report.accelerators["h16-gpu2"]}
    some = replace(seen, report=replace(seen.report, accelerators=accelerators))
    assert "spares left 2 in 4 groups, none in rail1, unknown in rail2  " in strip(some)
    assert "spares left unknown  " in strip(unread)


def with_filler(seen, **more):
    """The same look with a filler job on a spare; ``more`` are fields of the sharing of spares."""
    filler = Job("batch", "rack64", ("h16-gpu1",), ())
    sharing = replace(seen.inventory.sharing, **more)
    return replace(seen, inventory=replace(seen.inventory, fillers={"batch": filler}, sharing=sharing))


def test_a_filler_job_is_said_beside_its_spare_and_when_it_is_stopped():
    seen = with_filler(look())
    told = "\n".join(line.plain for line in spare_lines(seen, MARKS))
    assert "h16-gpu1       runs filler job batch, which gives it up; can replace" in told
    kept = with_filler(look(), preemption=Preemption.NEVER)
    assert dict(unfit for group in groups_of(kept) for unfit in group.unfit) == {
        "h16-gpu1": "runs filler job batch, which keeps it (sharing: preemption: never)"
    }
    stopped = replace(seen, assignment={**seen.assignment, "stopped filler batch": ("h16-gpu1",)})
    told = "\n".join(line.plain for line in spare_lines(stopped, MARKS))
    assert "filler job batch gave up h16-gpu1: lumctl swap plan batch --back" in told
