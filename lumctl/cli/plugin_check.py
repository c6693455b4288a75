"""``lumctl plugin check``: test a package against the contract of its kind; print a page that can be published."""

import json
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.devices.drivers import installed
from lumctl.errors import ExitCode, UsageError
from lumctl.offers import PROBES, Offer, offered

if TYPE_CHECKING:
    from lumctl.devices.contract_check import Checked

_LIMIT_S = 600.0
_COLUMNS = (OutputColumn("RULE", "rule"), OutputColumn("RESULT", "state"), OutputColumn("TEXT", "text"))


def check_probes(cx: Invocation, package: str) -> int | None:
    """Check the probe of that name, or all probes of a package without drivers; ``None`` if there is no probe."""
    offers = offered(PROBES)
    found = [info for info in offers if info.name == package]
    if not found and not any(package in {info.name, info.distribution} for info in installed()):
        found = [info for info in offers if info.distribution == package]
    if not found:
        return None
    documents: list[dict[str, Any]] = [
        {"name": info.name, "distribution": info.distribution, "version": info.version, "rules": _run(info)}
        for info in found
    ]
    broken = [each["name"] for each in documents if any(rule["broken"] for rule in each["rules"])]
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(broken)
    elif cx.out.structured:
        cx.out.document("plugin-check", {"probes": documents})
    else:
        for each in documents:
            cx.out.text(f"Probe contract: {each['name']} of {each['distribution']} {each['version']}")
            cx.out.table(_COLUMNS, each["rules"])
            for rule in each["rules"]:
                if rule["broken"]:
                    cx.out.text(f"FAILED {rule['rule']}: {rule['broken']}")
    return ExitCode.UNHEALTHY if broken else ExitCode.DONE


def _run(info: Offer) -> list[dict[str, Any]]:
    # A process of its own: a parser that hangs or ends the process must not take this command with it.
    command = [sys.executable, "-m", "lumctl.fleet.testing", info.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the tests of {info.name} did not finish within {_LIMIT_S:.0f} s") from error
    # The probe may print lines of its own.
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rule"')]
    if done.returncode != 0 or not rows:
        said = " ".join(done.stderr.split())[-300:]
        rows.append({"rule": "loading", "text": "the probe loads and its tests end", "broken": said or "no result"})
    return [row | {"state": "failed" if row["broken"] else "ok"} for row in rows]


RULES = (
    OutputColumn("RULE", "rule"),
    OutputColumn("RESULT", "state"),
    OutputColumn("PASSED", "passed"),
    OutputColumn("FAILED", "failed"),
    OutputColumn("NOT TESTED", "not_tested"),
)
STATES = {"passed": "ok", "failed": "failed", "not-tested": "unknown", "not-applicable": "disabled"}


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "check")(command)


def command(
    cx: Invocation,
    package: Annotated[str, typer.Argument(metavar="PACKAGE", help="A driver, a package, or its source folder.")],
    tests: Annotated[
        Path | None, typer.Option("--tests", metavar="PATH", help="Tests that run the kit on the driver.", exists=True)
    ] = None,
) -> int:
    """Test each driver of an installed package against the driver contract, and print a report to publish.

    The kit of lumctl.devices.testing runs in its own process (it needs pytest) and injects faults between the driver
    and its device. It uses the twin that the package offers (entry point group lumctl.twins), or else the package's
    tests that run the kit, or the tests given with --tests. It writes to the device: never use one that carries light.

    Without a twin or tests it tests only what needs no device. Exits 4 if a rule is broken, if a driver does not load,
    or if there was no device. Kinds of job control are tested by their packages' own tests, see lumctl-job-plugin(7).

    A probe is tested with the fixtures of its package by the kit of lumctl.fleet.testing, and needs no host.
    """
    from lumctl.devices.contract_check import check, drivers_named, kinds_beside

    if (ended := check_probes(cx, package)) is not None:
        return ended
    found = drivers_named(package)
    for kind in kinds_beside(found):
        cx.out.narrate(
            f"not tested here: {kind.name} of {kind.origin}, a kind of job control, see lumctl-job-plugin(7)"
        )
    reports = []
    for info in found:
        cx.out.narrate(f"checking {info.name} of {info.origin}")
        reports.append(check(info, tests))
    documents = [_document(checked) for checked in reports]
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([checked.info.name for checked in reports if checked.verdict != "passed"])
    elif cx.out.structured:
        cx.out.document("plugin-check", _about() | {"drivers": documents})
    else:
        for checked, document in zip(reports, documents, strict=True):
            _page(cx, checked, document)
    return ExitCode.DONE if all(checked.verdict == "passed" for checked in reports) else ExitCode.UNHEALTHY


