"""Power and price of a rail-optimised network with electrical switches, and with optical circuit switches instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lumctl.errors import UsageError
from lumctl.studies.claim import Claim, ClaimBasis, ReadingValue, exact_value, found_value
from lumctl.studies.inventory_rack import rails_of_hosts
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_SOURCE = "arXiv 2507.08119, 2602.12521"
_SIZES = tuple(64 * 2**doubled for doubled in range(8))
_DOMAINS = (8, 16, 32, 64)
_FEWEST_DOMAINS = 4
"""With two or three, the published formula buys spine switches that join nothing."""


@dataclass(frozen=True, slots=True)
class _Generation:
    """The published watts and dollars of the parts that one generation of GPUs uses."""

    transceiver_w: float
    transceiver_usd: float
    port_w: float
    port_usd: float
    at_switches: bool
    """Whether the electrical switches' ports need transceivers too."""


GENERATIONS: Mapping[str, _Generation] = {
    "H200": _Generation(10.0, 879.0, 2524 / 64, 37_299 / 64, at_switches=True),
    "GB200": _Generation(16.0, 879.0, 7000 / 144, 149_939 / 144, at_switches=False),
}
_OPTICAL_PORT_W, _OPTICAL_PORT_USD, OPTICAL_PORTS = 75 / 192, 520.0, 192
"""Of an optical circuit switch, and how many ports it has."""


