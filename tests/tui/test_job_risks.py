"""Jobs at risk: what they run on is not ok, or no swap could help their next failure; each with the reason."""

from dataclasses import replace

import pytest
from looks import Looks
from rack_states import silent_hosts

from lumctl.cli.output import GLYPHS
from lumctl.health.states import Finding, State
from lumctl.inventory.load import example, load_inventory
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.jobs import job_rows
from lumctl.tui.views.job_risks import job_risks
from lumctl.tui.views.records import RecordedLook, Records
from lumctl.tui.views.strip import strip_lines

START = 1_795_000_000.0
MARKS = Marks(GLYPHS)


def look(rack="rack64", failed=()):
    return Looks(load_inventory(example(rack)), target="sim").look(START, failed=failed)


def jobs_part(seen, records=None):
    seen = RecordedLook(seen, records or Records())
    return strip_lines(seen, MARKS, START, 400)[0].plain.partition("jobs ")[2].partition("   ")[0]


def with_silent(seen, device):
    finding = Finding(device, "device.unreachable", State.FAILED, "connection refused", "", START)
    health = replace(seen.report.devices[device], state=State.FAILED, findings=(finding,))
    return replace(seen, report=replace(seen.report, devices={**seen.report.devices, device: health}))


def test_a_job_is_without_risk_only_if_a_spare_fits_each_rank():
    assert jobs_part(look()) == "2 without risk (all ok, a spare fits each rank)"
    told = "at risk: train-a (no spare left for 8 of 32 ranks), train-b (no spare left for 7 of 28 ranks)"
    assert jobs_part(look(failed=["h16-gpu2"])) == told
    every = look(failed=[f"h16-gpu{number}" for number in range(4)])
    assert jobs_part(every) == "at risk: train-a (no spare left for any rank), train-b (no spare left for any rank)"


def test_a_spare_of_another_mesh_helps_if_fibres_lead_to_it():
    assert jobs_part(look("two-meshes", failed=["h6-gpu0"])).startswith("1 without risk")


def test_a_mesh_that_does_not_answer_puts_the_jobs_that_it_would_help_at_risk():
    seen = with_silent(look(), "rail1")
    assert jobs_part(seen) == "at risk: train-a (rail1 does not answer), train-b (rail1 does not answer)"
    whole = {row.key: row.cells[-1].text for row in job_rows(RecordedLook(seen), MARKS)}
    assert whole["train-b"] == "\na swap for 7 of 28 ranks may have to wait for rail1, which does not answer"


def test_ranks_whose_circuits_avoid_a_silent_mesh_are_not_at_risk():
    """Each mesh has two ranks and a spare; the two ranks beside those of the silent mesh are joined to it as well."""
    (risk,) = job_risks(RecordedLook(with_silent(look("four-meshes"), "m4")))
    assert risk.without_help == ("a swap for 4 of 8 ranks may have to wait for m4, which does not answer",)


def test_what_is_wrong_now_comes_before_missing_help():
    assert jobs_part(look(failed=["h03-gpu2"])) == "at risk: train-a (failed)"
    both = look(failed=["h03-gpu2", "h16-gpu1"])
    told = "at risk: train-a (failed; no spare left for 8 of 32 ranks), train-b (no spare left for 7 of 28 ranks)"
    assert jobs_part(both) == told


def test_spares_that_were_not_read_are_not_said_to_be_gone():
    assert "train-a (no spare that was read fits any rank)" in jobs_part(silent_hosts(["h16"]))


def test_a_spare_that_a_run_takes_helps_nobody_else(kit):
    begun = kit.run(8, state="running", rack="rack64", title="train-a: replace h03-gpu2 by h16-gpu2")
    plan = {**begun.plan, "replacements": [{"failed": "h03-gpu2", "spare": "h16-gpu2"}]}
    told = jobs_part(look(failed=["h03-gpu2"]), Records(runs=(replace(begun, plan=plan),)))
    assert "train-b (no spare left for 7 of 28 ranks)" in told


def test_before_everything_was_read_once_no_job_is_said_to_be_at_risk():
    seen = silent_hosts([f"h{number:02}" for number in range(1, 17)])
    assert jobs_part(replace(seen, awaited=tuple(seen.inventory.hosts))) == "2 not read yet"


@pytest.mark.parametrize("count", [3, 4])
def test_many_jobs_at_risk_are_counted(count, kit, monkeypatch):
    monkeypatch.setattr("lumctl.tui.views.strip._NAMED", 3)
    seen = kit.observation()
    jobs = {f"llm{number}": seen.inventory.jobs["llm"] for number in range(count)}
    part = {name: seen.assignment["llm"][number : number + 1] for number, name in enumerate(jobs)}
    inventory = replace(seen.inventory, jobs=jobs)
    states = dict.fromkeys(seen.assignment["llm"][:count], State.FAILED)
    told = jobs_part(kit.with_states(replace(seen, inventory=inventory, assignment=part), states))
    assert told.endswith(" and 1 more") == (count > 3)
