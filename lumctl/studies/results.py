"""Running a study: its table, and the verdict on each of its claims beside the recorded one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from lumctl.studies.claim import Claim, ClaimReading, Verdict, verdict_of
from lumctl.studies.study import Settings, Study, StudyRow


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim, its value under each reading, and the verdict; ``recorded`` is the verdict in the repository."""

    claim: Claim
    readings: tuple[ClaimReading, ...]
    verdict: Verdict
    recorded: Verdict | None

    @property
    def best(self) -> ClaimReading | None:
        """The reading that is nearest to the published number; of several that reach it, the one that states most."""
        return min(self.readings, key=self._distance, default=None)

    def _distance(self, reading: ClaimReading) -> tuple[float, float]:
        published = self.claim.published
        apart = 0.0 if reading.holds(self.claim) else max(reading.low - published, published - reading.high)
        return apart, reading.high - reading.low

    @property
    def has_changed(self) -> bool:
        """Whether the verdict is another than the recorded one."""
        return self.verdict is not self.recorded


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The table of a study, and what it says of the claims."""

    study: Study
    settings: Settings
    rows: tuple[StudyRow, ...]
    claims: tuple[ClaimResult, ...]


def run_study(study: Study, settings: Settings) -> StudyResult:
    """Run a study.

    A claim whose case these settings leave out is not judged: it has no readings, and its recorded verdict stands.
    """
    rows = tuple(study.rows(settings))
    readings = study.readings(settings, rows)
    recorded = recorded_verdicts()
    claims = []
    for claim in study.claims:
        found, before = tuple(readings.get(claim.id, ())), recorded.get(claim.id)
        skipped = not found and not claim.missing and before is not None
        verdict = before if skipped and before is not None else verdict_of(claim, found)
        claims.append(ClaimResult(claim, found, verdict, before))
    return StudyResult(study, settings, rows, tuple(claims))


@cache
def recorded_verdicts() -> Mapping[str, Verdict]:
    """The verdicts recorded in the repository, by the ids of claims."""
    text = (files("lumctl.studies") / "verdicts.yaml").read_text(encoding="utf-8")
    return {str(claim): Verdict(verdict) for claim, verdict in yaml.safe_load(text).items()}


def claim_document(result: ClaimResult) -> dict[str, Any]:
    """A claim as ``study check -o json`` prints it."""
    claim, best = result.claim, result.best
    return {
        "id": claim.id,
        "source": claim.source,
        "words": claim.words,
        "unit": claim.unit,
        "published": claim.published,
        "measured": None if best is None else best.value,
        "interval": None if best is None else [best.low, best.high],
        "reading": None if best is None else best.words,
        "readings": [
            {
                "words": each.words,
                "value": each.value,
                "interval": [each.low, each.high],
                "bounds": [each.least, each.most],
                "holds": each.holds(claim),
            }
            for each in result.readings
        ],
        "missing": claim.missing or None,
        "verdict": result.verdict.value,
        "recorded": None if result.recorded is None else result.recorded.value,
    }
