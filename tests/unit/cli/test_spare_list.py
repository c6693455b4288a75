"""``lumctl spare list``, ``show`` and ``queue`` over two racks and two classes; bad input is one line."""

import json
import shlex

import pytest
from looks import Looks

from lumctl.cli import completion
from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import own_cells
from lumctl.store import open_store

RACKS = """
lumctl: 1
racks: {east: {}, west: {}}
hosts:
  - {name: "e[1-4]", rack: east, accelerators: [{id: "{host}-x", model: Big, memory_gib: 80}]}
  - {name: "e[5-6]", rack: east, accelerators: [{id: "{host}-x", model: Big, memory_gib: 80, role: spare}]}
  - {name: "e7", rack: east, accelerators: [{id: "{host}-x", model: Big, memory_gib: 80, role: spare, reserved: true}]}
  - {name: "w[1-2]", rack: west, accelerators: [{id: "{host}-x", model: Small, memory_gib: 24}]}
  - {name: "w3", rack: west, accelerators: [{id: "{host}-x", model: Small, memory_gib: 24, role: spare}]}
  - {name: "w4", rack: west, accelerators: [{id: "{host}-x", model: Big, memory_gib: 80}]}
devices:
  - {id: me, rack: east, kind: mesh, driver: smartlight, address: "m.example:1", geometry: {columns: 4, rows: 3}}
  - {id: mw, rack: west, kind: mesh, driver: smartlight, address: "m.example:2", geometry: {columns: 4, rows: 3}}
jobs:
  - {name: one, ranks: "e[1-2]-x", links: [{kind: pairs, pairs: [[0, 1]]}]}
  - {name: two, ranks: "w[1-2]-x", links: [{kind: pairs, pairs: [[0, 1]]}]}
transponders:
"""
LANES = {
    **{f"e{number}": ("me", port) for number, port in zip(range(1, 8), (3, 5, 7, 9, 23, 21, 1), strict=True)},
    **{f"w{number}": ("mw", port) for number, port in zip(range(1, 5), (3, 5, 7, 9), strict=True)},
}


