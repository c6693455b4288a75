"""A plug-in of pytest that writes down what became of each test: ``-p lumctl.devices.testing.collecting``.

It writes JSON into the file that ``$LUMCTL_CHECK_REPORT`` names.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumctl.devices.testing.rules import NOT_TESTED, ContractBrokenError, one_line

FIXTURES = ("mesh", "switch", "transponder", "power")
_tests: list[dict[str, Any]] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note how a test ended: in its call, or before that."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    function = getattr(item, "function", None)
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
        detail = f"{type(error).__name__}: {one_line(error)}"
    _tests.append(
        {
            "test": item.nodeid.rpartition("/")[2],
            "title": item.name.removeprefix("test_").replace("_", " "),
            "driver": _driver(item),
            "rule": rule,
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
            return f"{type(driver).__module__}:{type(driver).__name__}"
    return None


def pytest_sessionfinish() -> None:
    """Write it all down."""
    Path(os.environ["LUMCTL_CHECK_REPORT"]).write_text(json.dumps(_tests))
