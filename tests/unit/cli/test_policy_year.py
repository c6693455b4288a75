"""``lumctl policy test --year``: a pool of options or of the inventory; bad input is one line."""

import json

import pytest

from lumctl.cli.main import run
from lumctl.inventory.load import example

POOL = ("--accelerators", "1024", "--spares", "common=8,rare=4", "--needs", "common=70,rare=30")


@pytest.fixture
def year(tmp_path, monkeypatch, capsys):
    for name in ("LUMCTL_TARGET", "LUMCTL_INVENTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = run(["policy", "test", "--year", "--years", "3", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_every_policy_has_its_waits_by_class_and_scarce_a_curve_over_its_reserve(year):
    code, out, err = year(*POOL, "-o", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["schema"] == "lumctl/policy-year/v1"
    rows = {(row["policy"], row["reserve"].get("rare", 0), row["class"]): row for row in document["policies"]}
    assert {policy for policy, _, _ in rows} >= {"best-fit", "fifo", "random", "srsf", "las", "priority", "scarce"}
    curve = [rows["scarce", held, "rare"]["mean_wait_s"] for held in range(5)]
    assert curve[0] > curve[2] >= curve[4]
    assert rows["scarce", 4, "common"]["mean_wait_s"] > rows["scarce", 0, "common"]["mean_wait_s"]
    assert rows["fifo", 0, "all"]["beside_fifo"] is None


def test_a_pool_of_one_class_has_no_reserve_and_policies_that_are_alike_are_named(year):
    code, out, _ = year("-i", str(example("ring8")), "--mtbf", "500h", "--repair", "1d")
    assert code == 0
    assert "2 NVIDIA H100 80GB HBM3 (100% of demands need it)" in " ".join(out.split())
    assert "repairs of 1 days" in " ".join(out.split())
    assert "not significantly different from best-fit:" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spares", "x"), "--spares: 'x' is not CLASS=N"),
        (("--spares", "a=1.5", "--accelerators", "9"), "--spares: 'a=1.5' is not CLASS=N"),
        (("--spares", "a=1,a=2", "--accelerators", "9"), "--spares: 'a=2' is not CLASS=N"),
        (("--spares", "a=1"), "--spares needs the number of accelerators"),
        (("--spares", "a=1", "--accelerators", "9", "--needs", "b=2"), "--needs: --spares names no class 'b'"),
        (("--spares", "a=1", "--accelerators", "9", "--needs", "a=0"), "--needs: no class is needed by anybody"),
        (("--needs", "a=1"), "--needs is only for classes that --spares names"),
        ((*POOL, "--repair", "10d-1d"), "--repair: '10d-1d' ends before it begins"),
        ((*POOL, "--repair", "x"), "--repair: 'x' is not a valid duration"),
        ((*POOL, "--mtbf", "0h"), "--mtbf: '0h' is not a valid duration"),
        ((*POOL, "--since", "7d"), "--year simulates failures, so it needs no history"),
    ],
)
def test_bad_input_is_one_line(year, words, said):
    code, out, err = year(*words)
    assert (code, out) == (2, "")
    assert err.startswith("lumctl: ")
    assert said in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("option", ["--spares", "--needs", "--policy"])
def test_an_option_of_years_is_refused_without_them(capsys, option):
    assert run(["policy", "test", option, "x", "-i", str(example("ring8"))]) == 2
    assert capsys.readouterr().err.startswith(f"lumctl: {option} is for simulated years only")


def test_an_inventory_without_spares_is_refused(year, tmp_path):
    (tmp_path / "none.yaml").write_text(example("ring8").read_text().replace("        role: spare\n", ""))
    code, _, err = year("-i", "none.yaml")
    assert code == 2
    assert "none.yaml has no spares" in err
