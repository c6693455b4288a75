"""Writing phases to rails: what is tried again, what fails, and what ends with the group."""

import threading
from queue import SimpleQueue

import pytest

from lumctl.devices.errors import DeviceRefusedError, GatewayUnreachableError, InconsistentError, RackLeasedError
from lumctl.training.phase_control import Rail
from lumctl.training.phase_permission import PhasePermit
from lumctl.training.phase_writer import FAILS_AFTER_S, PhaseWriter

WITHIN_S = 10.0
PERMIT = PhasePermit("plan-1", (Rail(("rail0", "rail1"), {}), Rail(("mesh",), {})), "a")


class Gateway:
    """Answers each write as told, and keeps what it wrote."""

    def __init__(self):
        self.errors = []
        """The errors of the next writes."""
        self.written = []
        self.now = 0.0
        self.results = SimpleQueue()
        self.writer = PhaseWriter(
            self.light,
            lambda _permit, rail, number: self.results.put(("confirmed", rail, number)),
            lambda _permit, rail, number, why: self.results.put(("failed", rail, number, why)),
            clock=lambda: self.now,
        )

    def light(self, plan, device, phase):
        if self.errors:
            raise self.errors.pop(0)
        self.written.append((plan, device, phase))

    def result(self):
        return self.results.get(timeout=WITHIN_S)


@pytest.fixture
def gateway():
    made = Gateway()
    made.writer.begin(PERMIT)
    yield made
    made.writer.close()


def test_a_change_is_confirmed_once_all_devices_of_its_rail_are_written(gateway):
    gateway.writer.change(0, "b", 7)
    assert gateway.result() == ("confirmed", 0, 7)
    assert sorted(gateway.written) == [("plan-1", "rail0", "b"), ("plan-1", "rail1", "b")]


@pytest.mark.parametrize("error", [RackLeasedError, GatewayUnreachableError, InconsistentError])
def test_what_may_pass_is_tried_again(gateway, error):
    gateway.errors = [error("not now")] * 3
    gateway.writer.change(1, "b", 1)
    assert gateway.result() == ("confirmed", 1, 1)
    assert gateway.written == [("plan-1", "mesh", "b")]


def test_a_refusal_fails_at_once(gateway):
    gateway.errors = [DeviceRefusedError("no plan permits it")]
    gateway.writer.change(1, "b", 1)
    assert gateway.result() == ("failed", 1, 1, "no plan permits it")
    assert gateway.written == []


def test_a_device_that_does_not_come_back_in_time_fails_and_a_held_lease_never_does(gateway):
    class Passing(list):
        """Errors between which time passes."""

        def pop(self, at):
            gateway.now += FAILS_AFTER_S
            return super().pop(at)

    gateway.errors = Passing([RackLeasedError("held")] * 3)
    gateway.writer.change(1, "b", 1)
    assert gateway.result() == ("confirmed", 1, 1)
    gateway.errors = Passing([GatewayUnreachableError("nobody there")] * 3)
    gateway.writer.change(1, "a", 2)
    assert gateway.result() == ("failed", 1, 2, "nobody there")


def test_what_waits_ends_with_the_group_and_what_has_begun_is_awaited(gateway):
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        assert go_on.wait(WITHIN_S)

    gateway.writer._light = slow
    gateway.writer.change(1, "b", 1)
    assert begun.wait(WITHIN_S)
    stopped = threading.Thread(target=gateway.writer.stop)
    stopped.start()
    stopped.join(0.05)
    assert stopped.is_alive()
    go_on.set()
    stopped.join(WITHIN_S)
    assert gateway.result() == ("confirmed", 1, 1)
    gateway.writer.change(1, "b", 2)
    assert gateway.results.empty()
