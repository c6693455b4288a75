"""Faults of one link: a transponder, its module and its host's interface."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf, isfinite

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import InterfaceReading, NicEventKind
from lumctl.health.events import earliest_at
from lumctl.health.rulebook import QUOTED, found, has_case, rulebook, verdict
from lumctl.health.rules.cases import LinkCase
from lumctl.health.rules.counters import counted, span
from lumctl.health.states import Finding

LEVELS = ("low_alarm", "low_warning", "high_warning", "high_alarm")
"""A module's limits for one quantity, in the order their values must have."""
_WORST_FIRST = ("low_alarm", "high_alarm", "low_warning", "high_warning")


def limits_of(thresholds: Mapping[str, float], quantity: str) -> dict[str, float] | None:
    """The limits of ``quantity`` by level; ``None`` if they are out of order and therefore meaningless."""
    given = {level: thresholds[f"{quantity}_{level}"] for level in LEVELS if f"{quantity}_{level}" in thresholds}
    ordered = all(lower <= higher for lower, higher in pairwise(given.values()))
    low = max((value for level, value in given.items() if "low" in level), default=-inf)
    high = min((value for level, value in given.items() if "high" in level), default=inf)
    # Zeros in place of all limits are in order, but leave nothing between low and high.
    return given if ordered and low < high else None


def crossed(value: float, limits: Mapping[str, float]) -> str | None:
    """The worst level that a value exceeds."""
    for level in _WORST_FIRST:
        if level in limits and (value < limits[level] if "low" in level else value > limits[level]):
            return level
    return None


def sending(case: LinkCase) -> Iterator[Finding]:
    """Transmitted light, laser current, temperature and voltage of a sending module, and its own alarms.

    A laser that is off is reported only by link.tx-power, although its current is zero too. Meaningless limits are not
    used; link.rx-power reports the meaningless receive limits.
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
            evidence = "all its lasers draw 0 mA, but the module does not report that they are off"
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
    """Whether no laser draws current. If the module's current limits are 0 too, it does not measure current."""
    limits = [limit for name, limit in optics.thresholds.items() if name.startswith("bias_")]
    return optics.bias_ma is not None and optics.bias_ma <= 0 and (not limits or max(limits) > 0)


NO_CARRIER = frozenset({"down", "lowerlayerdown", "notpresent"})
"""Kernel states of an interface without carrier. ``unknown`` is not a fault: some drivers never report another."""
CARRIER = frozenset({"up", "unknown"})
"""Kernel states of an interface without fault. In a state of neither set, such as ``dormant``, it is not ready yet."""


def has_no_light(optics: OpticsReading | None, *, below_dbm: float) -> bool:
    """Whether a module was read and its receiver is dark."""
    return optics is not None and optics.rx_power_dbm is not None and optics.rx_power_dbm < below_dbm


def sends_no_light(optics: OpticsReading | None) -> bool:
    """Whether a module is read and sends no light: by its own report, or by the measured power."""
    if optics is None or not optics.optical:
        return False
    limit = verdict("link.tx-power", "dark").limit
    return optics.transmitting is False or (optics.tx_power_dbm is not None and optics.tx_power_dbm < limit)


def has_no_carrier(interface: InterfaceReading | None) -> bool:
    """Whether an interface is read and has no carrier."""
    return interface is not None and interface.operstate in NO_CARRIER


def sane_limits(thresholds: Mapping[str, float]) -> dict[str, float] | None:
    """A module's receive limits; ``None`` if they are out of order, or a low limit is 1 mW (0 dBm) or more."""
    given = limits_of(thresholds, "rx_power")
    return given if given is not None and all(value < 0 for name, value in given.items() if "low" in name) else None


def missing(case: LinkCase) -> Iterator[Finding]:
    """An interface that the inventory lists but the host does not have."""
    if case.listed and case.interface is None and not case.infiniband:
        yield found(case.id, "link.missing", "not-listed", f"the host has no interface {case.name}", since=case.read_at)


