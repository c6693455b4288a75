"""What differs between the results of two runs of a study."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.studies.folder import read_results
from lumctl.studies.study import StudyRow


def compared(a: Path, b: Path) -> dict[str, Any]:
    """The document of ``study compare``: settings, versions and claims of two complete runs, and how many rows differ.

    Raises:
        UsageError: a folder has no complete run, or they are of different studies.
    """
    (run_a, summary_a, rows_a), (run_b, summary_b, rows_b) = read_results(a), read_results(b)
    if run_a["study"] != run_b["study"]:
        raise UsageError(f"{a} has a run of study {run_a['study']}, but {b} one of {run_b['study']}")
    only_a, only_b = _only(rows_a, rows_b), _only(rows_b, rows_a)
    claims = list(_claims(summary_a["claims"], summary_b["claims"]))
    return {
        "study": run_a["study"],
        "a": str(a),
        "b": str(b),
        "same": not (only_a or only_b) and all(each["same"] for each in claims),
        "settings": [*_unequal(run_a["settings"], run_b["settings"])],
        "versions": [*_unequal(_versions(run_a), _versions(run_b))],
        "rows": {"a": len(rows_a), "b": len(rows_b), "only_a": only_a, "only_b": only_b},
        "claims": claims,
    }


def _versions(run: Mapping[str, Any]) -> dict[str, Any]:
    return {**run["versions"], "code": run["code"]}


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in {**a, **b}:
        if a.get(name) != b.get(name):
            yield {"name": name, "a": a.get(name), "b": b.get(name)}


def _only(rows: Sequence[StudyRow], other: Sequence[StudyRow]) -> int:
    """How many rows the other table lacks, wherever they are."""
    mine, theirs = (Counter(json.dumps(row, sort_keys=True) for row in each) for each in (rows, other))
    return (mine - theirs).total()


_FOUND = ("measured", "interval", "reading", "verdict")


def _claims(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    of_a, of_b = ({each["id"]: each for each in claims} for claims in (a, b))
    for claim in {**of_a, **of_b}:
        one, two = ({name: each.get(claim, {}).get(name) for name in _FOUND} for each in (of_a, of_b))
        known = {**of_b.get(claim, {}), **of_a.get(claim, {})}
        yield {
            "id": claim,
            "published": known["published"],
            "unit": known["unit"],
            "a": one,
            "b": two,
            "same": one == two,
        }
