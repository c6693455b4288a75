"""A mesh as a circuit switch: how many matchings join all pairs of its ports, and how long their paths are."""

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.matchings import AllToAllSearch
from lumctl.fabric.port_choice import port_sets
from lumctl.fabric.shapes import mesh
from lumctl.studies.claim import Claim, ClaimBasis, found_value
from lumctl.studies.inventory_rack import largest_mesh
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_SOURCE = "arXiv 2501.18136"
_COLUMNS, _ROWS, _PORTS = 9, 9, 32
"""The published mesh."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    columns, rows = int(settings["columns"][0]), int(settings["rows"][0])
    ports = [int(each) for each in settings["ports"]]
    port_sets(mesh(columns, rows), max(ports), MeshCondition(), 1)  # refuses too many ports before the first case
    return product((columns,), (rows,), ports, range(int(settings["seeds"][0])))


def _solve(columns: int, rows: int, ports: int, seed: int) -> Iterator[StudyRow]:
    found = AllToAllSearch(mesh(columns, rows), ports, rng=Random(seed)).run()  # noqa: S311 - no secret
    pucs = sum(matching.pucs for matching in found.matchings)
    alone = sum(matching.bound for matching in found.matchings)
    yield {
        "mesh": f"{columns}x{rows}",
        "ports": ports,
        "seed": seed,
        "matchings": len(found.matchings),
        "matchings_at_least": found.least,
        "pairs_without_path": len(found.unreachable) + len(found.left),
        "pucs": pucs,
        "pucs_if_each_alone": alone,
        "longer_percent": 100.0 * (pucs / alone - 1.0) if alone else 0.0,
    }


def _values(_: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    published = [row for row in rows if (row["mesh"], row["ports"]) == (f"{_COLUMNS}x{_ROWS}", _PORTS)]
    if not published:
        return {}
    worst = max(published, key=lambda row: (row["pairs_without_path"], row["matchings"]))
    # A draw that lacks a pair does not join all: its count is none.
    count = float("inf") if worst["pairs_without_path"] else float(worst["matchings"])
    return {"matchings.count": {"duplex": found_value(count, least=float(worst["matchings_at_least"]))}}


_COUNT = "settings that join all pairs of 32 ports, 9x9 mesh"
_DUPLEX = {"duplex": "circuits in both directions, ports chosen by lumctl, the worst draw of pairs"}
_LONGER = "paths longer than in the best set of matchings"
_BEST = "the best set of matchings: an exact search over all of them at once"

STUDY = Study(
    name="matchings",
    question="Can one mesh join all pairs of 32 ports, in how many settings?",
    parameters=(
        StudyParameter("columns", "Columns of the mesh.", (_COLUMNS,), 1, 20, whole=True, several=False),
        StudyParameter("rows", "Rows of the mesh.", (_ROWS,), 1, 20, whole=True, several=False),
        StudyParameter("ports", "How many of its ports.", (16, 24, 32), 2, 64, quick=(32,), whole=True),
        StudyParameter("seeds", "How many draws of the pairs.", (5,), 1, 100, quick=(2,), whole=True, several=False),
    ),
    claims=(
        Claim("matchings.count", _SOURCE, _COUNT, 31, "matchings", 0.0, _DUPLEX, ClaimBasis.INFERRED),
        Claim("matchings.optimal", _SOURCE, _LONGER, 0.0, "%", 0.0, missing=_BEST),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("ports", ("matchings", "matchings_at_least"), "ports", "matchings"),
        StudyPlot("ports", ("longer_percent",), "ports", "paths longer than each alone (%)"),
    ),
    of_inventory=largest_mesh,
)
