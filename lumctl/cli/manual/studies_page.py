"""``python -m lumctl.cli.manual.studies_page FOLDER PAGE`` writes lumctl-studies(7) from the results of all studies.

FOLDER has, for each study, a folder that ``lumctl study run --out`` wrote at full size.
"""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lumctl.cli.manual.pages import SOURCE
from lumctl.cli.manual.roff import Lines, bold_code, entries, page, section, subsection
from lumctl.cli.study_text import value_text
from lumctl.studies import STUDIES, ClaimResult, StudyResult
from lumctl.studies.claim import ClaimVerdict
from lumctl.studies.folder import read_results
from lumctl.studies.results import judged

ABOUT = """
The papers behind lumctl make claims. ``lumctl study run`` tests each with the programs that run a rack, under every
reading that its source allows: what the published number counts, of which cases, divided by what. What a source does
not state has a range. A claim is reproduced (under every reading), reproduced under some readings, bounded away (under
none, and a bound shows that it cannot hold), not reproduced (under none, and no bound excludes it), or not testable
here.
"""


def studies_page(results: Sequence[StudyResult], run_on: str) -> str:
    """The page; ``run_on`` says when and on which machine the studies were run."""
    verdicts = Counter(claim.verdict for result in results for claim in result.claims)
    counted = [(verdict.value, str(verdicts[verdict])) for verdict in ClaimVerdict]
    body = [
        *section("description", [bold_code(ABOUT), ".PP", bold_code(f"All studies were run {run_on}.")]),
        *section("verdicts", [bold_code(f"Of {verdicts.total()} claims:"), *entries(counted)]),
    ]
    for result in results:
        claims = "" if result.claims else " It tests no published claim."
        body += section(f"study {result.study.name}", [bold_code(f"{result.study.question}{claims}")])
        body += [line for claim in result.claims for line in _claim(claim)]
    see_also = ["lumctl(1)", "lumctl-study(1)"]
    return page("lumctl-studies", "the claims of the papers, and what they give here", SOURCE, body, see_also, part=7)


def _claim(result: ClaimResult) -> Lines:
    claim = result.claim
    published = f"Published: {claim.published:g} {claim.unit} ({claim.source}, {claim.basis.value})."
    lines = [bold_code(f"{claim.words[0].upper()}{claim.words[1:]}. {published}"), ".PP"]
    if claim.missing:
        return subsection(f"{claim.id}: {result.verdict}", [*lines, bold_code(f"Missing: {claim.missing}.")])
    holding = sum(value.holds(claim) for value in result.values.values())
    verdict = f"{result.verdict} ({holding} of {len(result.values)} readings)"
    return subsection(f"{claim.id}: {verdict}", [*lines, *entries(_readings(result))])


def _readings(result: ClaimResult) -> Iterator[tuple[str, str]]:
    for name, value in result.values.items():
        holds = "as published" if value.holds(result.claim) else "otherwise"
        yield f"{value_text(value)} {result.claim.unit}, {holds}", f"{result.claim.readings[name]}."


def kept_results(folder: Path) -> list[StudyResult]:
    """The results of each study in a folder.

    Raises:
        UsageError: a study has no complete run there.
    """
    found = []
    for name, study in STUDIES.items():
        run, _, rows = read_results(folder / name)
        found.append(judged(study, {key: tuple(values) for key, values in run["settings"].items()}, rows))
    return found


def _run_on(folder: Path) -> str:
    newest = max((folder / name / "study.json").stat().st_mtime for name in STUDIES)
    day = datetime.fromtimestamp(newest, tz=UTC).date().isoformat()
    return f"on {day} on {_processor()} with {os.cpu_count()} cores, Python {platform.python_version()}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> str | None:
    """Write the page; returns what to say if a verdict is not the recorded one."""
    folder, target = map(Path, sys.argv[1:])
    results = kept_results(folder)
    target.write_text(studies_page(results, _run_on(folder)), encoding="utf-8")
    changed = [each.claim.id for result in results for each in result.claims if each.has_changed]
    return f"not the recorded verdict: {', '.join(changed)}" if changed else None


if __name__ == "__main__":
    sys.exit(main())