def _about() -> dict[str, Any]:
    from lumctl import __version__

    at = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"lumctl": __version__, "python": platform.python_version(), "at": at}


def _document(checked: "Checked") -> dict[str, Any]:
    return {
        **_declared(checked),
        "against": checked.against,
        "verdict": checked.verdict,
        "rules": _rules(checked),
        "tests": [asdict(each) for each in checked.outcomes],
    }


def _declared(checked: "Checked") -> dict[str, Any]:
    """The declarations of the driver; if it does not load, only its package's metadata."""
    from lumctl.devices.drivers import load

    info = checked.info
    told = {"name": info.name, "distribution": info.distribution, "version": info.version, "class": info.target}
    try:
        driver = load(info.name)
    except UsageError:
        return told | dict.fromkeys(("kind", "api_version", "capabilities", "proven"))
    capabilities = getattr(driver, "capabilities", None)
    able = sorted(map(str, capabilities)) if isinstance(capabilities, frozenset) else []
    return told | {
        "kind": driver.kind,
        "api_version": driver.api_version,
        "capabilities": able,
        "proven": str(getattr(driver, "proven", "not stated")),
    }


def _rules(checked: "Checked") -> list[dict[str, Any]]:
    """One row for each rule of the contract, with the results of its tests."""
    from lumctl.devices.testing.rules import RULES as WRITTEN

    ended: Mapping[str, Counter[str]] = {rule: Counter() for rule in WRITTEN}
    for each in checked.outcomes:
        if each.rule is not None and each.rule in ended:
            for rule in (each.rule, *each.also):
                ended[rule][each.outcome] += 1
    rows = []
    for rule, counts in ended.items():
        if not counts:
            continue  # the rule applies to another kind of driver
        # One failed test decides; otherwise one that passed.
        result = next((word for word in ("failed", *STATES) if counts[word]), None)
        rows.append(
            {
                "rule": rule,
                "text": WRITTEN[rule].text,
                "result": result or "not-tested",
                "state": STATES[result or "not-tested"],
                "passed": counts["passed"],
                "failed": counts["failed"],
                "not_tested": counts["not-tested"],
            }
        )
    return rows


def _page(cx: Invocation, checked: "Checked", document: Mapping[str, Any]) -> None:
    from lumctl.devices.testing.rules import RULES as WRITTEN

    about, say = _about(), cx.out.text
    say(f"Driver contract: {document['name']}")
    package = f"{document['class']}, {document['distribution']} {document['version']}"
    if checked.loads:
        say(f"  driver   {package}, kind {document['kind']}, API {document['api_version']}")
        say(f"  declares {', '.join(document['capabilities'] or ()) or 'no optional capability'}")
        say(f"  proven   {document['proven']}")
    else:
        say(f"  driver   {package}")
    say(f"  checked  {about['at']} with lumctl {about['lumctl']}, Python {about['python']}")
    say(f"  against  {document['against']}")
    say(f"  verdict  {checked.verdict.upper()}: {_counted(checked)}")
    say()
    cx.out.table(RULES, document["rules"])
    for each in _once(checked.failed):
        say()
        say(f"FAILED {each.rule}: {each.title}")
        say(f"  found: {each.detail}")
        if each.rule in WRITTEN:
            say(f"  rule:  {WRITTEN[each.rule].text}")
            say(f"  usual cause: {WRITTEN[each.rule].cause}")
    reasons: dict[str, list[str]] = {}
    for each in checked.not_tested:
        reasons.setdefault(each.detail, []).append(each.title)
    for reason, titles in reasons.items():
        say()
        say(f"NOT TESTED {reason}: {'; '.join(titles)}")
    say()


def _counted(checked: "Checked") -> str:
    if not checked.loads:
        return "the driver does not load, so no test was run"
    counts = Counter(each.outcome for each in checked.outcomes)
    return (
        f"{counts['passed']} tests passed, {counts['failed']} failed, {counts['not-tested']} not tested, "
        f"{counts['not-applicable']} do not apply"
    )


def _once(failed: Any) -> list[Any]:
    """The first failure of each rule; the others usually have the same cause."""
    first: dict[str, Any] = {}
    for each in failed:
        first.setdefault(str(each.rule), each)
    return list(first.values())
