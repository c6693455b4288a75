"""Phases of a job in an inventory: what they become, and what is wrong with them."""

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.phase_records import phase_of, with_phases
from lumctl.inventory.wiring import (
    circuits_of,
    initial_assignment,
    job_circuits,
    links_of_all_phases,
    record_misfit,
)
from tests.unit.inventory.conftest import SMALL

PHASES = """\
jobs:
  - name: job
    ranks: h[1-3]-gpu0
    phases:
      first:
        - {kind: pairs, pairs: [[0, 1]]}
      second:
        - {kind: pairs, pairs: [[1, 2]]}
    order: [first, second, first]
"""
TEXT = SMALL[: SMALL.index("jobs:")] + PHASES


def test_a_job_has_the_links_of_the_first_phase_of_its_order(write):
    job = load_inventory(write(TEXT.replace("[first, second, first]", "[second, first]"))).jobs["job"]
    assert [phase.name for phase in job.phases] == ["first", "second"]
    assert job.order == ("second", "first")
    assert job.links == job.phases[1].links


def test_without_an_order_each_phase_occurs_once_as_listed(write):
    job = load_inventory(write(TEXT.replace("    order: [first, second, first]\n", ""))).jobs["job"]
    assert job.order == ("first", "second")


def test_phases_share_the_lanes_of_their_ranks(write):
    inventory = load_inventory(write(TEXT))
    job = inventory.jobs["job"]
    first, second = (job_circuits(inventory, job.in_phase(phase), job.ranks) for phase in job.phases)
    assert [circuit.ports for circuit in (*first, *second)] == [(0, 2), (2, 4)]
    assert {(link.a_rank, link.b_rank) for link in links_of_all_phases(job)} == {(0, 1), (1, 2)}


def test_the_example_joins_each_rank_in_both_phases():
    inventory = load_inventory(example("rails"))
    job = inventory.jobs["train"]
    for phase in job.phases:
        circuits = job_circuits(inventory, job.in_phase(phase), job.ranks)
        assert sorted((end.device, end.port) for c in circuits for end in (c.a, c.b)) == [
            (rail, port) for rail in ("rail0", "rail1") for port in range(4)
        ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("order: [first, second, first]", "order: [first, secnd]", "36:20: phase 'secnd' is not known; did you mean"),
        ("order: [first, second, first]", "order: [first]", "34:7: phase 'second' does not occur in 'order'"),
        ("order: [first, second, first]", "order: second", "36:12: found 'second', expected a list"),
        ("order: [first, second, first]", "links: [{kind: ring}]", "32:7: found both links and phases, expected one"),
        ("second", "se cond", "34:7: 'se cond' cannot be a name"),
        ("[[1, 2]]}", "[[1, 2], [1, 0], [1, 2]]}", "35:11: phase second: link job/1-2 needs lane 2 of h2-gpu0"),
        ("[[1, 2]]}", "[[1, 7]]}", "35:33: found rank 7, expected 0 to 2"),
        ("[[1, 2]]}", "[[1, 2], [1, 2]]}", "34:7: phase second: link job/1-2 occurs twice, expected each link once"),
        ("        - {kind: pairs, pairs: [[1, 2]]}\n", "        []\n", "35:9: found a list of length 0, expected at"),
    ],
)
def test_what_is_wrong_with_phases(problems_of, old, new, expected):
    text = TEXT.replace(old, new)
    assert text != TEXT
    (problem,) = problems_of(text)
    assert f"{problem.mark.line}:{problem.mark.column}: {problem.message}; {problem.hint}".startswith(expected)


def test_links_of_one_phase_share_no_port(problems_of):
    ring = TEXT.replace("[[1, 2]]}", "[[1, 2]]}\n        - {kind: ring, ranks: [0, 1, 2]}")
    messages = [problem.message for problem in problems_of(ring)]
    assert "phase second: links job/1-2 and job/0-1 both need port 2 of mesh, expected a lane for each" in messages


def test_an_order_without_phases(problems_of, small):
    (problem,) = problems_of(small + "    order: [x]\n")
    assert problem.message == "found an order without phases, expected 'phases'"


def test_a_record_says_which_phase_has_light(write):
    inventory = load_inventory(write(TEXT))
    placed = initial_assignment(inventory)
    assert [circuit.id for circuit in circuits_of(inventory, placed)] == ["job/0-1"]
    lit = {**placed, phase_of("job"): ("second",)}
    assert [circuit.id for circuit in circuits_of(inventory, lit)] == ["job/1-2"]
    assert with_phases(inventory, lit).jobs["job"].links == inventory.jobs["job"].phases[1].links
    assert with_phases(with_phases(inventory, lit), placed) == inventory


def test_a_record_of_a_phase_that_there_is_no_more_does_not_fit_and_is_ignored(write):
    inventory = load_inventory(write(TEXT))
    gone = {**initial_assignment(inventory), phase_of("job"): ("third",)}
    assert record_misfit(inventory, phase_of("job"), ("third",)) == "it has no phase third"
    assert record_misfit(inventory, phase_of("job"), ()) is None
    assert record_misfit(inventory, phase_of("nobody"), ("first",)) == "it has no phase first"
    assert [circuit.id for circuit in circuits_of(inventory, gone)] == ["job/0-1"]


RAIL = """\
lumctl: 1
racks: {r1: }
hosts:
  - name: h[1-256]
    accelerators: [{id: "{host}-gpu0", model: X100, memory_gib: 80, pci: "0000:17:00.0"}]
devices:
  - {id: rail, kind: switch, driver: x, address: "x:1", port_count: 192, input_count: 192}
transponders:
"""


def lanes(name, interface, first, last):
    ports = ", ".join(map(str, range(first, last)))
    which = f'id: "h[1-256]-{name}", accelerator: "h[1-256]-gpu0", interface: {interface}, device: rail'
    return f"  - {{{which}, port: [{ports}]}}\n"


def test_a_rail_with_more_ports_than_its_switch_says_which_split_is_needed(problems_of):
    problems = problems_of(RAIL + lanes("a", "eth2", 0, 256) + lanes("b", "eth3", 256, 512))
    (problem,) = problems
    assert problem.message == "the lanes at rail need 512 ports, but it has 192"
    assert problem.hint is not None
    assert problem.hint.startswith("split it into at least 3 devices with at most 192 lane ports each")
    assert problem.mark.line == 9


def test_a_wrong_port_of_a_switch_that_is_large_enough_is_named(problems_of, small):
    (problem,) = problems_of(small.replace("port: [1, 3, 5]", "port: [1, 3, 99]"))
    assert problem.message.startswith("found port 99 of mesh, expected 0 to ")
