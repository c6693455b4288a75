"""A campaign finds out drivers that believe too much, and does not pass when nothing went wrong."""

import contextlib

import pytest
from lumctl_polatis import PolatisScpi
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.errors import DeviceError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign import Rig, TroubleCount, run_sequence
from lumctl.devices.testing.campaign_settings import Knob, SettingsRig, run_settings
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.types import Receipt
from lumctl.devices.ways import Direct
from lumctl.inventory.wiring import FREE
from lumctl.sim.power.driver import SimPower
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.switch import SwitchState

PORTS, INPUTS, PUCS = 16, 8, 12


class Hopeful(SmartlightMesh):
    """Takes no answer for a good one."""

    def commit(self, staged, *, revert_after_s=None):
        with contextlib.suppress(OutcomeUnknownError):
            return super().commit(staged, revert_after_s=revert_after_s)
        return Receipt(staged, revert_armed=False)


class Forgetful(SmartlightMesh):
    """Keeps what it knew when an outcome is in doubt."""

    def commit(self, staged, *, revert_after_s=None):
        held = dict(self._record)
        try:
            return super().commit(staged, revert_after_s=revert_after_s)
        except OutcomeUnknownError:
            self._record = held
            raise


class Sweeping(PolatisScpi):
    """Replaces all joins by its own."""

    def commit(self, staged, *, revert_after_s=None):
        with self._client.turn() as turn:
            turn.write(":oxc:swit:disc:all")
        return super().commit(staged, revert_after_s=revert_after_s)


class Thief(PolatisScpi):
    """Asks nobody whose an egress port is."""

    def stage(self, joins):
        staged = super().stage(dict.fromkeys(joins))
        return type(staged)(tuple(type(c)(c.ingress, c.before, joins[c.ingress]) for c in staged.changes), staged.token)


class Trusting(SimPower):
    """Says yes whatever the controller said."""

    def set_power(self, on, *, force=False):
        with contextlib.suppress(DeviceError):
            super().set_power(on, force=force)


def run(one, rig, sequences=100):
    tally = TroubleCount()
    for seed in range(sequences):
        one(rig, seed, tally)
    return tally


@pytest.mark.parametrize(
    ("driver", "said"), [(Hopeful, "the expected and the true state differ"), (Forgetful, "the driver claims to know")]
)
def test_a_mesh_that_is_believed_too_much(serve, make_twin, driver, said):
    twin = make_twin(PUCS)
    way = FaultyWay(Direct(serve(twin)))

    def opened(states):
        known = {puc: type(twin.states[puc])(state) for puc, state in states.items()}
        return driver(DriverContext("m1", "m1", way, puc_count=PUCS, timeout_s=2.0, known_states=known))

    rig = Rig(opened, lambda: {puc: str(s) for puc, s in twin.states.items()}, range(PUCS), ("=", "x"), way)
    rig.most_bytes = 100
    with pytest.raises(AssertionError, match=said):
        run(run_sequence, rig)


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (Sweeping, "cells that belong to somebody else have changed"),
        (Thief, "that belongs to somebody else was staged"),
    ],
)
def test_a_switch_whose_other_joins_are_not_left_alone(request, driver, said):
    state = SwitchState(PORTS, INPUTS)
    state.join([(0, 9)])
    twin = ScpiSwitch(state.held)
    request.addfinalizer(twin.close)
    twin.service.open()
    way = FaultyWay(Direct(twin.service.address))
    context = DriverContext("x1", "x1", way, port_count=PORTS, input_count=INPUTS)
    rig = Rig(
        lambda _: driver(context),
        lambda: {ingress: str(state.joins.get(ingress, FREE)) for ingress in range(INPUTS)},
        range(1, INPUTS),
        [str(port) for port in range(INPUTS, PORTS)],
        way,
    )
    with pytest.raises(AssertionError, match=said):
        run(run_sequence, rig)


def power_rig(bench, driver, **more):
    context = bench.context("bmc", component="slot-1")
    return SettingsRig(
        lambda: driver(context),
        lambda opened: {"on": opened.read_power().on},
        lambda: {"on": bench.world.is_on("h1")},
        {"on": Knob((True, False), lambda opened, on: opened.set_power(on))},
        bench.way,
        **more,
    )


def test_a_controller_that_is_trusted(bench):
    with pytest.raises(AssertionError, match="the expected and the true state differ"):
        run(run_settings, power_rig(bench, Trusting))


def test_somebody_else_s_machine_that_changes(bench):
    def others():
        bench.world.switch_host("h2", on=not bench.world.is_on("h2"))
        return bench.world.is_on("h2")

    with pytest.raises(AssertionError, match="settings that belong to somebody else have changed"):
        run(run_settings, power_rig(bench, SimPower, others=others))


def test_a_campaign_in_which_nothing_went_wrong_does_not_pass(bench):
    bench.way.tcp = bench.way._way.tcp  # no fault is met on this way
    tally = run(run_settings, power_rig(bench, SimPower), 20)
    tally.require("done", faults=False)
    with pytest.raises(AssertionError, match=r"these occurred less than 1 times: .*cut-answer"):
        tally.require("done")
    with pytest.raises(AssertionError, match="OutcomeUnknownError"):
        tally.require("OutcomeUnknownError", faults=False)
