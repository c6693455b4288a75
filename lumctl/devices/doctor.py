"""Checks installed drivers: each implements what it declares, and the packages that it imports are installed.

Imports are found by parsing a plug-in's sources; nothing is imported for that.
"""

import ast
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lumctl.devices import base
from lumctl.devices.drivers import API_VERSION, DriverInfo, load
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Capability
from lumctl.errors import UsageError

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


class Need(IntEnum):
    """How strongly a plug-in needs a package; a smaller value is a weaker need."""

    OPTIONAL = 0
    """The plug-in works without it: it catches the import error and uses a replacement."""
    LATER = 1
    """Some of its calls import it when they run."""
    ALWAYS = 2
    """The plug-in imports it when the plug-in itself is imported."""


def imported(module: str) -> dict[str, Need]:
    """The top-level names of other packages that a module imports, directly or through modules of its own package.

    Imports for type checkers only are omitted.
    """
    own = module.partition(".")[0]
    found: dict[str, Need] = {}
    seen: dict[str, Need] = {}
    waiting = [(module, Need.ALWAYS)]
    while waiting:
        name, need = waiting.pop()
        # A module is read again only if it is needed more than before. This also ends circles of imports.
        if seen.get(name, -1) >= need:
            continue
        seen[name] = need
        package, file = _file(name, own)
        if file is None:
            continue
        # Importing a module also runs the __init__ of each package above it.
        if "." in name:
            waiting.append((name.rpartition(".")[0], need))
        for target, how in _imports(file, package):
            least = min(need, how)
            if target.partition(".")[0] == own:
                waiting.append((target, least))
            else:
                outer = target.partition(".")[0]
                found[outer] = max(found.get(outer, least), least)
    return found


def _file(name: str, own: str) -> tuple[str, Path | None]:
    """The package that a module's relative imports start from, and the module's file; found without importing it."""
    try:
        spec = find_spec(own)
    except (ImportError, ValueError):
        return "", None
    if spec is None or spec.origin is None:
        return "", None
    origin = Path(spec.origin)
    if name == own:
        return own, origin
    if origin.name != "__init__.py":
        return "", None
    inner = origin.parent.joinpath(*name.split(".")[1:])
    if (inner / "__init__.py").exists():
        return name, inner / "__init__.py"
    return name.rpartition(".")[0], inner.with_suffix(".py") if inner.with_suffix(".py").exists() else None


def _imports(file: Path, package: str) -> Iterator[tuple[str, Need]]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # another check reports a module that does not import
    yield from _walk(tree.body, Need.ALWAYS, package)


def _walk(body: list[ast.stmt], need: Need, package: str) -> Iterator[tuple[str, Need]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, need) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            yield base, need
            # An imported name may be a module. No name begins with \0, so without a package none is taken for one.
            yield from ((f"{base}.{alias.name}", need) for alias in node.names if base.startswith(package or "\0"))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(node.body, min(need, Need.LATER), package)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk(node.orelse, need, package)
        elif isinstance(node, ast.Try):
            fallback = any(_goes_on(handler) for handler in node.handlers)
            yield from _walk(node.body, Need.OPTIONAL if fallback else need, package)
            for handler in node.handlers:
                # A replacement for the missing package: needed only if that is missing.
                yield from _walk(handler.body, Need.OPTIONAL if fallback else need, package)
            yield from _walk([*node.orelse, *node.finalbody], need, package)
        else:
            for inner in ("body", "orelse"):
                held = getattr(node, inner, None)
                if isinstance(held, list):
                    yield from _walk(held, need, package)


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module that names are imported from, as an absolute name."""
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches a failed import and uses a replacement; if it raises, the package stays required."""
    named = {"ImportError"} if handler.type is None else {
        each.id for each in ast.walk(handler.type) if isinstance(each, ast.Name)
    }  # fmt: skip
    raises = any(isinstance(each, ast.Raise) for statement in handler.body for each in ast.walk(statement))
    return bool(named & _CAUGHT) and not raises


