"""What a transponder or the power of a host shows."""

from collections.abc import Mapping

from lumctl.devices.types import Capability, Neighbour
from lumctl.health.hearing import heard_transponder
from lumctl.inventory.wiring import circuits_of, jobs_in
from lumctl.site.report_parts import Reading, Report, driver_if_well
from lumctl.site.site import Site

OPTICS = (
    ("rx_power_dbm", "dBm", "rx_power"),
    ("tx_power_dbm", "dBm", "tx_power"),
    ("bias_ma", "mA", "bias"),
    ("temperature_c", "C", "temperature"),
    ("voltage_v", "V", "voltage"),
    ("pre_fec_ber", "", None),
    ("post_fec_ber", "", None),
    ("fec_uncorrectable", "blocks", None),
    ("frequency_mhz", "MHz", None),
    ("target_power_dbm", "dBm", None),
    ("rx_los", "", None),
    ("tx_fault", "", None),
    ("module_state", "", None),
    ("module_fault", "", None),
)
"""Readings of a module as they are shown: the field, its unit, and the name of its thresholds."""


def report_transponder(site: Site, made: Report) -> None:
    """Add what a transponder shows: its optics with their limits, and whom it hears."""
    lane, driver = site.inventory.transponders[made.component.id], driver_if_well(site, made)
    every = circuits_of(site.inventory, site.assignment(sound=False))
    made.circuits = [c for c in every if lane.id in {c.a.transponder, c.b.transponder}]
    if driver is None:
        return
    if Capability.SET_TRANSMIT in driver.capabilities:
        on = made.read("transmitter", driver.transmitting)
        made.readings += [Reading("transmit", on)] if on is not None else []
    optics = made.read("optics", driver.read_optics) if Capability.READ_OPTICS in driver.capabilities else None
    if optics is not None and not optics.optical:
        made.notes.append("the module is copper: it has no optics")
    for name, unit, limited in OPTICS if optics is not None else ():
        value = getattr(optics, name)
        if value is not None:
            made.readings.append(Reading(name, value, unit, _limits(optics.thresholds, limited) if optics else {}))
    if Capability.READ_NEIGHBOURS in driver.capabilities:
        _hears(site, made, made.read("neighbours", driver.neighbours))


def _hears(site: Site, made: Report, heard: tuple[Neighbour, ...] | None) -> None:
    """Whom the receiver hears, and for how long nothing new; beside whom it is meant to hear."""
    if heard is None:
        return
    meant = {t for c in made.circuits for r, t in c.receivers if r == made.component.id}
    name = None
    for neighbour in heard[:1]:
        name = heard_transponder(site.inventory, neighbour) or f"{neighbour.system} {neighbour.port}"
        made.readings += [Reading("hears", name), Reading("heard_before", round(neighbour.age_s), "s")]
    if meant and name not in meant:
        made.notes.append(f"it hears {name or 'nobody'} and is meant to hear {', '.join(sorted(meant))}")


def _limits(thresholds: Mapping[str, float], name: str | None) -> dict[str, float]:
    if name is None:
        return {}
    return {key.removeprefix(f"{name}_"): value for key, value in thresholds.items() if key.startswith(f"{name}_")}


def report_power(site: Site, made: Report) -> None:
    """Add what the controller says of a host's power, and what runs there."""
    driver = driver_if_well(site, made)
    placed = site.assignment(sound=False)
    here = [a.id for a in site.inventory.accelerators_of(str(made.component.host))]
    runs = [
        f"rank {rank} of {job} runs on {accelerator}"
        for job, ranks in jobs_in(placed).items()
        for rank, accelerator in enumerate(ranks)
        if accelerator in here
    ]
    made.notes += runs or ([f"no job runs on {', '.join(here)}"] if here else [])
    reading = made.read("power", driver.read_power) if driver is not None else None
    if reading is None:
        return
    on = {True: "on", False: "off", None: "between on and off"}[reading.on]
    made.readings.append(Reading("power", on))
    for name, value, unit in (("draw", reading.watts, "W"), ("health", reading.health or None, "")):
        made.readings += [Reading(name, value, unit)] if value is not None else []
    made.readings += [Reading("model", reading.model)] if reading.model else []
