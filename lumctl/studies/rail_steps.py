"""How long a training step takes whose rails change light between phases: the published series, and the model."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import linear_regression

from lumctl.studies.claim import Claim, ClaimBasis, exact_value, range_value
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.training.phase_model import ChangeMode, StepTimes

_SOURCE = "arXiv 2507.08119, 2602.12521"
_PACKET_S, _CHANGE_S, _CHANGES = 62.2416, 0.050, 2
"""The published step with packet switches, the time of a change of light, and how many a step of that plan needs."""
_UNDER_PERCENT, _SHORT_MS = 6.0, 100.0
_WINDOWS = 200
"""How many lengths of a window the fit tries."""


@dataclass(frozen=True, slots=True)
class PublishedSeries:
    """Published times of a training step, in seconds, by the time of a change in milliseconds.

    ``electrical_s`` is the step of the same plan with electrical switches.
    """

    plan: str
    mode: ChangeMode
    electrical_s: float
    step_s: Mapping[float, float]

    def overhead_percent(self, change_ms: float) -> float:
        """How much longer the step is than with electrical switches."""
        return 100.0 * (self.step_s[change_ms] / self.electrical_s - 1.0)


@dataclass(frozen=True, slots=True)
class StepFit:
    """``base_s + changes * max(0, change - window_s)``, fitted to a series; on demand without a window."""

    base_s: float
    changes: float
    window_s: float

    def step_s(self, change_s: float) -> float:
        """The fitted step for a time of a change."""
        return self.base_s + self.changes * max(0.0, change_s - self.window_s)


@cache
def published_series() -> tuple[PublishedSeries, ...]:
    """The series of the sources, in their order."""
    text = (files("lumctl.studies") / "rail_steps.csv").read_text(encoding="utf-8")
    electrical: dict[str, float] = {}
    found: dict[tuple[str, ChangeMode], dict[float, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        plan, step = row["plan"], float(row["step_s"])
        if row["mode"] == "none":
            electrical[plan] = step
        else:
            found.setdefault((plan, ChangeMode(row["mode"])), {})[float(row["change_ms"])] = step
    return tuple(PublishedSeries(plan, mode, electrical[plan], steps) for (plan, mode), steps in found.items())


def fitted(series: PublishedSeries) -> StepFit:
    """The least-squares fit."""
    changes_s, steps = [each / 1e3 for each in series.step_s], list(series.step_s.values())
    longest = max(changes_s) if series.mode is ChangeMode.AHEAD else 0.0
    tried = dict.fromkeys(longest * at / _WINDOWS for at in range(_WINDOWS))

    def fit(window_s: float) -> StepFit:
        line = linear_regression([max(0.0, each - window_s) for each in changes_s], steps)
        return StepFit(line.intercept, line.slope, window_s)

    def error(fit: StepFit) -> float:
        return sum((fit.step_s(each) - step) ** 2 for each, step in zip(changes_s, steps, strict=True))

    return min(map(fit, tried), key=error)


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    return ((at, settings["longest_ms"][0]) for at in range(len(published_series())))


def _solve(number: int, longest_ms: float) -> Iterator[StudyRow]:
    series = published_series()[number]
    fit = fitted(series)
    for change_ms, step_s in series.step_s.items():
        if change_ms <= longest_ms:
            yield {
                "plan": series.plan,
                "mode": series.mode.value,
                "change_ms": change_ms,
                "step_s": step_s,
                "fitted_s": fit.step_s(change_ms / 1e3),
                "residual_percent": 100.0 * (step_s / fit.step_s(change_ms / 1e3) - 1.0),
                "overhead_percent": series.overhead_percent(change_ms),
                "changes_per_step": fit.changes,
                "window_ms": 1e3 * fit.window_s,
            }


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    still = StepTimes(_PACKET_S, 0.0, (0.0,) * _CHANGES)
    hidden = StepTimes(_PACKET_S, 0.0, (_CHANGE_S,) * _CHANGES)
    ahead = [each.cost(_CHANGE_S, ChangeMode.AHEAD).step_s for each in (still, hidden)]
    shares = {
        "ahead-short": _share_under(rows, {ChangeMode.AHEAD}, _SHORT_MS),
        "both-short": _share_under(rows, set(ChangeMode), _SHORT_MS),
        "both-any": _share_under(rows, set(ChangeMode), float("inf")),
    }
    whole = settings["longest_ms"][0] >= max(max(each.step_s) for each in published_series())
    return {
        "rail-steps.on-demand": {"two-changes": exact_value(still.cost(_CHANGE_S, ChangeMode.ON_DEMAND).step_s)},
        "rail-steps.ahead": {"two-changes": range_value(ahead, whole=True)},
        "rail-steps.under": {name: exact_value(share) for name, share in shares.items()} if whole else {},
    }


def _share_under(rows: Sequence[StudyRow], modes: set[ChangeMode], longest_ms: float) -> float:
    """The share of the series, in percent, in which no change up to a time adds as much as the claim says."""
    worst: dict[tuple[object, object], float] = {}
    for row in rows:
        if ChangeMode(str(row["mode"])) in modes and float(row["change_ms"]) <= longest_ms:
            key = row["plan"], row["mode"]
            worst[key] = max(worst.get(key, 0.0), float(row["overhead_percent"]))
    return 100.0 * sum(each < _UNDER_PERCENT for each in worst.values()) / len(worst)


_PLAN = "training step, DP2 PP2 TP2"
_COUNT = f"{_CHANGES} changes in a step, to the sum of gradients and back, added to the packet-switched step"
_COUNTS = {"two-changes": _COUNT}
_WINDOWED = {"two-changes": f"{_COUNT}; windows of any length, which are not stated"}
_SIMULATOR = "a simulator of packet networks and GPUs; the other two steps are computed from this one"
_UNDER = f"of the published series, those in which changes add less than {_UNDER_PERCENT:g} %"
_SERIES = {
    "ahead-short": f"ahead, changes of at most {_SHORT_MS:g} ms, over electrical switches",
    "both-short": f"both modes, changes of at most {_SHORT_MS:g} ms, over electrical switches",
    "both-any": "both modes, all published changes, over electrical switches",
}

STUDY = Study(
    name="rail-steps",
    question="What do changes of light between phases cost a training step?",
    parameters=(
        StudyParameter("longest_ms", "The longest change of light, in ms.", (3000.0,), 0.0, 3000.0, several=False),
    ),
    claims=(
        Claim("rail-steps.packet", _SOURCE, f"{_PLAN}, packet switches", _PACKET_S, "s", 1e-4, missing=_SIMULATOR),
        Claim("rail-steps.on-demand", _SOURCE, f"{_PLAN}, 50 ms on demand", 62.3416, "s", 1e-4, _COUNTS),
        Claim("rail-steps.ahead", _SOURCE, f"{_PLAN}, 50 ms ahead", 62.2905, "s", 1e-4, _WINDOWED),
        Claim("rail-steps.under", _SOURCE, _UNDER, 100.0, "%", 0.0, _SERIES, ClaimBasis.INFERRED),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(StudyPlot("change_ms", ("overhead_percent",), "change of light (ms)", "longer step (%)", ("plan", "mode")),),
)