@pytest.fixture
def spare(tmp_path, monkeypatch, capsys):
    """Run ``lumctl spare`` on racks of which some accelerators are lost; nothing contacts a host."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LUMCTL_INVENTORY", str(tmp_path / "racks.yaml"))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    lanes = (
        f"  - {{id: {host}-a, accelerator: {host}-x, interface: eth0, device: {device}, port: {port}}}\n"
        for host, (device, port) in LANES.items()
    )
    (tmp_path / "racks.yaml").write_text(RACKS + "".join(lanes))
    looks = []

    def command(*words, failed=()):
        def observe(context):
            looks.append(context)
            return Looks(context.inventory).look(1_800_000_000.0, failed=failed)

        def recorded(context, device):
            return dict.fromkeys(own_cells(context.inventory, context.inventory.devices[device]), str(PucState.BAR))

        monkeypatch.setattr(Context, "observe", observe)
        monkeypatch.setattr(Context, "known_cells", recorded)
        code = run(["spare", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    command.looks = looks
    return command


def test_each_rack_and_class_is_counted_first(spare):
    code, out, err = spare("list")
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        "east, Big: 3 spares for 2 ranks: 2 free, 1 reserved, 0 taken, 0 out",
        "west, Small: 1 spare for 2 ranks: 1 free, 0 taken, 0 out",
        "west, Big: no spare for 0 ranks",
    ]
    assert [line.split()[:2] for line in out.splitlines()[5:]] == [
        ["free", "e5-x"],
        ["free", "e6-x"],
        ["reserved", "e7-x"],
        ["free", "w3-x"],
    ]


def test_rack_class_and_free_narrow_the_list(spare):
    assert spare("list", "--free", "-o", "name")[1].split() == ["e5-x", "e6-x", "w3-x"]
    assert spare("list", "--rack", "east", "-o", "name")[1].split() == ["e5-x", "e6-x", "e7-x"]
    assert spare("list", "--class", "small", "-o", "name")[1].split() == ["w3-x"]
    document = json.loads(spare("list", "--rack", "west", "-o", "json")[1])
    assert [(each["class"], each["free"]) for each in document["pools"]] == [("Small", 1), ("Big", 0)]


def test_a_spare_that_burns_in_is_usable_and_counted_apart(spare, tmp_path):
    path = tmp_path / "racks.yaml"
    path.write_text(path.read_text().replace("24, role: spare}", "24, role: spare, burned_in: 2027-01-20}"))
    _, out, _ = spare("list", "--rack", "west")
    assert out.startswith("west, Small: 1 spare for 2 ranks: 1 free (1 burning in), 0 taken, 0 out\n")
    (entry,) = json.loads(spare("list", "--rack", "west", "-o", "json")[1])["spares"]
    assert (entry["state"], entry["usable"], entry["until"][:4]) == ("burning-in", True, "2027")
    assert spare("list", "--rack", "west", "--free", "-o", "name")[1] == "w3-x\n"


def test_ranks_that_need_a_spare_are_named_and_those_that_get_none(spare, capsys):
    _, out, _ = spare("list", "--rack", "east", failed=["e1-x"])
    assert out.splitlines()[1] == "  1 rank needs a spare now (e1-x): a spare fits it: lumctl swap plan --failed e1-x"
    code, out, err = spare("list", "--rack", "west", failed=["w1-x", "w2-x"])
    assert out.splitlines()[1] == "  2 ranks need a spare now (w1-x, w2-x): no spare is left that can replace w2-x"
    assert (code, err.count("\n")) == (0, 1)
    assert "the store of east has no history; to estimate failure rates, a day is needed" in err
    assert err.endswith("until then give a rate: lumctl spare size --failure-rate 0.02\n")
    assert run(["spare", "size", "--failure-rate", "0.02"]) == 0
    capsys.readouterr()
    _, out, _ = spare("list", "--rack", "west", failed=["w1-x", "w3-x"])
    assert out.splitlines()[:2] == [
        "west, Small: 1 spare for 2 ranks: 0 free, 0 taken, 1 out (1 failed)",
        "  1 rank needs a spare now (w1-x): no spare is left that can replace w1-x",
    ]
    needs = json.loads(spare("list", "-o", "json", failed=["w1-x", "w2-x"])[1])["pools"][1]["needs"]
    assert [(each["accelerator"], each["rank"], each["served"]) for each in needs] == [
        ("w1-x", 0, True),
        ("w2-x", 1, False),
    ]


def test_a_spare_with_its_constraints_and_the_ranks_it_could_replace(spare):
    _, out, _ = spare("show", "e5-x", failed=["e1-x"])
    assert out.startswith(
        "e5-x  free  rack: east  target: rack\n  was read just now and is ok\n  Big, 80 GiB, host e5\n"
    )
    assert ["one", "0-1", "yes", "-"] in [line.split() for line in out.splitlines()]
    assert "two" not in out  # a job of another rack
    _, out, _ = spare("show", "e7-x")
    assert "it can replace no rank now: it is reserved: --spare e7-x uses it nevertheless" in out
    assert "no run has moved a rank to it or from it" in out
    _, out, _ = spare("show", "w4-x")
    assert out.startswith("w4-x  not-a-spare  rack: west")
    assert "no job uses it, and its role in the inventory is active" in out
    assert spare("show", "e5-x", "-o", "name")[1] == "e5-x\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--rack", "est"), "no rack 'est' in the inventory"),
        (("list", "--class", "Huge"), "--class: no accelerator in service is a 'Huge'"),
        (("list", "--class", "small", "--rack", "east"), "--rack: no accelerator in service is a 'small' in rack east"),
        (("show", "e9-x"), "no accelerator 'e9-x' in the inventory"),
        (("show", "e5"), "e5 is a host"),
        (("list", "-o", "xml"), "'xml' is not a known output format"),
    ],
)
def test_bad_input_is_one_line_and_reads_no_host(spare, words, said):
    code, out, err = spare(*words)
    assert (code, out) == (2, "")
    first, *rest = err.splitlines()
    assert first == f"lumctl: {said}"
    assert len(rest) == 1
    assert rest[0].startswith("  hint: ")
    assert spare.looks == []


def test_accelerators_are_completed_and_nothing_else(spare):
    assert spare("list", "-o", "name")[0] == 0
    assert [value for value, _ in completion.values(["spare", "show", "e5"])] == ["e5-x"]
    assert completion.values(["spare", "list", "--rack", "w"]) == [("west", "")]


def queue(tmp_path, *accelerators, job="two"):
    """Queue a demand in the rack of a job, as ``swap plan --queue`` does."""
    inventory = load_inventory(tmp_path / "racks.yaml")
    rack = inventory.accelerators[accelerators[0]].rack
    store = open_store(inventory, rack, "rack")
    wanted = {job: accelerators}
    (asked,) = store.demands.ask(rack, wanted, why="no spare is free", who="ann@console", at=1_799_999_940.0)
    store.close()
    return asked.id


def test_an_empty_queue_reads_no_host(spare):
    assert spare("queue") == (0, "no job waits for a spare\n", "")
    assert spare.looks == []


def test_a_demand_that_can_be_served_has_its_spares_and_the_command(spare, tmp_path):
    queue(tmp_path, "w1-x")
    code, out, err = spare("queue", failed=["w1-x"])
    assert (code, err) == (0, "")
    assert out.splitlines()[1].split() == ["demand-0001", "two", "w1-x", "60s", "w3-x", "can", "replace", "it", "now"]
    assert out.splitlines()[2] == "    lumctl swap plan two --failed w1-x"
    (found,) = json.loads(spare("queue", "-o", "json", failed=["w1-x"])[1])["demands"]
    assert (found["given"], found["waits_s"], found["state"]) == (["w3-x"], 60.0, "waiting")
    assert spare("queue", "-o", "name", failed=["w1-x"])[1] == "demand-0001\n"
    assert spare("queue", "--rack", "east", failed=["w1-x"])[1] == "no job waits for a spare\n"


def test_a_demand_that_waits_says_what_for(spare, tmp_path):
    queue(tmp_path, "w1-x")
    queue(tmp_path, "w2-x")
    out = spare("queue", failed=["w1-x", "w2-x"])[1]
    assert "waits: w3-x goes to demand-0001 first (sharing policy best-fit)" in " ".join(out.split())
    out = spare("queue", failed=["w1-x", "w2-x", "w3-x"])[1]
    assert "waits: w3-x is failed" in " ".join(out.split())


def test_a_demand_whose_accelerator_is_ok_again_or_whose_job_is_gone_is_needless(spare, tmp_path):
    queue(tmp_path, "w1-x")
    queue(tmp_path, "w2-x", job="gone")
    out = spare("queue")[1]
    assert "needs no spare: w1-x is ok again" in " ".join(out.split())
    assert "needs no spare: job gone no longer exists" in " ".join(out.split())
    assert "    lumctl spare queue cancel demand-0002 --rack west" in out.splitlines()


def test_a_demand_is_cancelled_once(spare, tmp_path):
    name = queue(tmp_path, "w1-x")
    assert spare("queue", "cancel", name) == (0, "demand-0001 of two is cancelled\n", "")
    code, _, err = spare("queue", "cancel", name)
    assert (code, err) == (5, "lumctl: demand-0001 does not wait any more: it is cancelled\n")
    code, _, err = spare("queue", "cancel", "demand-0007")
    assert code == 2
    assert "there is no demand 'demand-0007'" in err
    assert "cancelled" in spare("queue", "--all")[1]
    for words in (("cancel",), ("drop", name)):
        assert spare("queue", *words)[0] == 2


@pytest.mark.parametrize("words", [("swap", "show"), ("swap", "apply"), ("runbook", "show"), ("spare", "show")])
def test_a_demand_in_the_place_of_a_run_a_plan_or_a_spare_is_recognised(spare, tmp_path, capsys, words):
    name = queue(tmp_path, "w1-x")

    def refused():
        assert run([*words, name]) == 2
        said = capsys.readouterr().err
        assert f"{name} is a demand for spares of two" in said
        return shlex.split(said.partition("see it: lumctl ")[2])

    for _ in range(2):  # while it waits, and once it is cancelled
        assert run(refused()) == 0
        assert name in capsys.readouterr().out
        spare("queue", "cancel", name)


def test_a_policy_that_is_not_there_does_not_keep_the_queue_from_being_served(spare, tmp_path):
    path = tmp_path / "racks.yaml"
    path.write_text(path.read_text() + "sharing: {policy: absent}\n")
    queue(tmp_path, "w1-x")
    _, out, err = spare("queue", failed=["w1-x"])
    assert "w3-x can replace it now" in out
    assert err.startswith("warning: best-fit decides instead: sharing policy 'absent': no sharing policy 'absent' is ")


def test_status_and_job_show_say_what_a_job_waits_for(spare, tmp_path, capsys):
    queue(tmp_path, "w1-x")
    queue(tmp_path, "w2-x")
    spare("list", failed=["w1-x", "w2-x"])  # what is read from now on
    assert run(["status"]) == 4
    told = " ".join(capsys.readouterr().out.split())
    assert "two waits for spares for w1-x (demand-0001, 60s): w3-x can replace it now lumctl swap plan two" in told
    assert "two waits for spares for w2-x (demand-0002, 60s): w3-x goes to demand-0001 first" in told
    assert run(["status", "-o", "json"]) == 4
    waiting = json.loads(capsys.readouterr().out)["waiting"]
    assert [(each["id"], each["given"]) for each in waiting] == [("demand-0001", ["w3-x"]), ("demand-0002", [])]
    assert run(["job", "show", "two"]) == 0
    assert "two waits for a spare for w1-x (demand-0001) since " in capsys.readouterr().out
    assert run(["job", "show", "one", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"] == []


def test_the_spares_that_one_rack_of_several_needs(spare):
    def pools(*words):
        return [(p["rack"], p["class"]) for p in json.loads(spare("size", "--failure-rate", "2%", *words)[1])["pools"]]

    assert pools("-o", "json") == [("east", "Big"), ("west", "Small"), ("west", "Big")]
    assert pools("--rack", "west", "-o", "json") == [("west", "Small"), ("west", "Big")]
    assert pools("--rack", "west", "--class", "Big", "-o", "json") == [("west", "Big")]
    code, _, err = spare("size", "--failure-rate", "2%", "--rack", "north")
    assert (code, "no rack 'north' in the inventory" in err) == (2, True)
    code, _, err = spare("size", "--failure-rate", "2%", "--rack", "east", "--class", "Small")
    assert (code, "--rack: no accelerator in service is a 'Small' in rack east" in err) == (2, True)
