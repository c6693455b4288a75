"""``lumctl fabric`` about any mesh, as a shell runs it: routes, matchings, tracing, drawings; no inventory needed."""

import json
import os
import signal
import sys
from xml.etree import ElementTree as ET

import pytest
import yaml
from forked_commands import run_lumctl
from terminals import terminal

from lumctl.inventory.load import example

ACROSS = """\
  - {id: m1, kind: mesh, driver: smartlight, address: "m1.example:1", geometry: {shape: hexagon, side: 2}}
fibres:
  - {name: f0, ends: [mesh/port/40, m1/port/2], loss_db: 0.5}

"""


@pytest.fixture
def environment(tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "LANG": "C.UTF-8",
    }


@pytest.fixture
def lumctl(environment, tmp_path):
    def run(*words, stdin=None):
        return run_lumctl(*words, env=environment, cwd=tmp_path, input=stdin or "")

    return run


def test_matchings_trace_to_what_they_promise(lumctl, tmp_path):
    printed = lumctl("fabric", "matchings", "--mesh", "5x5", "--ports", "16", "--seed", "3", "--tour", "-o", "json")
    assert printed.returncode == 0, printed.stderr
    document = json.loads(printed.stdout)
    assert document["schema"] == "lumctl/matchings/v1"
    assert (len(document["ports"]), document["lower_bound"], len(document["matchings"])) == (16, 15, 15)
    assert document["total_pucs"] == sum(len(c["pucs"]) for m in document["matchings"] for c in m["circuits"])
    assert document["total_bound"] <= document["total_pucs"]
    assert document["seconds"] > 0
    assert sorted(document["tour"]["order"]) == list(range(15))
    assert document["tour"]["bound"] <= document["tour"]["changes"]
    plan = tmp_path / "plan.json"
    plan.write_text(printed.stdout)
    traced = lumctl("fabric", "trace", str(plan), "-o", "json")
    assert traced.returncode == 0, traced.stderr
    told = json.loads(traced.stdout)
    assert told["made"] == told["planned"] == 120
    assert {frozenset(c["ports"]) for c in told["circuits"]} == {
        frozenset((a, b)) for a in document["ports"] for b in document["ports"] if a != b
    }


def test_a_plan_whose_states_do_not_make_a_circuit_is_found_out(lumctl):
    printed = lumctl("fabric", "route", "--mesh", "4x4", "3:17", "4:9", "-o", "json")
    document = json.loads(printed.stdout)
    assert [c["ports"] for c in document["circuits"]] == [[3, 17], [4, 9]]
    document["circuits"][0]["ports"], document["circuits"][1]["ports"] = [3, 9], [4, 17]
    traced = lumctl("fabric", "trace", "-", stdin=json.dumps(document))
    assert traced.returncode == 4
    assert "failed" in traced.stdout
    assert lumctl("fabric", "trace", "-", stdin=printed.stdout).returncode == 0


def test_crosstalk_is_a_number_and_less_with_better_pucs(lumctl):
    plan = lumctl("fabric", "matchings", "--mesh", "4x4", "--ports", "10", "-o", "json").stdout
    told = [
        json.loads(lumctl("fabric", "trace", "-", "--crosstalk", "--extinction", db, "-o", "json", stdin=plan).stdout)
        for db in ("20", "40")
    ]
    worst = [min(c["signal_to_crosstalk_db"] for c in each["circuits"]) for each in told]
    assert 0 < worst[0] < worst[1] - 10
    assert all(c["signal_db"] < 0 for c in told[0]["circuits"])
    table = lumctl("fabric", "trace", "-", "--crosstalk", stdin=plan)
    assert "OVER LEAKS dB" in table.stdout


def test_routes_that_may_move_others_tell_the_steps(lumctl):
    printed = lumctl("fabric", "route", "--mesh", "4x4", "3:17", "4:9", "--may-move", "-o", "json")
    document = json.loads(printed.stdout)
    assert (document["moves"], document["fewest"]) == ([], True)
    assert [step["circuit"] for step in document["steps"]] == [[3, 17], [4, 9]]
    assert lumctl("fabric", "trace", "-", stdin=printed.stdout).returncode == 0


def test_what_cannot_be_is_said_to_be_proven(lumctl):
    refused = lumctl("fabric", "route", "--mesh", "9x9", "0:74")
    assert refused.returncode == 5
    assert "no routes exist for 0:74" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("objective", ["pucs", "loss", "crosstalk", "feasible"])
def test_each_objective_gives_routes_that_are_made(lumctl, objective):
    printed = lumctl(
        "fabric", "route", "--mesh", "hexagon:3", "1:18", "5:30", "9:25", "--objective", objective, "-o", "json"
    )
    assert printed.returncode == 0, printed.stderr
    assert lumctl("fabric", "trace", "-", stdin=printed.stdout).returncode == 0


def test_the_best_routes_are_not_longer(lumctl):
    demands = ("1:18", "5:14", "9:25", "12:21")
    found = json.loads(lumctl("fabric", "route", "--mesh", "4x4", *demands, "-o", "json").stdout)
    best = json.loads(lumctl("fabric", "route", "--mesh", "4x4", *demands, "--optimal", "-o", "json").stdout)
    assert best["optimal"]["status"] == "optimal"
    assert best["total_pucs"] <= found["total_pucs"]
    assert best["total_pucs"] == best["optimal"]["bound"]