def down(case: LinkCase) -> Iterator[Finding]:
    """An interface in use without carrier. Finds nothing if the receiver is dark: link.rx-power reports that cause."""
    if not case.in_use or case.interface is None or _dark(case):
        return
    if has_no_carrier(case.interface):
        though = " though light arrives" if _lit(case) else ""
        evidence = f"{case.name} is {case.interface.operstate}{though}"
        yield found(case.id, "link.down", "no-carrier", evidence, since=case.read_at)
    elif case.interface.operstate is not None and case.interface.operstate not in CARRIER:
        evidence = f"{case.name} is {case.interface.operstate}"
        yield found(case.id, "link.down", "not-ready", evidence, since=case.read_at)
    elif case.interface.operstate is None:
        yield found(case.id, "link.down", "not-said", f"the operstate of {case.name} is missing", since=case.read_at)


def infiniband(case: LinkCase) -> Iterator[Finding]:
    """An InfiniBand port that the inventory lists but that is not active."""
    for each in case.infiniband if case.in_use else ():
        if each.state is None:
            evidence = f"{each.device} port {each.port} reports no state"
            yield found(case.id, "link.infiniband", "not-said", evidence, since=case.read_at)
        elif each.state.upper() != "ACTIVE":
            evidence = f"{each.device} port {each.port} is {each.state}, physically {each.phys_state or 'not reported'}"
            yield found(case.id, "link.infiniband", "not-active", evidence, since=case.read_at)


def tx_power(case: LinkCase) -> Iterator[Finding]:
    """A transmitter that sends nothing although a circuit needs its light.

    Finds nothing if the interface is down although light arrives: that is the cause, and link.down reports it.
    """
    if not case.in_use or not sends_no_light(case.optics) or (_lit(case) and has_no_carrier(case.interface)):
        return
    power = case.optics.tx_power_dbm if case.optics is not None else None
    evidence = f"sends no light{'' if power is None else _measured(power)}, but a circuit needs it"
    yield found(case.id, "link.tx-power", "dark", evidence, since=case.read_at)


def rx_power(case: LinkCase) -> Iterator[Finding]:
    """Received light of a lane in use, compared with the module's limits, or with the inventory's if it has none.

    Copper modules receive no light, which is not a fault.
    """
    optics = case.optics
    if not case.in_use or optics is None or not optics.optical or optics.rx_power_dbm is None:
        return
    power = optics.rx_power_dbm
    if _dark(case):
        yield found(case.id, "link.rx-power", "dark", f"no light{_measured(power)}", since=case.read_at)
        return
    limits = sane_limits(optics.thresholds)
    if limits is None or _disproved(case, power, limits):
        stated = {level: optics.thresholds.get(f"rx_power_{level}") for level in LEVELS}
        values = ", ".join(f"{level} {value:g}" for level, value in stated.items() if value is not None)
        evidence = f"the module's receive limits are impossible ({values} dBm)"
        yield found(case.id, "link.rx-power", "absurd-thresholds", evidence, since=case.read_at)
        # Limits that are not believed must not be used below either; the inventory's sensitivity takes their place.
        limits = {}
    if not any("low" in name for name in limits) and power < case.rx_sensitivity_dbm:
        case_name = "insensitive-link-down" if has_no_carrier(case.interface) else "insensitive"
        evidence = f"receives {_dbm(power)}, below its sensitivity of {_dbm(case.rx_sensitivity_dbm)}"
        yield found(case.id, "link.rx-power", case_name, evidence, since=case.read_at)
    level = crossed(power, limits)
    if level is not None:
        kind = level.partition("_")[2]
        case_name = "alarm-link-down" if kind == "alarm" and has_no_carrier(case.interface) else kind
        side = "below" if "low" in level else "above"
        evidence = f"receives {_dbm(power)}, {side} the module's {kind} limit of {_dbm(limits[level])}"
        yield found(case.id, "link.rx-power", case_name, evidence, since=case.read_at)


def _disproved(case: LinkCase, power: float, limits: Mapping[str, float]) -> bool:
    """Whether a link works with ample light although its module's low alarm limit is exceeded."""
    works = case.interface is not None and case.interface.operstate == "up"
    ample = case.rx_sensitivity_dbm + verdict("link.rx-power", "absurd-thresholds").limit
    return works and ample <= power < limits.get("low_alarm", -inf)