def _rail_ports(domains: int, domain: int) -> int:
    """Ports of all electrical switches of the published rail network, leaves and spines."""
    radix = int((4 * domains) ** 0.5 + 0.5)
    return radix * (domains // (radix // 2) * 2 * domain + domain * domains // radix)


def _network_costs(
    generation: _Generation, gpus: int, domain: int, transceivers: int
) -> tuple[float, float, float, float]:
    """Kilowatts of the electrical network and of the optical one, and millions of dollars of both.

    ``domain`` is how many GPUs a scale-up domain has, ``transceivers`` how many a GPU has at the optical network, which
    joins each GPU by two ports.
    """
    ports = _rail_ports(gpus // domain, domain)
    there = gpus + (ports if generation.at_switches else 0)
    optical = 2 * gpus
    return (
        (there * generation.transceiver_w + ports * generation.port_w) / 1e3,
        (transceivers * gpus * generation.transceiver_w + optical * _OPTICAL_PORT_W) / 1e3,
        (there * generation.transceiver_usd + ports * generation.port_usd) / 1e6,
        (transceivers * gpus * generation.transceiver_usd + optical * _OPTICAL_PORT_USD) / 1e6,
    )


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    sizes, domains = ([int(each) for each in settings[name]] for name in ("gpus", "domain"))
    fitting = [(gpus, each) for gpus in sizes for each in domains if not gpus % each and gpus >= _FEWEST_DOMAINS * each]
    if not fitting:
        given, known = (", ".join(map(str, each)) for each in (sizes, domains))
        raise UsageError(f"gpus is {given}, expected {_FEWEST_DOMAINS} or more whole domains of {known}")
    transceivers = [int(each) for each in settings["transceivers"]]
    radices = [int(each) for each in settings["radix"]]
    return ((*sizes, *parts) for sizes in fitting for parts in product(GENERATIONS, transceivers, radices))


def _solve(gpus: int, domain: int, generation: str, transceivers: int, radix: int) -> Iterator[StudyRow]:
    electrical_kw, optical_kw, electrical, optical = _network_costs(GENERATIONS[generation], gpus, domain, transceivers)
    ports = 2 * gpus // domain
    yield {
        "gpus": gpus,
        "kind": generation,
        "domain": domain,
        "transceivers": transceivers,
        "electrical_kw": electrical_kw,
        "optical_kw": optical_kw,
        "times_less_power": electrical_kw / optical_kw,
        "electrical_musd": electrical,
        "optical_musd": optical,
        "times_less_cost": electrical / optical,
        "ports_per_rail": ports,
        "switches_per_rail": -(-ports // radix),
    }


_RATIOS = {"power": "times_less_power", "cost": "times_less_cost"}


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    found: dict[str, dict[str, ReadingValue]] = {}
    of = {(row["kind"], row["gpus"], row["domain"], row["transceivers"]): row for row in rows}
    for claim, column in _RATIOS.items():
        published = {
            name: exact_value(float(of[case][column]))
            for name, case in (("one", ("H200", 512, 8, 1)), ("two", ("H200", 512, 8, 2)))
            if case in of
        }
        found[f"rails.{claim}-h200"] = published
        least, most = (found.setdefault(f"rails.{claim}-gb200-{end}", {}) for end in ("least", "most"))
        if set(_SIZES) <= set(settings["gpus"]):
            for name, domains in (("domain-32", (32,)), ("any-domain", _DOMAINS)):
                cases = product(("GB200",), _SIZES, domains, (1,))
                ratios = [float(of[case][column]) for case in cases if case in of]
                if ratios and set(domains) <= set(settings["domain"]):
                    least[name], most[name] = found_value(min(ratios)), found_value(max(ratios))
    if ("H200", 2048, 8, 1) in of and settings.get("radix", (OPTICAL_PORTS,)) == (OPTICAL_PORTS,):
        found["rails.one-switch"] = {"priced": exact_value(float(of["H200", 2048, 8, 1]["switches_per_rail"]))}
    return found


_TRANSCEIVERS = {"one": "one transceiver for each GPU", "two": "two transceivers for each GPU, one for each port"}
_GB200 = {
    "domain-32": "64 to 8,192 GPUs in domains of 32, one transceiver for each",
    "any-domain": "64 to 8,192 GPUs in domains of 8 to 64, one transceiver for each",
}
_ONE_SWITCH = "optical switches of a rail, 2,048 H200 in domains of 8"
_PRICED = {"priced": f"of the priced switch with {OPTICAL_PORTS} ports"}


def _computed(name: str, words: str, published: float, tolerance: float, readings: Mapping[str, str]) -> Claim:
    return Claim(f"rails.{name}", _SOURCE, words, published, "times", tolerance, readings, ClaimBasis.COMPUTED)


STUDY = Study(
    name="rails",
    question="What do optical circuit switches on the rails save in power and price?",
    parameters=(
        StudyParameter("gpus", "Sizes of the cluster.", _SIZES, 8, 65_536, whole=True),
        StudyParameter("domain", "GPUs of a scale-up domain.", _DOMAINS, 2, 1024, whole=True),
        StudyParameter("transceivers", "Transceivers of a GPU at the optical network.", (1, 2), 1, 2, whole=True),
        StudyParameter("radix", "Ports of an optical switch.", (OPTICAL_PORTS,), 2, 65_536, whole=True, several=False),
    ),
    claims=(
        _computed("power-h200", "less power, 512 H200 in domains of 8", 23.86, 0.01, _TRANSCEIVERS),
        _computed("cost-h200", "less cost, 512 H200 in domains of 8", 4.27, 0.01, _TRANSCEIVERS),
        _computed("power-gb200-least", "less power with GB200, at least", 12.5, 0.05, _GB200),
        _computed("power-gb200-most", "less power with GB200, at most", 15.8, 0.05, _GB200),
        _computed("cost-gb200-least", "less cost with GB200, at least", 2.6, 0.05, _GB200),
        _computed("cost-gb200-most", "less cost with GB200, at most", 3.2, 0.05, _GB200),
        Claim("rails.one-switch", _SOURCE, _ONE_SWITCH, 1, "switches", 0.0, _PRICED, ClaimBasis.INFERRED),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=tuple(
        StudyPlot("gpus", (column,), "GPUs", f"less {what} (times), all domains", ("kind", "transceivers"), log_x=True)
        for what, column in _RATIOS.items()
    ),
    of_inventory=rails_of_hosts,
)