_CALLS: dict[str, dict[Capability, tuple[str, ...]]] = {
    "mesh": {
        Capability.READ_STATES: ("read_states",),
        Capability.ATOMIC: (),
        Capability.CONFIRM_TIMER: ("confirm",),
        Capability.READ_POWERS: ("read_powers",),
        Capability.READ_TEMPERATURE: ("read_temperature",),
        Capability.READ_ALARMS: ("read_alarms",),
        Capability.PROGRESS: ("read_progress",),
    },
    "switch": {
        Capability.READ_STATES: ("read_circuits",),
        Capability.ATOMIC: (),
        Capability.CONFIRM_TIMER: ("confirm",),
        Capability.READ_POWERS: ("read_powers",),
        Capability.READ_TEMPERATURE: ("read_temperature",),
        Capability.READ_ALARMS: ("read_alarms",),
        Capability.PROGRESS: ("read_progress",),
        Capability.READ_PORTS: ("read_ports",),
        Capability.SET_PORTS: ("set_port",),
        Capability.SET_LABELS: ("set_label",),
    },
    "transponder": {
        Capability.READ_OPTICS: ("read_optics",),
        Capability.READ_NEIGHBOURS: ("announce", "neighbours"),
        Capability.SET_TRANSMIT: ("set_transmit", "transmitting"),
        Capability.SET_CHANNEL: ("set_channel",),
        Capability.SET_OUTPUT_POWER: ("set_output_power",),
    },
    "power": {Capability.SET_POWER: ("set_power",), Capability.RESET: ("reset",)},
}
"""The capabilities that a driver of each kind may declare, and the calls that each allows."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One result of checking a driver. ``advice`` says what to do if the check failed.

    ``state`` overrides the displayed state, by default ``ok`` or ``failed``; ``disabled`` means not checked.
    """

    driver: str
    ok: bool
    text: str
    advice: str = ""
    state: str = ""

    @property
    def shown(self) -> str:
        """The state to display: ok, degraded, failed or disabled."""
        return self.state or ("ok" if self.ok else "failed")


def examine(info: DriverInfo) -> list[DoctorFinding]:
    """Everything that can be checked on a driver without a device."""
    try:
        driver = load(info.name)
    except UsageError as error:
        missing = lacking(info)
        # The missing package is the cause, and its finding has the command that installs it.
        if any(not each.ok for each in missing) and "ModuleNotFoundError" in error.message:
            return missing
        return [DoctorFinding(info.name, ok=False, text=error.message, advice=error.hint or ""), *missing]
    able = ", ".join(sorted(map(str, driver.capabilities))) or "no capability beyond the required ones"
    found = [DoctorFinding(info.name, ok=True, text=f"of kind {driver.kind}, driver API {API_VERSION}: {able}")]
    found += _declared(info, driver)
    proven = str(getattr(driver, "proven", "") or "not stated")
    if proven == base.BaseMesh.proven:
        advice = "a driver states what it was tested on, such as `firmware 7.2`: do not trust one that does not"
        found.append(DoctorFinding(info.name, ok=False, text="it does not state what it was tested on", advice=advice))
    else:
        found.append(DoctorFinding(info.name, ok=True, text=f"proven on: {proven}"))
    missing = lacking(info)
    libraries = sorted(name for name in imported(_module(info)) if _is_library(name) and _is_there(name))
    if libraries and not missing:
        found.append(
            DoctorFinding(
                info.name, ok=True, text=f"all libraries that it imports are installed: {', '.join(libraries)}"
            )
        )
    return found + missing


