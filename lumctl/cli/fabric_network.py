"""``lumctl fabric route`` between ports of different devices: through meshes, switches and the fibres between them."""

import time
from typing import TYPE_CHECKING, Any

from lumctl.cli.output import OutputColumn
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.fabric import circuit_losses
from lumctl.fabric.network.model import ends_of, network_of
from lumctl.fabric.network.routing import route_network
from lumctl.fabric.network.tracing import NetworkStates, network_changes
from lumctl.inventory.model import DevicePort
from lumctl.inventory.wiring import circuits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.cli.invocation import Invocation
    from lumctl.fabric.network.model import Ends
    from lumctl.fabric.network.tracing import NetworkRoute

_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("HOP", "hop"),
    OutputColumn("PUCS", "count", right=True),
    OutputColumn("THEN BY", "fibre"),
    OutputColumn("LOSS dB", "loss_db", right=True),
)


def names_devices(demands: "Sequence[str]") -> bool:
    """Whether circuits are written with the devices of their ports, as ``m0:3,m1:9``."""
    return any("," in demand for demand in demands)


def route_across(cx: "Invocation", demands: "Sequence[str]") -> None:
    """Find routes through the devices of one rack, beside what they carry by the record, and print them."""
    wanted = [ends_of(text) for text in demands]
    devices = cx.inventory.devices
    racks = {devices[place.device].rack for ends in wanted for place in ends if place.device in devices}
    if len(racks) > 1:
        raise UsageError("the ports are in different racks", hint="a circuit stays in one rack")
    network = network_of(cx.inventory, next(iter(racks), next(iter(cx.inventory.racks))))
    states, live = _standing(cx, set(network.devices))
    began = time.perf_counter()
    routes = route_network(network, wanted, states=states, live=live)
    seconds = time.perf_counter() - began
    if cx.out.structured:
        changes = network_changes(network, states, routes)
        cx.out.document(
            "route",
            {
                "circuits": [_document(found) for found in routes],
                "puc_changes": [
                    {"device": device, "puc": puc, "to": state.word}
                    for device, changed in changes.pucs.items()
                    for puc, state in changed.items()
                ],
                "connect": {device: [list(pair) for pair in pairs] for device, pairs in changes.connect.items()},
                "disconnect": {device: [list(pair) for pair in pairs] for device, pairs in changes.disconnect.items()},
                "seconds": round(seconds, 4),
            },
        )
    else:
        cx.out.table(_COLUMNS, [row for found in routes for row in _rows(found)])


def _standing(cx: "Invocation", devices: set[str]) -> "tuple[NetworkStates, list[Ends]]":
    """The recorded states of the devices, and the jobs' circuits in them."""
    with Context(cx.inventory, cx.target) as context:
        states = {each: known for each in devices if (known := context.known_states(each))}
        made = circuits_of(context.inventory, context.assignment())
    live: list[Ends] = []
    for device, known in states.items():
        carried = circuit_losses(cx.inventory.devices[device], known, [c for c in made if c.device == device])
        live += [(DevicePort(device, c.ports[0]), DevicePort(device, c.ports[1])) for c in made if c.id in carried]
    return NetworkStates(pucs=states), live


def _document(found: "NetworkRoute") -> dict[str, Any]:
    return {
        "ends": [str(place) for place in found.ends],
        "hops": [
            {
                "device": hop.device,
                "ports": list(hop.ports),
                "pucs": [puc for puc, _ in hop.passes],
                "states": [state.word for _, state in hop.passes],
            }
            for hop in found.hops
        ],
        "fibres": list(found.fibres),
        "loss_db": round(found.loss_db, 3),
    }


def _rows(found: "NetworkRoute") -> list[dict[str, str]]:
    last = len(found.hops) - 1
    return [
        {
            "id": "{},{}".format(*found.ends) if at == 0 else " ",
            "hop": "{}:{}:{}".format(hop.device, *hop.ports),
            "count": str(len(hop.passes)),
            "fibre": found.fibres[at] if at < last else " ",
            "loss_db": f"{found.loss_db:.2f}" if at == last else " ",
        }
        for at, hop in enumerate(found.hops)
    ]
