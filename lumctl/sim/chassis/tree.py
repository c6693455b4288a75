"""The configuration and state of a chassis as trees of OpenConfig's models."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

from lumctl.sim.hosts import module
from lumctl.sim.netconf import Keys
from lumctl.sim.netconf.tree import join
from lumctl.sim.world.links import LinkView

_P = "{http://openconfig.net/yang/platform}"
_X = "{http://openconfig.net/yang/platform/transceiver}"
_T = "{http://openconfig.net/yang/terminal-device}"
KEYS: Keys = {
    f"{_P}component": (f"{_P}name",),
    f"{_P}subcomponent": (f"{_P}name",),
    f"{_X}channel": (f"{_X}index",),
    f"{_X}threshold": (f"{_X}severity",),
    f"{_T}channel": (f"{_T}index",),
    f"{_T}assignment": (f"{_T}index",),
}
_NO_LIGHT_DBM = -40.0
_BEST_Q, _Q_AT_SENSITIVITY = 3.7, 2.05
"""Quality factors of the received signal: with ample light, and at the receiver's sensitivity."""
# About the bit error rate up to which soft-decision FEC corrects everything.
_CORRECTABLE = 0.02

Content = Mapping[str, "str | Content | list[Content]"]


@dataclass(frozen=True, slots=True)
class TreeSetting:
    """A leaf of the configuration: its path for messages, and its text (``None`` if the leaf is missing)."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one optical channel in a configuration."""

    laser: TreeSetting
    enabled: TreeSetting
    admin: TreeSetting
    frequency: TreeSetting
    power: TreeSetting


def parts(name: str, number: int) -> tuple[str, str, str]:
    """The components of an optical channel: itself, its line port, its transceiver."""
    return name, f"port-{number}:{name}", f"transceiver-{number}:{name}"


def component_names(config: Element) -> list[str]:
    """The components that a configuration names."""
    return [each.text or "" for each in config.iterfind(f"{_P}components/{_P}component/{_P}name")]


def settings(config: Element, name: str, number: int) -> Settings:
    """The settings of one optical channel in a configuration."""
    _, _, transceiver = parts(name, number)
    optical = f"{_P}components/{_P}component[{_P}name={_quoted(name)}]/{_T}optical-channel/{_T}config/{_T}"
    pluggable = f"{_P}components/{_P}component[{_P}name={_quoted(transceiver)}]/{_X}transceiver/"
    lane = f"{pluggable}{_X}physical-channels/{_X}channel[{_X}index='0']/{_X}config/{_X}tx-laser"
    logical = f"{_T}terminal-device/{_T}logical-channels/{_T}channel[{_T}index='{number}']/{_T}config/{_T}admin-state"

    def setting(path: str) -> TreeSetting:
        found = config.find(path)
        return TreeSetting(
            "/" + path.replace(_P, "").replace(_X, "").replace(_T, ""), None if found is None else found.text
        )

    return Settings(
        laser=setting(lane),
        enabled=setting(f"{pluggable}{_X}config/{_X}enabled"),
        admin=setting(logical),
        frequency=setting(f"{optical}frequency"),
        power=setting(f"{optical}target-output-power"),
    )


def configured(name: str, number: int, view: LinkView) -> Element:
    """The configuration that matches a module's settings."""
    channel, port, transceiver = parts(name, number)
    on = "true" if view.laser_on else "false"
    return _tree(
        {
            channel: {"config": {"name": channel}, f"{_T}optical-channel": {"config": _told(view, port)}},
            port: {"config": {"name": port}},
            transceiver: {
                "config": {"name": transceiver},
                f"{_X}transceiver": {
                    "config": {"enabled": "true"},
                    "physical-channels": {"channel": {"index": "0", "config": {"index": "0", "tx-laser": on}}},
                },
            },
        },
        number,
        {
            "config": {"index": str(number), "admin-state": "ENABLED"},
            "logical-channel-assignments": {
                "assignment": {
                    "index": "1",
                    "config": {"index": "1", "assignment-type": "OPTICAL_CHANNEL", "optical-channel": channel},
                }
            },
        },
    )


