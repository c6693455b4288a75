"""lumctl-studies(7): made from results, and in the repository with the recorded verdicts."""

from pathlib import Path

import pytest

from lumctl.cli.manual.studies_page import kept_results, studies_page
from lumctl.errors import UsageError
from lumctl.studies import STUDIES, run_study
from lumctl.studies.results import recorded_verdicts

PAGE = (Path(__file__).parents[3] / "man" / "lumctl-studies.7").read_text().replace("\\-", "-")


def test_the_page_has_each_claim_with_its_recorded_verdict():
    for claim, verdict in recorded_verdicts().items():
        assert f'.SS "{claim}: {verdict}' in PAGE, f"run: make studies ({claim})"
    assert PAGE.count("\n.SS ") == len(recorded_verdicts())
    assert all(f".SH STUDY {name.upper()}\n" in PAGE for name in STUDIES)


def test_a_page_has_the_readings_with_their_values_and_the_published_number():
    result = run_study(STUDIES["rails"], STUDIES["rails"].settings(quick=True))
    page = studies_page([result], "today").replace("\\-", "-")
    assert '.SS "rails.power-h200: reproduced under some readings (1 of 2 readings)"' in page
    assert "Less power, 512 H200 in domains of 8. Published: 23.86 times" in page
    assert "23.86 times, as published" in page
    assert "12.38 times, otherwise" in page
    assert "All studies were run today." in page


def test_a_study_without_results_is_named(tmp_path):
    with pytest.raises(UsageError, match="has no run of a study"):
        kept_results(tmp_path)
