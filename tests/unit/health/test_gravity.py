"""Of several findings the gravest is named: first of a component, by an incident, and among incidents."""

import random
from importlib.resources import files
from itertools import permutations

import pytest
import yaml

from lumctl.daemon.notifications.message import cases_of
from lumctl.health.rulebook import found, rulebook
from lumctl.health.states import DEFAULT_GRAVITY, Finding, State, gravest_first, weight

HOST, GPU = "h03", "h03-gpu2"


def finding(rule: str, case: str) -> Finding:
    return found(GPU, rule, case, f"{rule}/{case}", since=1.0)


def test_every_rule_that_can_find_a_fault_has_a_gravity_of_its_own():
    text = (files("lumctl.health") / "rules" / "gravity.yaml").read_text()
    names = [name for listed in yaml.safe_load(text)["gravity"].values() for name in listed]
    assert len(names) == len(set(names))
    known = {line.rule for line in rulebook().lines()} | {f"{line.rule}/{line.case}" for line in rulebook().lines()}
    assert set(names) <= known
    faults = [
        line for line in rulebook().lines() if line.state is not State.OK and line.rule.split(".")[0] != "incident"
    ]
    assert {line.rule for line in faults if not {line.rule, f"{line.rule}/{line.case}"} & set(names)} == set()


def test_a_rule_of_a_plug_in_stands_in_the_middle():
    assert finding("gpu.xid", "unknown").gravity == DEFAULT_GRAVITY
    assert Finding(GPU, "acme.lost", State.FAILED, "", "", 1.0).gravity == DEFAULT_GRAVITY


GRAVER = [
    (("gpu.xid", "restart-machine"), ("gpu.lost", "not-listed")),
    (("gpu.lost", "not-listed"), ("gpu.row-remap", "failed")),
    (("gpu.lost", "not-listed"), ("gpu.temperature", "core")),
    (("gpu.xid", "reset-gpu"), ("gpu.xid-repeated", "many-programs")),
    (("gpu.xid", "reset-gpu"), ("gpu.recovery-action", "reset")),
    (("gpu.xid", "check-seating"), ("gpu.xid-repeated", "same-unit")),
    (("gpu.hung", "no-progress"), ("gpu.settings", "persistence")),
    (("gpu.ecc", "uncorrectable"), ("gpu.temperature", "core")),
    (("gpu.lost", "named"), ("gpu.silent", "errors")),
    (("host.unreachable", "no-session"), ("gpu.lost", "named")),
    (("device.unreachable", "no-answer"), ("circuit.dark", "no-light")),
    (("link.tx-power", "dark"), ("link.rx-power", "dark")),
    (("link.rx-power", "dark"), ("circuit.dark", "no-light")),
    (("host.driver", "mismatch"), ("host.mount", "missing")),
]


@pytest.mark.parametrize(("graver", "lesser"), GRAVER)
def test_the_graver_of_two_comes_first_in_either_order(graver, lesser):
    pair = [finding(*graver), finding(*lesser)]
    assert gravest_first(pair)[0] is gravest_first(reversed(pair))[0] is pair[0]


def test_a_component_names_its_gravest_finding_whatever_the_order():
    drawn = random.Random(3)  # noqa: S311 - a seeded sample, no secret
    lines = [line for line in rulebook().lines() if line.rule.startswith(("gpu.", "host."))]
    for _ in range(50):
        several = [finding(each.rule, each.case) for each in drawn.sample(lines, 4)]
        firsts = {weight(gravest_first(order)[0]) for order in permutations(several)}
        assert firsts == {max(map(weight, several))}


def test_findings_of_one_accelerator(watched):
    watched.rack.gpu(GPU, temperature_c=95.0, ecc_volatile_uncorrectable=3, remap_failed=True)
    watched.rack.xid(GPU, 79)
    findings = watched.look().accelerators[GPU].findings
    assert [f.rule for f in findings] == ["gpu.xid", "gpu.row-remap", "gpu.ecc", "gpu.temperature"]
    watched.rack.gpu(GPU, temperature_c=40.0)
    assert [f.rule for f in watched.look(5.0).accelerators[GPU].findings][-1] == "gpu.temperature", "it is remembered"


@pytest.mark.parametrize("number", range(4))
def test_a_lost_accelerator_is_named_beside_an_incident_of_hot_ones(rack, watch, number):
    for each in range(4):
        rack.gpu(f"{HOST}-gpu{each}", temperature_c=95.0)
    lost = f"{HOST}-gpu{number}"
    rack.xid(lost, 79)
    watched = watch(rack)
    (incident,) = watched.report.incidents
    assert (incident.id, incident.rule, incident.state) == (f"host:{HOST}", "gpu.temperature", State.DEGRADED)
    assert lost not in incident.members, "what it has is no fault that its host explains"
    assert [f.incident for f in watched.report.accelerators[lost].findings] == [None, None]
    assert [case.component for case in cases_of(watched.report).values()] == [lost, HOST]


def test_an_incident_names_the_gravest_of_its_findings(rack, watch):
    rack.probe(HOST, "kernel", "denied")
    for each in range(4):
        rack.gpu(f"{HOST}-gpu{each}", temperature_c=95.0)
        rack.xid(f"{HOST}-gpu{each}", 95)
    (incident,) = watch(rack).report.incidents
    assert (incident.id, incident.rule, incident.state) == (f"host:{HOST}", "gpu.xid", State.FAILED)
    assert "XID 95" in incident.summary
    assert set(incident.members) == {HOST, *(f"{HOST}-gpu{each}" for each in range(4))}


def test_incidents_are_named_gravest_first(rack, watch):
    for host in ("h01", "h02", "h03"):
        for each in range(4):
            rack.gpu(f"{host}-gpu{each}", temperature_c=95.0)
    for each in range(4):
        rack.gpu(f"h07-gpu{each}", ecc_volatile_uncorrectable=3)
    rack.host("h09", reachable=False, error="no route to host", probes={})
    report = watch(rack).report
    assert [incident.cause for incident in report.incidents] == ["h09", "h07", "h01", "h02", "h03"]
