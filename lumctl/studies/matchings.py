"""A mesh as a circuit switch: how many matchings join all pairs of its ports, and how long their paths are."""

from collections.abc import Iterator, Sequence
from random import Random

from lumctl.fabric.matchings import all_to_all
from lumctl.fabric.shapes import mesh
from lumctl.studies.claim import Claim, over
from lumctl.studies.study import Readings, Settings, Study, StudyParameter, StudyRow

_SOURCE = "arXiv 2501.18136"
_COLUMNS, _ROWS, _PORTS = 9, 9, 32
"""The published mesh."""


def _rows(settings: Settings) -> Iterator[StudyRow]:
    shape = mesh(int(settings["columns"][0]), int(settings["rows"][0]))
    for ports in settings["ports"]:
        for seed in range(int(settings["seeds"][0])):
            found = all_to_all(shape, int(ports), rng=Random(seed))  # noqa: S311 - no secret
            pucs = sum(matching.pucs for matching in found.matchings)
            bound = sum(matching.bound for matching in found.matchings)
            yield {
                "mesh": f"{int(settings['columns'][0])}x{int(settings['rows'][0])}",
                "ports": int(ports),
                "seed": seed,
                "matchings": len(found.matchings),
                "at_least": found.least,
                "unreachable_pairs": len(found.unreachable),
                "pucs": pucs,
                "pucs_at_least": bound,
                "above_percent": 100.0 * (pucs / bound - 1.0),
            }


def _readings(_: Settings, rows: Sequence[StudyRow]) -> Readings:
    published = [row for row in rows if (row["mesh"], row["ports"]) == (f"{_COLUMNS}x{_ROWS}", _PORTS)]
    if not published:
        return {}
    counts = [float(row["matchings"]) + float(row["unreachable_pairs"]) for row in published]
    least = float(published[0]["at_least"])
    above = [float(row["above_percent"]) for row in published]
    return {
        "matchings.count": [over(f"{len(published)} draws of ports and pairs", counts)],
        "matchings.optimal": [
            over("matchings above their lower bound", [100.0 * (count / least - 1.0) for count in counts]),
            over("PUCs in all paths above what each circuit alone needs", above),
        ],
    }


STUDY = Study(
    name="matchings",
    question="Can one mesh join all pairs of 32 ports, in how many settings?",
    parameters=(
        StudyParameter("columns", "Columns of the mesh.", (_COLUMNS,), 1, 40, whole=True, several=False),
        StudyParameter("rows", "Rows of the mesh.", (_ROWS,), 1, 40, whole=True, several=False),
        StudyParameter("ports", "How many of its ports.", (16, 24, 32), 2, 64, quick=(32,), whole=True),
        StudyParameter("seeds", "How many draws.", (5,), 1, 1000, quick=(2,), whole=True, several=False),
    ),
    claims=(
        Claim("matchings.count", _SOURCE, "matchings for all pairs of 32 ports on a 9x9 mesh", 31, "matchings", 0.0),
        Claim("matchings.optimal", _SOURCE, "how far they are from the optimum", 0.0, "%", 0.05),
    ),
    columns=(
        *(
            "mesh",
            "ports",
            "seed",
            "matchings",
            "at_least",
            "unreachable_pairs",
            "pucs",
            "pucs_at_least",
            "above_percent",
        ),
    ),
    rows=_rows,
    readings=_readings,
)
