"""The vendor-style Python object of a mesh, and where its class comes from.

The vendor's package is not public, so none is named here. Some installed package offers the object by an entry point
of the group :data:`GROUP`: a callable that is given the device's address (``host:port``) and the way there, and gives
an object with the methods of :class:`MeshObject`. An object that can only connect by itself ignores the way; it then
reaches the device straight, whatever ``via:`` the inventory writes.

    [project.entry-points."lumctl.smartlight_objects"]
    vendor = "our_lab.smartlight:opened"

    def opened(address, way):
        host, _, port = address.rpartition(":")
        return vendor_package.SmartLight(host, int(port))

Exactly one such package is to be installed. The name :data:`SIMULATED` is the simulator's, which is taken for a
simulator's address and for no other: a path of a socket (``unix:/...``), which no inventory can write, for there an
address is ``HOST:PORT``.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Way

GROUP = "lumctl.smartlight_objects"
SIMULATED = "sim"
_SIMULATED_ADDRESS = "unix:/"


class MeshObject(Protocol):
    """What the driver calls, as far as it is publicly known. Anything may be raised and returned."""

    def connect(self) -> object:
        """Open the session; ``False`` says that it failed."""
        ...

    def disconnect(self) -> object:
        """Close the session."""
        ...

    def get_puc_states(self) -> object:
        """A mapping of every PUC's number to its coupling (0 bar, 1 cross) and phase (radians)."""
        ...

    def set_puc_states(self, states: Mapping[int, tuple[float, float]], /) -> object:
        """Set some PUCs; ``False`` says that it failed."""
        ...

    def get_output_power(self, ports: list[int], /) -> object:
        """The power that leaves each port: a mapping by port, or a sequence in the order asked for."""
        ...

    def get_temp(self) -> object:
        """The temperature of the chip."""
        ...


Maker = Callable[[str, Way], MeshObject]


def found(context: DriverContext) -> tuple[str, Maker]:
    """Who offers the object of a mesh, in words, and what makes it.

    Raises:
        DeviceUnreachableError: none is offered, or more than one, or it does not import.
    """
    simulated = context.address.startswith(_SIMULATED_ADDRESS)
    offers = sorted({p for p in entry_points(group=GROUP) if (p.name == SIMULATED) is simulated}, key=_origin)
    if not offers:
        raise DeviceUnreachableError(
            f"{context.device}: no installed package offers a SmartLight object; nothing was sent",
            hint=f"install the vendor's package, and one with an entry point of the group {GROUP}",
        )
    if len(offers) > 1:
        raise DeviceUnreachableError(
            f"{context.device}: SmartLight objects are offered by {', '.join(map(_origin, offers))}; nothing was sent",
            hint="uninstall all but one of them",
        )
    return _origin(offers[0]), _imported(context, offers[0])


def _imported(context: DriverContext, point: EntryPoint) -> Maker:
    try:
        made = point.load()
    except (Exception, SystemExit) as error:  # a package may raise anything at import
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DeviceUnreachableError(
            f"{context.device}: the SmartLight object of {_origin(point)} does not import: {reason}; nothing was sent",
            hint="install what it needs",
        ) from error
    if not callable(made):
        raise DeviceUnreachableError(
            f"{context.device}: the SmartLight object of {_origin(point)} cannot be made: it is no callable",
            hint=f"an entry point of {GROUP} names a callable of an address and a way",
        )
    return cast("Maker", made)


def _origin(point: EntryPoint) -> str:
    package = point.dist
    return f"{package.name} {package.version} ({point.name})" if package else point.name
