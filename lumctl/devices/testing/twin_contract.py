"""The contract of an installed driver on its package's twin; ``lumctl plugin check`` runs it with pytest.

``$LUMCTL_CHECK_DRIVER`` names the driver. The twin is the one that a simulated rack uses, see
:mod:`lumctl.devices.twins`. Here it serves a mesh or a switch on a bench, which knows its true state and can stop
midway. Without a twin, only the tests that need no device are run.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

import pytest

from lumctl.devices.drivers import load
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import CommandResult, DriverContext
from lumctl.devices.testing.bench import BenchMesh, BenchSwitch
from lumctl.devices.testing.mesh import MeshContract
from lumctl.devices.testing.power import PowerContract
from lumctl.devices.testing.rules import not_tested
from lumctl.devices.testing.switch import SwitchContract
from lumctl.devices.testing.time_limit import bounded
from lumctl.devices.testing.transponder import TransponderContract
from lumctl.devices.testing.under_test import MeshUnderTest, PowerUnderTest, SwitchUnderTest, TransponderUnderTest
from lumctl.devices.twins import GROUP, scheme_and_port
from lumctl.devices.ways import Direct

NO_TWIN = "the driver's package offers no twin (entry point group lumctl.twins)"
WITHOUT_DEVICE = frozenset(
    {
        "test_it_declares_itself",
        "test_opening_contacts_nothing",
        "test_a_device_that_is_gone_is_not_read",
    }
)
DEVICE, LISTEN = "under-test", "127.0.0.1"
PUC_COUNT, PORT_COUNT, INPUT_COUNT = 24, 16, 8
TIMEOUT_S = 2.0

NAME = os.environ.get("LUMCTL_CHECK_DRIVER", "")
KIND = load(NAME).kind if NAME else ""


class _NoShell:
    """A host that does not answer."""

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        raise DeviceUnreachableError(f"no host for {command!r} within {timeout_s:g} s")


@contextmanager
def _device() -> Iterator[tuple[BenchMesh | BenchSwitch | None, str]]:
    """The device behind the twin, if any, and the twin's address."""
    points = tuple(entry_points(group=GROUP, name=NAME))
    if points:
        bench = BenchMesh(DEVICE, PUC_COUNT) if KIND == "mesh" else BenchSwitch(DEVICE, PORT_COUNT, INPUT_COUNT)
        with points[0].load()(bench, LISTEN) as given:
            scheme, port = scheme_and_port(given, LISTEN)
            yield bench, f"{scheme}{LISTEN}:{port}"
        return
    # The port is free again after this block, so nothing answers there.
    with socket.create_server((LISTEN, 0)) as listener:
        nobody = "{}:{}".format(*listener.getsockname())
    yield None, nobody


def _context(address: str, *, has_twin: bool) -> DriverContext:
    return DriverContext(
        device=DEVICE,
        address=address,
        way=Direct(address),
        puc_count=PUC_COUNT,
        port_count=PORT_COUNT,
        input_count=INPUT_COUNT,
        timeout_s=TIMEOUT_S,
        shell=None if has_twin else _NoShell(),
        interface="eth0",
        now=time.time,
    )


def _under_test(request: pytest.FixtureRequest, made: type[Any], *sizes: str) -> Iterator[Any]:
    """The set-up of one test, with every field that the twin can supply."""
    with _device() as (twin, address):
        context = _context(address, has_twin=twin is not None)
        if twin is None and request.function.__name__ not in WITHOUT_DEVICE:
            not_tested(NO_TWIN)
        wanted = {field.name for field in fields(made)} - {"driver", "context", "opens", *sizes}
        given = {name: getattr(twin, name) for name in sorted(wanted) if hasattr(twin, name)}
        driver = bounded(lambda: load(NAME)(context))
        yield made(
            driver, **{name: getattr(context, name) for name in sizes}, context=context, opens=load(NAME), **given
        )
        with contextlib.suppress(Exception):
            bounded(driver.close)


@pytest.fixture
def mesh(request: pytest.FixtureRequest) -> Iterator[MeshUnderTest]:
    """The driver of a mesh on its twin."""
    yield from _under_test(request, MeshUnderTest, "puc_count")


@pytest.fixture
def switch(request: pytest.FixtureRequest) -> Iterator[SwitchUnderTest]:
    """The driver of a switch on its twin."""
    yield from _under_test(request, SwitchUnderTest, "port_count", "input_count")


@pytest.fixture
def transponder(request: pytest.FixtureRequest) -> Iterator[TransponderUnderTest]:
    """The driver of a transponder on its twin."""
    yield from _under_test(request, TransponderUnderTest)


@pytest.fixture
def power(request: pytest.FixtureRequest) -> Iterator[PowerUnderTest]:
    """The driver of power on its twin."""
    yield from _under_test(request, PowerUnderTest)


# pytest collects the contract of this kind under the name of the module's attribute.
if KIND == "mesh":
    TestMesh = MeshContract
elif KIND == "switch":
    TestSwitch = SwitchContract
elif KIND == "transponder":
    TestTransponder = TransponderContract
elif KIND == "power":
    TestPower = PowerContract
