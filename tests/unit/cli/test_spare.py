"""``lumctl spare size``: with and without an inventory; bad input is one line with its place."""

import json
import shlex

import pytest

from lumctl.cli.main import run
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import example, load_inventory
from lumctl.store import open_store

DAY_S = 86_400.0
GIVEN = ("--accelerators", "64", "--failure-rate", "1-3%", "--availability", "0.95")
ON_RACK = ("-i", str(example("rack64")))


@pytest.fixture
def size(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    for name in ("LUMCTL_TARGET", "LUMCTL_INVENTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = run(["spare", "size", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def watched():
    """The store of rack64 has a history of forty days with four failures."""

    def write():
        inventory = load_inventory(example("rack64"))
        store = open_store(inventory, "rack64", "rack")
        failures = [(9, 14, "h01-gpu0"), (15, 20, "h05-gpu1"), (21, 26, "h05-gpu2"), (30, 35, "h07-gpu3")]
        changes = [(1, "h02-gpu0", State.DEGRADED)]
        for begin, end, name in failures:
            changes += [(begin, name, State.FAILED), (end, name, State.OK)]
        rows = [Transition(1.8e9 + day * DAY_S, n, "accelerator", None, state, (), "") for day, n, state in changes]
        store.health.add_transitions(rows)
        store.health.remember({}, now=1.8e9 + 41 * DAY_S)
        store.close()

    return write


def test_the_answer_is_the_first_sentence(size):
    code, out, err = size(*GIVEN, "--per-host", "4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == (
        "3 spares: of 64 accelerators, each down 1 to 3 % of the time, more than 3 are down at once 3.9 % of the time "
        "(at most 5 % is allowed)"
    )
    assert lines[1] == "published rule: 4; whole servers: 12; a whole rack for each failure: 64"
    assert any(line.split() == ["3", "3.9", "%", "enough"] for line in lines)
    assert "WAITS" not in out  # without a repair time
    assert size(*GIVEN, "-o", "name") == (0, "3\n", "")


def test_the_document_has_the_promised_fields(size):
    _, out, _ = size(*GIVEN, "--repair", "5d", "--what-if", "repair=10d", "-o", "json")
    document = json.loads(out)
    assert document["schema"] == "lumctl/spare-size/v1"
    assert (document["exact"], document["published"], document["server_eviction"]) == (3, 4, None)
    assert [row["spares"] for row in document["table"]] == [0, 1, 2, 3, 4, 5, 6]
    assert document["table"][3]["probability_more_down"] == pytest.approx(0.0393, abs=1e-4)
    assert document["table"][3]["waits_per_year"] == pytest.approx(12.3, abs=0.1)
    (change,) = document["what_if"]
    assert (change["what_if"], change["exact"]) == ("repair=10d", 5)


def test_a_rack_says_what_it_has_and_what_is_missing(size):
    _, out, _ = size(*ON_RACK, "--failure-rate", "2%", "--repair", "5d")
    assert "12 spares: of 64 NVIDIA H100 80GB HBM3 in rack64, each down 2 % of the time, in 4 parts that" in out
    assert "it has 4: 8 too few\n" in out
    _, out, _ = size(*ON_RACK, "--failure-rate", "0.1%", "--repair", "5d", "-o", "wide")
    assert "it has 4: enough" in out
    _, out, _ = size("-i", str(example("mi300")), "--failure-rate", "2%", "--repair", "5d")
    assert "4 spares: of 32 AMD Instinct MI300X in mi300, each down 2 % of the time" in out
    assert "it has 8: enough; more than 8 are down under 0.0001 % of the time" in out


def test_accelerators_that_share_no_spare_need_their_own(size):
    """Each rail of rack64 has its mesh: a spare of one rail replaces no accelerator of another."""
    _, out, _ = size(*ON_RACK, "--failure-rate", "2%", "--repair", "5d")
    assert "  rail[0-3]: 3 spares each: of 16, more than 3 are down at once 0.024 % of the time" in out
    assert "each has 1: 2 too few" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("rail[0-3] ")]
    assert [row[1] for row in rows if row[-1] in {"now", "enough"}] == ["1", "3"]
    document = json.loads(size(*ON_RACK, "--failure-rate", "2%", "-o", "json")[1])
    (pool,) = document["pools"]
    assert (document["exact"], document["published"], pool["missing"]) == (12, 16, 8)
    assert [(part["devices"], part["exact"], part["spares"]) for part in pool["parts"]] == [
        ([f"rail{number}"], 3, 1) for number in range(4)
    ]
    assert {tuple(row["devices"]) for row in document["table"]} == {(f"rail{number}",) for number in range(4)}
    # Fibres join the four meshes: any spare replaces any accelerator.
    (pool,) = json.loads(size("-i", str(example("four-meshes")), "--failure-rate", "2%", "-o", "json")[1])["pools"]
    assert (pool["parts"], pool["exact"]) == ([], 3)


def test_rates_come_from_the_history_of_the_store(size, watched):
    watched()
    code, out, err = size(*ON_RACK, "--what-if", "availability=0.9,repair=10d", "--what-if", "accelerators=128")
    assert (code, err) == (0, "")
    assert "with the 95 % interval of the failure rates: " in out
    assert "history of 40d: 4 failures of 64 accelerators, " in out
    assert "down for 5d on average" in out
    assert "availability=0.9,repair=10d" in out
    _, out, _ = size(*ON_RACK, "-o", "json")
    (pool,) = json.loads(out)["pools"]
    assert pool["exact_low"] < pool["exact"] < pool["exact_high"]
    by_host = {each["host"]: each["failures"] for each in pool["history"]["by_host"]}
    assert (by_host["h05"], by_host["h07"], by_host["h03"]) == (2, 1, 0)


def follow(err, capsys):
    """Run the command that a hint names; return its exit code and output."""
    code = run(shlex.split(err.rpartition(": lumctl ")[2]))
    return code, capsys.readouterr().out


def test_the_hint_of_a_history_that_is_too_short_or_has_no_repair_works(size, capsys):
    store = open_store(load_inventory(example("rack64")), "rack64", "rack")
    rows = [Transition(1.8e9, "h01-gpu0", "accelerator", None, State.DEGRADED, (), "")]
    rows += [Transition(1.8e9 + 600, "h01-gpu0", "accelerator", None, State.FAILED, (), "")]
    store.health.add_transitions(rows)
    store.close()
    code, _, err = size(*ON_RACK)
    assert (code, "has 10m of history" in err) == (2, True)
    assert follow(err, capsys)[0] == 0
    store = open_store(load_inventory(example("rack64")), "rack64", "rack")
    store.health.remember({}, now=1.8e9 + 2 * DAY_S)
    store.close()
    code, _, err = size(*ON_RACK)
    assert (code, "(1 failure of NVIDIA H100 80GB HBM3 or its hosts in 2d) has no repair" in err) == (2, True)
    code, out = follow(err, capsys)
    assert (code, "history of 2d: 1 failure of 64 accelerators" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*GIVEN, "--availability", "0"), "--availability: '0' is not above 0 and below 1"),
        ((*GIVEN, "--availability", "1"), "--availability: '1' is not above 0 and below 1"),
        ((*GIVEN, "--availability", "2"), "--availability: '2' is not above 0 and below 1"),
        ((*GIVEN, "--availability", "nan"), "--availability: 'nan' is not above 0 and below 1"),
        ((*GIVEN, "--failure-rate", "-0.1"), "--failure-rate: '-0.1' is not a probability from 0 to below 1"),
        ((*GIVEN, "--host-failure-rate=-1", "--per-host", "4"), "--host-failure-rate: '-1' is not a probability"),
        ((*GIVEN, "--host-failure-rate", "0.1"), "a failure rate of hosts needs the accelerators of a host"),
        ((*GIVEN, "--accelerators", "0"), "--accelerators: '0' is not a whole number"),
        ((*GIVEN, "--per-host", "0"), "--per-host: '0' is not a whole number"),
        ((*GIVEN, "--repair", "soon"), "--repair: 'soon' is not a valid duration"),
        ((*GIVEN, "--horizon", "-1d"), "--horizon: '-1d' is not a valid duration"),
        ((*GIVEN, "--horizon", "90d"), "--horizon needs the repair time"),
        ((*GIVEN, "--what-if", "repair=3d"), "--what-if repair needs the present repair time"),
        ((*GIVEN, "--what-if", "spares=3"), "--what-if: 'spares=3' is not a change"),
        ((*GIVEN, "--class", "H100"), "--class needs an inventory"),
        ((*GIVEN, "--rack", "rack64"), "--rack needs an inventory"),
        (("--accelerators", "64"), "--accelerators needs --failure-rate"),
        (("--failure-rate", "0.02"), "no inventory found"),
        ((*ON_RACK, "--per-host", "4"), "--per-host needs --accelerators"),
        ((*ON_RACK, "--failure-rate", "0.02", "--class", "B200"), "--class: no accelerator in service is a 'B200'"),
        (ON_RACK, "the store of rack64 has no history; to estimate failure rates, a day is needed at least"),
    ],
)
def test_bad_input_is_one_line_with_its_place(size, words, said):
    code, out, err = size(*words)
    assert (code, out) == (2, "")
    first, *rest = err.splitlines()
    assert first.startswith(f"lumctl: {said}")
    assert all(line.startswith("  hint: ") for line in rest)
    assert len(rest) <= 1


def test_all_wrong_options_are_reported_at_once(size):
    wrong = ("--availability", "2", "--failure-rate", "often", "--per-host", "0", "--repair", "soon", "--what-if", "x")
    wrong += ("--class", "H100")
    code, out, err = size("--accelerators", "64", *wrong, "--horizon", "30d")
    assert (code, out) == (2, "")
    first, *lines = err.splitlines()
    assert first == "lumctl: 6 errors in the options"
    begins = ("--availability: '2'", "--failure-rate: 'often'", "--repair: 'soon'", "--per-host: '0'", "--what-if: 'x'")
    begins += ("--class needs an inventory",)
    assert len(lines) == 6
    for line, begin in zip(lines, begins, strict=True):
        assert line.strip().startswith(begin)
