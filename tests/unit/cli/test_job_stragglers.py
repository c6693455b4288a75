"""``job stragglers --log``: who is late according to a file; bad input is one line with its place."""

import json
from pathlib import Path

import pytest
from late_rank_log import LOG

from lumctl.cli.main import run
from lumctl.inventory.load import example

PUBLISHED = Path(__file__).parents[4] / "shared" / "reference" / "stragglar-log.csv"
LINES = LOG.splitlines()
LONG = "\n".join([LINES[0], *(f"{at},{LINES[2 + at % 6].split(',', 1)[1]}" for at in range(40))])
"""The same steps over and over, enough to name the late rank."""


@pytest.fixture
def stragglers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "store"))
    monkeypatch.setenv("LUMCTL_INVENTORY", str(example("ring4")))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)

    def command(*words, log=None):
        if log is not None:
            (tmp_path / "log.csv").write_text(log)
            words = (*words, "--log", "log.csv")
        code = run(["job", "stragglers", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_the_late_rank_of_the_published_log(stragglers):
    if not PUBLISHED.exists():
        pytest.skip("the published log is not here")
    code, out, err = stragglers("--log", str(PUBLISHED))
    assert (code, err) == (0, "")
    assert "rank 2 is late: last in 100% of the steps" in out
    assert "the others wait 7.0 ms for it" in out
    assert "do not use it: 0.81 of ring's speed (95 %: 0.79 to 0.83), the wait included" in out
    assert "break-even gap: 39 ms; the best case is a gap of 52 ms, with 1.083 of ring's speed" in out
    assert "what would have to change: a gap above 39 ms instead of 7.0 ms" in out
    assert "the sizes of the collectives are not known: alpha cannot be told from beta, and is taken as 0" in out
    assert stragglers("--log", str(PUBLISHED), "-o", "name") == (0, "2\n", "")
    (group,) = json.loads(stragglers("--log", str(PUBLISHED), "-o", "json")[1])["groups"]
    assert (group["late"], group["advice"], group["command"], group["step_s"]) == (2, "look-at-host", None, None)
    assert group["schedule"]["recommended"] is False
    assert group["schedule"]["break_even_s"] == pytest.approx(0.039, abs=5e-4)
    assert group["by_rank"][2]["share"]["value"] == 1.0


def test_a_few_steps_name_nobody(stragglers):
    code, out, _ = stragglers(log=LOG)
    assert code == 0
    assert "no rank is late by more than chance" in out
    assert stragglers("-o", "name", log=LOG)[1] == ""
    assert stragglers("-o", "name", log=LONG)[1] == "1\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (LOG.replace("rank2_ms", "rank3_ms"), "log.csv: line 1: expected the ranks 0 to 3 in order"),
        (LOG + "6,130.0,99.0,121.0,106.0\n", "log.csv: line 9: step 6 is there twice, first on line 8"),
        (LOG.replace("100.0", "nan", 1), "log.csv: line 4: rank 1: found 'nan', expected a number"),
        (LOG.replace(",107.0", ""), "log.csv: line 7: found 4 values, expected 5"),
        ("step,rank,enter_s,leave_s\n1,0,1,2\n1,2,1,2\n", "log.csv: line 2: step 1 has no time of rank 1"),
        ("step,rank0_ms,rank1_ms\n", "log.csv: 0 steps are too few to name a late rank"),
        ("hello\n", "log.csv: line 1: found 'hello'"),
    ],
)
def test_a_bad_log_is_one_line_with_its_place(stragglers, log, said):
    code, out, err = stragglers(log=log)
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith(f"lumctl: {said}")


@pytest.mark.parametrize(
    ("words", "log", "said"),
    [
        ((), None, "whose ranks?"),
        (("none",), None, "none"),
        (("train", "--since", "soon"), None, "'soon' is not a valid time"),
        (("train", "--since", "5m"), LOG, "--since is for the record of a job"),
        (("train",), "\n".join(line.rpartition(",")[0] for line in LINES), "log.csv has 3 ranks, but job train has 4"),
        (("train",), None, "nobody has recorded the collectives of job train"),
        (("--log", "nowhere.csv"), None, "nowhere.csv cannot be read"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(stragglers, words, log, said):
    code, out, err = stragglers(*words, log=log)
    assert (code, out) == (5 if "nobody" in said else 2, "")
    assert said in err.splitlines()[0]
