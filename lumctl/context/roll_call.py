"""Whether each component with a driver answers: all are read at the same time, with a short wait."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lumctl.context.context import Context
from lumctl.context.device_answers import obstacle_of
from lumctl.devices.drivers import load
from lumctl.devices.errors import DeviceError, DeviceUnreachableError
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Capability
from lumctl.errors import ExitCode, LumctlError, UnreachableError
from lumctl.health.states import State
from lumctl.inventory.components import Component, Part, managed, parts_of
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.workers import Workers

PATIENCE_S = 4.0
"""How long to wait for all components together, in seconds."""


@dataclass(frozen=True, slots=True)
class ComponentAnswer:
    """One component and its answer. ``says`` is its own description, ``problem`` the reason if it did not answer."""

    id: str
    kind: str
    driver: str
    address: str
    state: State = State.UNKNOWN
    says: str | None = None
    problem: str | None = None
    unreachable: bool = False
    capabilities: tuple[str, ...] = ()
    proven: str | None = None
    part_of: str | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command about this component alone."""
        if self.state is State.OK or self.problem is None:
            return ExitCode.DONE
        return ExitCode.UNREACHABLE if self.unreachable else ExitCode.UNHEALTHY


def call(
    context: Context, among: Callable[[Component], bool] = lambda _: True, *, patience_s: float = PATIENCE_S
) -> list[ComponentAnswer]:
    """Read every managed component that ``among`` accepts; errors as :func:`ask`."""
    return ask(context, [each for each in managed(context.inventory) if among(each)], patience_s=patience_s)


def ask(context: Context, asked: Sequence[Component], *, patience_s: float = PATIENCE_S) -> list[ComponentAnswer]:
    """Read the identity of components, in their order; one without an answer in time is unknown.

    The answer of a chassis or a controller is the sum of the answers of its parts.

    Raises:
        UnreachableError: the target does not exist: no simulator is running.
    """
    _ = context.devices  # Opened before the threads use it. If there is no target, this raises.
    alone = [each for each in asked if _answers_itself(context.inventory, each)]
    gathered = _gathered(alone, lambda each: _ask_one(context, each), patience_s)
    late = f"no answer within {patience_s:g} s"
    answers = {
        each.id: gathered.get(each.id) or replace(described(context, each), problem=late, unreachable=True)
        for each in alone
    }
    return [answers.get(each.id) or _summed(context, each, answers) for each in asked]


def open_driver(context: Context, component: Component) -> Driver:
    """The driver of a component that answers for itself; nothing is contacted.

    Raises:
        UsageError: the driver is not installed, or is of another kind.
        DeviceUnreachableError: the component does not answer on this target.
    """
    if component.part is Part.TRANSPONDER:
        return context.devices.transponder(component.id)
    if component.part is Part.POWER:
        power = context.inventory.hosts[str(component.host)].power
        assert power is not None  # noqa: S101 - a component of this kind has one
        return context.devices.power(power)
    return context.devices.changing(str(component.device))


def described(context: Context, component: Component) -> ComponentAnswer:
    """A component before it is read: its kind, its driver, and its address on this target."""
    inventory = context.inventory
    device, endpoint = (
        inventory.devices.get(component.device or ""),
        context.endpoints.devices.get(component.device or ""),
    )
    driver, address = device.driver if device else "", endpoint.address if endpoint else ""
    if component.part is Part.TRANSPONDER:
        lane = inventory.transponders[component.id]
        driver = f"{driver}, {lane.driver}" if driver else lane.driver
        address = f"{address}/{lane.module.component}" if lane.module else f"{lane.host}:{lane.interface}"
        return ComponentAnswer(component.id, "transponder", driver, address, part_of=component.device)
    if component.part is Part.POWER:
        power = inventory.hosts[str(component.host)].power
        part = f"/{power.component}" if power and power.component else ""
        return ComponentAnswer(component.id, "power", driver, f"{address}{part}", part_of=component.device)
    kind = device.kind.value if device and component.part is Part.DEVICE else component.part.value
    return ComponentAnswer(component.id, kind, driver, address)


def _answers_itself(inventory: Inventory, component: Component) -> bool:
    """Whether a component identifies itself; a chassis and a power controller are read through their parts."""
    return component.part is not Part.DEVICE or inventory.devices[component.id].kind.carries_light


def _ask_one(context: Context, component: Component) -> ComponentAnswer:
    blank = described(context, component)
    try:
        driver = open_driver(context, component)
    except LumctlError as error:
        return _failed(blank, error)
    try:
        able = tuple(sorted(str(each) for each in driver.capabilities))
        blank = replace(blank, capabilities=able, proven=driver.proven)
        return replace(blank, state=State.OK, says=_says(driver))
    except LumctlError as error:
        return _failed(blank, error)


def _says(driver: Any) -> str | None:
    """Read as little as possible from a device; return its description of itself, if it gives one."""
    if driver.kind != "transponder":
        return str(driver.identify())
    if Capability.READ_OPTICS in driver.capabilities:
        optics = driver.read_optics()
        named = " ".join(word for word in (optics.vendor, optics.part) if word)
        return named or (None if optics.optical else "copper")
    if Capability.SET_TRANSMIT in driver.capabilities:
        driver.transmitting()
    return None


def _failed(blank: ComponentAnswer, error: LumctlError) -> ComponentAnswer:
    unreachable = isinstance(error, DeviceUnreachableError | UnreachableError)
    # If the gateway or the driver is at fault, nothing is known about the device itself.
    of_the_device = isinstance(error, DeviceError) and obstacle_of(error) is None
    state = State.FAILED if of_the_device else State.UNKNOWN
    return replace(blank, state=state, problem=error.message, unreachable=unreachable)


def _summed(context: Context, component: Component, answers: Mapping[str, ComponentAnswer]) -> ComponentAnswer:
    """The answer of a chassis or a controller, made from the answers of its parts."""
    blank = described(context, component)
    inventory = context.inventory
    parts = [answers[part.id] for part in parts_of(inventory, component.id) if part.id in answers]
    users = "transponder" if inventory.devices[component.id].kind is DeviceKind.CHASSIS else "host"
    try:
        # The class only: a chassis or a controller is never opened for itself.
        driver = load(blank.driver)
        blank = replace(blank, capabilities=tuple(sorted(map(str, driver.capabilities))), proven=driver.proven)
    except LumctlError as error:
        return _failed(blank, error)
    well = [part for part in parts if part.state is State.OK]
    if not parts:
        return replace(blank, says=f"no {users} of the inventory uses it")
    said = f"{len(well)} of {len(parts)} {users}s answer"
    if well:
        return replace(blank, state=State.OK if len(well) == len(parts) else State.DEGRADED, says=said)
    first = parts[0]
    return replace(blank, state=first.state, problem=f"{said}: {first.problem}", unreachable=first.unreachable)


def _gathered(
    components: Iterable[Component], ask_one: Callable[[Component], ComponentAnswer], patience_s: float
) -> dict[str, ComponentAnswer]:
    workers = Workers("device")
    asked: dict[str, Future[ComponentAnswer]] = {each.id: workers.submit(partial(ask_one, each)) for each in components}
    wait(asked.values(), timeout=patience_s)
    # Not joined: a component that hangs keeps its thread until its driver gives up.
    workers.close()
    return {name: answer.result() for name, answer in asked.items() if answer.done()}