def test_a_plan_is_drawn(lumctl, tmp_path):
    plan = lumctl("fabric", "matchings", "--mesh", "4x4", "--ports", "8", "-o", "json").stdout
    drawn = lumctl("fabric", "show", "-", "--matching", "2", "--draw", "--svg", "m.svg", "--png", "m.png", stdin=plan)
    assert drawn.returncode == 0, drawn.stderr
    assert "4x4" in drawn.stdout
    assert "LOSS dB" in drawn.stdout
    assert ET.parse(tmp_path / "m.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.glob(".m*")) == []
    plain = lumctl("fabric", "show", "-", "--draw", "--ascii", stdin=plan)
    assert plain.stdout.isascii()


def test_circuits_across_devices(lumctl, tmp_path):
    inventory = tmp_path / "across.yaml"
    before, binding, after = example("prototype").read_text().partition("# Published binding")
    inventory.write_text(before.rstrip("\n") + "\n" + ACROSS + binding + after)
    printed = lumctl("-i", str(inventory), "fabric", "route", "mesh:25,m1:9", "-o", "json")
    assert printed.returncode == 0, printed.stderr
    (circuit,) = json.loads(printed.stdout)["circuits"]
    assert (circuit["fibres"], [hop["device"] for hop in circuit["hops"]]) == (["f0"], ["mesh", "m1"])
    shown = lumctl("-i", str(inventory), "fabric", "route", "mesh:25,m1:9")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["CIRCUIT", "mesh:25,m1:9", "m1:2:9"]
    too_many = lumctl("-i", str(inventory), "fabric", "route", "mesh:25,m1:9", "mesh:26,m1:8")
    assert too_many.returncode == 5
    assert "Traceback" not in too_many.stderr


def test_a_mesh_of_the_inventory_that_was_never_programmed(lumctl, tmp_path):
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(example("prototype").read_text())
    routed = lumctl("-i", str(inventory), "fabric", "route", "--device", "mesh", "25:31")
    assert routed.returncode == 0, routed.stderr
    assert "the state of mesh is unknown" in routed.stderr
    lanes = json.loads(
        lumctl("-i", str(inventory), "fabric", "route", "--device", "mesh", "12:9", "30:31", "-o", "json").stdout
    )["circuits"]
    sent, needed = 2.0, -15.8  # the defaults of an inventory
    assert lanes[0]["margin_db"] == pytest.approx(sent - lanes[0]["loss_db"] - needed)
    assert "margin_db" not in lanes[1]
    near = lumctl("-i", str(inventory), "fabric", "route", "--device", "mehs", "25:31")
    assert (near.returncode, "did you mean mesh?" in near.stderr) == (2, True)
    drawn = lumctl("-i", str(inventory), "fabric", "show", "--draw")
    assert drawn.returncode == 0, drawn.stderr
    assert "7x3" in drawn.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("matchings", "--mesh", "9x9", "--ports", "x"), "--ports: found 'x'"),
        (("matchings", "--mesh", "9x9", "--ports", "99999999999"), "--ports: "),
        (("matchings", "--mesh", "9x9", "--ports", "77"), "77 ports of 9x9 cannot be connected"),
        (("matchings", "--ports", "8"), "which mesh?"),
        (("matchings", "--mesh", "9by9", "--ports", "8"), "did you mean '9x9'"),
        (("matchings", "--mesh", "999x999", "--ports", "8"), "too large"),
        (("matchings", "--mesh", "none.yaml", "--ports", "8"), "none.yaml"),
        (("route", "--mesh", "3x3", "3-4"), "not a pair of ports"),
        (("route", "--mesh", "3x3", "3:99"), "port 99 is not on the mesh"),
        (("route", "--mesh", "3x3", "3:4", "4:5"), "port 4 is used twice"),
        (("route", "--mesh", "3x3", "3:4", "--objective", "fast"), "'fast' is not a known objective"),
        (("route", "--mesh", "3x3", "m0:3,m1:4"), "across devices"),
        (("trace", "none.json"), "none.json cannot be read"),
        (("trace", "."), "cannot be read"),
        (("show", "none.json"), "none.json cannot be read"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(lumctl, words, said):
    refused = lumctl("fabric", *words)
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""


def test_a_mesh_that_is_given_as_data(lumctl, tmp_path):
    rim = [[[0, 0, 0], [2, 0, 1]], [[0, 1, 0], [1, 0, 0]], [[1, 1, 0], [2, 1, 1]]]
    (tmp_path / "ring.yaml").write_text(f"mesh: 1\nname: ring\npucs: 3\njunctions: {json.dumps(rim)}\n")
    plan = lumctl("fabric", "route", "--mesh", "ring.yaml", "0:1", "-o", "json")
    assert plan.returncode == 0, plan.stderr
    assert json.loads(plan.stdout)["mesh"] == "ring.yaml"
    assert lumctl("fabric", "trace", "-", stdin=plan.stdout).returncode == 0
    undrawable = lumctl("fabric", "show", "-", "--draw", "--mesh", "ring.yaml", stdin=plan.stdout)
    assert (undrawable.returncode, "Traceback" in undrawable.stderr) == (2, False)
    (tmp_path / "ring.yaml").write_text("mesh: 1\npucs: 3\njunctions: [[[0, 0, 0], [9, 0, 0]]]\n")
    wrong = lumctl("fabric", "route", "--mesh", "ring.yaml", "0:1")
    assert (wrong.returncode, "ring.yaml:3:" in wrong.stderr) == (2, True)


def test_a_plan_that_is_no_plan(lumctl):
    for text in ("", "{", "[]", "null", '{"mesh": 3}', '{"mesh": "3x3"}', "[" * 100_000):
        refused = lumctl("fabric", "trace", "-", stdin=text)
        assert refused.returncode == 2, text[:20]
        assert "Traceback" not in refused.stderr


CROWDED = [f"{a}:{a + 38}" for a in range(30)]
"""More circuits right across the mesh than it has room for."""


def test_what_is_proven_reads_so(lumctl):
    demands = ("1:18", "5:14", "9:25", "12:21")
    proven = lumctl("fabric", "route", "--mesh", "4x4", *demands, "--optimal")
    total = json.loads(lumctl("fabric", "route", "--mesh", "4x4", *demands, "--optimal", "-o", "json").stdout)
    assert f"{total['total_pucs']} PUCs together, proven;" in proven.stderr
    loss = lumctl("fabric", "route", "--mesh", "4x4", *demands, "--optimal", "--objective", "loss")
    assert "dB lost by the worst route, proven;" in loss.stderr
    plain = lumctl("fabric", "route", "--mesh", "4x4", *demands)
    assert ", lower bound " in plain.stderr


def test_the_least_loss_counts_dear_pucs(lumctl, tmp_path):
    mesh = {"id": "m", "kind": "mesh", "driver": "sim-mesh", "address": "m:1", "geometry": {"columns": 3, "rows": 3}}
    shortest = json.loads(lumctl("fabric", "route", "--mesh", "3x3", "3:17", "-o", "json").stdout)["circuits"][0][
        "pucs"
    ]
    mesh["puc_loss_db"] = dict.fromkeys(shortest[1:-1], 5)
    hosts = [{"name": "h", "accelerators": [{"id": "{host}-gpu0", "model": "x", "memory_gib": 1}]}]
    inventory = tmp_path / "own.yaml"
    inventory.write_text(yaml.safe_dump({"lumctl": 1, "racks": {"r": {}}, "hosts": hosts, "devices": [mesh]}))
    words = ("fabric", "route", "-i", str(inventory), "--device", "m", "3:17", "--optimal", "-o", "json")
    printed = lumctl(*words, "--objective", "loss")
    assert printed.returncode == 0, printed.stderr
    best = json.loads(printed.stdout)
    assert (best["optimal"]["status"], best["optimal"]["unit"]) == ("optimal", "dB")
    assert best["optimal"]["value"] == pytest.approx(best["circuits"][0]["loss_db"])
    few = json.loads(lumctl(*words).stdout)
    assert best["circuits"][0]["loss_db"] <= few["circuits"][0]["loss_db"]
    assert not set(shortest[1:-1]) <= set(best["circuits"][0]["pucs"])


def test_a_search_that_gave_up_names_the_command_that_decides_it(lumctl):
    given_up = lumctl("fabric", "route", "--mesh", "9x9", *CROWDED, "--limit", "0.1")
    assert given_up.returncode == 5
    assert "time ran out" in given_up.stderr
    hint = given_up.stderr.split("lumctl fabric route ")[1].split()
    assert hint[:2] == ["--mesh", "9x9"]
    assert hint[-1] == "--optimal"
    again = lumctl("fabric", "route", *hint, "--limit", "0.5")
    assert again.returncode == 5
    assert "Traceback" not in again.stderr


def test_matchings_within_a_limit_are_complete_or_say_what_they_lack(lumctl):
    for limit in ("0.1", "3"):
        printed = lumctl("fabric", "matchings", "--mesh", "9x9", "--ports", "60", "--limit", limit, "-o", "json")
        if printed.returncode == 5:
            assert "time ran out before any" in printed.stderr
            continue
        document = json.loads(printed.stdout)
        routed = sum(len(matching["circuits"]) for matching in document["matchings"])
        assert routed + len(document["left"]) + len(document["unreachable"]) == 60 * 59 // 2
        assert document["complete"] == (not document["left"])
        assert lumctl("fabric", "trace", "-", stdin=printed.stdout).returncode == 0


def test_an_interrupt_prints_the_best_so_far(environment):
    words = [sys.executable, "-m", "lumctl", "fabric", "matchings", "--mesh", "3x15", "--ports", "30"]
    with terminal(words, environment, (200, 120)) as shown:
        shown.see("matchings,", "at least ...")
        shown.process.send_signal(signal.SIGINT)
        shown.see("3x15, 30 ports:", "interrupted")
        assert shown.code() == 130
