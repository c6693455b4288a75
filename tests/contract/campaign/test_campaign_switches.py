"""Seeded fault sequences on the drivers of switches; see test_campaign_meshes.py."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from lumctl_polatis import PolatisNetconf, PolatisScpi
from lumctl_polatis.model import JOINS, NS, read_joins

from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign import Rig
from lumctl.devices.testing.campaign_settings import Knob, SettingsRig
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.ways import Direct
from lumctl.inventory.wiring import FREE
from lumctl.sim import ssh
from lumctl.sim.netconf import NetconfServer
from lumctl.sim.switches.driver import SimSwitch
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.switches.services import SwitchTree
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.switch import SwitchState

PORTS, INPUTS = 16, 8
OWN = range(3, INPUTS)
OF_OTHERS = {0: 9, 2: 14}
CONDUCT = {habit: Misbehaviour(**{habit: True}) for habit in ("down", "lying", "refuses", "half", "cuts")}
OURS = 5
OF_PORTS = ("done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "InconsistentError")
EVERY = (
    *("done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "InconsistentError", "undone"),
    *("theft refused", "read again"),
)


def switch_rig(driver, joins, way, **more):
    """``driver`` opens a driver, ``joins`` gives what the switch holds."""

    def truth():
        held = joins()
        return {ingress: str(held.get(ingress, FREE)) for ingress in range(INPUTS)}

    return Rig(lambda _: driver(), truth, OWN, [str(port) for port in range(INPUTS, PORTS)], way, **more)


class Bench:
    """A switch and its conduct. ``way`` leads to it, once it is served."""

    def __init__(self, inputs):
        self.state = SwitchState(PORTS, inputs)
        self.state.join(OF_OTHERS.items())
        self.conduct = Misbehaviour()

    def misbehave(self, habit):
        self.conduct = CONDUCT[habit] if habit else Misbehaviour()

    def joins(self):
        with self.state.held() as state:
            return dict(state.joins)

    def context(self):
        return DriverContext("x1", "x1", self.way, port_count=PORTS, input_count=self.state.input_count)

    def habits(self):
        return {"habits": list(CONDUCT), "misbehave": self.misbehave}


@pytest.fixture
def scpi(request):
    """A switch behind its SCPI port."""
    bench = Bench(getattr(request, "param", INPUTS))
    twin = ScpiSwitch(bench.state.held, conduct=lambda: bench.conduct)
    twin.service.open()
    bench.way = FaultyWay(Direct(twin.service.address))
    yield bench
    twin.close()


@pytest.fixture(params=[True, False], ids=["candidate", "running only"])
def netconf(request, pipe):
    """A switch behind NETCONF."""
    bench = Bench(INPUTS)
    tree = SwitchTree(bench.state.held, conduct=lambda: bench.conduct)
    key = ssh.loaded(ssh.new_private_key())
    server = NetconfServer(
        "x1",
        tree,
        key=key,
        client_key=key,
        candidate=request.param,
        conduct=lambda: bench.conduct,
        operations=tree.operations,
    )
    bench.way = FaultyWay(pipe(server))
    yield bench
    server.close()


@pytest.mark.parametrize("scpi", [INPUTS, PORTS], ids=["8 by 8", "any to any"], indirect=True)
def test_polatis_scpi(scpi, run_campaign):
    context = scpi.context()
    rig = switch_rig(lambda: PolatisScpi(context), scpi.joins, scpi.way, most_bytes=200, **scpi.habits())
    run_campaign(rig, *EVERY)


def test_polatis_netconf(netconf, run_campaign):
    context = netconf.context()
    rig = switch_rig(lambda: PolatisNetconf(context), netconf.joins, netconf.way, most_bytes=6000, **netconf.habits())
    run_campaign(rig, *EVERY)


def ports_rig(driver, held, way, *, labels=True, **more):
    """A rig of one port of a switch, whose state ``held`` gives; everything else on it is somebody else's."""

    def read(opened):
        port = opened.read_ports()[OURS]
        return {"enabled": port.enabled, **({"label": port.label} if labels else {})}

    def truth():
        with held() as state:
            shown = {"enabled": OURS not in state.disabled, "label": state.labels.get(OURS, "")}
        return shown if labels else {"enabled": shown["enabled"]}

    def others():
        with held() as state:
            return (
                dict(state.joins),
                state.disabled - {OURS},
                {p: text for p, text in state.labels.items() if p != OURS and text},
            )

    knobs = {"enabled": Knob((True, False), lambda opened, on: opened.set_port(OURS, on))}
    if labels:
        knobs["label"] = Knob(("h1", "h2"), lambda opened, label: opened.set_label(OURS, label))
    return SettingsRig(driver, read, truth, knobs, way, others=others, **more)


