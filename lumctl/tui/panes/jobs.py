"""Jobs: their placement, and the state of those that lumctl runs."""

from functools import partial

from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import AGE_OF_READING, STATE, Cell, Column, Pane, Row, not_well, state_cell
from lumctl.tui.views.job_risks import job_risks
from lumctl.tui.views.jobs import jobs_of, pace, state_of, told_of, why_of
from lumctl.tui.views.records import RecordedLook


def job_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every job with the health of its ranks' accelerators, its coordinator's report, and what no swap could help."""
    observation, rows = seen.observation, []
    helpless = {risk.job: risk.without_help for risk in job_risks(seen)}
    for job in jobs_of(seen):
        ranks = observation.assignment[job]
        state, told = state_of(seen, job), told_of(seen, job)
        cells = (
            state_cell(state, marks),
            Cell(job),
            Cell(str(len(ranks))),
            Cell(str(told["state"]) if told else "-"),
            Cell(pace(told) if told else "-"),
            Cell(str(len(told["recoveries"])) if told else "-"),
            Cell(f"\n{why}" if (why := "; ".join(filter(None, (why_of(seen, job), *helpless.get(job, ()))))) else ""),
        )
        rows.append(Row(job, job, state, cells, observation.at))
    return rows


def _trouble(seen: RecordedLook) -> tuple[State, ...]:
    return not_well(state_of(seen, job) for job in jobs_of(seen))


JOBS = Pane(
    "jobs",
    "Jobs",
    "jobs",
    "Jobs: where each runs, and the state of those that lumctl runs.",
    (
        STATE,
        Column("job", "JOB", 8, is_name=True),
        Column("ranks", "RANKS", 5, right=True),
        Column("running", "RUNS", 8),
        Column("pace", "STEP, LOSS, RATE", 16),
        Column("recoveries", "RECOVERED", 9, right=True),
        AGE_OF_READING,
        Column("why", "WHY", 3),
    ),
    job_rows,
    _trouble,
    lines=2,
    opens="job",
)


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
            Column("accelerator", "ACCELERATOR", 11, is_name=True),
            Column("host", "HOST", 6, is_name=True),
            Column("does", "DOES", 7),
            Column("steps", "STEPS", 5, right=True),
            AGE_OF_READING,
            Column("found", "FOUND", 8),
        ),
        partial(_rank_rows, job),
    )


def _rank_rows(job: str, seen: RecordedLook, marks: Marks) -> list[Row]:
    observation, told = seen.observation, told_of(seen, job)
    at_work = {each["rank"]: each for each in told["ranks"]} if told else {}
    rows = []
    for rank, name in enumerate(observation.assignment.get(job, ())):
        health, accelerator = observation.report.accelerators.get(name), observation.inventory.accelerators.get(name)
        state = health.state if health else State.UNKNOWN
        worker = at_work.get(rank, {})
        # While a rank is being moved, the store and the coordinator may name different accelerators for it.
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
