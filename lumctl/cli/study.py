"""``lumctl study``: the published results, run again, with a verdict on each claim."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat, dump_json
from lumctl.cli.progress import progress
from lumctl.cli.study_text import NOT_JUDGED, parameter_row, print_claims, print_comparison, print_result, print_study
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from lumctl.studies import ClaimResult, StudyResult
    from lumctl.studies.engine import StudyWorkers
    from lumctl.studies.study import Study, StudySettings

app = noun_app(NOUNS["study"].help)
_LISTED = (
    OutputColumn("STUDY", "study"),
    OutputColumn("CLAIMS", "claims", right=True),
    OutputColumn("QUESTION", "question"),
)
StudyArgument = Annotated[str, typer.Argument(metavar="NAME", help="A study, as study list prints it.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value, or several: ranks=4,8; may be repeated."),
]
SeedsOption = Annotated[int | None, typer.Option("--seeds", metavar="N", help="Short for --set seeds=N.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Fewer cases and seeds.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", help="Processes; by default one, and after some seconds as many as processors."
    ),
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="dask[:ADDRESS]|slurm",
        help="Solve on a Dask scheduler's workers, on a Dask cluster of this machine, or on --workers workers in jobs "
        "of Slurm (4), whose partition, account, walltime and start-timeout are settings of jobqueue.slurm in "
        "~/.config/dask/jobqueue.yaml, or variables such as DASK_JOBQUEUE__SLURM__QUEUE. Needs lumctl[studies].",
    ),
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that study run --out wrote.")]


@verb(app, "list")
def list_(cx: Invocation) -> None:
    """List the studies, and how many published claims each tests."""
    from lumctl.studies import STUDIES

    rows = [{"study": each.name, "claims": len(each.claims), "question": each.question} for each in STUDIES.values()]
    if cx.out.structured:
        cx.out.document("studies", {"studies": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(STUDIES))
    else:
        cx.out.table(_LISTED, rows)


@verb(app, "show", pages=True)
def show(cx: Invocation, name: StudyArgument) -> None:
    """Show a study: its question, its parameters, its claims with the verdicts recorded in this version, the readings.

    A claim's basis is ``stated`` by its source, ``computed`` by us from numbers that it states, or ``inferred``.
    """
    from lumctl.studies import claim_entry, find_study

    study = find_study(name)
    document = {
        "study": study.name,
        "question": study.question,
        "parameters": [parameter_row(each) for each in study.parameters],
        "claims": [{**claim_entry(each), "readings": dict(each.readings)} for each in study.claims],
    }
    if cx.out.structured:
        cx.out.document("study-claims", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.id for each in study.claims])
    else:
        print_study(cx, study, document)


@verb(app, "run", pages=True)
def run(
    cx: Invocation,
    name: StudyArgument,
    given: SetOption = None,
    seeds: SeedsOption = None,
    quick: QuickOption = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the results in this folder, a new or empty one.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out, with the same settings.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Jobs of a cluster (CSV), for the studies trace and sharing."),
    ] = None,
    trace_map: Annotated[
        Path | None, typer.Option("--trace-map", metavar="FILE", help="Columns and units of the trace (YAML).")
    ] = None,
    measured: Annotated[
        list[Path] | None,
        typer.Option(
            "--measured",
            metavar="FILE",
            help="What demo recover -o json printed, or the bandwidth bench wrote, for the study recovery; "
            "may be repeated.",
        ),
    ] = None,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Run a study and print its table, and each claim with its value and the verdict.

    A claim is published with one number, but often not with what it counts. So it is tested under each reading that its
    source allows: reproduced (under every reading), reproduced under some readings, bounded away (under none, and a
    bound shows that it cannot hold), not reproduced (under none, and no bound excludes it), or not testable here. What
    the source does not state has a range.

    A claim whose case --set leaves out is not judged. The column READINGS says under how many of its readings a claim
    holds, and NEAREST is the value under the reading that is nearest to the published number.

    With -i a study uses the inventory's rack in place of the published one: its accelerators and hosts (spares, rails),
    its largest switch (rails) or mesh (matchings), its jobs (collectives), the rates of its ports (bandwidth), or the
    number of its racks that are a torus of 4x4x4, and their fibres (overprovisioning, fragmentation, placement). The
    other studies use nothing of it.

    The folder of --out gets each case when it is solved, and at the end study.json, the document of -o json, and with
    DuckDB installed rows.parquet. A run that was interrupted continues with --resume. The rows are the same whatever
    solves them.

    A trace has a line for each job, and by default the columns submit and duration, in seconds, and accelerators. The
    file of --trace-map names others, and their units:

        columns: {submit: submit_time, duration: run_time, accelerators: gpu_num}
        units: {submit: datetime, duration: min, accelerators: percent}
    """
    from lumctl.studies import find_study
    from lumctl.studies.engine import StudyWorkers

    if resume and out is None:
        raise UsageError("--resume needs --out DIR")
    study = find_study(name).with_trace(trace, trace_map).with_measured(measured or ())
    settings = study.settings(_given(cx, study, given, seeds), quick=quick)
    result = _run(cx, study, settings, StudyWorkers.of(workers, executor), out, resume=resume)
    if cx.out.structured:
        cx.out.document("study", _document(result))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.claim.id for each in result.claims])
    else:
        print_result(cx, result)


