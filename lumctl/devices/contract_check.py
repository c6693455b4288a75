"""Runs the contract kit on installed drivers, with pytest in its own process, and collects the results.

A driver is tested on the twin that its package offers (entry point group ``lumctl.twins``), or else with its package's
tests that run the kit. Without either, only what needs no device is tested.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lumctl.devices.drivers import DriverInfo, installed
from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest

TWINS = "lumctl.twins"
LIMIT_S = 900.0
"""Time limit for all tests of one driver, in seconds."""
_KIT = "lumctl.devices.testing"
_COMMAND = ("-m", "pytest", "-q", "--tb=short", "-p", f"{_KIT}.outcomes", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one test: ``passed``, ``failed``, ``not-tested`` or ``not-applicable``, and why.

    ``rule`` is the rule of the contract that it tests, ``None`` for a package's own tests; ``also`` are more rules.
    """

    test: str
    title: str
    driver: str | None
    rule: str | None
    outcome: str
    detail: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """The results of testing one driver, and what it was tested against."""

    info: DriverInfo
    against: str
    with_device: bool
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The tests in which the driver broke a rule."""
        return tuple(each for each in self.outcomes if each.outcome == "failed")

    @property
    def not_tested(self) -> tuple[Outcome, ...]:
        """The tests that could not be run."""
        return tuple(each for each in self.outcomes if each.outcome == "not-tested")

    @property
    def verdict(self) -> str:
        """``passed``, ``failed``, or ``incomplete`` if there was no device to test against."""
        if self.failed or not self.outcomes:
            return "failed"
        return "passed" if self.with_device else "incomplete"


def drivers_named(package: str) -> list[DriverInfo]:
    """The drivers of a name: one driver, all of a distribution, or all of an installed source folder.

    Raises:
        UsageError: nothing of that name is installed.
    """
    offers = installed()
    folder = Path(package)
    if folder.is_dir():
        found = [info for info in offers if _is_in(_sources(info.distribution), folder.resolve())]
        if not found:
            raise UsageError(
                f"no installed package has its source in {folder}",
                hint=f"install it next to lumctl: {sys.executable} -m pip install --editable {folder}",
            )
        return found
    found = [info for info in offers if info.name == package] or [i for i in offers if i.distribution == package]
    if not found:
        names = sorted({info.name for info in offers} | {info.distribution for info in offers})
        near = nearest(package, names)
        meant = f"did you mean {near}? " if near else ""
        raise UsageError(f"no driver or package {package!r} is installed", hint=f"{meant}lumctl plugin list")
    return found


def check(info: DriverInfo, tests: Path | None = None) -> Checked:
    """Test a driver with the tests in a file or folder, or else on its twin, or else with its package's tests.

    Raises:
        UsageError: pytest is not installed or does not end.
    """
    if find_spec("pytest") is None:
        raise UsageError("the contract kit needs pytest", hint=f"{sys.executable} -m pip install 'pytest>=8'")
    twins = list(entry_points(group=TWINS, name=info.name))
    wired = [tests] if tests is not None else [] if twins else list(_wired(info))
    if wired:
        outcomes = _of(info, _run(info, [*map(str, wired)], _root(wired[0])))
        if any(each.driver for each in outcomes) or tests is not None:
            return Checked(info, "tests: " + ", ".join(map(str, wired)), with_device=True, outcomes=outcomes)
    outcomes = _of(info, _run(info, ["-c", os.devnull, "--pyargs", f"{_KIT}.twin_contract"], None))
    origin = f" of {twins[0].dist.name} {twins[0].dist.version}" if twins and twins[0].dist else ""
    against = f"twin: {twins[0].value}{origin}" if twins else "no device: its package offers no twin and no tests"
    return Checked(info, against, with_device=bool(twins), outcomes=outcomes)


def _of(info: DriverInfo, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The contract tests of this driver, and those that name no driver."""
    attribute = info.target.rpartition(":")[2]
    return tuple(
        each
        for each in outcomes
        if each.rule is not None and (each.driver is None or each.driver.rpartition(":")[2].endswith(attribute))
    )


def _run(info: DriverInfo, targets: Sequence[str], folder: Path | None) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="lumctl-") as scratch:
        report = Path(scratch) / "tests.jsonl"
        environment = os.environ | {"LUMCTL_CHECK_DRIVER": info.name, "LUMCTL_CHECK_REPORT": str(report)}
        command = [sys.executable, *_COMMAND, *([] if folder else ["--rootdir", scratch]), *targets]
        try:
            done = subprocess.run(  # noqa: S603 - this Python, and the files that the user named
                command, cwd=folder or scratch, env=environment, capture_output=True, text=True, timeout=LIMIT_S,
                check=False, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"the tests of {info.name} did not finish within {LIMIT_S:.0f} s") from error
        lines = report.read_text().splitlines() if report.exists() else []
        found = [json.loads(line) for line in lines]
        begun = [each["test"] for each in found if each["outcome"] == "begun"]
        ended = [Outcome(**each) for each in found if each["outcome"] != "begun"]
        open_tests = set(begun) - {each.test for each in ended}
        if open_tests or (done.returncode not in (0, 1) and not any(each.outcome == "failed" for each in ended)):
            said = " ".join((done.stdout + done.stderr).split())[-300:]
            lost = min(open_tests, default="pytest")
            detail = f"the test process ended (status {done.returncode}) in {lost}: {said}"
            ended.append(Outcome(lost, "the test process ended", None, "errors", "failed", detail))
        return ended


def _wired(info: DriverInfo) -> Iterator[Path]:
    """The test files in a package's source that run the kit on its driver."""
    sources = _sources(info.distribution)
    names = (info.target.partition(":")[0].partition(".")[0], info.target.rpartition(":")[2])
    if sources is None:
        return
    for file in sorted((sources / "tests").rglob("test_*.py")):
        text = file.read_text(errors="replace")
        if _KIT in text and "Contract" in text and all(name in text for name in names):
            yield file


def _sources(package: str) -> Path | None:
    """The source folder that a distribution was installed from, if it still exists."""
    try:
        written = distribution(package).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = urlsplit(json.loads(written)["url"]) if written else None
    folder = Path(unquote(url.path)) if url is not None and url.scheme == "file" else None
    return folder if folder is not None and folder.is_dir() else None


def _is_in(sources: Path | None, folder: Path) -> bool:
    return sources is not None and sources.resolve() == folder


def _root(tests: Path) -> Path:
    """The folder whose pytest settings apply to these tests: the nearest parent with a pyproject.toml."""
    above = [folder for folder in tests.resolve().parents if (folder / "pyproject.toml").exists()]
    return above[0] if above else tests.resolve().parent
