"""The fixtures of a probe: outputs in the real format, each with the expected readings and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lumctl.fleet.parsers.fields import whole_pci
from lumctl.fleet.probe_api import AcceleratorProbe
from lumctl.fleet.probe_plugins import file_of

EXPECTED = "expected.yaml"
KERNEL_LOG = "kernel.log"
_STATES = frozenset({"ok", "degraded", "failed", "unknown"})
_FIELDS = frozenset({"state", "rules", "readings"})


class FixtureError(Exception):
    """A fixture is missing or invalid; the message names the file."""


@dataclass(frozen=True, slots=True)
class ExpectedVerdict:
    """The verdict expected for one accelerator: its state, rules that must have findings, and some of its readings."""

    state: str
    rules: tuple[str, ...] = ()
    readings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Fixture:
    """One case: files by their names in a capture, and the expected verdicts by PCI address."""

    name: str
    files: Mapping[str, str]
    expected: Mapping[str, ExpectedVerdict]


def fixtures_of(probe: type[AcceleratorProbe]) -> tuple[Fixture, ...]:
    """All fixtures of a probe, by name.

    Raises:
        FixtureError: there is no fixture, or a fixture is invalid.
    """
    folder = file_of(probe, probe.fixtures)
    cases = sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
    if not cases:
        raise FixtureError(f"{folder} contains no fixture: a folder with {EXPECTED} and a file for each command")
    return tuple(_read(case, {command.file for command in probe.commands}) for case in cases)


def _read(folder: Path, known: set[str]) -> Fixture:
    path = folder / EXPECTED
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        names = sorted(each.name for each in folder.iterdir() if each.name != EXPECTED)
        files = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise FixtureError(f"{path}: {error}") from error
    listed = document.get("accelerators") if isinstance(document, dict) else None
    if not isinstance(listed, dict) or not listed:
        raise FixtureError(f"{path}: expected accelerators, by PCI address")
    strange = [name for name in files if name not in {*known, KERNEL_LOG}]
    if strange:
        raise FixtureError(f"{folder / strange[0]}: no command of the probe has this file")
    return Fixture(folder.name, files, {_pci(key, path): _expected(entry, path) for key, entry in listed.items()})


def _pci(key: object, path: Path) -> str:
    pci = whole_pci(str(key))
    if pci is None:
        raise FixtureError(f'{path}: found {key!r}, expected a PCI address in quotes, such as "0000:c1:00.0"')
    return pci


def _expected(entry: Any, path: Path) -> ExpectedVerdict:
    if not isinstance(entry, dict) or entry.get("state") not in _STATES or entry.keys() - _FIELDS:
        raise FixtureError(f"{path}: found {entry!r}, expected state (ok, degraded, ...), rules and readings")
    return ExpectedVerdict(entry["state"], tuple(entry.get("rules") or ()), entry.get("readings"))
