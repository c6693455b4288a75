"""What ``lumctl job run`` and ``lumctl job status`` print of a job that lumctl runs: a headline and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.times import to_the_second
from lumctl.inventory.folded_names import fold
from lumctl.printable import counted
from lumctl.training.timeline import in_words

Row = Mapping[str, Any]

RANKS = (
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("WORKER", "worker", wide=True),
    OutputColumn("PID", "pid", right=True, wide=True),
    OutputColumn("DOES", "doing"),
    OutputColumn("STEPS", "done", right=True),
)
READY = (
    OutputColumn("READY ON", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("WORKER", "worker", wide=True),
    OutputColumn("PID", "pid", right=True, wide=True),
)
RECOVERIES = (
    OutputColumn("AT", "at"),
    OutputColumn("CAUSE", "cause"),
    OutputColumn("FAILED", "failed"),
    OutputColumn("REPLACED BY", "replaced_by"),
    OutputColumn("CIRCUITS AFTER", "circuits", right=True),
    OutputColumn("STEP AFTER", "step", right=True),
    OutputColumn("RUN", "run"),
)
UNDER_WAY = "under way"
NONE_DONE = "none"
IN_PLACE = "restarted in place"


def print_job(cx: Invocation, document: Row) -> None:
    """Print the document of a running job."""
    cx.out.text(headline(document, str(cx.target)))
    if document.get("ended_at") is not None:
        cx.out.text(f"{ended_line(document)}{': ' if document['why'] else ''}{document['why'] or ''}")
        for path in document["saved"]:
            cx.out.text(f"checkpoint: {path}")
    elif document.get("why"):
        cx.out.text(f"{document['state']}: {document['why']}")
    tables: list[tuple[str, Sequence[OutputColumn], list[Row]]] = [
        ("ranks", RANKS, [{**rank, "doing": rank["state"]} for rank in document["ranks"]]),
        ("ready", READY, list(document["ready"])),
        ("recoveries", RECOVERIES, recovery_rows(document)),
    ]
    for title, columns, rows in tables:
        if rows:
            cx.out.text()
            cx.out.table(columns, rows, title=title)


def ended_line(document: Row) -> str:
    """How a job ended that has: ``stopped after 200 steps at 2027-01-15 09:00:00``."""
    return f"{document['state']} after {counted(document['done'], 'steps')} at {to_the_second(document['ended_at'])}"


def headline(document: Row, target: str) -> str:
    """The job in a line: its state, progress, speed, and number of recoveries."""
    parts = [document["job"], document["state"], f"target: {target}"]
    if 0 < len(document["ranks"]) < document["of"]:
        parts.append(f"{len(document['ranks'])} of {document['of']} ranks")
    parts.append(counted(document["done"], "steps"))
    if document.get("loss") is not None:
        parts.append(f"loss: {document['loss']:.6g}")
    if document.get("rate_steps_per_s") is not None and document["state"] == "running":
        parts.append(f"{document['rate_steps_per_s']:.3g} steps/s")
    parts.append(f"generation: {document['generation']}")
    recovered = sum(recovery["failure_to_step_s"] is not None for recovery in document["recoveries"])
    if recovered:
        parts.append(f"recovered: {counted(recovered, 'times')}")
    return "  ".join(parts)


def recovery_rows(document: Row) -> list[Row]:
    """One row for each recovery; only the last one of a job that recovers can be under way."""
    recoveries = document["recoveries"]
    last = len(recoveries) - 1 if document["state"] in {"recovering", "waiting"} else -1
    return [_recovery_row(recovery, NONE_DONE if at != last else UNDER_WAY) for at, recovery in enumerate(recoveries)]


def _recovery_row(recovery: Row, without_step: str) -> dict[str, Any]:
    circuits, step = recovery["failure_to_circuits_s"], recovery["failure_to_step_s"]
    spares = list(recovery["replaced_by"].values())
    without = ", ".join(f"continued without rank {rank}" for rank in recovery["without"])
    in_place = without or ("" if step is None else IN_PLACE)
    return {
        **recovery,
        "at": to_the_second(recovery["at"]),
        "failed": ",".join(fold(recovery["failed"])),
        "replaced_by": ",".join(fold(spares)) or in_place,
        "circuits": None if circuits is None else in_words(circuits),
        "step": without_step if step is None else in_words(step),
    }
