"""The NETCONF driver of Polatis switches on our own twin: with and without a candidate, and when it misbehaves."""

import re

import pytest
from polatis_bench import DARK, LIT, PORTS, Bench

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.testing import SwitchContract, SwitchUnderTest
from lumctl.devices.types import Alarm
from lumctl.sim.world.misbehaviour import Misbehaviour


@pytest.fixture
def make_bench(tmp_path):
    benches = []

    def make(*, inputs=8, candidate=True):
        benches.append(Bench(tmp_path, inputs=inputs, candidate=candidate))
        return benches[-1]

    yield make
    for bench in benches:
        bench.close()


@pytest.fixture
def bench(make_bench):
    return make_bench()


class TestNetconf(SwitchContract):
    @pytest.fixture(params=[(8, True), (PORTS, False)], ids=["candidate", "any to any, running only"])
    def switch(self, request, make_bench) -> SwitchUnderTest:
        inputs, candidate = request.param
        bench = make_bench(inputs=inputs, candidate=candidate)
        return SwitchUnderTest(
            bench.driver(),
            port_count=PORTS,
            input_count=inputs,
            truth=lambda: bench.state.joins,
            other=bench.driver(),
            wrong_size=bench.driver(ports=PORTS * 2),
            lit=LIT,
            dark=DARK,
        )


def test_it_says_maker_and_model(bench):
    assert bench.driver().identify() == "Polatis I-SIM-8x8-switch 000000 0.0, 16 ports"


def test_alarms_are_what_the_switch_calls_active(bench):
    assert bench.driver().read_alarms() == ()
    bench.state.failed[4] = 1_800_000_000.0
    alarm = Alarm("port 5 has failed", source="NOTIF_SYSTEM", since=1_800_000_000.0)
    assert bench.driver().read_alarms() == (alarm,)
    reading = bench.driver().read_ports()[4]
    assert (reading.enabled, reading.failed) == (None, True)


@pytest.mark.parametrize("candidate", [True, False])
def test_a_refused_change_has_changed_nothing(make_bench, candidate):
    bench = make_bench(candidate=candidate)
    driver = bench.driver()
    staged = driver.stage({0: 8})
    bench.conduct = Misbehaviour(refuses=True)
    with pytest.raises(DeviceRefusedError, match="nothing changed"):
        driver.commit(staged)
    with pytest.raises(DeviceRefusedError):
        driver.set_port(0, enabled=False)
    bench.conduct = Misbehaviour()
    driver.commit(staged)
    assert bench.state.joins == {0: 8}


@pytest.mark.parametrize("candidate", [True, False])
def test_a_no_to_reading_after_the_write_is_no_refusal_of_the_change(make_bench, candidate):
    bench = make_bench(candidate=candidate)
    driver, written = bench.driver(), []

    def spoil(operation, answer):
        if operation in {"commit", "edit-config"}:
            written.append(operation)
        if not written or operation != "get":
            return answer
        error = b"<rpc-error><error-tag>operation-failed</error-tag><error-severity>error</error-severity></rpc-error>"
        body, found = re.subn(rb"<(\w+:)?data\b.*</(\w+:)?data>", error, answer.split(b"\n", 2)[2], flags=re.DOTALL)
        assert found == 1
        body = body.removesuffix(b"\n##\n")
        return b"\n#%d\n%b\n##\n" % (len(body), body)

    bench.server.spoil = spoil
    staged = driver.stage({0: 8})
    with pytest.raises(OutcomeUnknownError, match="sent to it just before"):
        driver.commit(staged)
    assert bench.state.joins == {0: 8}


def test_a_lie_is_found_out_at_once(bench):
    driver = bench.driver()
    bench.conduct = Misbehaviour(lying=True)
    with pytest.raises(InconsistentError):
        driver.commit(driver.stage({0: 8}))
    with pytest.raises(InconsistentError):
        driver.set_port(0, enabled=False)
    with pytest.raises(InconsistentError):
        driver.set_label(0, "h1")


def test_a_label_that_no_switch_takes_is_refused_before_it_is_sent(bench):
    driver = bench.driver()
    for label in ("é", "line\nend", " outer", "outer ", "x" * 129):
        with pytest.raises(DeviceRefusedError):
            driver.set_label(0, label)
    assert bench.server.sessions() == 0


def test_a_switch_that_went_away_is_unreachable(bench):
    driver = bench.driver()
    driver.read_circuits()
    bench.server.service.shut()
    with pytest.raises(DeviceUnreachableError):
        driver.read_circuits()
    bench.server.service.open()
    assert driver.read_circuits() == {}
