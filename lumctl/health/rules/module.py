"""What is wrong with the sending side of an optical module, by the module's own limits."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf

from lumctl.devices.types import OpticsReading
from lumctl.health.rulebook import found
from lumctl.health.rules.link_case import LinkCase
from lumctl.health.states import Finding

LEVELS = ("low_alarm", "low_warning", "high_warning", "high_alarm")
"""A module's limits for one quantity, in the order their values must have."""
_WORST_FIRST = ("low_alarm", "high_alarm", "low_warning", "high_warning")


def limits_of(thresholds: Mapping[str, float], quantity: str) -> dict[str, float] | None:
    """The limits of ``quantity`` by level, ``None`` where they are out of order and so mean nothing."""
    given = {level: thresholds[f"{quantity}_{level}"] for level in LEVELS if f"{quantity}_{level}" in thresholds}
    ordered = all(lower <= higher for lower, higher in pairwise(given.values()))
    low = max((value for level, value in given.items() if "low" in level), default=-inf)
    high = min((value for level, value in given.items() if "high" in level), default=inf)
    return given if ordered and low < high else None


def crossed(value: float, limits: Mapping[str, float]) -> str | None:
    """The worst level that a value lies beyond."""
    for level in _WORST_FIRST:
        if level in limits and (value < limits[level] if "low" in level else value > limits[level]):
            return level
    return None


def sending(case: LinkCase) -> Iterator[Finding]:
    """Transmitted light, laser current, temperature and voltage of a module that sends, and what it says of itself.

    A laser that is dark has neither light nor current: link.tx-power says so once. Limits that mean nothing are not
    followed; that is said where receiving is judged.
    """
    optics = case.optics
    if not case.in_use or optics is None or not optics.optical:
        return
    if optics.module_state is not None and "fault" in optics.module_state.lower():
        why = f" ({optics.module_fault})" if optics.module_fault else ""
        yield found(case.id, "link.module", "fault", f"the module says {optics.module_state}{why}", since=case.read_at)
    if optics.tx_fault:
        evidence = "a transmitter of the module reports a fault"
        yield found(case.id, "link.module", "tx-fault", evidence, since=case.read_at)
    quantities = [
        ("temperature", "is at", optics.temperature_c, ".1f", " C"),
        ("voltage", "is fed with", optics.voltage_v, ".2f", " V"),
    ]
    if optics.transmitting is not False:
        quantities.append(("tx_power", "sends", optics.tx_power_dbm, ".1f", " dBm"))
        if _draws_nothing(optics):
            evidence = "all its lasers draw 0 mA, and the module does not say that they are off"
            yield found(case.id, "link.module", "no-current", evidence, since=case.read_at)
        else:
            quantities.append(("bias", "draws", optics.bias_ma, ".1f", " mA"))
    for quantity, does, value, form, unit in quantities:
        limits = limits_of(optics.thresholds, quantity) if value is not None else None
        level = crossed(value, limits) if value is not None and limits else None
        if value is not None and limits and level:
            side, kind = ("below" if "low" in level else "above"), level.partition("_")[2]
            limit = f"{limits[level]:{form}}{unit}"
            evidence = f"the module {does} {value:{form}}{unit}, {side} its own {kind} limit of {limit}"
            yield found(case.id, "link.module", kind, evidence, since=case.read_at)


def _draws_nothing(optics: OpticsReading) -> bool:
    """Whether all lasers stand still. A module whose limits of current are 0 as well only does not measure it."""
    limits = [limit for name, limit in optics.thresholds.items() if name.startswith("bias_")]
    return optics.bias_ma is not None and optics.bias_ma <= 0 and (not limits or max(limits) > 0)
