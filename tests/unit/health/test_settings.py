"""Settings in which a GPU differs from most others of its kind in its rack."""

import pytest

from lumctl.health.states import State

GPU = "h03-gpu2"
USUAL = {
    "product": "NVIDIA H100 80GB HBM3",
    "ecc_enabled": True,
    "persistence_enabled": True,
    "power_limit_w": 700.0,
    "sm_clock_max_mhz": 1980.0,
    "application_clock_mhz": 1980.0,
}


@pytest.fixture
def alike(rack):
    """Every GPU of the rack has the same settings."""
    for name in rack.inventory.accelerators:
        rack.gpu(name, **USUAL)
    return rack


def told(rack, name=GPU):
    return [(finding.rule, finding.case) for finding in rack.report().accelerators[name].findings]


@pytest.mark.parametrize(
    ("fields", "case", "words"),
    [
        ({"ecc_enabled": False}, "ecc", "ECC is off; 63 of 64 GPUs of its model have on"),
        ({"persistence_enabled": False}, "persistence", "persistence mode is off"),
        ({"power_limit_w": 500.0}, "power-limit", "power limit 500 W; 63 of 64 GPUs of its model have 700"),
        ({"sm_clock_max_mhz": 1755.0}, "max-clock", "1755 MHz"),
        ({"application_clock_mhz": 1200.0}, "application-clock", "1200 MHz"),
    ],
)
def test_one_gpu_that_differs_is_degraded_and_no_other(alike, fields, case, words):
    alike.gpu(GPU, **fields)
    report = alike.report()
    assert told(alike) == [("gpu.settings", case)]
    assert words in report.accelerators[GPU].findings[0].evidence
    assert {h.state for name, h in report.accelerators.items() if name != GPU} == {State.OK}


@pytest.mark.parametrize(
    "fields",
    [
        {"power_limit_w": 699.8},
        {"power_limit_w": None, "ecc_enabled": None},
        {"product": "NVIDIA A100-SXM4-80GB", "power_limit_w": 400.0, "ecc_enabled": False},
        {"product": None, "power_limit_w": 400.0},
    ],
)
def test_what_is_alike_not_told_or_of_another_kind_is_no_difference(alike, fields):
    alike.gpu(GPU, **fields)
    assert alike.report().accelerators[GPU].state is State.OK


def test_without_a_majority_nobody_differs(alike):
    for number, name in enumerate(alike.inventory.accelerators):
        alike.gpu(name, power_limit_w=700.0 if number % 2 else 500.0, ecc_enabled=False)
    assert {health.state for health in alike.report().accelerators.values()} == {State.OK}


def test_what_nobody_reads_any_more_is_no_majority(alike):
    for number, name in enumerate(alike.inventory.accelerators):
        if number >= 4:
            alike.gpu(name, taken_at=0.0)
    first, second, *_ = alike.inventory.accelerators
    alike.gpu(first, power_limit_w=500.0)
    alike.gpu(second, power_limit_w=500.0)
    assert told(alike, first) == []
