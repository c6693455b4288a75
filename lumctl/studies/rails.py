"""Power and price of a rail-optimised network with electrical switches, and with optical circuit switches instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lumctl.studies.claim import Claim, ClaimReading, exactly
from lumctl.studies.study import Readings, Settings, Study, StudyParameter, StudyRow

_SOURCE = "arXiv 2507.08119"
_NO_MODEL = "the model of a training step whose rails switch between phases"


@dataclass(frozen=True, slots=True)
class _Generation:
    """The published parts of one generation of GPUs: watts and dollars of each."""

    transceiver_w: float
    transceiver_usd: float
    port_w: float
    port_usd: float
    at_switches: bool
    """Whether the switches' ports need transceivers too."""
    domain: int
    """GPUs of a scale-up domain in the published plans."""


GENERATIONS: Mapping[str, _Generation] = {
    "H200": _Generation(10.0, 879.0, 2524 / 64, 37_299 / 64, at_switches=True, domain=8),
    "GB200": _Generation(16.0, 879.0, 7000 / 144, 149_939 / 144, at_switches=False, domain=32),
}
_OPTICAL_PORT_W, _OPTICAL_PORT_USD, RADIX = 75 / 192, 520.0, 192
"""Of an optical circuit switch of 192 ports."""


def _rail_ports(domains: int, domain: int) -> int:
    """Ports of all electrical switches of the published rail network, leaves and spines."""
    radix = int((4 * domains) ** 0.5 + 0.5)
    return radix * (domains // (radix // 2) * 2 * domain + domain * domains // radix)


def _network_costs(generation: _Generation, gpus: int, transceivers: int) -> tuple[float, float, float, float]:
    """Kilowatts of the electrical network and of the optical one, and millions of dollars of both.

    ``transceivers`` is how many a GPU has at the optical network, which joins each with two ports.
    """
    ports = _rail_ports(gpus // generation.domain, generation.domain)
    there = gpus + (ports if generation.at_switches else 0)
    optical = 2 * gpus
    return (
        (there * generation.transceiver_w + ports * generation.port_w) / 1e3,
        (transceivers * gpus * generation.transceiver_w + optical * _OPTICAL_PORT_W) / 1e3,
        (there * generation.transceiver_usd + ports * generation.port_usd) / 1e6,
        (transceivers * gpus * generation.transceiver_usd + optical * _OPTICAL_PORT_USD) / 1e6,
    )


def _rows(settings: Settings) -> Iterator[StudyRow]:
    for name, generation in GENERATIONS.items():
        for gpus in map(int, settings["gpus"]):
            if gpus % generation.domain or gpus < 2 * generation.domain:
                continue  # no rail joins anything
            for transceivers in map(int, settings["transceivers"]):
                electrical_kw, optical_kw, electrical, optical = _network_costs(generation, gpus, transceivers)
                ports = 2 * gpus // generation.domain
                yield {
                    "gpus": gpus,
                    "kind": name,
                    "transceivers": transceivers,
                    "kw": electrical_kw,
                    "optical_kw": optical_kw,
                    "less_power": electrical_kw / optical_kw,
                    "musd": electrical,
                    "optical_musd": optical,
                    "less_cost": electrical / optical,
                    "ports_per_rail": ports,
                    "switches_per_rail": -(-ports // RADIX),
                }


_FEW_DOMAINS = 8
"""With fewer, the published formula leaves many electrical ports idle."""
_COLUMNS = (("power", "less_power"), ("cost", "less_cost"))
_COUNTS = {1: "one transceiver for each GPU", 2: "two transceivers for each GPU, one for each port"}


def _readings(_: Settings, rows: Sequence[StudyRow]) -> Readings:
    found: dict[str, list[ClaimReading]] = {}

    def note(claim: str, words: str, value: float) -> None:
        found.setdefault(f"rails.{claim}", []).append(exactly(words, value))

    for row in rows:
        if row["kind"] == "H200" and row["gpus"] == 512:  # noqa: PLR2004 - the published case
            words = _COUNTS[int(row["transceivers"])]
            note("power-h200", words, float(row["less_power"]))
            note("cost-h200", words, float(row["less_cost"]))
    for (claim, column), (transceivers, words), fewest in product(_COLUMNS, _COUNTS.items(), (_FEW_DOMAINS, 2)):
        ratios = [
            float(row[column])
            for row in rows
            if (row["kind"], row["transceivers"]) == ("GB200", transceivers)
            and int(row["gpus"]) >= fewest * GENERATIONS["GB200"].domain
        ]
        if len(ratios) > 1:
            note(f"{claim}-gb200-least", f"{words}, {fewest} domains or more", min(ratios))
            note(f"{claim}-gb200-most", f"{words}, {fewest} domains or more", max(ratios))
    if sizes := [row for row in rows if row["kind"] == "H200" and row["gpus"] == 2048]:  # noqa: PLR2004 - published
        note("one-switch", f"ports of a rail over the {RADIX} of a switch", float(sizes[0]["switches_per_rail"]))
    return found


STUDY = Study(
    name="rails",
    question="What do optical circuit switches on the rails save in power and price?",
    parameters=(
        StudyParameter("gpus", "Sizes of the cluster.", tuple(64 * 2**k for k in range(8)), 64, 65_536, whole=True),
        StudyParameter("transceivers", "Transceivers of a GPU at the optical network.", (1, 2), 1, 2, whole=True),
    ),
    claims=(
        Claim("rails.power-h200", _SOURCE, "less power with 512 H200", 23.86, "times", 0.01),
        Claim("rails.cost-h200", _SOURCE, "less cost with 512 H200", 4.27, "times", 0.01),
        Claim("rails.power-gb200-least", _SOURCE, "less power with GB200, at least", 12.5, "times", 0.05),
        Claim("rails.power-gb200-most", _SOURCE, "less power with GB200, at most", 15.8, "times", 0.05),
        Claim("rails.cost-gb200-least", _SOURCE, "less cost with GB200, at least", 2.6, "times", 0.05),
        Claim("rails.cost-gb200-most", _SOURCE, "less cost with GB200, at most", 3.2, "times", 0.05),
        Claim("rails.one-switch", _SOURCE, "optical switches with 2,048 H200", 1, "per rail", 0.0),
        Claim("rails.step-packet", _SOURCE, "training step, packet switches", 62.2416, "s", 1e-4, missing=_NO_MODEL),
        Claim("rails.step-on-demand", _SOURCE, "training step, 50 ms on demand", 62.3416, "s", 1e-4, missing=_NO_MODEL),
        Claim("rails.step-ahead", _SOURCE, "training step, 50 ms ahead", 62.2905, "s", 1e-4, missing=_NO_MODEL),
        Claim("rails.overhead", _SOURCE, "what changes add to a training step", 6.0, "%", 0.1, missing=_NO_MODEL),
    ),
    columns=(
        *("gpus", "kind", "transceivers", "kw", "optical_kw", "less_power", "musd", "optical_musd", "less_cost"),
        *("ports_per_rail", "switches_per_rail"),
    ),
    rows=_rows,
    readings=_readings,
)
