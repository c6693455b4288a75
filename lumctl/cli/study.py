"""``lumctl study``: the published results, run again, with a verdict on each claim."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.progress import progress
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumctl.studies import ClaimResult, StudyResult
    from lumctl.studies.claim import ClaimReading
    from lumctl.studies.study import Study, StudyParameter

app = noun_app(NOUNS["study"].help)
_STUDIES = (
    OutputColumn("STUDY", "study"),
    OutputColumn("CLAIMS", "claims", right=True),
    OutputColumn("QUESTION", "question"),
)
_PARAMETERS = (
    OutputColumn("PARAMETER", "name"),
    OutputColumn("DEFAULT", "default"),
    OutputColumn("FROM", "low", right=True),
    OutputColumn("TO", "high", right=True),
    OutputColumn("MEANING", "help"),
)
_CLAIMS = (
    OutputColumn("CLAIM", "id"),
    OutputColumn("PUBLISHED", "published_text", right=True),
    OutputColumn("FOUND", "found", right=True),
    OutputColumn("VERDICT", "verdict"),
    OutputColumn("UNDER THE READING", "reading", gives_way=1),
    OutputColumn("WHAT IS CLAIMED", "words", wide=True),
    OutputColumn("SOURCE", "source", wide=True),
)
_READINGS = (
    OutputColumn("CLAIM", "id"),
    OutputColumn("VALUE", "value", right=True),
    OutputColumn("AS PUBLISHED", "holds"),
    OutputColumn("READING", "words"),
)
_DIGITS = 4
StudyArgument = Annotated[str, typer.Argument(metavar="NAME", help="A study, as study list prints it.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value, or several: ranks=4,8; may be repeated."),
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Fewer cases and seeds.")]


@verb(app, "list")
def list_(cx: Invocation) -> None:
    """List the studies, and how many published claims each tests."""
    from lumctl.studies import STUDIES

    rows = [
        {"study": each.name, "claims": len(each.claims), "question": each.question, "unit": ""}
        for each in STUDIES.values()
    ]
    if cx.out.structured:
        cx.out.document("studies", {"studies": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(STUDIES))
    else:
        cx.out.table(_STUDIES, rows)


@verb(app, "show", pages=True)
def show(cx: Invocation, name: StudyArgument) -> None:
    """Show a study: its question, its parameters, and its claims with the verdicts recorded in this version."""
    from lumctl.studies import find_study
    from lumctl.studies.results import recorded_verdicts

    study = find_study(name)
    recorded = recorded_verdicts()
    claims = [
        {
            "id": each.id,
            "source": each.source,
            "words": each.words,
            "published": each.published,
            "published_text": f"{each.published:g} {each.unit}",
            "unit": each.unit,
            "tolerance": each.tolerance,
            "verdict": recorded[each.id].value,
            "missing": each.missing or None,
        }
        for each in study.claims
    ]
    parameters = [_parameter(each) for each in study.parameters]
    if cx.out.structured:
        shown = [{key: value for key, value in each.items() if key != "published_text"} for each in claims]
        cx.out.document(
            "study", {"study": study.name, "question": study.question, "parameters": parameters, "claims": shown}
        )
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([str(each["id"]) for each in claims])
        return
    cx.out.text(study.question)
    cx.out.text()
    cx.out.table(_PARAMETERS, parameters)
    cx.out.text()
    columns = [column for column in _CLAIMS if column.key not in {"found", "reading"}]
    cx.out.table([OutputColumn(c.heading, c.key, right=c.right) for c in columns], claims)
    _print_missing(cx, study)


@verb(app, "run", pages=True)
def run(cx: Invocation, name: StudyArgument, given: SetOption = None, quick: QuickOption = False) -> None:
    """Run a study and print its table, and each claim with its value and the verdict.

    A claim is published with one number, but often not with what it counts. So it is tested under each reading that its
    source allows: reproduced (under every reading), reproduced under some readings, bounded away (under none, and a
    bound shows that it cannot hold), not reproduced (under none, and no bound excludes it), or not testable here. What
    the source does not state has a range.

    With --set, a claim whose case is left out keeps its recorded verdict and has no value.
    """
    from lumctl.studies import find_study, run_study

    study = find_study(name)
    settings = study.settings(given or (), quick=quick)
    with progress(f"running study {study.name}", quiet=cx.out.quiet):
        result = run_study(study, settings)
    if cx.out.structured:
        cx.out.document("study", _result_document(result))
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([each.claim.id for each in result.claims])
        return
    columns = [OutputColumn(key.replace("_", " ").upper(), key, right=_is_number(result, key)) for key in study.columns]
    cx.out.table(columns, [{key: _in_digits(value) for key, value in row.items()} for row in result.rows])
    cx.out.text()
    _print_claims(cx, result.claims)
    cx.out.text()
    cx.out.table(_READINGS, [_reading(claim, each) for claim in result.claims for each in claim.readings])
    _print_missing(cx, study)


@verb(app, "check", pages=True)
def check(
    cx: Invocation,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="By default all studies.")] = None,
    quick: QuickOption = False,
) -> int:
    """Run studies and compare each verdict with the one recorded in this version. Exits 4 if one has changed."""
    from lumctl.studies import STUDIES, claim_document, find_study, run_study

    chosen = [find_study(name) for name in dict.fromkeys(names or STUDIES)]
    found: list[ClaimResult] = []
    with progress("running studies", quiet=cx.out.quiet) as tell:
        for study in chosen:
            tell(f"running study {study.name}")
            found += run_study(study, study.settings(quick=quick)).claims
    changed = [each for each in found if each.has_changed]
    if cx.out.structured:
        cx.out.document("study", {"claims": [claim_document(each) for each in found]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.claim.id for each in changed])
    else:
        _print_claims(cx, found)
        for each in changed:
            was = "not recorded" if each.recorded is None else f"recorded as {each.recorded}"
            cx.out.narrate(f"{each.claim.id} is {each.verdict}, but was {was}")
    return ExitCode.UNHEALTHY if changed else ExitCode.DONE


def _parameter(each: "StudyParameter") -> dict[str, Any]:
    default = ",".join(f"{value:g}" for value in each.default)
    return {"name": each.name, "default": default, "low": each.low, "high": each.high, "help": each.help}


def _result_document(result: "StudyResult") -> dict[str, Any]:
    from lumctl.studies import claim_document

    return {
        "study": result.study.name,
        "settings": {name: list(values) for name, values in result.settings.items()},
        "rows": [dict(row) for row in result.rows],
        "claims": [claim_document(each) for each in result.claims],
    }


def _print_claims(cx: Invocation, claims: "Iterable[ClaimResult]") -> None:
    from lumctl.studies import claim_document

    rows = [
        {
            **claim_document(each),
            "published_text": f"{each.claim.published:g} {each.claim.unit}",
            "found": "-" if each.best is None else _value(each.best),
        }
        for each in claims
    ]
    cx.out.table(_CLAIMS, rows)


def _reading(claim: "ClaimResult", each: "ClaimReading") -> dict[str, Any]:
    holds = "yes" if each.holds(claim.claim) else "no"
    return {"id": claim.claim.id, "value": _value(each), "holds": holds, "words": each.words}


def _value(reading: "ClaimReading") -> str:
    value = f"{reading.value:.{_DIGITS}g}"
    return f"{value} ({reading.low:.{_DIGITS}g} to {reading.high:.{_DIGITS}g})" if reading.low < reading.high else value


def _print_missing(cx: Invocation, study: "Study") -> None:
    """What it would take to test the other claims."""
    for missing in dict.fromkeys(each.missing for each in study.claims if each.missing):
        those = ", ".join(each.id for each in study.claims if each.missing == missing)
        cx.out.narrate(f"not testable here: {those}; missing is {missing}")


def _is_number(result: "StudyResult", key: str) -> bool:
    return all(not isinstance(row[key], str) for row in result.rows)


def _in_digits(value: float | str) -> float | str:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
