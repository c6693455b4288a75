"""Checks of types and units that are stricter than :mod:`lumctl.devices.answers`.

On a rack, lumctl refuses only impossible values. These checks know that the device is on a bench, where no port has
more than a milliwatt and no neighbour was heard years ago.
"""

import math
import time
from collections.abc import Mapping
from typing import Any

from lumctl.devices.answers import fault_of
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import Alarm, Neighbour, OpticsReading, PowerReading
from lumctl.printable import printable

MOST_WATTS = 100_000.0
YEARS_S = 10 * 365 * 86400.0
DARK_DBM = -20.0
MHZ = (100_000_000, 300_000_000)
_NUMBERED = ("PUC", "port")
_UNITS = ("dBm", "degrees", " W", " mA", "rate", "time", "age", " V")


def require_sound(kind: str, call: str, answer: Any, arguments: Mapping[str, Any], context: DriverContext) -> None:
    """Check an answer against the contract.

    Raises:
        ContractBrokenError: the answer has a wrong type or unit, or wrong port or PUC numbers.
    """
    wrong = fault_of(kind, call, answer, arguments, context)
    if wrong:
        rule = "types" if ", expected " in wrong else _rule_of(wrong)
        broken(rule, f"{call}() {wrong}")
    if call == "identify":
        _require_line(answer)
    elif call == "read_powers":
        _require_dbm(answer)
    elif call in {"read_states", "read_ports"}:
        _require_all(call, answer, context)
    elif isinstance(answer, OpticsReading):
        _require_optics(answer, context)
    elif isinstance(answer, PowerReading):
        _require_time("read_power", answer.taken_at, context)
        if answer.watts is not None and answer.watts > MOST_WATTS:
            broken("units", f"read_power() gives {answer.watts:g} W for one machine")
    elif call == "neighbours":
        _require_ages(answer)
    elif call == "read_alarms":
        _require_alarms(answer)


def _rule_of(wrong: str) -> str:
    if any(unit in wrong for unit in _UNITS):
        return "units"
    return "numbering" if any(word in wrong for word in _NUMBERED) else "types"


def _require_line(line: str) -> None:
    if not line or len(line.splitlines()) != 1 or printable(line) != line:
        broken("identity", f"identify() gives {line!r}, which is not one printable line")


def _require_dbm(powers: Mapping[int, float]) -> None:
    if any(math.isnan(power) for power in powers.values()):
        broken("units", "read_powers() gives NaN; no light is -inf")
    if powers and all(power >= 0 for power in powers.values()):
        shown = ", ".join(f"{power:g}" for power in powers.values())
        broken("units", f"read_powers() gives {shown}: no port on a bench has 1 mW or more; these look like mW")


def _require_all(call: str, answer: Mapping[int, Any], context: DriverContext) -> None:
    count = context.puc_count if call == "read_states" else context.port_count
    missing = sorted(set(range(count)) - set(answer))
    if missing and call == "read_ports":
        broken("numbering", f"{call}() lacks {missing[0]}; numbers start at 0, and there are {count}")


def _require_optics(reading: OpticsReading, context: DriverContext) -> None:
    _require_time("read_optics", reading.taken_at, context)
    if reading.rx_power_dbm is not None and reading.rx_power_dbm >= 0:
        broken("units", f"read_optics() gives {reading.rx_power_dbm:g} dBm received: 1 mW or more looks like mW")
    tx = reading.tx_power_dbm
    if reading.transmitting is False and tx is not None and tx > DARK_DBM:
        broken("units", f"read_optics() gives {tx:g} dBm sent while the transmitter is off; no light is -inf")
    frequency = reading.frequency_mhz
    if frequency is not None and not MHZ[0] <= frequency <= MHZ[1]:
        broken("units", f"read_optics() gives {frequency:g} MHz, which is not an optical frequency")
    limits = [reading.thresholds.get(f"rx_power_{name}") for name in ("low_alarm", "high_alarm")]
    if None not in limits and limits[0] >= limits[1]:  # type: ignore[operator]  # neither is None
        broken(
            "units",
            f"read_optics() gives rx_power_low_alarm {limits[0]}, which is not below rx_power_high_alarm {limits[1]}",
        )


def _require_time(call: str, taken_at: float, context: DriverContext) -> None:
    now = context.now()
    if now and not now - 60 <= taken_at <= now + 1:
        broken("units", f"{call}() gives taken_at {taken_at:g}; context.now() is {now:g}")


def _require_ages(heard: tuple[Neighbour, ...]) -> None:
    for each in heard:
        if each.age_s > YEARS_S:
            broken("units", f"neighbours() gives an age of {each.age_s:g} s: this looks like a time or like ms")


def _require_alarms(alarms: tuple[Alarm, ...]) -> None:
    for alarm in alarms:
        if not alarm.text:
            broken("types", "read_alarms() gives an alarm without a text")
        if alarm.since is not None and alarm.since > time.time() + 86400:
            broken("units", f"read_alarms() gives an alarm since {alarm.since:g}: this looks like milliseconds")