@verb(app, "check", pages=True)
def check(
    cx: Invocation,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="By default all studies.")] = None,
    quick: QuickOption = False,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
) -> int:
    """Run studies and compare each verdict with the one recorded in this version. Exits 4 if one has changed.

    A claim that has no value is a changed one.
    """
    from lumctl.studies import STUDIES, claim_document, find_study, run_study
    from lumctl.studies.engine import StudyWorkers

    chosen = [find_study(name) for name in dict.fromkeys(names or STUDIES)]
    by = StudyWorkers.of(workers, executor)
    found: list[ClaimResult] = []
    with progress("running studies", quiet=cx.out.quiet) as tell:
        for study in chosen:
            found += run_study(study, study.settings(quick=quick), workers=by, tell=tell).claims
    changed = [each for each in found if each.has_changed]
    if cx.out.structured:
        cx.out.document("study-check", {"claims": [claim_document(each) for each in found]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.claim.id for each in changed])
    else:
        print_claims(cx, found)
        for each in changed:
            was = "not recorded" if each.recorded is None else f"recorded as {each.recorded}"
            cx.out.narrate(f"{each.claim.id} is {each.verdict or NOT_JUDGED}, but was {was}")
    return ExitCode.UNHEALTHY if changed else ExitCode.DONE


@verb(app, "figure")
def figure(
    cx: Invocation,
    name: StudyArgument,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the figure as SVG.")] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write the figure as PNG.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Draw the results in a folder of study run --out.")
    ] = None,
    given: SetOption = None,
    seeds: SeedsOption = None,
    quick: QuickOption = False,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Draw a study's table and its claims: published values as marks, own values with their range.

    Equal results give equal files. Needs lumctl[studies].
    """
    from lumctl.files import put
    from lumctl.studies import find_study
    from lumctl.studies.engine import StudyWorkers
    from lumctl.studies.figure import drawn, require_matplotlib

    if svg is None and png is None:
        raise UsageError("there is no file to write", hint="name one: --svg FILE or --png FILE")
    study = find_study(name)
    require_matplotlib()  # before a study that may take minutes
    if source is None:
        settings = study.settings(_given(cx, study, given, seeds), quick=quick)
        result = _run(cx, study, settings, StudyWorkers.of(workers, executor))
    elif given or seeds or quick or workers or executor:
        raise UsageError("--from draws results that are there; it excludes the options of a run")
    else:
        result = _kept_result(study, source)
    for kind, path in (("svg", svg), ("png", png)):
        if path is not None:
            put(path, drawn(result, kind))
            cx.out.narrate(f"wrote {path}")


@verb(app, "compare", pages=True)
def compare(
    cx: Invocation,
    a: Annotated[Path, typer.Argument(metavar="A", help="A folder that study run --out wrote.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one, of the same study.")],
) -> None:
    """Compare the results of two runs of a study: claims, settings, inputs, versions, and how many rows differ."""
    from lumctl.studies.folder import compared

    document = compared(a, b)
    if cx.out.structured:
        cx.out.document("study-comparison", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each["id"] for each in document["claims"] if not each["same"]])
    else:
        print_comparison(cx, document)


@verb(app, "sql", pages=True)
def sql(
    cx: Invocation,
    folder: FolderArgument,
    text: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT over rows, claims and settings.")],
) -> None:
    """Query the results of a run in SQL, as DuckDB has it: the tables ``rows``, ``claims`` and ``settings``.

    The query works on a copy in memory: it can write nothing, and read no files and no network. Needs lumctl[studies].
    """
    from lumctl.studies.database import query

    columns, found = query(folder, text)
    rows = [
        [value if isinstance(value, (int, float, str, type(None))) else str(value) for value in row] for row in found
    ]
    if cx.out.structured:
        cx.out.document("study-query", {"columns": list(columns), "rows": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([str(row[0]) for row in rows])
    else:
        numbers = [all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(columns))]
        shown = [OutputColumn(each, str(at), right=numbers[at]) for at, each in enumerate(columns)]
        cx.out.table(shown, [{str(at): "-" if v is None else v for at, v in enumerate(row)} for row in rows])


def _given(cx: Invocation, study: "Study", given: list[str] | None, seeds: int | None) -> list[str]:
    """The texts that set a run's parameters; what the command line gives overrides the inventory."""
    of_inventory = study.inventory_settings(cx.inventory) if cx.inventory_path else []
    return [*of_inventory, *([] if seeds is None else [f"seeds={seeds}"]), *(given or ())]


def _run(
    cx: Invocation,
    study: "Study",
    settings: "StudySettings",
    workers: "StudyWorkers",
    out: Path | None = None,
    *,
    resume: bool = False,
) -> "StudyResult":
    from lumctl.studies import run_study
    from lumctl.studies.folder import opened

    with progress(f"study {study.name}", quiet=cx.out.quiet) as tell:
        if out is None:
            return run_study(study, settings, workers=workers, tell=tell)
        tuple(study.cases(settings))  # settings that make no table must leave no folder
        with opened(out, study, settings, resume=resume) as folder:
            try:
                result = run_study(study, settings, workers=workers, folder=folder, tell=tell)
            except KeyboardInterrupt:
                cx.out.narrate(f"{len(folder.solved)} cases are in {out}; the same command with --resume continues")
                raise
            folder.finish(dump_json({"schema": "lumctl/study/v1", **_document(result)}) + "\n")
            return result


def _document(result: "StudyResult") -> dict[str, Any]:
    from lumctl.studies import result_document
    from lumctl.studies.provenance import provenance

    return {**provenance(result.study, result.settings), **result_document(result)}


def _kept_result(study: "Study", folder: Path) -> "StudyResult":
    from lumctl.studies.folder import read_results
    from lumctl.studies.results import judged

    run, _, rows = read_results(folder)
    if run["study"] != study.name:
        raise UsageError(f"{folder} has a run of study {run['study']}, not {study.name}")
    return judged(study, {name: tuple(values) for name, values in run["settings"].items()}, rows)
