"""Which checks of other tools lumctl has, and why it has not the others: the table holds, and the manual tells it."""

import re
from pathlib import Path

import pytest

from lumctl.health.rulebook import rulebook

HERE = Path(__file__).parent
TABLE = HERE / "catalogues" / "other_tools.tsv"
PAGE = HERE.parents[2] / "man" / "lumctl-health.7"
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
BOOK = rulebook()


def text_of(page):
    """A manual page without the marks of its format."""
    text = re.sub(r"\\f[BIR]", "", page.read_text().replace("\\-", "-"))
    return re.sub(r"\s+", " ", re.sub(r"^\.(?:B|I|BR|IR) ", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize("row", ROWS, ids=[" ".join(row[:2]) for row in ROWS])
def test_a_check_has_a_case_of_the_rulebook_or_a_reason(row):
    tool, check, answer, *reason = row
    assert tool
    assert check
    assert len(reason) <= 1
    if answer == "-":
        assert reason
        assert reason[0]
    else:
        assert tuple(answer.split("/")) in BOOK.verdicts


def test_every_tool_is_there_and_no_check_twice():
    assert {row[0] for row in ROWS} == {"gpud", "NVSentinel", "DCGM", "NHC", "all-smi"}
    assert len({tuple(row[:2]) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("rule", [rule for rule in BOOK.rules() if not rule.startswith("incident.")])
def test_the_manual_names_every_rule(rule):
    assert re.search(rf"\b{re.escape(rule)}\b", text_of(PAGE))


@pytest.mark.parametrize("tool", ["gpud", "NVSentinel", "DCGM", "Slurm NHC", "all-smi"])
def test_the_manual_names_every_tool(tool):
    assert tool in text_of(PAGE)
