"""From what the lanes of a module state to what is said of the module: one value of each kind.

The weakest lane's powers are given (a dark lane must show) and the highest bias (an ageing laser must show). Lanes that
the module has and the port does not use are left out.
"""

import math
from collections.abc import Iterable

from lumctl.devices.types import OpticsReading

DARK_DBM = -40.0
"""The least power that a module can state, 0.1 uW: a laser that is off is printed as this or as ``-inf``."""

Lane = dict[str, float]
"""What one lane states; what is the module's own, temperature and voltage, stands under no lane."""


def module_of(lanes: list[Lane], taken_at: float) -> OpticsReading:
    """An optical module from ``tx_power``, ``rx_power``, ``bias``, ``ber``, ``temperature`` and ``voltage``."""
    used = _used(lanes)
    tx_powers = _each(used, "tx_power")
    return OpticsReading(
        taken_at=taken_at,
        optical=True,
        transmitting=max(tx_powers) > DARK_DBM if tx_powers else None,
        rx_power_dbm=min(_each(used, "rx_power"), default=None),
        tx_power_dbm=min(tx_powers, default=None),
        bias_ma=max(_each(used, "bias"), default=None),
        temperature_c=next(iter(_each(lanes, "temperature")), None),
        voltage_v=next(iter(_each(lanes, "voltage")), None),
        pre_fec_ber=max(_each(used, "ber"), default=None),
    )


def has_no_monitors(lanes: list[Lane]) -> bool:
    """Whether a module only fills its monitors' places: none that works is at 0 V."""
    stated = {kind for lane in lanes for kind in lane}
    nothing = not any(lane.get("temperature") or lane.get("voltage") for lane in lanes)
    return {"temperature", "voltage"} <= stated and nothing and not any(map(_is_lit, lanes))


def _each(lanes: Iterable[Lane], kind: str) -> list[float]:
    return [lane[kind] for lane in lanes if kind in lane]


def _used(lanes: list[Lane]) -> list[Lane]:
    """The lanes in use: beside one that is lit, one that neither sends nor receives is not wired to anything.

    Where nothing is lit all of them stay, and so does a lane that sends: its receiver may have lost its light.
    """
    lit = [lane for lane in lanes if _is_lit(lane)]
    return [lane for lane in lanes if _is_lit(lane) or not {"tx_power", "bias"} & lane.keys()] if lit else lanes


def _is_lit(lane: Lane) -> bool:
    powers = (lane.get("tx_power", -math.inf), lane.get("rx_power", -math.inf))
    return max(powers) > DARK_DBM or lane.get("bias", 0.0) > 0
