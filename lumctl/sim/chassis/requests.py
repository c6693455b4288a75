"""Requests over the control socket about transponders: their modules, as the managing chassis shows them.

If a chassis misbehaves (see :mod:`lumctl.sim.world.misbehaviour`), it does so for each module that it manages.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory, Transponder
from lumctl.sim.client import dbm_as_json
from lumctl.sim.hosts import module
from lumctl.sim.world.links import LinkView
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.world import World

Request = Mapping[str, Any]
Answer = dict[str, Any]

_LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")


def transponder_requests(world: World) -> dict[str, Callable[[Request], Answer]]:
    """The requests, by name. ``device`` is the id of a transponder, ``component`` its name at its chassis."""
    return {
        "transponder-read": lambda r: _document(world.module(_named(world, r).id)),
        "transponder-laser": lambda r: _written(world, r, lambda t: world.set_laser(t, on=bool(r["on"]))),
        "transponder-channel": lambda r: _written(world, r, lambda t: world.set_channel(t, int(r["frequency_mhz"]))),
        "transponder-power": lambda r: _written(world, r, lambda t: world.set_output_power(t, float(r["dbm"]))),
        "transponder-announce": lambda r: _announced(world, r),
        "transponder-neighbours": lambda r: {"neighbours": _heard(world, _named(world, r))},
    }


def managing_device(inventory: Inventory, request: Request) -> str:
    """The device whose faults affect the answer to a request: for a transponder its chassis, else the named device."""
    name = str(request.get("device"))
    if not str(request.get("do")).startswith("transponder-") or name not in inventory.transponders:
        return name
    part = inventory.transponders[name].module
    return part.device if part else ""


def _named(world: World, request: Request) -> Transponder:
    name, component = str(request["device"]), str(request.get("component", ""))
    transponder = world.inventory.transponders.get(name)
    if transponder is None:
        raise UsageError(f"the simulator has no transponder {name!r}")
    if _conduct(world, transponder).down:
        raise DeviceUnreachableError(f"{name} does not answer (its chassis is down)")
    if component and (transponder.module is None or transponder.module.component != component):
        raise DeviceRefusedError(f"{name} is not the component {component!r} of its chassis")
    return transponder


def _conduct(world: World, transponder: Transponder) -> Misbehaviour:
    return world.misbehaviour(transponder.module.device) if transponder.module else Misbehaviour()


def _written(world: World, request: Request, write: Callable[[str], None]) -> Answer:
    transponder = _named(world, request)
    conduct = _conduct(world, transponder)
    for each in conduct.taken([transponder.id]):
        write(each)
    if conduct.says_no:
        raise DeviceRefusedError(f"{transponder.id}: {conduct.complaint}")
    return {}


def _announced(world: World, request: Request) -> Answer:
    world.announce(_named(world, request).host, str(request["mark"]))
    return {}


def _heard(world: World, transponder: Transponder) -> list[Answer]:
    entries = world.module(transponder.id).neighbours
    freshest_first = sorted(entries, key=lambda entry: entry[1])
    return [
        {"system": sender.host, "port": sender.interface, "age_s": age, "mark": mark or None}
        for sender, age, mark in freshest_first
    ]


def _document(view: LinkView) -> Answer:
    limits = {
        "rx_power": module.rx_limits(view),
        "tx_power": module.tx_limits(view),
        "bias": module.BIAS_LIMITS,
        "temperature": module.TEMPERATURE_LIMITS,
    }
    facts = dict(module.vendor(view))
    return {
        "laser_on": view.laser_on,
        "rx_power_dbm": dbm_as_json(view.rx_power_dbm),
        "tx_power_dbm": dbm_as_json(view.tx_power_dbm),
        "bias_ma": module.bias_ma(view),
        "temperature_c": view.temperature_c,
        "voltage_v": module.VOLTAGE_V,
        "vendor": facts["Vendor name"],
        "part": facts["Vendor PN"],
        "thresholds": {
            f"{kind}_{level}": limit
            for kind, stated in limits.items()
            for level, limit in zip(_LEVELS, stated, strict=True)
        },
        "rx_los": view.rx_power_dbm == -math.inf,
        "frequency_mhz": view.frequency_mhz,
        "target_power_dbm": view.target_power_dbm,
    }
