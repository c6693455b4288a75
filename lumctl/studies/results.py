"""Running a study: its table, and the verdict on each of its claims beside the recorded one."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from lumctl.studies.claim import Claim, ClaimVerdict, ReadingValue, verdict_of
from lumctl.studies.engine import HERE, StudyWorkers, solve_cases
from lumctl.studies.folder import RunFolder, in_order
from lumctl.studies.study import Study, StudyRow, StudySettings

_MINUTES_FROM_S = 100.0


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim, its value under each reading, and the verdict; ``recorded`` is the verdict in the repository.

    Without a value under each reading there is no verdict: the settings leave out what the claim is about.
    """

    claim: Claim
    values: Mapping[str, ReadingValue]
    verdict: ClaimVerdict | None
    recorded: ClaimVerdict | None

    @property
    def nearest(self) -> str | None:
        """The reading that is nearest to the published number; of several that reach it, the one that states most."""
        return min(self.values, key=self._distance, default=None)

    def _distance(self, name: str) -> tuple[float, float]:
        value, published = self.values[name], self.claim.published
        apart = 0.0 if value.holds(self.claim) else max(value.low - published, published - value.high)
        return apart, value.high - value.low

    @property
    def has_changed(self) -> bool:
        """Whether the verdict is another than the recorded one; also if there is none."""
        return self.verdict is not self.recorded


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The table of a study, and what it says of the claims."""

    study: Study
    settings: StudySettings
    rows: tuple[StudyRow, ...]
    claims: tuple[ClaimResult, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.rows[0]) if self.rows else ()


def run_study(
    study: Study,
    settings: StudySettings,
    *,
    workers: StudyWorkers = HERE,
    folder: RunFolder | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> StudyResult:
    """Run a study. A folder gives the cases that were solved before, and keeps those that are solved now.

    ``tell`` is called with the progress.

    Raises:
        LumctlError: see :func:`lumctl.studies.engine.solve_cases`.
        UsageError: these settings make no table, or the folder cannot be written.
    """
    cases = dict(enumerate(study.cases(settings)))
    solved = {} if folder is None else folder.solved
    left = {number: case for number, case in cases.items() if number not in solved}
    progress = _Progress(study.name, len(cases), len(left), tell)
    with closing(solve_cases(study, left, workers)) as found:
        for number, rows in found:
            if folder is None:
                solved[number] = rows
            else:
                folder.keep(number, rows)
            progress.advance()
    return judged(study, settings, in_order(solved))


class _Progress:
    """Tells how many cases are solved, and for how long the others may take."""

    def __init__(self, name: str, cases: int, left: int, tell: Callable[[str], None]) -> None:
        self._name, self._cases, self._left, self._tell = name, cases, left, tell
        self._done, self._began = 0, time.monotonic()
        self._show("")

    def advance(self) -> None:
        self._done += 1
        self._left -= 1
        rest_s = (time.monotonic() - self._began) / self._done * self._left
        self._show(f", about {_about(rest_s)} left" if self._left else "")

    def _show(self, estimate: str) -> None:
        self._tell(f"study {self._name}: {self._cases - self._left} of {self._cases} cases{estimate}")


def _about(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _MINUTES_FROM_S else f"{seconds / 60:.0f} min"


def judged(study: Study, settings: StudySettings, rows: Sequence[StudyRow]) -> StudyResult:
    """What the rows of a study say of its claims."""
    values = study.values(settings, rows)
    if strange := values.keys() - {claim.id for claim in study.claims}:
        raise ValueError(f"study {study.name} has no claim {', '.join(sorted(strange))}")
    recorded = recorded_verdicts()
    claims = []
    for claim in study.claims:
        found = values.get(claim.id, {})
        verdict = verdict_of(claim, found)
        claims.append(ClaimResult(claim, found if verdict is not None else {}, verdict, recorded.get(claim.id)))
    return StudyResult(study, settings, tuple(rows), tuple(claims))


@cache
def recorded_verdicts() -> Mapping[str, ClaimVerdict]:
    """The verdicts recorded in the repository, by the ids of claims."""
    text = (files("lumctl.studies") / "verdicts.yaml").read_text(encoding="utf-8")
    return {str(claim): ClaimVerdict(verdict) for claim, verdict in yaml.safe_load(text).items()}


def claim_entry(claim: Claim) -> dict[str, Any]:
    """What is known of a claim before a study is run, as JSON has it."""
    recorded = recorded_verdicts().get(claim.id)
    return {
        "id": claim.id,
        "source": claim.source,
        "words": claim.words,
        "unit": claim.unit,
        "published": claim.published,
        "tolerance": claim.tolerance,
        "basis": claim.basis.value,
        "missing": claim.missing or None,
        "recorded": None if recorded is None else recorded.value,
    }


def claim_document(result: ClaimResult) -> dict[str, Any]:
    """A claim with its values as JSON has it; ``measured`` and ``interval`` are those of the nearest reading."""
    claim, nearest = result.claim, result.nearest
    value = None if nearest is None else result.values[nearest]
    return {
        **claim_entry(claim),
        "measured": None if value is None else value.value,
        "interval": None if value is None else [value.low, value.high],
        "reading": nearest,
        "readings": [
            {
                "name": name,
                "words": claim.readings[name],
                "value": each.value,
                "interval": [each.low, each.high],
                "bounds": [each.least, each.most],
                "holds": each.holds(claim),
            }
            for name, each in result.values.items()
        ],
        "verdict": None if result.verdict is None else result.verdict.value,
    }


def result_document(result: StudyResult) -> dict[str, Any]:
    """The result of a study as JSON has it."""
    return {
        "study": result.study.name,
        "settings": {name: list(values) for name, values in result.settings.items()},
        "rows": [dict(row) for row in result.rows],
        "claims": [claim_document(each) for each in result.claims],
    }
