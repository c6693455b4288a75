"""The ticket about a component: what failed, where, since when, evidence, affected ranks, what was done and is next."""

from dataclasses import replace

import pytest
from rack_states import DEAD, LOST, START, STATES, TRANSMITTER

from lumctl.fleet.readings import XidEvent
from lumctl.health.states import State
from lumctl.runbook.ticket import runs_about, ticket_text
from lumctl.store import StoredRun

SPARE = "h16-gpu2"


def run(number, plan, **changed):
    values = {
        "id": f"swap-{number:04}",
        "rack": "rack64",
        "target": "sim",
        "kind": "swap",
        "title": f"train-a: run {number}",
        "plan": plan,
        "plan_digest": "1" * 64,
        "inventory_digest": "0" * 64,
        "who": "ops@bastion",
        "version": "0.1.0",
        "fence": number,
        "state": "done",
        "started_at": START - 40,
        "ended_at": START - 38,
        "undone_by": None,
    }
    return StoredRun(**{**values, **changed})


REPLACES = {"replacements": [{"failed": LOST, "spare": SPARE, "job": "train-a", "rank": 18}]}
ELSEWHERE = {"replacements": [{"failed": "h01-gpu0", "spare": "h16-gpu0", "job": "train-a", "rank": 0}]}
MOVES_LIGHT = {
    "circuits": {"add": [{"id": "train-a/17-18", "ends": [{"lane": f"{LOST}-a", "device": "rail2"}]}], "remove": []}
}


def test_a_lost_gpu(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    text = ticket_text(STATES["lost-gpu"](), LOST, [run(2, ELSEWHERE), run(1, REPLACES)])
    lines = text.splitlines()
    assert lines[0].startswith(f"# {LOST} is failed: ")
    assert "- Where: rack rack64, host h03, index 2" in lines
    assert f"- Affected: train-a rank 18 runs on {LOST}" in lines
    assert any(line.startswith("- Since: 2026-11-1") for line in lines)
    assert any(line.startswith("- swap-0001: done: train-a: run 1; by ops@bastion, ") for line in lines)
    assert "swap-0002" not in text
    assert f"- lumctl swap plan --failed {LOST} --target sim" in lines
    assert "- lumctl runbook export swap-0001 -o md --target sim" in lines


def test_after_the_swap_it_says_where_the_rank_runs_and_what_undid_it():
    seen = STATES["lost-gpu"]()
    ranks = tuple(SPARE if name == LOST else name for name in seen.assignment["train-a"])
    seen = replace(seen, assignment={**seen.assignment, "train-a": ranks})
    text = ticket_text(seen, LOST, [run(1, REPLACES, state="undone", undone_by="rollback-0001")])
    assert f"- Affected: {LOST} was train-a rank 18, which runs on {SPARE} now" in text
    assert "- swap-0001: undone, undone by rollback-0001: train-a: run 1" in text


def test_a_dead_host_names_each_rank_on_it():
    text = ticket_text(STATES["dead-host"](), DEAD, [])
    assert text.startswith(f"# {DEAD} is ")
    assert text.count(f" runs on {DEAD}-gpu") == 4
    assert "- no run has changed it" in text


def test_a_link_names_its_interface_and_device():
    text = ticket_text(STATES["dark-transmitter"](), TRANSMITTER, [])
    assert "sends no light (-inf dBm)" in text
    assert "- Where: host h05, interface " in text


def test_what_is_well_says_that_no_rule_finds_a_fault():
    text = ticket_text(STATES["all-ok"](), LOST, [])
    assert text.startswith(f"# {LOST} is ok\n")
    assert "- no rule finds a fault now" in text
    assert "Since" not in text


def test_texts_of_hosts_are_escaped():
    seen = STATES["lost-gpu"]()
    accelerator = seen.inventory.accelerators[LOST]
    host = seen.snapshot.hosts[accelerator.host]
    event = XidEvent(START, accelerator.pci, 79, "\x1b]52;c;Z28=\x07gone\n# forged")
    hosts = {**seen.snapshot.hosts, accelerator.host: replace(host, xids=(event,))}
    text = ticket_text(replace(seen, snapshot=replace(seen.snapshot, hosts=hosts)), LOST, [])
    assert r"- kernel log: \x1b]52;c;Z28=\x07gone\n# forged" in text
    assert all(line.isprintable() for line in text.splitlines())


def test_the_worst_state_is_told_by_the_findings_of_those_affected_where_the_cause_has_none():
    seen = STATES["dark-rack"]()
    (incident,) = [each for each in seen.report.incidents if each.cause == "rack64"]
    text = ticket_text(seen, "rack64", [])
    assert f"- Incident: {incident.id} since " in text
    assert State.UNKNOWN in text.splitlines()[0] or State.FAILED in text.splitlines()[0]


@pytest.mark.parametrize(
    ("component", "numbers"),
    [
        (LOST, [3, 1]),
        (SPARE, [1]),
        ("h03", [3, 1]),
        (f"{LOST}-a", [3]),
        ("rail2", [3]),
        ("train-a", [2, 1]),
        ("train-a/17-18", [3]),
        ("h02-gpu2", []),
    ],
)
def test_the_runs_that_concern_a_component(component, numbers):
    runs = [run(3, MOVES_LIGHT), run(2, ELSEWHERE), run(1, REPLACES)]
    found = runs_about(STATES["all-ok"]().inventory, component, runs)
    assert [each.fence for each in found] == numbers