def shown(name: str, number: int, view: LinkView) -> Element:
    """The state that a chassis shows of a module, in addition to its configuration."""
    channel, port, transceiver = parts(name, number)
    facts = dict(module.vendor(view))
    light = {
        "output-power": _instant(_dbm(view.tx_power_dbm)),
        "input-power": _instant(_dbm(view.rx_power_dbm)),
        "laser-bias-current": _instant(f"{module.bias_ma(view):.2f}"),
    }
    lane: Content = {
        "index": "0",
        "associated-optical-channel": channel,
        "tx-laser": "true" if view.laser_on else "false",
        "tx-failure": "true" if view.laser_on and view.tx_power_dbm == -math.inf else "false",
        "rx-los": "true" if view.rx_power_dbm < view.transponder.rx_sensitivity_dbm else "false",
        "laser-temperature": _instant(f"{view.temperature_c:.1f}"),
    }
    return _tree(
        {
            channel: {
                "state": {"name": channel, "type": "OPTICAL_CHANNEL", "parent": transceiver},
                f"{_T}optical-channel": {"state": {**_told(view, port), **light}},
            },
            port: {
                "state": {"name": port, "type": "PORT"},
                "subcomponents": {"subcomponent": {"name": transceiver, "state": {"name": transceiver}}},
            },
            transceiver: {
                "state": {"name": transceiver, "type": "TRANSCEIVER", "parent": port},
                f"{_X}transceiver": {
                    "state": {
                        "present": "PRESENT",
                        "vendor": facts["Vendor name"],
                        "vendor-part": facts["Vendor PN"],
                        "serial-no": facts["Vendor SN"],
                        "supply-voltage": _instant(f"{module.VOLTAGE_V:.2f}"),
                    },
                    "physical-channels": {"channel": {"index": "0", "state": lane}},
                    "thresholds": {"threshold": list(_thresholds(view))},
                },
            },
        },
        number,
        {"state": {"index": str(number)}, "otn": {"state": _error_rates(view)}},
    )


def joined(trees: Iterable[Element]) -> Element:
    """Join several trees into one."""
    whole = Element("data")
    for each in trees:
        join(whole, each, KEYS)
    return whole


def _tree(components: Mapping[str, Content], number: int, logical: Content) -> Element:
    content: Content = {
        f"{_P}components": {"component": [{"name": name, **inside} for name, inside in components.items()]},
        f"{_T}terminal-device": {"logical-channels": {"channel": {"index": str(number), **logical}}},
    }
    made = Element("data")
    _fill(made, content, "")
    return made


def _fill(parent: Element, content: Content, namespace: str) -> None:
    """Add content to an element. Names without a namespace get the namespace of the enclosing element."""
    for name, inside in content.items():
        own, brace, _ = name.rpartition("}")
        space = own + brace if brace else namespace
        tag = name if brace else namespace + name
        for each in inside if isinstance(inside, list) else [inside]:
            made = SubElement(parent, tag)
            if isinstance(each, str):
                made.text = each
            else:
                _fill(made, each, space)


def _told(view: LinkView, port: str) -> dict[str, str]:
    return {
        "frequency": str(view.frequency_mhz),
        "target-output-power": f"{view.target_power_dbm:.2f}",
        "line-port": port,
    }


def _thresholds(view: LinkView) -> Iterator[Content]:
    """The module's alarm limits (severity CRITICAL) and warning limits (severity WARNING)."""
    stated = {
        "output-power": module.tx_limits(view),
        "input-power": module.rx_limits(view),
        "laser-bias-current": module.BIAS_LIMITS,
        "laser-temperature": module.TEMPERATURE_LIMITS,
    }
    for severity, high, low in (("CRITICAL", 0, 1), ("WARNING", 2, 3)):
        limits = {
            f"{name}-{edge}": f"{limit[at]:.2f}"
            for name, limit in stated.items()
            for edge, at in (("upper", high), ("lower", low))
        }
        yield {"severity": severity, "state": {"severity": severity, **limits}}


def _error_rates(view: LinkView) -> Content:
    """Bit error rates, computed from the received power; empty if that is below the receiver's sensitivity."""
    margin_db = view.rx_power_dbm - view.transponder.rx_sensitivity_dbm
    if margin_db < 0:
        return {}
    received = _Q_AT_SENSITIVITY * 10 ** (margin_db / 20)
    # Relative noise adds in squares: the receiver's part grows as light fades, the other part (_BEST_Q) stays.
    quality = (received**-2 + _BEST_Q**-2) ** -0.5
    before = math.erfc(quality / math.sqrt(2)) / 2
    after = 0.0 if before < _CORRECTABLE else before
    # Eighteen decimals, as the model's type has.
    return {"pre-fec-ber": _instant(f"{before:.18f}"), "post-fec-ber": _instant(f"{after:.18f}")}


def _instant(text: str) -> Content:
    return {"instant": text}


def _dbm(power: float) -> str:
    """A power as a decimal. Decimals of the models have no infinity, so no light is the least power of a module."""
    return f"{max(power, _NO_LIGHT_DBM):.2f}"


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"
