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
    from collections.abc import Iterable, Iterator

    from lumctl.studies import ClaimResult, StudyResult
    from lumctl.studies.claim import Claim, ReadingValue
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
    OutputColumn("NEAREST", "found", right=True),
    OutputColumn("READINGS", "holding", right=True),
    OutputColumn("VERDICT", "verdict_text"),
    OutputColumn("WHAT IS CLAIMED", "words", wide=True),
    OutputColumn("BASIS", "basis", wide=True),
    OutputColumn("SOURCE", "source", wide=True),
)
_RECORDED = (
    OutputColumn("CLAIM", "id"),
    OutputColumn("PUBLISHED", "published_text", right=True),
    OutputColumn("BASIS", "basis"),
    OutputColumn("VERDICT", "verdict_text"),
    OutputColumn("WHAT IS CLAIMED", "words"),
    OutputColumn("SOURCE", "source", wide=True),
)
_READINGS = (
    OutputColumn("CLAIM", "id"),
    OutputColumn("VALUE", "value", right=True),
    OutputColumn("AS PUBLISHED", "holds"),
    OutputColumn("READING", "words"),
)
_READING_WORDS = (OutputColumn("CLAIM", "id"), OutputColumn("READING", "words"))
_DIGITS = 4
_NOT_JUDGED = "not judged"
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

    rows = [{"study": each.name, "claims": len(each.claims), "question": each.question} for each in STUDIES.values()]
    if cx.out.structured:
        cx.out.document("studies", {"studies": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(STUDIES))
    else:
        cx.out.table(_STUDIES, rows)


@verb(app, "show", pages=True)
def show(cx: Invocation, name: StudyArgument) -> None:
    """Show a study: its question, its parameters, its claims with the verdicts recorded in this version, the readings.

    A claim's basis is ``stated`` by its source, ``computed`` by us from numbers that it states, or ``inferred``.
    """
    from lumctl.studies import claim_entry, find_study

    study = find_study(name)
    claims = [{**claim_entry(each), "readings": dict(each.readings)} for each in study.claims]
    parameters = [_parameter(each) for each in study.parameters]
    if cx.out.structured:
        cx.out.document(
            "study-claims",
            {"study": study.name, "question": study.question, "parameters": parameters, "claims": claims},
        )
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([each.id for each in study.claims])
        return
    cx.out.text(study.question)
    cx.out.text()
    cx.out.table(_PARAMETERS, parameters)
    cx.out.text()
    shown = [
        {**each, "published_text": _published(claim), "verdict_text": each["recorded"] or "not recorded"}
        for each, claim in zip(claims, study.claims, strict=True)
    ]
    cx.out.table(_RECORDED, shown)
    cx.out.text()
    cx.out.table(
        _READING_WORDS, [{"id": each.id, "words": words} for each in study.claims for words in each.readings.values()]
    )
    _print_missing(cx, study)


@verb(app, "run", pages=True)
def run(cx: Invocation, name: StudyArgument, given: SetOption = None, quick: QuickOption = False) -> None:
    """Run a study and print its table, and each claim with its value and the verdict.

    A claim is published with one number, but often not with what it counts. So it is tested under each reading that its
    source allows: reproduced (under every reading), reproduced under some readings, bounded away (under none, and a
    bound shows that it cannot hold), not reproduced (under none, and no bound excludes it), or not testable here. What
    the source does not state has a range.

    A claim whose case --set leaves out is not judged. The column READINGS says under how many of its readings a claim
    holds, and NEAREST is the value under the reading that is nearest to the published number.
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
    cx.out.table(_READINGS, [row for each in result.claims for row in _reading_rows(each)])
    _print_missing(cx, study)


@verb(app, "check", pages=True)
def check(
    cx: Invocation,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="By default all studies.")] = None,
    quick: QuickOption = False,
) -> int:
    """Run studies and compare each verdict with the one recorded in this version. Exits 4 if one has changed.

    A claim that has no value is a changed one.
    """
    from lumctl.studies import STUDIES, claim_document, find_study, run_study

    chosen = [find_study(name) for name in dict.fromkeys(names or STUDIES)]
    found: list[ClaimResult] = []
    with progress("running studies", quiet=cx.out.quiet) as tell:
        for study in chosen:
            tell(f"running study {study.name}")
            found += run_study(study, study.settings(quick=quick)).claims
    changed = [each for each in found if each.has_changed]
    if cx.out.structured:
        cx.out.document("study-check", {"claims": [claim_document(each) for each in found]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.claim.id for each in changed])
    else:
        _print_claims(cx, found)
        for each in changed:
            was = "not recorded" if each.recorded is None else f"recorded as {each.recorded}"
            cx.out.narrate(f"{each.claim.id} is {each.verdict or _NOT_JUDGED}, but was {was}")
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
            "published_text": _published(each.claim),
            "found": "-" if each.nearest is None else _value(each.values[each.nearest]),
            "holding": f"{sum(v.holds(each.claim) for v in each.values.values())}/{len(each.values)}"
            if each.values
            else "-",
            "verdict_text": each.verdict or _NOT_JUDGED,
        }
        for each in claims
    ]
    cx.out.table(_CLAIMS, rows)


def _published(claim: "Claim") -> str:
    return f"{claim.published:g} {claim.unit}"


def _reading_rows(claim: "ClaimResult") -> "Iterator[dict[str, Any]]":
    for name, value in claim.values.items():
        holds = "yes" if value.holds(claim.claim) else "no"
        yield {
            "id": claim.claim.id,
            "value": _value(value),
            "holds": holds,
            "words": claim.claim.readings[name],
        }


def _value(found: "ReadingValue") -> str:
    value = f"{found.value:.{_DIGITS}g}"
    return f"{found.low:.{_DIGITS}g} to {found.high:.{_DIGITS}g}" if found.low < found.high else value


def _print_missing(cx: Invocation, study: "Study") -> None:
    """What it would take to test the other claims."""
    for missing in dict.fromkeys(each.missing for each in study.claims if each.missing):
        those = ", ".join(each.id for each in study.claims if each.missing == missing)
        cx.out.narrate(f"not testable here: {those}; missing is {missing}")


def _is_number(result: "StudyResult", key: str) -> bool:
    return all(not isinstance(row[key], str) for row in result.rows)


def _in_digits(value: float | str) -> float | str:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
