"""What a slice gains if light joins its idle ports: ports, bandwidth by dimension, and the times of collectives.

In an electrical torus the ports of a chip lead to its neighbours in the rack, whether these are in its slice or not.
So a slice uses a ring of a dimension only where it spans the torus, and a line elsewhere. Light leads all ports to
neighbours in the slice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from lumctl.collectives.cost import LinkCost
from lumctl.printable import shape_text
from lumctl.slices.allocation import SliceDemand, redirected_widths, ring_demand
from lumctl.slices.torus import Extents
from lumctl.studies.claim import Claim, ClaimBasis, ReadingValue, exact_value, range_value
from lumctl.studies.inventory_rack import port_rates
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_SOURCE = "arXiv 2508.03674"
_CHIP_PORTS, _BED_PORTS = 6, 2
_SERVER_CHIPS = 4
_SHAPES: Mapping[str, tuple[Extents, int]] = {
    shape_text(shape): (shape, ports)
    for shape, ports in (
        *((shape, _CHIP_PORTS) for shape in ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 2, 1))),
        ((2, 1, 1), _BED_PORTS),
    )
}
"""The slices of the default allocator, the one of the source's example of cost, and two servers of its test bed, each
with the ports of a rank."""
_DEFAULT, _EXAMPLE, _BED = tuple(_SHAPES)[:5], "4x2x1", "2x1x1"
_TORUS_EXTENT = 4
_BED_RATE_GB_S = 1.25
_RATES_GB_S = (50.0, _BED_RATE_GB_S)
"""As published, and of the test bed."""
EPOCH_SECONDS: Mapping[int, tuple[float, float, float]] = {
    2: (144.184, 89.739, 1.57),
    4: (75.222, 46.361, 1.60),
    8: (40.249, 23.369, 1.72),
}
"""By the size of a batch: the published seconds of an epoch before and with light, and the ratio that the text says."""


def electrical_demand(shape: Extents) -> SliceDemand:
    """The links of a slice in an electrical torus: rings only where it spans the torus."""
    x, y, z = (extent == _TORUS_EXTENT for extent in shape)
    return SliceDemand(shape, (x, y, z))


def ports_by_dimension(demand: SliceDemand) -> Extents:
    """The ports that a rank uses in each dimension; every rank of such a slice uses as many, or one less in a line."""
    counts = Counter(dimension for *_, dimension in demand.links())
    x, y, z = (2 * counts[dimension] // demand.accelerators for dimension in range(3))
    return x, y, z


def rings(ranks: int, ports: int) -> int:
    """How many rings over all ranks so many ports of each make at once; between two ranks each link is one.

    So the source's cost model has it. It counts ports, and does not ask whether the neighbours in a torus allow it.
    """
    return max(1, ports // min(2, ranks - 1))


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    return product(_SHAPES, *(settings[name] for name in ("port_gb_s", "alpha_us", "buffer_mib")))


def _solve(name: str, port_gb_s: float, alpha_us: float, buffer_mib: float) -> Iterator[StudyRow]:
    shape, ports = _SHAPES[name]
    ranks, size_bytes = prod(shape), buffer_mib * 2**20
    electrical = ports_by_dimension(electrical_demand(shape))
    redirected = ports_by_dimension(ring_demand(shape, redirected_widths(shape, ports)))
    spanned = sum(used for used, extent in zip(electrical, shape, strict=True) if extent == _TORUS_EXTENT)
    before, after = rings(ranks, spanned or min(2, sum(electrical))), rings(ranks, sum(redirected))
    slow, fast = (LinkCost(alpha_us / 1e6, 1 / (count * port_gb_s * 1e9)) for count in (before, after))
    yield {
        "slice": name,
        "ports": ports,
        "port_gb_s": port_gb_s,
        "alpha_us": alpha_us,
        "buffer_mib": buffer_mib,
        "electrical_ports": shape_text(electrical),
        "redirected_ports": shape_text(redirected),
        "idle_percent": 100 * (1 - sum(electrical) / ports),
        "idle_redirected_percent": 100 * (1 - sum(redirected) / ports),
        "electrical_gb_s": before * port_gb_s,
        "redirected_gb_s": after * port_gb_s,
        "chip_gb_s": rings(ranks, ports) * port_gb_s,
        "electrical_ms": slow.ring_s(ranks, size_bytes) * 1e3,
        "redirected_ms": fast.ring_s(ranks, size_bytes) * 1e3,
        "times_faster": slow.ring_s(ranks, size_bytes) / fast.ring_s(ranks, size_bytes),
    }


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    default = {str(row["slice"]): row for row in rows if row["slice"] in _DEFAULT}
    larger = [row for name, row in default.items() if prod(_SHAPES[name][0]) > _SERVER_CHIPS]
    bed = [row for row in rows if row["slice"] == _BED]
    gains = [_gain_percent(row) for row in default.values()]
    shares = [_added_percent(row) for row in default.values()]
    bandwidth = {
        "rings": exact_value(max(gains)),
        "ports": exact_value(max(map(_ports_percent, default.values()))),
        "ports-larger": exact_value(max(map(_ports_percent, larger))),
        "share": exact_value(max(shares)),
        "mean": exact_value(sum(gains) / len(gains)),
    }
    idle = {"all": _most(default.values(), "idle_percent"), "larger": _most(larger, "idle_percent")}
    found: dict[str, dict[str, ReadingValue]] = {
        "bandwidth.slice": bandwidth,
        "bandwidth.idle": idle,
        "bandwidth.idle-light": {"all": _most(default.values(), "idle_redirected_percent")},
        "bandwidth.link": {"ports": exact_value(float(bed[0]["redirected_gb_s"]) / float(bed[0]["electrical_gb_s"]))},
    }
    if _BED_RATE_GB_S in settings["port_gb_s"]:
        at_bed = [float(row["times_faster"]) for row in bed if row["port_gb_s"] == _BED_RATE_GB_S]
        faster = {"any": range_value(at_bed), "large": found["bandwidth.link"]["ports"]}
        found |= {"bandwidth.allreduce-least": faster, "bandwidth.allreduce-most": faster}
    for batch, (before_s, after_s, _) in EPOCH_SECONDS.items():
        found[f"bandwidth.epoch-{batch}"] = {"seconds": exact_value(before_s / after_s)}
    return found


def _gain_percent(row: StudyRow) -> float:
    return 100 * (float(row["redirected_gb_s"]) / float(row["electrical_gb_s"]) - 1)


def _added_percent(row: StudyRow) -> float:
    """What light adds, as a part of what the chip could send."""
    return 100 * (float(row["redirected_gb_s"]) - float(row["electrical_gb_s"])) / float(row["chip_gb_s"])


def _ports_percent(row: StudyRow) -> float:
    """How many more ports light uses."""
    return 100 * ((100 - float(row["idle_redirected_percent"])) / (100 - float(row["idle_percent"])) - 1)


def _most(rows: Iterable[StudyRow], column: str) -> ReadingValue:
    return exact_value(max(float(row[column]) for row in rows))


_ALL_SHAPES = "slices of 4 to 64 chips in a rack of 4x4x4, the largest"
_GAINS = {
    "rings": f"bandwidth of rings over all ranks, {_ALL_SHAPES}",
    "ports": f"ports that lead to the slice, {_ALL_SHAPES}",
    "ports-larger": "ports that lead to the slice, slices of more than one server, the largest",
    "share": f"bandwidth of rings that light adds, as part of the chip's, {_ALL_SHAPES}",
    "mean": "bandwidth of rings over all ranks, slices of 4 to 64 chips, their mean",
}
_IDLE = {
    "all": f"ports that lead out of the slice, {_ALL_SHAPES}",
    "larger": "ports that lead out of the slice, slices of more than one server, the largest",
}
_LINK = {"ports": "two ports each, one is electrical"}
_BED_WORDS = "the test bed: four servers with an RTX 6000 Ada each, 10 Gb/s ports, and its model and data"
_EPOCH = "an epoch of fine-tuning with light, batches of 2"
_ALLREDUCE = {
    "any": "two servers with two ports each, ring, any of the start-up times and sizes",
    "large": "two servers with two ports each, large buffers: only the bytes count",
}


def _claim(name: str, words: str, published: float, unit: str, tolerance: float, readings: Mapping[str, str]) -> Claim:
    return Claim(f"bandwidth.{name}", _SOURCE, words, published, unit, tolerance, readings)


STUDY = Study(
    name="bandwidth",
    question="What does a slice gain if light joins its idle ports?",
    parameters=(
        StudyParameter("port_gb_s", "GB/s of a port.", _RATES_GB_S, 0.001, 10_000, (_BED_RATE_GB_S,)),
        # The source states neither of these two.
        StudyParameter("alpha_us", "Microseconds to start a message.", (1.0, 100.0), 0.0, 1e6),
        StudyParameter("buffer_mib", "MiB of an all-reduce.", (0.25, 16.0, 1024.0), 0.001, 1e6),
    ),
    claims=(
        _claim("slice", "more bandwidth of a slice, up to", 66.0, "%", 1.0, _GAINS),
        _claim("idle", "idle ports in the electrical torus, up to", 50.0, "%", 0.5, _IDLE),
        _claim("idle-light", "idle ports with light", 0.0, "%", 0.5, {"all": f"ports without a use, {_ALL_SHAPES}"}),
        _claim("link", "bandwidth between two servers", 2.0, "times", 0.005, _LINK),
        _claim("allreduce-least", "faster all-reduce, at least", 1.79, "times", 0.005, _ALLREDUCE),
        _claim("allreduce-most", "faster all-reduce, at most", 1.82, "times", 0.005, _ALLREDUCE),
        *(
            Claim(
                f"bandwidth.epoch-{batch}",
                _SOURCE,
                f"shorter epoch of fine-tuning, batches of {batch}, as the text says",
                said,
                "times",
                0.005,
                {"seconds": f"the published seconds of an epoch, {before_s:g} over {after_s:g}"},
                ClaimBasis.COMPUTED,
            )
            for batch, (before_s, after_s, said) in EPOCH_SECONDS.items()
        ),
        Claim("bandwidth.epoch-seconds", _SOURCE, _EPOCH, 89.739, "s", 0.5, missing=_BED_WORDS),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("slice", ("idle_percent", "idle_redirected_percent"), "slice", "idle ports (%)"),
        StudyPlot(
            "buffer_mib", ("times_faster",), "all-reduce (MiB)", "faster all-reduce (times)", ("slice",), log_x=True
        ),
    ),
    of_inventory=port_rates,
)
