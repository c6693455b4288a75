"""Values of settings as a person types them and as plans hold them (plain JSON values), with their units."""

import math
import re

from lumctl.errors import UsageError

Value = bool | int | float | str

LEAST_MHZ, MOST_MHZ = 150_000_000, 400_000_000
"""Light that fibres carry, in MHz: from 2 micrometres of wavelength to 750 nanometres."""
LEAST_DBM, MOST_DBM = -60.0, 30.0
LONGEST_LABEL = 128
_SWITCHED = {"on": True, "true": True, "off": False, "false": False}
_WITH_UNIT = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_IN_MHZ = {"thz": 1e6, "ghz": 1e3, "mhz": 1.0}


def switched(text: str) -> bool:
    """Whether something is to be on."""
    if text.lower() not in _SWITCHED:
        raise UsageError(f"found {text!r}, expected on or off (or true or false)")
    return _SWITCHED[text.lower()]


def label(text: str) -> str:
    """A name for a port; empty takes it away."""
    if len(text) > LONGEST_LABEL or not text.isprintable():
        raise UsageError(f"a label is one line of at most {LONGEST_LABEL} printable characters")
    return text


def frequency_mhz(text: str) -> int:
    """A whole number of MHz. Who wrote another unit is told the number."""
    unit = _WITH_UNIT.fullmatch(text)
    if unit and unit[2].lower() in _IN_MHZ:
        mhz = round(float(unit[1]) * _IN_MHZ[unit[2].lower()])
        raise UsageError(f"found {text!r}, expected a whole number of MHz", hint=f"that is {mhz}")
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"found {text!r}, expected a whole number of MHz", hint="such as 193100000") from None
    if not number.is_integer() or not LEAST_MHZ <= number <= MOST_MHZ:
        raise UsageError(
            f"found {text}, expected a whole number of MHz from {LEAST_MHZ} to {MOST_MHZ}", hint=_other_unit(number)
        )
    return int(number)


def _other_unit(number: float) -> str | None:
    for unit, scale in (("THz", 1e6), ("GHz", 1e3)):
        if LEAST_MHZ <= number * scale <= MOST_MHZ:
            return f"{number:g} {unit} is {round(number * scale)}"
    return None


def dbm(text: str) -> float:
    """A power in dBm."""
    unit = _WITH_UNIT.fullmatch(text)
    try:
        number = float(text)
    except ValueError:
        hint = f"write the number alone: {unit[1]}" if unit and unit[2].lower() == "dbm" else "such as -3.5"
        raise UsageError(f"found {text!r}, expected a number of dBm", hint=hint) from None
    if not math.isfinite(number) or not LEAST_DBM <= number <= MOST_DBM:
        raise UsageError(f"found {text}, expected {LEAST_DBM:g} to {MOST_DBM:g} dBm")
    return number


def one_of(text: str, words: tuple[str, ...]) -> str:
    """One of some words."""
    if text.lower() not in words:
        raise UsageError(f"found {text!r}, expected {', '.join(words[:-1])} or {words[-1]}")
    return text.lower()


def shown(value: Value | None) -> str:
    """A value in a message, and as it is typed."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
