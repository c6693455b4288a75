"""Running a study: its table, and the verdict on each of its claims beside the recorded one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from lumctl.studies.claim import Claim, ClaimVerdict, ReadingValue, verdict_of
from lumctl.studies.study import Study, StudyRow, StudySettings


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


def run_study(study: Study, settings: StudySettings) -> StudyResult:
    """Run a study.

    Raises:
        UsageError: these settings make no table.
    """
    rows = tuple(row for case in study.cases(settings) for row in study.solve(*case))
    values = study.values(settings, rows)
    if strange := values.keys() - {claim.id for claim in study.claims}:
        raise ValueError(f"study {study.name} has no claim {', '.join(sorted(strange))}")
    recorded = recorded_verdicts()
    claims = []
    for claim in study.claims:
        found = values.get(claim.id, {})
        verdict = verdict_of(claim, found)
        claims.append(ClaimResult(claim, found if verdict is not None else {}, verdict, recorded.get(claim.id)))
    return StudyResult(study, settings, rows, tuple(claims))


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
