"""``lumctl health rules``: the knowledge behind every verdict, with its origin."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.health.states import Verdict

RULES = (
    OutputColumn("RULE", "rule"),
    OutputColumn("CASE", "case", gives_way=1),
    OutputColumn("STATE", "state"),
    OutputColumn("LIMIT", "limit_text", right=True, gives_way=2),
    OutputColumn("STANDS", "appears", wide=True),
    OutputColumn("CLEARS", "clears", wide=True),
    OutputColumn("ADVICE", "advice"),
    OutputColumn("ORIGIN", "origin", wide=True),
    OutputColumn("EDITION", "edition", wide=True),
)


def register(app: typer.Typer) -> None:
    """Add ``rules`` to the commands of ``health``."""
    verb(app, "rules", pages=True)(rules)


def rules(
    cx: Invocation,
    rule: Annotated[
        str | None, typer.Argument(metavar="RULE", help="One rule, or the first word of several, such as gpu.")
    ] = None,
) -> None:
    """Show the rules: each case with its state, its limit, the advice, and the source of the knowledge.

    Needs no inventory.
    """
    from lumctl.health.rulebook import all_lines, all_rules, rulebook

    book = rulebook()
    lines = [line for line in all_lines() if rule is None or rule in {line.rule, line.rule.partition(".")[0]}]
    if not lines:
        near = nearest(rule or "", all_rules())
        raise UsageError(f"no rule {rule!r}", hint=f"did you mean {near}?" if near else "see: lumctl health rules")
    by_rule: dict[str, list[Verdict]] = {}
    for line in lines:
        by_rule.setdefault(line.rule, []).append(line)
    if cx.out.structured:
        documents = [
            {"rule": name, "cases": [case_document(line) for line in cases]} for name, cases in by_rule.items()
        ]
        cx.out.document("rules", {"edition": book.edition, "rules": documents})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(by_rule))
    else:
        cx.out.table(RULES, rule_rows(lines))


def case_document(line: "Verdict") -> dict[str, Any]:
    """One case of a rule as data; ``None`` for limits that the case does not have."""
    return {
        "case": line.case,
        "state": line.state.value,
        "limit": line.limit,
        "unit": line.unit,
        "limits": dict(line.limits),
        "window_s": line.window_s,
        "appears_after_s": line.appears_after_s,
        "appears_looks": line.appears_looks,
        "clears_after_s": line.clears_after_s,
        "ends": line.ends,
        "advice": line.advice,
        "origin": line.origin,
        "edition": line.edition,
    }


def require_rule(rule: str) -> None:
    """Check that a rule of this name exists.

    Raises:
        UsageError: no rule has this name.
    """
    from lumctl.health.rulebook import all_rules

    rules = all_rules()
    if rule not in rules:
        near = nearest(rule, rules)
        raise UsageError(
            f"no rule {rule!r}", hint=f"did you mean {near}?" if near else "the rules are: lumctl health rules"
        )


def rule_rows(lines: "Sequence[Verdict]") -> list[dict[str, Any]]:
    """Cases of rules as rows of a table."""
    return [
        {
            **case_document(line),
            "rule": line.rule,
            "limit_text": limit_text(line),
            "appears": appears_text(line),
            "clears": clears_text(line),
        }
        for line in lines
    ]


def limit_text(line: "Verdict") -> str | None:
    """A limit with its unit, and the time over which it is counted; ``None`` if a case has no limit."""
    if line.limit == float("inf"):
        return None
    over = f" in {span(line.window_s)}" if line.window_s and not line.per_s else ""
    return f"{line.limit:g}{f' {line.unit}' if line.unit else ''}{over}"


def appears_text(line: "Verdict") -> str:
    """How long a case must last before it counts as a finding."""
    told = [span(line.appears_after_s)] if line.appears_after_s else []
    told += [f"{line.appears_looks} readings"] if line.appears_looks > 1 else []
    return f"after {' and '.join(told)}" if told else "at once"


def clears_text(line: "Verdict") -> str:
    """How long the condition of a case must be absent, or what must happen, before its finding clears."""
    if line.ends != "age":
        return "with a GPU reset or a reboot" if line.ends == "reset" else "with a reboot"
    return f"after {span(line.clears_after_s)}" if line.clears_after_s else "at once"


def span(seconds: float) -> str:
    """A duration in the largest unit that divides it: ``90 s``, ``7 d``."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
