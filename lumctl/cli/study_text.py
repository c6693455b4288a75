"""What the commands of ``lumctl study`` print for people."""

from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lumctl.studies import ClaimResult, StudyResult
    from lumctl.studies.claim import Claim, ReadingValue
    from lumctl.studies.study import Study, StudyParameter

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
_COMPARED = (
    OutputColumn("CLAIM", "id"),
    OutputColumn("PUBLISHED", "published", right=True),
    OutputColumn("A", "value_a", right=True),
    OutputColumn("B", "value_b", right=True),
    OutputColumn("VERDICT OF A", "verdict_a"),
    OutputColumn("VERDICT OF B", "verdict_b"),
)
_DIGITS = 4
NOT_JUDGED = "not judged"


def print_study(cx: Invocation, study: "Study", document: "Mapping[str, Any]") -> None:
    """A study before it is run; ``document`` is what ``study show -o json`` prints."""
    cx.out.text(study.question)
    cx.out.text()
    cx.out.table(_PARAMETERS, document["parameters"])
    if not study.claims:
        return
    cx.out.text()
    shown = [
        {**each, "published_text": _published(claim), "verdict_text": each["recorded"] or "not recorded"}
        for each, claim in zip(document["claims"], study.claims, strict=True)
    ]
    cx.out.table(_RECORDED, shown)
    cx.out.text()
    words = [{"id": each.id, "words": words} for each in study.claims for words in each.readings.values()]
    cx.out.table(_READING_WORDS, words)
    _print_missing(cx, study)


def print_result(cx: Invocation, result: "StudyResult") -> None:
    """The table of a study, and what it says of each claim."""
    columns = [
        OutputColumn(key.replace("_", " ").upper(), key, right=_is_number(result, key)) for key in result.columns
    ]
    cx.out.table(columns, [{key: _in_digits(value) for key, value in row.items()} for row in result.rows])
    if not result.claims:
        return
    cx.out.text()
    print_claims(cx, result.claims)
    cx.out.text()
    cx.out.table(_READINGS, [row for each in result.claims for row in _reading_rows(each)])
    _print_missing(cx, result.study)


def parameter_row(each: "StudyParameter") -> dict[str, Any]:
    """A parameter of a study as tables and JSON have it."""
    default = ",".join(f"{value:g}" for value in each.default)
    return {"name": each.name, "default": default, "low": each.low, "high": each.high, "help": each.help}


def print_claims(cx: Invocation, claims: "Iterable[ClaimResult]") -> None:
    """Each claim with its value under the nearest reading, and the verdict."""
    from lumctl.studies import claim_document

    rows = [
        {
            **claim_document(each),
            "published_text": _published(each.claim),
            "found": "-" if each.nearest is None else value_text(each.values[each.nearest]),
            "holding": f"{sum(v.holds(each.claim) for v in each.values.values())}/{len(each.values)}"
            if each.values
            else "-",
            "verdict_text": each.verdict or NOT_JUDGED,
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
            "value": value_text(value),
            "holds": holds,
            "words": claim.claim.readings[name],
        }


def value_text(found: "ReadingValue") -> str:
    """A value, or its range, in a few digits."""
    return _range_text(found.value, found.low, found.high)


def _range_text(value: float, low: float, high: float) -> str:
    return f"{low:.{_DIGITS}g} to {high:.{_DIGITS}g}" if low < high else f"{value:.{_DIGITS}g}"


def _print_missing(cx: Invocation, study: "Study") -> None:
    """What it would take to test the other claims."""
    for missing in dict.fromkeys(each.missing for each in study.claims if each.missing):
        those = ", ".join(each.id for each in study.claims if each.missing == missing)
        cx.out.narrate(f"not testable here: {those}; missing is {missing}")


def _is_number(result: "StudyResult", key: str) -> bool:
    return all(not isinstance(row[key], str) for row in result.rows)


def _in_digits(value: float | str) -> float | str:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def print_comparison(cx: Invocation, document: "Mapping[str, Any]") -> None:
    """The claims of two runs side by side, and in what else they differ."""
    rows = []
    for each in document["claims"]:
        sides = {
            f"{key}_{side}": text
            for side in ("a", "b")
            for key, text in (("value", _interval(each[side])), ("verdict", each[side]["verdict"] or NOT_JUDGED))
        }
        rows.append({**sides, "id": each["id"], "published": f"{each['published']:g} {each['unit']}"})
    cx.out.table(_COMPARED, rows)
    for each in (*document["settings"], *document["inputs"], *document["versions"]):
        cx.out.text(f"{each['name']}: A {_plain(each['a'])}, B {_plain(each['b'])}")
    found = document["rows"]
    cx.out.text(
        f"rows: {found['a']} and {found['b']}, of which only A has {found['only_a']}, and only B {found['only_b']}"
    )


def _interval(found: "Mapping[str, Any]") -> str:
    if found["interval"] is None or found["measured"] is None:
        return "-"
    return _range_text(found["measured"], *found["interval"])


def _plain(value: Any) -> str:
    return ",".join(f"{each:g}" for each in value) if isinstance(value, list) else str(value or "-")
