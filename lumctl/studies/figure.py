"""The figure of a study: its table, and its claims with the published values beside its own.

Equal results give equal bytes.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

from lumctl.errors import UsageError
from lumctl.studies.results import ClaimResult, StudyResult
from lumctl.studies.study import StudyPlot, StudyRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
"""Of Okabe and Ito: also readers who confuse red and green tell them apart."""
_MARKERS = "osD^vPX*"
_STYLE: Any = {
    "svg.hashsalt": "lumctl",  # otherwise the ids in the file are random
    "svg.fonttype": "path",
    "text.parse_math": False,  # a claim's words may have a $
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
_WIDTH_IN, _PLOT_IN, _ROW_IN, _FRAME_IN = 8.0, 3.2, 0.26, 0.9
_UNDATED = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def drawn(result: StudyResult, kind: str) -> bytes:
    """The figure as the bytes of an ``svg`` or ``png`` file; see :func:`require_matplotlib`."""
    with _style():
        file = BytesIO()
        _figure(result).savefig(file, format=kind, dpi=150, metadata=_UNDATED[kind])
        return file.getvalue()


def require_matplotlib() -> None:
    """Find out whether figures can be drawn.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("study figure needs matplotlib", hint="pip install 'lumctl[studies]'")


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    with mpl.rc_context():
        mpl.rcdefaults()  # a user's own style would give other bytes
        mpl.rcParams.update(_STYLE)
        yield


def _figure(result: StudyResult) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    by_unit = defaultdict(list)
    for claim in result.claims:
        by_unit[claim.claim.unit].append(claim)
    plots = [plot for plot in result.study.plots if result.rows]
    heights = [_PLOT_IN] * len(plots) + [
        _FRAME_IN + _ROW_IN * sum(len(_lines(each)) for each in claims) for claims in by_unit.values()
    ]
    figure = Figure(figsize=(_WIDTH_IN, sum(heights)), layout="constrained")
    figure.suptitle(result.study.question)
    axes: Any = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for plot, place in zip(plots, axes, strict=False):
        _draw_table(place, plot, result.rows)
    for (unit, claims), place in zip(by_unit.items(), axes[len(plots) :], strict=True):
        _draw_claims(place, unit, claims)
    return figure


def _draw_table(axes: "Axes", plot: StudyPlot, rows: Sequence[StudyRow]) -> None:
    looks = cycle(zip(_COLOURS * len(_MARKERS), _MARKERS * len(_COLOURS), strict=True))
    for column in plot.y:
        for name, points in _series(plot, column, rows).items():
            colour, marker = next(looks)
            at = sorted(points)
            means = [math.fsum(points[x]) / len(points[x]) for x in at]
            axes.plot(at, means, color=colour, marker=marker, markersize=4, linewidth=1, label=name)
            lows, highs = ([end(points[x]) for x in at] for end in (min, max))
            if lows != highs:
                axes.fill_between(at, lows, highs, color=colour, alpha=0.15, linewidth=0)
    if plot.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _series(plot: StudyPlot, column: str, rows: Sequence[StudyRow]) -> dict[str, dict[float, list[float]]]:
    """By the name of a line, and the place on it: the values of the rows there."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        words = [f"{name.replace('_', ' ')} {row[name]}" for name in plot.by]
        value = float(row[column])
        if math.isfinite(value):
            line = found.setdefault(", ".join([column.replace("_", " "), *words]), {})
            line.setdefault(float(row[plot.x]), []).append(value)
    return found


def _lines(claim: ClaimResult) -> tuple[str, ...]:
    """The readings of a claim that have a line in the figure; a claim without a value has one line."""
    return tuple(claim.values) or ("",)


def _draw_claims(axes: "Axes", unit: str, claims: Sequence[ClaimResult]) -> None:
    labels: list[str] = []
    for claim in claims:
        for reading in _lines(claim):
            place = -len(labels)
            axes.plot([claim.claim.published], [place], "|k", markersize=14, markeredgewidth=2, zorder=3)
            labels.append(f"{claim.claim.id}: {reading or claim.verdict or 'not judged'}")
            value = claim.values.get(reading)
            if value is not None and math.isfinite(value.value):
                ends = [[value.value - value.low], [value.high - value.value]]
                marker = "o" if value.holds(claim.claim) else "s"
                axes.errorbar(
                    [value.value], [place], xerr=ends, color=_COLOURS[0], marker=marker, markersize=5, capsize=3
                )
    axes.set_yticks([-at for at in range(len(labels))], labels, fontsize=7)
    axes.set_ylim(-len(labels) + 0.4, 0.6)
    axes.set_xlabel(unit)
    axes.set_title(
        "| published   o this program, as published   square: otherwise   line: its range", fontsize=7, loc="left"
    )
