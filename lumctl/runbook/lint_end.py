"""Whether recorded steps, as they stand in the file now, lead from its ``start`` to its ``end``."""

from collections.abc import Iterator
from typing import Any

from lumctl.change.plan import Step
from lumctl.errors import LumctlError
from lumctl.inventory.lane_orders import placed_words
from lumctl.inventory.positions import MarkedDict
from lumctl.inventory.problems import Mark, Problems
from lumctl.runbook.left_behind import after
from lumctl.runbook.played import TO_THE_END
from lumctl.runbook.telling import placed_apart, some


def check_end(document: MarkedDict, steps: list[Step], problems: Problems) -> None:
    """Note where a replay would end elsewhere than at ``end``; of a run that did not come to its end nobody knows."""
    recorded, start, end = (document.get(key) for key in ("recorded", "start", "end"))
    if not (isinstance(recorded, MarkedDict) and isinstance(start, MarkedDict) and isinstance(end, MarkedDict)):
        return
    if recorded.get("outcome") not in TO_THE_END:
        return
    try:
        left = after(start, [{"do": step.do, "data": step.data} for step in steps])
    except (LumctlError, TypeError, ValueError, KeyError, AttributeError):
        return  # its form is wrong, and that is said elsewhere
    for mark, message in (*_placements(end, left), *_cells(end, left)):
        problems.add(mark, message, "`end` is what a replay is compared with: change it with the steps")


def _placements(end: MarkedDict, left: dict[str, Any]) -> Iterator[tuple[Mark, str]]:
    placed = end.get("assignment")
    if not isinstance(placed, MarkedDict):
        return
    for job, ranks in placed.items():
        leads = left["assignment"].get(job, ())
        if isinstance(ranks, list) and list(ranks) != list(leads):
            said, found = placed_apart(str(job), [str(rank) for rank in ranks], leads)
            what = f"end says of where {placed_words(str(job))} {said}; the steps lead to {found}"
            yield placed.value_marks[job], what


def _cells(end: MarkedDict, left: dict[str, Any]) -> Iterator[tuple[Mark, str]]:
    crosses = end.get("crosses")
    if not isinstance(crosses, MarkedDict):
        return
    for device, cells in crosses.items():
        leads = set(left["crosses"].get(device, ()))
        if not isinstance(cells, list) or {*cells} == leads:
            continue
        apart = [str(cell) for cell in sorted({*cells} ^ leads)]
        of = f"PUC{'' if len(apart) == 1 else 's'} {some(apart)} of {device}"
        yield crosses.value_marks[device], f"the steps do not leave {of} as end says"
