"""What an incident's report says of runs that were done, undone later, or failed and were rolled back."""

from lumctl.runbook.document import make
from lumctl.runbook.report import report


def of(golden, golden_rack, state, kind="swap"):
    run = next(run for run in golden.runs.all() if (run.kind, run.state) == (kind, state))
    return run, report(make(run, golden, golden_rack), golden.journal.head())


def test_a_run_that_failed_says_where_and_what_was_taken_back(golden, golden_rack):
    run, text = of(golden, golden_rack, "rolled-back")
    assert "It failed, and all its changes were undone: the rack is as it was before." in text
    failed = next(e for e in golden.journal.of_run(run.id) if e.kind == "outcome" and "failed" in e.data)
    assert f"- Step {failed.step} (" in text
    assert failed.data["failed"].split(";")[0] in text
    undone = [e.step for e in golden.journal.of_run(run.id) if e.kind == "undo-outcome"]
    assert undone
    back = text.partition("## What was undone at once")[2].partition("\n## ")[0]
    assert [line.split("|")[1].strip() for line in back.strip().splitlines()[2:]] == undone
    assert "## What was to replace what" in text
    assert "| to add |" in text
    assert "| added |" not in text
    assert "there is nothing to undo" in text


def test_a_run_that_was_taken_back_later_names_by_which(golden, golden_rack):
    run, text = of(golden, golden_rack, "undone")
    assert f"- It was completed, and later undone by {run.undone_by}." in text
    assert "## What replaced what" in text
    assert "## What was undone at once" not in text
    assert "- Jobs that ran elsewhere until it was undone: pair." in text
    assert f"`{golden.journal.head().hash}`" in text
    assert run.who in text


def test_the_light_before_and_the_expected_power_are_in_it(golden, golden_rack):
    _, text = of(golden, golden_rack, "undone")
    assert "## Light before" in text
    assert "| Expected power |" in text
    assert " dBm |" in text


def test_of_one_that_later_runs_have_written_over_no_way_back_is_told_that_is_refused(golden, golden_rack):
    run = next(run for run in golden.runs.all() if (run.kind, run.state) == ("swap", "undone"))
    document = make(run, golden, golden_rack)
    document["recorded"] |= {"outcome": "superseded", "undone_by": None}
    text = report(document, golden.journal.head())
    assert "closed after later runs had changed the same settings; those" in text
    assert "there is nothing to undo" in text
    assert "swap rollback" not in text