def _declared(info: DriverInfo, driver: type[Driver]) -> Iterator[DoctorFinding]:
    """Findings on capabilities without an implementation, and on calls that are unused because not declared."""
    calls, author = _CALLS[driver.kind], f"report it to the author of {info.distribution}"
    for capability in sorted(driver.capabilities):
        if capability not in calls:
            text = f"it declares {capability}, which a {driver.kind} does not have"
            yield DoctorFinding(info.name, ok=False, text=text, advice=author)
        for call in calls.get(capability, ()):
            if _refuses(driver, call):
                text = f"it declares {capability} but does not implement {call}()"
                yield DoctorFinding(info.name, ok=False, text=text, advice=author)
    for capability, names in calls.items():
        optional = [name for name in names if hasattr(_BASES[driver.kind], name)]
        if capability in driver.capabilities or not optional or not issubclass(driver, _BASES[driver.kind]):
            continue  # a driver that does not use the base class implements every call, some as refusals
        if not any(_refuses(driver, name) for name in optional) and _static(driver):
            text = f"it implements {', '.join(f'{name}()' for name in optional)} but does not declare {capability}"
            yield DoctorFinding(info.name, ok=False, text=f"{text}; so lumctl never calls it", advice=author)


def _static(driver: type[Driver]) -> bool:
    """Whether the class alone declares a capability; otherwise the driver may find its capabilities when opened."""
    return bool(driver.capabilities)


_BASES: dict[str, type[Any]] = {
    "mesh": base.BaseMesh,
    "switch": base.BaseSwitch,
    "transponder": base.BaseTransponder,
    "power": base.BasePower,
}


def _refuses(driver: type[Driver], call: str) -> bool:
    """Whether a call is still the refusing one of the base class."""
    refusing = getattr(_BASES[driver.kind], call, None)
    return refusing is not None and getattr(driver, call, None) is refusing


def lacking(info: DriverInfo) -> list[DoctorFinding]:
    """Findings on missing libraries that a driver's package imports; optional libraries are omitted."""
    found = []
    for name, need in sorted(imported(_module(info)).items()):
        if need is Need.OPTIONAL or _is_there(name):
            continue
        if need is Need.LATER:
            text = f"some of its calls import {name}, which is not installed"
            found.append(DoctorFinding(info.name, ok=True, text=text, advice=_advice(info, name), state="degraded"))
        else:
            text = f"it needs {name}, which is not installed"
            found.append(DoctorFinding(info.name, ok=False, text=text, advice=_advice(info, name)))
    return found


def _module(info: DriverInfo) -> str:
    return info.target.partition(":")[0]


def _is_library(name: str) -> bool:
    return name not in sys.stdlib_module_names and name != "lumctl"


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _advice(info: DriverInfo, module: str) -> str:
    """The shell command that installs the package of a missing module; if the package is unknown, whom to ask.

    It uses the plug-in's own requirement for the module: an extra of the package, or the versions required. It never
    guesses a package from the module's name, because anyone can register an unrelated package under that name.
    """
    try:
        wanted = requires(info.distribution) or []
    except PackageNotFoundError:
        wanted = []
    offered = set(map(_canonical, (module, _OTHERWISE.get(module, module), *packages_distributions().get(module, ()))))
    for line in wanted:
        requirement, _, marker = line.partition(";")
        name = re.split(r"[\s\[(<>=!~]", requirement.strip(), maxsplit=1)[0]
        if _canonical(name) not in offered:
            continue
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        return pip(f"{info.distribution}[{extra[1]}]" if extra else requirement.strip())
    author = f"{info.distribution} does not declare which package provides it; ask its author"
    known = _OTHERWISE.get(module)
    return pip(known) if known else author


def pip(requirement: str) -> str:
    """The command that installs a requirement into the environment that lumctl runs in."""
    beside = Path(sys.executable).parent / "pip"
    found = shutil.which("pip")
    same = found is not None and Path(found).absolute() == beside.absolute()
    return shlex.join([*(["pip"] if same else [sys.executable, "-m", "pip"]), "install", requirement])


_OTHERWISE = {
    "yaml": "PyYAML",
    "serial": "pyserial",
    "usb": "pyusb",
    "OpenSSL": "pyOpenSSL",
    "zmq": "pyzmq",
    "grpc": "grpcio",
    "dateutil": "python-dateutil",
    "google.protobuf": "protobuf",
}
"""Packages by the name of their module, where the two names differ."""


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
