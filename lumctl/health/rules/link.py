"""What is wrong with one link: a transponder, its module and the interface it sits behind."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import InterfaceReading, NicEventKind
from lumctl.health.rulebook import found, has_case, rulebook, verdict
from lumctl.health.rules.cases import LinkCase
from lumctl.health.rules.counters import counted, span
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
    """The worst level that a value exceeds."""
    for level in _WORST_FIRST:
        if level in limits and (value < limits[level] if "low" in level else value > limits[level]):
            return level
    return None


def sending(case: LinkCase) -> Iterator[Finding]:
    """Transmitted light, laser current, temperature and voltage of a sending module, and its own alarms.

    A dark laser has neither light nor current: only link.tx-power reports it. Meaningless limits are not used; the
    rule for receiving reports them.
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
    """Whether all lasers are off. A module whose limits of current are 0 as well just does not measure it."""
    limits = [limit for name, limit in optics.thresholds.items() if name.startswith("bias_")]
    return optics.bias_ma is not None and optics.bias_ma <= 0 and (not limits or max(limits) > 0)


NO_CARRIER = frozenset({"down", "lowerlayerdown", "notpresent"})
"""Kernel words for an interface that carries nothing. ``unknown`` is no fault: some drivers never report more."""
CARRIER = frozenset({"up", "unknown"})
"""Kernel words for an interface that is no fault; what is in neither list waits for something, as ``dormant`` does."""


def has_no_light(optics: OpticsReading | None, *, below_dbm: float) -> bool:
    """Whether a module is read and its receiver is dark."""
    return optics is not None and optics.rx_power_dbm is not None and optics.rx_power_dbm < below_dbm


def sends_no_light(optics: OpticsReading | None) -> bool:
    """Whether a module is read and sends nothing, by its own word or by what it measures."""
    if optics is None or not optics.optical:
        return False
    limit = verdict("link.tx-power", "dark").limit
    return optics.transmitting is False or (optics.tx_power_dbm is not None and optics.tx_power_dbm < limit)


def has_no_carrier(interface: InterfaceReading | None) -> bool:
    """Whether an interface is read and carries nothing."""
    return interface is not None and interface.operstate in NO_CARRIER


def sane_limits(thresholds: Mapping[str, float]) -> dict[str, float] | None:
    """A module's receive limits where they are possible, ``None`` where they are absurd: out of order, or at 1 mW."""
    given = limits_of(thresholds, "rx_power")
    return given if given is not None and all(value < 0 for name, value in given.items() if "low" in name) else None


def missing(case: LinkCase) -> Iterator[Finding]:
    """An interface that the inventory names and the host does not have."""
    if case.listed and case.interface is None and not case.infiniband:
        yield found(case.id, "link.missing", "not-listed", f"the host has no interface {case.name}", since=case.read_at)


def down(case: LinkCase) -> Iterator[Finding]:
    """An interface in use without carrier. Silent if the receiver is dark: another rule reports that cause."""
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
        yield found(case.id, "link.down", "not-said", f"no operstate of {case.name}", since=case.read_at)


def infiniband(case: LinkCase) -> Iterator[Finding]:
    """An InfiniBand port that the inventory names and that is not active."""
    for each in case.infiniband if case.in_use else ():
        if each.state is None:
            evidence = f"{each.device} port {each.port} tells no state"
            yield found(case.id, "link.infiniband", "not-said", evidence, since=case.read_at)
        elif each.state.upper() != "ACTIVE":
            evidence = f"{each.device} port {each.port} is {each.state}, physically {each.phys_state or 'not told'}"
            yield found(case.id, "link.infiniband", "not-active", evidence, since=case.read_at)


def tx_power(case: LinkCase) -> Iterator[Finding]:
    """A transmitter that sends nothing although a circuit needs its light.

    Silent where the interface is down though light arrives: that is the cause, and link.down reports it.
    """
    if not case.in_use or not sends_no_light(case.optics) or (_lit(case) and has_no_carrier(case.interface)):
        return
    power = case.optics.tx_power_dbm if case.optics is not None else None
    evidence = f"sends no light{'' if power is None else f' ({_dbm(power)})'}, and a circuit needs it"
    yield found(case.id, "link.tx-power", "dark", evidence, since=case.read_at)


