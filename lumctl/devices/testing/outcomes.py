"""A pytest plug-in that records the outcome of each test: ``-p lumctl.devices.testing.outcomes``.

It appends lines of JSON to the file that ``$LUMCTL_CHECK_REPORT`` names.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumctl import printable
from lumctl.devices.contained_driver import class_of
from lumctl.devices.testing.rules import NOT_TESTED, ContractBrokenError, one_line
from lumctl.devices.testing.time_limit import NeverEndedError

FIXTURES = ("mesh", "switch", "transponder", "power")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record the start of a test, which identifies a test that ends its process."""
    _note({"test": nodeid, "outcome": "begun"})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record that a file of tests does not import: pytest itself cuts the reason to the width of a terminal."""
    if report.failed:
        said = [line.removeprefix("E ").strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
        detail = printable.one_line(f"{report.nodeid}: {said[-1] if said else report.longreprtext}", 300)
        _note(
            {
                "test": report.nodeid,
                "title": "its tests import",
                "driver": None,
                "rule": "loading",
                "also": [],
                "outcome": "failed",
                "detail": detail,
            }
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Record the outcome of a test, in its set-up or its call."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    function = getattr(item, "function", None)
    # One outcome for each test: that of its call, or of a set-up that failed or skipped it.
    if call.when != "call" and (report.passed or call.when == "teardown"):
        return
    rule, detail = getattr(function, "contract_rule", None), ""
    ended: str = report.outcome
    error = call.excinfo.value if call.excinfo is not None else None
    if report.skipped:
        detail = one_line(error) if error is not None else ""
        ended = "not-tested" if detail.startswith(NOT_TESTED) else "not-applicable"
        detail = detail.removeprefix(NOT_TESTED)
    elif isinstance(error, ContractBrokenError):
        rule, detail = error.rule, error.found
    elif error is not None:
        if call.when == "setup" and rule is not None:
            rule = "deadline" if isinstance(error, NeverEndedError) else "errors"
        detail = f"{type(error).__name__}: {one_line(error)}"
    _note(
        {
            "test": item.nodeid,
            "title": item.name.removeprefix("test_").replace("_", " "),
            "driver": _driver(item),
            "rule": rule,
            "also": list(getattr(function, "contract_also", ())) if ended == "passed" else [],
            "outcome": ended,
            "detail": detail,
        }
    )


def _driver(item: pytest.Item) -> str | None:
    """The class of the driver under test, as an entry point names it."""
    for name in FIXTURES:
        under_test = getattr(item, "funcargs", {}).get(name)
        driver = getattr(under_test, "driver", None)
        if driver is not None:
            made = class_of(driver)
            return f"{made.__module__}:{made.__name__}"
    return None


def _note(what: dict[str, Any]) -> None:
    with Path(os.environ["LUMCTL_CHECK_REPORT"]).open("a") as report:
        report.write(f"{json.dumps(what)}\n")
