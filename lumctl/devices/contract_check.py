"""Runs the contract kit on installed drivers, with pytest in its own process, and collects the results.

A driver is tested on the twin that its package offers (entry point group ``lumctl.twins``), or else with its package's
tests that run the kit. Without either, only rules that need no device are tested.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lumctl.devices.doctor import examine
from lumctl.devices.drivers import DriverInfo, installed, load
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.offers import JOB_KINDS, Offer, offered

TWINS = "lumctl.twins"
LIMIT_S = 900.0
"""Time limit for all tests of one driver, in seconds."""
_KIT = "lumctl.devices.testing"
LOADING = "loading"
"""The rule that a driver breaks if its package does not import."""
_COMMAND = ("-m", "pytest", "-q", "--tb=short", "-p", f"{_KIT}.outcomes", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one test: ``passed``, ``failed``, ``not-tested`` or ``not-applicable``, and why.

    ``rule`` is the rule of the contract that it tests, ``None`` for a package's own tests; ``also`` are further rules.
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
    loads: bool = True

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
        UsageError: nothing of that name is installed, or it offers no driver.
    """
    offers = installed()
    folder = Path(package)
    found = _named(package, offers)
    if found:
        return found
    if kinds := _named(package, offered(JOB_KINDS)):
        raise _only_kinds(package, kinds)
    if folder.is_dir():
        raise UsageError(
            f"no installed driver package has its source in {folder}",
            hint=f"install it next to lumctl: {sys.executable} -m pip install --editable {folder}",
        )
    if (known := _distribution(package)) is not None:
        raise UsageError(
            f"package {known.name} {known.version} is installed but offers no driver",
            hint="a package offers drivers through the entry point group lumctl.drivers, see lumctl-driver(7)",
        )
    names = sorted({info.name for info in offers} | {info.distribution for info in offers})
    near = nearest(package, names)
    meant = f"did you mean {near}? " if near else ""
    raise UsageError(f"no driver or package {package!r} is installed", hint=f"{meant}lumctl plugin list")


def _named(package: str, offers: Iterable[Offer]) -> list[Offer]:
    """The offers of a name, of a distribution, or of an installed source folder."""
    folder = Path(package)
    if folder.is_dir():
        return [info for info in offers if _is_in(_sources(info.distribution), folder.resolve())]
    # A driver's name goes first, because a package may have the same one.
    return [info for info in offers if info.name == package] or [i for i in offers if i.distribution == package]


def kinds_beside(drivers: Iterable[DriverInfo]) -> list[Offer]:
    """The kinds of job control in the packages of these drivers; they are not checked together with the drivers."""
    packages = {info.distribution for info in drivers}
    return [kind for kind in offered(JOB_KINDS) if kind.distribution in packages]


def _only_kinds(package: str, kinds: Sequence[Offer]) -> UsageError:
    """The error that kinds of job control are not tested here; it says how to test them."""
    first, sources = kinds[0], _sources(kinds[0].distribution)
    names = " and ".join(repr(kind.name) for kind in kinds)
    what = "the kind of job control" if len(kinds) == 1 else "the kinds of job control"
    said = f"{what} {names}, but no driver" if first.name != package else f"{package!r}, a kind of job control"
    tests = [] if sources is None else list(_using(sources, "lumctl.jobs.testing"))
    run = (
        f"{sys.executable} -m pytest {shlex.join(map(str, tests))}"
        if tests
        else "its author tests it with the suite of lumctl.jobs.testing, see lumctl-job-plugin(7)"
    )
    return UsageError(
        f"{first.origin} offers {said}; this command tests drivers only",
        hint=f"lumctl plugin doctor {first.name}; for its contract: {run}",
    )


def check(info: DriverInfo, tests: Path | None = None) -> Checked:
    """Test a driver with the tests in a file or folder, or else on its twin, or else with its package's tests.

    Raises:
        UsageError: pytest is not installed or does not end.
    """
    if find_spec("pytest") is None:
        raise UsageError("the contract kit needs pytest", hint=f"{sys.executable} -m pip install 'pytest>=8'")
    if (problem := _problem(info)) is not None:
        return Checked(info, "nothing: it does not load", with_device=False, outcomes=(problem,), loads=False)
    twins = list(entry_points(group=TWINS, name=info.name))
    wired = [tests] if tests is not None else [] if twins else list(_wired(info))
    if wired:
        outcomes = _of(info, _run(info, [*map(str, wired)], _root(wired[0])))
        # The package's tests may be about another of its drivers; then the kit runs without a device.
        if any(each.driver for each in outcomes) or tests is not None:
            return Checked(info, "tests: " + ", ".join(map(str, wired)), with_device=True, outcomes=outcomes)
    # An empty configuration: no pytest settings of this machine may change the result.
    outcomes = _of(info, _run(info, ["-c", os.devnull, "--pyargs", f"{_KIT}.twin_contract"], None))
    origin = f" of {twins[0].dist.name} {twins[0].dist.version}" if twins and twins[0].dist else ""
    against = f"twin: {twins[0].value}{origin}" if twins else "no device: its package offers no twin and no tests"
    return Checked(info, against, with_device=bool(twins), outcomes=outcomes)


def _problem(info: DriverInfo) -> Outcome | None:
    """Why a driver does not load, and what to do; ``None`` if it does."""
    try:
        load(info.name)
    except UsageError:
        found = [each for each in examine(info) if not each.ok]
        detail = "; ".join(f"{each.text} ({each.advice})" if each.advice else each.text for each in found)
        return Outcome("load", "the driver loads", None, LOADING, "failed", detail)
    return None


def _of(info: DriverInfo, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The contract tests of this driver, and those that name no driver."""
    # By the class itself, because an entry point may name it by an alias or from a module that only imports it.
    driver = load(info.name)
    own = f"{driver.__module__}:{driver.__name__}"
    return tuple(each for each in outcomes if each.rule is not None and each.driver in (None, own))


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
        # A test that began and has no outcome took the whole process with it, for example by os._exit().
        open_tests = set(begun) - {each.test for each in ended}
        # pytest ends with 0 or 1 if it ran the tests to their end, whatever their outcome.
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
    if sources is not None:
        yield from _using(sources, _KIT, *names)


def _using(sources: Path, *names: str) -> Iterator[Path]:
    """The test files in a source folder that subclass a contract and contain all these names."""
    for file in sorted((sources / "tests").rglob("test_*.py")):
        text = file.read_text(errors="replace")
        if "Contract" in text and all(name in text for name in names):
            yield file


def _distribution(package: str) -> Distribution | None:
    try:
        return distribution(package)
    except (PackageNotFoundError, ValueError):
        return None


def _sources(package: str) -> Path | None:
    """The source folder that a distribution was installed from, if it still exists."""
    known = _distribution(package)
    # pip writes this file for a package that is installed from a folder (PEP 610).
    written = known.read_text("direct_url.json") if known is not None else None
    url = urlsplit(json.loads(written)["url"]) if written else None
    folder = Path(unquote(url.path)) if url is not None and url.scheme == "file" else None
    return folder if folder is not None and folder.is_dir() else None


def _is_in(sources: Path | None, folder: Path) -> bool:
    return sources is not None and sources.resolve() == folder


def _root(tests: Path) -> Path:
    """The folder whose pytest settings apply to these tests: the nearest parent with a pyproject.toml."""
    above = [folder for folder in tests.resolve().parents if (folder / "pyproject.toml").exists()]
    return above[0] if above else tests.resolve().parent
