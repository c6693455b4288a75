"""``lumctl health``: what operators say, kept in the rack's store; why a component is in its state; the rules."""

import json
import re
from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.context.health_memory import LookResult, Recollection
from lumctl.errors import ExitCode
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import store_at
from lumctl.time_text import seconds_of

GPU, HOST, LANE, CIRCUIT = "h03-gpu2", "h03", "h03-gpu2-a", "train-a/0-1"


@pytest.fixture
def store(tmp_path):
    """The store of the rack, as any process of this user opens it."""
    made = store_at(str(tmp_path / "state" / "rack64"), rack="rack64")
    yield made
    made.close()


@pytest.fixture
def health(rack, monkeypatch, capsys, tmp_path):
    """Run a verb of ``health`` on the collected rack; returns exit code, stdout and stderr."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LUMCTL_TARGET", "rack")
    monkeypatch.setattr("lumctl.context.context.time.time", lambda: rack.observation().at)

    def observe(context, **_):
        seen = rack.observation()
        look = LookResult(seen.at, seen.snapshot, seen.circuits, {}, rack.devices, ())
        judged = Recollection(rack.inventory, context.store).judge(look, to_be_kept=False)
        return replace(seen, report=judged.report, windows=judged.windows)

    monkeypatch.setattr(Context, "observe", observe)
    monkeypatch.setattr(Context, "__init__", _with_clock(Context.__init__, lambda: rack.observation().at))

    def command(*arguments):
        code = run(["-i", str(rack.inventory.path), "health", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def _with_clock(init, now):
    def with_clock(self, *words, **more):
        init(self, *words, **{**more, "now": now})

    return with_clock


def document(health, *arguments):
    code, out, _ = health(*arguments, "-o", "json")
    return code, json.loads(out)


# -- ack --------------------------------------------------------------------------------------------------------------


def test_findings_are_acknowledged_with_a_reason(health, rack, store):
    rack.lose_gpu(GPU)
    code, out, _ = health("ack", GPU, "--comment", "part ordered", "--for", "2h")
    assert (code, out.startswith(f"{GPU}: gpu.lost acknowledged until ")) == (ExitCode.DONE, True)
    at = rack.observation().at
    (said,) = store.health.acknowledgements(now=at)
    assert (said.component, said.rule, said.comment) == (GPU, None, "part ordered")
    assert (said.at, said.until) == (at, at + 7200)
    assert "@" in said.by


def test_one_rule_can_be_named_and_the_document_says_it_all(health, rack, store):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    code, said = document(health, "ack", GPU, "--rule", "gpu.xid", "--comment", "known")
    assert code == ExitCode.DONE
    assert said["schema"] == "lumctl/acknowledgement/v1"
    assert (said["component"], said["rule"], said["until"], said["rack"]) == (GPU, "gpu.xid", None, "rack64")
    assert said["findings"] == ["gpu.xid"]
    assert [a.rule for a in store.health.acknowledgements(now=0.0)] == ["gpu.xid"]


def test_a_rack_a_circuit_and_a_link_can_be_acknowledged(health, rack, store):
    rack.lose_gpu(GPU)
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    for component in ("rack64", CIRCUIT, "h01-gpu0-b"):
        code, out, err = health("ack", component, "--comment", "known", "-o", "name")
        assert (code, out) == (ExitCode.DONE, f"{component}\n"), err
    assert {a.component for a in store.health.acknowledgements(now=0.0)} == {"rack64", CIRCUIT, "h01-gpu0-b"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["h01-gpu0", "--comment", "x"], ExitCode.REFUSED, "h01-gpu0 is ok and has no faults"),
        (
            [GPU, "--rule", "gpu.ecc", "--comment", "x"],
            ExitCode.REFUSED,
            "gpu.ecc finds no fault in h03-gpu2; gpu.lost does",
        ),
        ([GPU, "--rule", "gpu.lots", "--comment", "x"], ExitCode.USAGE, "hint: did you mean gpu.lost?"),
        (["h03-gpu22", "--comment", "x"], ExitCode.USAGE, "hint: did you mean h03-gpu2?"),
        (["zzz", "--comment", "x"], ExitCode.USAGE, "no component 'zzz'"),
        ([GPU], ExitCode.USAGE, "add --comment"),
        ([GPU, "--comment", "  "], ExitCode.USAGE, "add --comment"),
        ([GPU, "--comment", "x", "--for", "soon"], ExitCode.USAGE, "'soon' is not a valid duration"),
        ([GPU, "--comment", "x", "--for", "2h", "--until", "18:00"], ExitCode.USAGE, "give one of them"),
        ([GPU, "--comment", "x", "--until", "2001-01-01"], ExitCode.USAGE, "before it begins"),
        ([GPU, "--clear"], ExitCode.REFUSED, f"{GPU} has no acknowledgement"),
        ([GPU, "--clear", "--rule", "gpu.lost"], ExitCode.REFUSED, "has no acknowledgement for gpu.lost"),
        ([GPU, "--clear", "--comment", "x"], ExitCode.USAGE, "--clear takes no"),
        ([], ExitCode.USAGE, "COMPONENT"),
    ],
)
def test_what_cannot_be_acknowledged_is_one_line_and_changes_nothing(health, rack, store, arguments, code, words):
    rack.lose_gpu(GPU)
    done, out, err = health("ack", *arguments)
    assert (done, out) == (code, "")
    assert words in err
    assert store.health.acknowledgements(now=0.0) == ()


def test_what_lies_behind_a_lost_host_points_at_it(health, rack):
    rack.host(HOST, reachable=False, error="h03: no route", gpus=(), probes={})
    code, _, err = health("ack", GPU, "--comment", "x")
    assert code == ExitCode.REFUSED
    assert f"{GPU} is unknown and has no faults" in err
    assert "health ack h03 --comment" in err


def test_a_note_is_nothing_to_acknowledge(health, rack, store):
    rack.xid(GPU, 13, at=None)
    code, _, err = health("ack", GPU, "--comment", "x")
    assert code == ExitCode.REFUSED
    assert f"{GPU} is ok and has no faults" in err
    assert store.health.acknowledgements(now=0.0) == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h3-gpu2", "hint: did you mean h03-gpu2?"),
        ("rail0/puc/17", "hint: did you mean rail0?"),
        ("train-a", "train-a is a job"),
    ],
)
def test_a_name_that_is_nearly_right_is_met_halfway(health, name, words):
    code, _, err = health("maintain", name, "--comment", "x", "--for", "1h")
    assert code == ExitCode.USAGE
    assert words in err


def test_work_on_a_component_is_explained_once_and_with_its_end(health):
    health("maintain", HOST, "--for", "30m", "--comment", "new fans")
    _, out, _ = health("explain", GPU)
    (told,) = [line for line in out.splitlines() if "in maintenance" in line]
    assert re.fullmatch(
        r"in maintenance: h03 by .*: new fans \(until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+\d\d:\d\d \(in 30m\)\)", told
    )


def test_an_acknowledgement_is_taken_back_in_whole_or_by_rule(health, rack, store):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    for rule in ("gpu.lost", "gpu.xid"):
        health("ack", GPU, "--rule", rule, "--comment", "x")
    assert health("ack", GPU, "--clear", "--rule", "gpu.lost")[:2] == (0, f"{GPU}: 1 acknowledgement undone\n")
    assert [a.rule for a in store.health.acknowledgements(now=0.0)] == ["gpu.xid"]
    assert document(health, "ack", GPU, "--clear")[1]["cleared"] == 1
    assert store.health.acknowledgements(now=0.0) == ()


# -- clear ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fallen(rack):
    """A GPU that fell off the bus, on a host that tells its boot."""
    rack.host(HOST, boot_id="boot-1", booted_at=rack.observation().at - 86_400)
    rack.xid(GPU, 79)


@pytest.mark.usefixtures("fallen")
def test_events_are_cleared_with_a_reason(health, rack, store):
    code, out, _ = health("clear", GPU, "--reason", "reseated")
    assert code == ExitCode.DONE
    assert out == f"{GPU}: cleared gpu.xid: fell off the bus (XID 79)\n"
    (said,) = store.health.cleared_events()
    assert (said.component, said.rule, said.reason, said.at) == (GPU, None, "reseated", rack.observation().at)
    assert "@" in said.by
    (kept,) = store.journal.remarks("events-cleared")
    assert (kept.data["component"], kept.data["reason"], kept.data["who"]) == (GPU, "reseated", said.by)


@pytest.mark.usefixtures("fallen")
def test_the_document_of_a_clear_says_it_all(health):
    code, said = document(health, "clear", GPU, "--rule", "gpu.xid", "--reason", "reseated")
    assert (code, said["schema"]) == (ExitCode.DONE, "lumctl/events-cleared/v1")
    assert (said["component"], said["rule"], said["reason"], said["rack"]) == (GPU, "gpu.xid", "reseated", "rack64")
    assert said["cleared"] == [{"rule": "gpu.xid", "evidence": "fell off the bus (XID 79)"}]
    code, _, err = health("clear", GPU, "--reason", "again")
    assert (code, f"{GPU} has no error events" in err) == (ExitCode.REFUSED, True)


@pytest.mark.usefixtures("fallen")
def test_what_ends_an_event_is_explained(health):
    _, out, _ = health("explain", GPU, "--ascii")
    assert "appears       at once; clears with a reboot\n" in out
    (explained,) = document(health, "explain", GPU)[1]["explanations"]
    assert [finding["line"]["ends"] for finding in explained["findings"]] == ["reboot"]


@pytest.mark.usefixtures("fallen")
def test_a_clear_can_be_told_by_name(health):
    assert health("clear", GPU, "--reason", "reseated", "-o", "name")[:2] == (ExitCode.DONE, f"{GPU}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([GPU], ExitCode.USAGE, 'add --reason "..."'),
        ([GPU, "--reason", " "], ExitCode.USAGE, 'add --reason "..."'),
        ([], ExitCode.USAGE, "COMPONENT"),
        (["h03-gpu22", "--reason", "x"], ExitCode.USAGE, "did you mean h03-gpu2?"),
        ([GPU, "--rule", "gpu.xids", "--reason", "x"], ExitCode.USAGE, "did you mean gpu.xid?"),
        (
            [GPU, "--rule", "gpu.ecc", "--reason", "x"],
            ExitCode.REFUSED,
            f"health clear {GPU} --reason TEXT",
        ),
        (["h03-gpu1", "--reason", "x"], ExitCode.REFUSED, "health explain h03-gpu1"),
        ([HOST, "--reason", "x"], ExitCode.REFUSED, f"health clear {GPU} --reason TEXT"),
        (["rail0", "--reason", "x"], ExitCode.REFUSED, "rail0 has no error events"),
        (["rack64", "--reason", "x"], ExitCode.REFUSED, "name an accelerator or a host"),
        ([CIRCUIT, "--reason", "x"], ExitCode.REFUSED, "there is nothing to clear"),
    ],
)
@pytest.mark.usefixtures("fallen")
def test_what_cannot_be_cleared_is_one_line_and_changes_nothing(health, store, arguments, code, words):
    done, out, err = health("clear", *arguments)
    assert (done, out) == (code, "")
    assert words in err
    assert store.health.cleared_events() == ()


def test_what_nvidia_smi_says_now_is_no_event(health, rack, store):
    rack.host(HOST, boot_id="boot-1")
    rack.gpu(GPU, recovery_action="Reset")
    assert health("clear", GPU, "--reason", "x")[0] == ExitCode.REFUSED
    assert store.health.cleared_events() == ()


# -- maintain ---------------------------------------------------------------------------------------------------------


def test_a_window_is_opened_now_or_later_and_ended(health, rack, store):
    at = rack.observation().at
    code, out, err = health("maintain", HOST, "--for", "30m", "--comment", "new fans")
    assert "train-a runs ranks 2, 10, 18, 26 on h03: faults there do not count during the work" in err
    assert f"swap plan --failed {HOST} --even-if-healthy" in err
    assert (code, out.startswith("h03: maintenance until ")) == (ExitCode.DONE, True)
    (window,) = store.health.windows(now=at)
    assert (window.component, window.starts, window.ends, window.comment) == (HOST, at, at + 1800, "new fans")
    code, said = document(health, "maintain", "rack64", "--from", "2100-01-01", "--for", "1d", "--comment", "moving")
    assert (code, said["schema"], said["rack"], said["ended"]) == (0, "lumctl/maintenance/v1", "rack64", False)
    (later,) = said["windows"]
    assert (later["component"], later["open"], seconds_of(later["ends"]) - seconds_of(later["starts"])) == (
        "rack64",
        False,
        86_400,
    )
    assert health("maintain", HOST, "--end")[:2] == (0, "h03: maintenance ended\n")
    assert health("maintain", "rack64", "--end")[0] == 0
    assert store.health.windows(now=at) == ()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([HOST, "--for", "2h"], ExitCode.USAGE, "needs a reason"),
        ([HOST, "--comment", "x"], ExitCode.USAGE, "add --for 2h or --until 18:00"),
        ([HOST, "--comment", "x", "--for", "0s"], ExitCode.USAGE, "'0s' is not a valid duration"),
        ([HOST, "--comment", "x", "--for", "1h", "--from", "1999-01-01"], ExitCode.USAGE, "over"),
        ([HOST, "--comment", "x", "--for", "1h", "--from", "noon"], ExitCode.USAGE, "'noon' is not a valid time"),
        ([HOST, "--end"], ExitCode.REFUSED, "h03 is not in maintenance"),
        ([HOST, "--end", "--for", "1h"], ExitCode.USAGE, "--end takes no"),
        (["h33", "--comment", "x", "--for", "1h"], ExitCode.USAGE, "did you mean"),
        ([CIRCUIT, "--comment", "x", "--for", "1h"], ExitCode.USAGE, "is a circuit"),
    ],
)
def test_what_is_no_window_is_one_line_and_opens_none(health, store, arguments, code, words):
    done, out, err = health("maintain", *arguments)
    assert (done, out) == (code, "")
    assert words in err
    assert store.health.windows(now=0.0) == ()


# -- list -------------------------------------------------------------------------------------------------------------


def test_what_is_in_force_is_listed(health, rack):
    assert health("list")[:2] == (0, "")
    rack.lose_gpu(GPU)
    health("ack", GPU, "--comment", "part ordered")
    health("maintain", "rail0", "--for", "1h", "--comment", "fibres")
    _, out, _ = health("list")
    assert "part ordered" in out
    assert "gpu.lost (failed)" in out
    assert "fibres" in out
    assert health("list", "-o", "name")[1].split() == [GPU, "rail0"]
    code, said = document(health, "list")
    assert (code, said["schema"]) == (0, "lumctl/health/v1")
    assert [a["component"] for a in said["acknowledgements"]] == [GPU]
    covers = {"component": GPU, "rule": "gpu.lost", "about": "", "state": "failed"}
    assert said["acknowledgements"][0]["covers"] == [covers]
    assert [(w["component"], w["rack"], w["open"]) for w in said["maintenance"]] == [("rail0", "rack64", True)]


def test_a_simulator_has_attention_of_its_own(health, rack, monkeypatch):
    rack.lose_gpu(GPU)
    health("ack", GPU, "--comment", "on the rack")
    monkeypatch.setenv("LUMCTL_TARGET", "sim")
    assert document(health, "list")[1]["acknowledgements"] == []


# -- explain ----------------------------------------------------------------------------------------------------------


def test_a_state_is_explained_by_its_rules_readings_and_history(health, rack, store):
    rack.gpu(GPU, ecc_volatile_uncorrectable=2)
    at = rack.observation().at
    store.health.add_transitions(
        [Transition(at - 60, GPU, "accelerator", State.OK, State.DEGRADED, ("gpu.ecc",), "2 errors")]
    )
    health("ack", GPU, "--comment", "part ordered")
    code, said = document(health, "explain", GPU)
    assert (code, said["schema"], said["component"]) == (0, "lumctl/explanation/v1", GPU)
    (explained,) = said["explanations"]
    assert (explained["id"], explained["kind"], explained["state"]) == (GPU, "accelerator", "degraded")
    (finding,) = explained["findings"]
    assert (finding["rule"], finding["line"]["case"]) == ("gpu.ecc", "uncorrectable")
    assert finding["acknowledged"].endswith(": part ordered")
    assert finding["line"]["origin"]
    assert any(rule["rule"] == "gpu.ecc" and rule["found"] and rule["readings"] for rule in explained["rules"])
    (past,) = said["history"]
    assert (seconds_of(past["at"]), past["before"], past["after"], past["rules"]) == (
        at - 60,
        "ok",
        "degraded",
        ["gpu.ecc"],
    )
    code, out, _ = health("explain", GPU, "--ascii")
    assert code == 0
    for words in ("what to do", "origin", "acknowledged", "gpu.ecc", "2 errors", "target: rack"):
        assert words in out
    assert health("explain", GPU, "-o", "name")[1] == "gpu.ecc\n"


@pytest.mark.parametrize("component", ["h01-gpu0", HOST, LANE, "rail0", CIRCUIT])
def test_every_kind_of_component_can_be_explained(health, component):
    code, said = document(health, "explain", component)
    assert code == 0
    assert {each["id"] for each in said["explanations"]} == {component}
    assert health("explain", component)[0] == 0


def test_maintenance_is_part_of_the_explanation(health):
    health("maintain", HOST, "--for", "1h", "--comment", "new fans")
    _, said = document(health, "explain", GPU)
    assert said["explanations"][0]["state"] == "disabled"
    assert said["explanations"][0]["maintenance"].endswith(": new fans")
    assert "in maintenance: h03 by" in health("explain", GPU)[1]


@pytest.mark.parametrize(
    ("component", "words"), [("h03-gpu", "did you mean h03-gpu"), ("rack64", "is a rack"), ("", "no component ''")]
)
def test_what_is_no_component_is_not_explained(health, component, words):
    code, out, err = health("explain", component)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


# -- rules ------------------------------------------------------------------------------------------------------------


def test_every_rule_is_listed_with_its_origin(health):
    code, said = document(health, "rules")
    assert (code, said["schema"]) == (0, "lumctl/rules/v1")
    cases = [case for rule in said["rules"] for case in rule["cases"]]
    assert all(case["origin"] and case["edition"] and case["state"] in [*State] for case in cases)
    names = health("rules", "-o", "name")[1].split()
    assert names == [rule["rule"] for rule in said["rules"]]
    assert len(set(names)) == len(names)


def test_a_rule_or_a_family_of_rules_can_be_named(health):
    assert health("rules", "gpu.ecc", "-o", "name")[1] == "gpu.ecc\n"
    family = health("rules", "gpu", "-o", "name")[1].split()
    assert len(family) > 3
    assert all(name.startswith("gpu.") for name in family)
    wide = health("rules", "gpu.ecc", "-o", "wide")[1]
    assert "ORIGIN" in wide
    assert "in 7 d" in wide


def test_an_unknown_rule_names_the_nearest(health):
    code, out, err = health("rules", "gpu.eccc")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "did you mean gpu.ecc?" in err


def test_rules_need_no_inventory(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    assert run(["health", "rules", "-o", "name"]) == 0
    assert "gpu.xid" in capsys.readouterr().out
