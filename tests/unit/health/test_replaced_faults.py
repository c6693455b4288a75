"""The faults because of which an accelerator is replaced, and what shows that they are gone."""

import pytest
from looks import Looks

from lumctl.health.replaced_faults import ReplacedFault, lanes_to_light, unproven
from lumctl.health.states import ComponentHealth, HealthReport, State
from lumctl.inventory.load import example, load_inventory

DARK = ReplacedFault("s1-gpu0", "link", "s1-gpu0-a", "link.tx-power", "sends no light")
LOST = ReplacedFault("s1-gpu0", "accelerator", "s1-gpu0", "gpu.lost", "fell off the bus")
DOWN = ReplacedFault("s1-gpu0", "link", "s1-gpu0-a", "link.down", "eth2 is down though light arrives")
WEAK = ReplacedFault("s1-gpu0", "circuit", "finetune/0-1", "", "weak light")


def report(**lane) -> HealthReport:
    link = ComponentHealth("s1-gpu0-a", "link", State.DISABLED, disabled=True, **lane)
    gpu = ComponentHealth("s1-gpu0", "accelerator", State.DISABLED, disabled=True, seen=frozenset({"host", "gpu"}))
    return HealthReport(1.0, {}, {gpu.id: gpu}, {link.id: link}, {}, {})


@pytest.mark.parametrize(
    ("lane", "left"),
    [
        ({}, (DARK, WEAK)),  # not read
        ({"seen": frozenset({"host", "net"})}, (DARK, WEAK)),  # its module was not
        ({"seen": frozenset({"host", "optics"}), "if_used": frozenset({"link.tx-power"})}, (DARK, WEAK)),  # not lit
        ({"seen": frozenset({"host", "optics"}), "if_used": frozenset({"link.rx-power"})}, (WEAK,)),
    ],
)
def test_a_fault_is_gone_only_if_a_reading_shows_it(lane, left):
    assert unproven(report(**lane), (DARK, LOST, WEAK)) == left


@pytest.mark.parametrize(("found", "left"), [({"link.rx-power"}, (DOWN,)), ((), ())])
def test_a_carrier_is_not_shown_without_light(found, left):
    lane = {"seen": frozenset({"host", "net"}), "if_used": frozenset(found)}
    assert unproven(report(**lane), (DOWN,)) == left


def test_light_is_of_use_only_if_it_shows_all_that_is_unproven():
    assert lanes_to_light((DARK,)) == ("s1-gpu0-a",)
    assert lanes_to_light((DARK, WEAK)) == ()


def test_a_healthy_accelerator_is_replaced_because_of_no_fault():
    seen = Looks(load_inventory(example("prototype"))).look(1.0, failed=["s1-gpu0"])
    assert seen.faults_of("s0-gpu0") == ()
    assert {(fault.component, fault.rule) for fault in seen.faults_of("s1-gpu0")} >= {("s1-gpu0", "gpu.lost")}
