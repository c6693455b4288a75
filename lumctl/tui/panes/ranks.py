"""The ranks of a job: the table on its screen."""

from functools import partial

from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import AGE_OF_READING, STATE, Cell, Column, Pane, Row, state_cell
from lumctl.tui.views.jobs import told_of
from lumctl.tui.views.records import Seen


def ranks_pane(job: str) -> Pane:
    """The table of a job's ranks, in their order."""
    return Pane(
        "ranks",
        "Ranks",
        "ranks",
        "",
        (
            STATE,
            Column("rank", "RANK", 4, right=True),
            Column("accelerator", "ACCELERATOR", 11),
            Column("host", "HOST", 6),
            Column("does", "DOES", 7),
            Column("steps", "STEPS", 5, right=True),
            AGE_OF_READING,
            Column("found", "FOUND", 8),
        ),
        partial(_rank_rows, job),
    )


def _rank_rows(job: str, seen: Seen, marks: Marks) -> list[Row]:
    observation, told = seen.observation, told_of(seen, job)
    at_work = {each["rank"]: each for each in told["ranks"]} if told else {}
    rows = []
    for rank, name in enumerate(observation.assignment.get(job, ())):
        health, accelerator = observation.report.accelerators.get(name), observation.inventory.accelerators.get(name)
        state = health.state if health else State.UNKNOWN
        worker = at_work.get(rank, {})
        elsewhere = f" on {worker['accelerator']}" if worker and worker["accelerator"] != name else ""
        cells = (
            state_cell(state, marks),
            Cell(str(rank)),
            Cell(name),
            Cell(accelerator.host if accelerator else "-"),
            Cell(f"{worker['state']}{elsewhere}" if worker else "-"),
            Cell(str(worker["done"]) if worker else "-"),
            Cell(health.findings[0].rule if health and health.findings else "-"),
        )
        rows.append(Row(f"{job}/{rank}", name, state, cells, health.read_at if health else None))
    return rows
