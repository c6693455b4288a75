"""Requests over the control socket about one switch; ``device`` is its id."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from lumctl.sim.client import dbm_as_json
from lumctl.sim.world.world import World

Request = Mapping[str, Any]
Answer = dict[str, Any]


def switch_requests(world: World) -> dict[str, Callable[[Request], Answer]]:
    """The requests, by name."""
    return {
        "switch-identify": lambda r: _identity(world, _id(r)),
        "switch-read": lambda r: _joins(world, _id(r)),
        "switch-write": lambda r: _write(world, r),
        "switch-confirm": lambda r: {"disarmed": world.switches.confirm(str(r["receipt"]))},
        "switch-powers": lambda r: _powers(world, _id(r), map(int, r["ports"])),
        "switch-temperature": lambda r: {"celsius": world.switches.temperature(_id(r))},
        "switch-alarms": lambda r: {"alarms": [asdict(alarm) for alarm in world.switches.alarms(_id(r))]},
        "switch-ports": lambda r: _ports(world, _id(r)),
        "switch-set-port": lambda r: _set_port(world, r),
        "switch-set-label": lambda r: _set_label(world, r),
    }


def _id(request: Request) -> str:
    return str(request["device"])


def _identity(world: World, device: str) -> Answer:
    with world.switches.held(device) as state:
        return {
            "text": f"{device} ready, {state.port_count} ports",
            "port_count": state.port_count,
            "input_count": state.input_count,
        }


def _joins(world: World, device: str) -> Answer:
    with world.switches.held(device) as state:
        return {"joins": list(state.joins.items())}


def _write(world: World, request: Request) -> Answer:
    joins = {int(ingress): None if egress is None else int(egress) for ingress, egress in request["joins"]}
    revert = request.get("revert_after_s")
    world.switches.write(
        _id(request),
        joins,
        receipt=str(request["receipt"]),
        revert_after_s=None if revert is None else float(revert),
    )
    progress = world.progress(_id(request))
    return {"text": f"ok {len(joins)} ports set", "progress": None if progress is None else asdict(progress)}


def _powers(world: World, device: str, ports: Iterable[int]) -> Answer:
    powers = world.switches.powers(device, tuple(ports))
    return {"dbm": {port: dbm_as_json(power) for port, power in powers.items()}}


def _ports(world: World, device: str) -> Answer:
    with world.switches.held(device) as state:
        return {
            "ports": [
                {
                    "enabled": port not in state.disabled,
                    "failed_since": state.failed.get(port),
                    "label": state.labels.get(port, ""),
                }
                for port in range(state.port_count)
            ]
        }


def _set_port(world: World, request: Request) -> Answer:
    world.switches.set_port(_id(request), int(request["port"]), on=bool(request["on"]))
    return {}


def _set_label(world: World, request: Request) -> Answer:
    world.switches.set_label(_id(request), int(request["port"]), str(request["label"]))
    return {}