def _dark(case: LinkCase) -> bool:
    return has_no_light(case.optics, below_dbm=verdict("link.rx-power", "dark").limit)


def _lit(case: LinkCase) -> bool:
    return case.optics is not None and case.optics.rx_power_dbm is not None and not _dark(case)


def _measured(power: float) -> str:
    """The measured power in parentheses; empty if it is infinite."""
    return f" ({_dbm(power)})" if isfinite(power) else ""


def _dbm(power: float) -> str:
    return f"{power:.1f} dBm"


def stale(case: LinkCase) -> Iterator[Finding]:
    """Readings too old to be current."""
    if case.stale is not None:
        yield found(case.id, "link.stale", "reading", case.stale, since=case.read_at)


def not_read(case: LinkCase) -> Iterator[Finding]:
    """A lane in use whose host's exporters do not report light: a carrier alone does not prove that it is ok."""
    if case.in_use and case.unread:
        evidence = "the exporters of its host do not report the light that its module sends and receives"
        yield found(case.id, "link.not-read", "module", evidence, since=case.read_at)


_ENDS_WITH_A_PLUG = frozenset({NicEventKind.CABLE, NicEventKind.CABLE_ERROR})


def errors(case: LinkCase) -> Iterator[Finding]:
    """Errors that the port counted, each over the time span of its line in the rulebook."""
    if case.in_use:
        yield from counted(case.id, "link.errors", case.trend, now=case.now, read_at=case.read_at)


def unsteady(case: LinkCase) -> Iterator[Finding]:
    """A carrier that is lost repeatedly or for a long time."""
    if not case.in_use or case.trend is None:
        return
    yield from counted(case.id, "link.unsteady", case.trend, now=case.now, read_at=case.read_at)
    line, down_since = verdict("link.unsteady", "dropped"), case.trend.down_since
    if down_since is not None and case.now - down_since >= line.limit:
        evidence = f"{case.name} was down for more than {span(line.limit)}"
        yield found(case.id, "link.unsteady", "dropped", evidence, since=down_since)


def full_counters(case: LinkCase) -> Iterator[Finding]:
    """Counters at their maximum: new errors are no longer counted."""
    if case.trend is None or not case.in_use:
        return
    for counter, part in case.trend.saturated():
        kind = rulebook().counters[counter]
        covered = bool(kind.wider) and case.trend.counts(kind.wider)
        evidence = f"counter saturated: {part} {counter} cannot increase any further" + (
            f"; {kind.wider} is counted instead" if covered else ""
        )
        name = "covered" if covered else kind.full
        yield found(case.id, "link.counter-full", name, evidence, since=case.read_at)


def driver_events(case: LinkCase) -> Iterator[Finding]:
    """Recent lines of the network driver in the kernel log: one finding for each kind."""
    if not case.nic_events:
        return
    quiet_until = case.trend.quiet_until if case.trend is not None else 0.0
    plugged = [event.at for event in case.nic_events if event.kind is NicEventKind.PLUGGED and event.at is not None]
    plugged_at = max(plugged, default=0.0)
    for kind in NicEventKind:
        # Some kinds are no fault, such as a link that comes up.
        if not has_case("link.nic", kind.value):
            continue
        line = verdict("link.nic", kind.value)
        oldest = max(case.now - line.window_s, quiet_until, plugged_at if kind in _ENDS_WITH_A_PLUG else 0.0)
        events = [event for event in case.nic_events if event.kind is kind and (event.at is None or event.at > oldest)]
        if events:
            again = f", {len(events)} times" if len(events) > 1 else ""
            since = earliest_at(events, default=case.read_at)
            yield found(case.id, "link.nic", kind.value, f"{events[-1].text[:QUOTED]}{again}", since=since)


RULES = (
    missing,
    stale,
    not_read,
    tx_power,
    rx_power,
    sending,
    infiniband,
    down,
    errors,
    unsteady,
    full_counters,
    driver_events,
)