def rx_power(case: LinkCase) -> Iterator[Finding]:
    """Received light of a lane in use against the module's own limits, or the inventory's where it states none.

    Copper has none, and that is no fault.
    """
    optics = case.optics
    if not case.in_use or optics is None or not optics.optical or optics.rx_power_dbm is None:
        return
    power = optics.rx_power_dbm
    if _dark(case):
        yield found(case.id, "link.rx-power", "dark", f"no light ({_dbm(power)})", since=case.read_at)
        return
    limits = sane_limits(optics.thresholds)
    if limits is None or _disproved(case, power, limits):
        stated = {level: optics.thresholds.get(f"rx_power_{level}") for level in LEVELS}
        values = ", ".join(f"{level} {value:g}" for level, value in stated.items() if value is not None)
        evidence = f"the module's receive limits are absurd ({values} dBm)"
        yield found(case.id, "link.rx-power", "absurd-thresholds", evidence, since=case.read_at)
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
    """Whether a link works well where its module sees an alarm of too little light."""
    works = case.interface is not None and case.interface.operstate == "up"
    ample = case.rx_sensitivity_dbm + verdict("link.rx-power", "absurd-thresholds").limit
    return works and ample <= power < limits.get("low_alarm", -inf)


def _dark(case: LinkCase) -> bool:
    return has_no_light(case.optics, below_dbm=verdict("link.rx-power", "dark").limit)


def _lit(case: LinkCase) -> bool:
    return case.optics is not None and case.optics.rx_power_dbm is not None and not _dark(case)


def _dbm(power: float) -> str:
    return f"{power:.1f} dBm"


def stale(case: LinkCase) -> Iterator[Finding]:
    """Readings too old to be current."""
    if case.stale is not None:
        yield found(case.id, "link.stale", "reading", case.stale, since=case.read_at)


def not_read(case: LinkCase) -> Iterator[Finding]:
    """A lane in use on a host whose exporters do not report light: carrier alone does not prove that it is ok."""
    if case.in_use and case.unread:
        evidence = "the exporters of its host do not tell what light its module sends and receives"
        yield found(case.id, "link.not-read", "module", evidence, since=case.read_at)


_ENDS_WITH_A_PLUG = frozenset({NicEventKind.CABLE, NicEventKind.CABLE_ERROR})
_SAID = 160
"""Characters of a driver's line that a finding repeats."""


def errors(case: LinkCase) -> Iterator[Finding]:
    """Errors that the port counted, each over the time span of its line in the rulebook."""
    if case.in_use:
        yield from counted(case.id, "link.errors", case.trend, now=case.now, read_at=case.read_at)


def unsteady(case: LinkCase) -> Iterator[Finding]:
    """A carrier that comes and goes, or that stays away for long."""
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
        evidence = f"counter saturated: {part} {counter} cannot grow any more" + (
            f"; {kind.wider} is counted in its place" if covered else ""
        )
        name = "covered" if covered else kind.full
        yield found(case.id, "link.counter-full", name, evidence, since=case.read_at)


def driver_events(case: LinkCase) -> Iterator[Finding]:
    """What the network driver wrote into the kernel log of late, one finding for each kind."""
    if not case.nic_events:
        return
    quiet_until = case.trend.quiet_until if case.trend is not None else 0.0
    plugged = [event.at for event in case.nic_events if event.kind is NicEventKind.PLUGGED and event.at is not None]
    plugged_at = max(plugged, default=0.0)
    for kind in NicEventKind:
        if not has_case("link.nic", kind.value):
            continue
        line = verdict("link.nic", kind.value)
        oldest = max(case.now - line.window_s, quiet_until, plugged_at if kind in _ENDS_WITH_A_PLUG else 0.0)
        events = [event for event in case.nic_events if event.kind is kind and (event.at is None or event.at > oldest)]
        if events:
            again = f", {len(events)} times" if len(events) > 1 else ""
            since = min((event.at for event in events if event.at is not None), default=case.read_at)
            yield found(case.id, "link.nic", kind.value, f"{events[-1].text[:_SAID]}{again}", since=since)


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