def test_ports_of_polatis_scpi(scpi, run_campaign):
    context = scpi.context()
    rig = ports_rig(
        lambda: PolatisScpi(context), scpi.state.held, scpi.way, labels=False, most_bytes=100, **scpi.habits()
    )
    run_campaign(rig, *OF_PORTS)


def test_ports_of_polatis_netconf(netconf, run_campaign):
    context = netconf.context()
    rig = ports_rig(
        lambda: PolatisNetconf(context), netconf.state.held, netconf.way, most_bytes=9000, **netconf.habits()
    )
    run_campaign(rig, *OF_PORTS)


@pytest.fixture(scope="module")
def netconfd(serve_netconf):
    """A real server with the model of such switches; its ports are there, as they are on a switch, and some joined."""
    server = serve_netconf("optical-switch", module_paths=(Path(__file__).parents[1] / "yang" / "polatis",))
    client = NetconfClient(server.context("x1", timeout_s=20.0))
    ports = "".join(f"<port><port-id>{number}</port-id></port>" for number in range(1, PORTS + 1))
    pairs = "".join(f"<pair><ingress>{i + 1}</ingress><egress>{e + 1}</egress></pair>" for i, e in OF_OTHERS.items())
    with client.locked("running", "candidate"):
        client.edit_config(f'<port-config xmlns="{NS}">{ports}</port-config>')
        client.edit_config(f'<cross-connects xmlns="{NS}">{pairs}</cross-connects>')
        client.commit()
    yield server, client
    client.close()


def test_polatis_netconf_on_netconfd(netconfd, run_campaign):
    """A tenth of the sequences: each lost session is a new process of sshd."""
    server, client = netconfd
    context = server.context("x1", port_count=PORTS, input_count=INPUTS, timeout_s=20.0)
    way = FaultyWay(context.way)
    context = replace(context, way=way)
    rig = switch_rig(lambda: PolatisNetconf(context), lambda: read_joins(client.get(JOINS)), way, most_bytes=6000)
    run_campaign(rig, "done", "DeviceUnreachableError", "undone", sample=4, share=10)


def test_sim_switch(bench, habits, run_campaign):
    """Its revert timers run out, or are confirmed in the midst of trouble."""

    def joins():
        with bench.plant() as plant:
            return dict(plant.switches["switch"].state.joins)

    bench.world.switches.write("switch", OF_OTHERS)
    context = bench.context("switch", port_count=PORTS, input_count=INPUTS)
    rig = switch_rig(
        lambda: SimSwitch(context),
        joins,
        bench.way,
        habits=habits,
        misbehave=bench.misbehaves("switch"),
        pass_time=bench.pass_time,
    )
    run_campaign(rig, *EVERY, "confirmed", "ran out", "confirm: OutcomeUnknownError")


def test_ports_of_sim_switch(bench, habits, run_campaign):
    @contextlib.contextmanager
    def held():
        with bench.plant() as plant:
            yield plant.switches["switch"].state

    context = bench.context("switch", port_count=PORTS, input_count=INPUTS)
    rig = ports_rig(
        lambda: SimSwitch(context),
        held,
        bench.way,
        habits=habits,
        misbehave=bench.misbehaves("switch"),
        most_bytes=1500,
    )
    run_campaign(rig, *OF_PORTS)
