"""The figure of a study: its table, and its claims with the published values beside its own.

Equal results give equal bytes.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from textwrap import fill
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
_DASHES = ("-", "--", ":", "-.")
"""The first colours' lines are whole, and so on: after the last colour comes the first again."""
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
_WORD_WIDTH = 16
_MOST_WORDS = 8
"""More on an axis are turned, for they would overlap."""
_BESIDE = 0.06
"""How far apart the marks of two lines are over the same word."""
_UNDATED = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def drawn(result: StudyResult, kind: str) -> bytes:
    """The figure as the bytes of an ``svg`` or ``png`` file; see :func:`require_matplotlib`."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    file = BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # a user's own style would give other bytes
        mpl.rcParams.update(_STYLE)
        _figure(result).savefig(file, format=kind, dpi=150, metadata=_UNDATED[kind])
    return file.getvalue()


def require_matplotlib() -> None:
    """Find out whether figures can be drawn.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("study figure needs matplotlib", hint="pip install 'lumctl[studies]'")


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
    rows = [row for row in rows if not any(isinstance(row[each], str) for each in plot.y)]
    words = _words(plot, rows)
    series = [each for column in plot.y for each in _series(plot, column, rows, words).items()]
    for number, (name, points) in enumerate(series):
        at = sorted(points)
        means = [math.fsum(points[x]) / len(points[x]) for x in at]
        lows, highs = ([end(points[x]) for x in at] for end in (min, max))
        if words:
            beside = [x + _BESIDE * (number - (len(series) - 1) / 2) for x in at]
            ends = [[mean - low for mean, low in zip(means, lows, strict=True)]]
            ends += [[high - mean for mean, high in zip(means, highs, strict=True)]]
            axes.errorbar(beside, means, ends, linestyle="", capsize=2, label=name, **_look(number))
            continue
        axes.plot(at, means, linestyle=_DASHES[number // len(_COLOURS) % len(_DASHES)], label=name, **_look(number))
        if lows != highs:
            axes.fill_between(at, lows, highs, color=_look(number)["color"], alpha=0.15, linewidth=0)
    if words:
        turned = 90.0 if len(words) > _MOST_WORDS else 0.0
        shown = words if turned else [fill(each, _WORD_WIDTH) for each in words]
        axes.set_xticks(range(len(words)), shown, fontsize=7, rotation=turned)
    if plot.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _look(number: int) -> Any:
    """The colour and the marks of a line."""
    marker = _MARKERS[number % len(_MARKERS)]
    return {"color": _COLOURS[number % len(_COLOURS)], "marker": marker, "markersize": 4, "linewidth": 1}


def _words(plot: StudyPlot, rows: Sequence[StudyRow]) -> list[str]:
    """What an axis without numbers has, from its left end on."""
    return list(dict.fromkeys(x for row in rows if isinstance(x := row[plot.x], str)))


def _series(
    plot: StudyPlot, column: str, rows: Sequence[StudyRow], words: Sequence[str]
) -> dict[str, dict[float, list[float]]]:
    """By the name of a line, and the place on it: the values of the rows there."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        value, x = float(row[column]), row[plot.x]
        if math.isfinite(value):
            place = float(words.index(x) if isinstance(x, str) else x)
            found.setdefault(_name(plot, column, row), {}).setdefault(place, []).append(value)
    return found


def _name(plot: StudyPlot, column: str, row: StudyRow) -> str:
    """The name of the line of a row; a text needs no name of its column, nor does the only column of a plot."""
    of = [str(row[name]) if isinstance(row[name], str) else f"{name}={row[name]:g}" for name in plot.by]
    alone = len(plot.y) == 1 and of
    return ", ".join(of if alone else [column.replace("_", " "), *of])


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
