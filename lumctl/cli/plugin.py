"""``lumctl plugin``: installed drivers and kinds of job control, from package metadata; loaded only on request."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.cli import plugin_check, plugin_doctor
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.devices.drivers import DriverInfo, installed, load
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.offers import JOB_KINDS, PROBES, SHARING, Offer, offered

TEMPLATES = ("mesh", "switch", "transponder", "power", "job", "probe", "sharing")

_PACKAGE = Path(__file__).resolve().parent.parent
# In a wheel the templates are inside the package, in a checkout beside it.
_FOLDERS = (_PACKAGE / "templates", _PACKAGE.parent / "plugins" / "template")
_BUILT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*", "build", "dist")


def template(kind: str) -> Path:
    """The folder of a template.

    Raises:
        UsageError: there is no such template, or this installation lacks it.
    """
    if kind not in TEMPLATES:
        near = nearest(kind, TEMPLATES)
        one_of = f"one of: {', '.join(TEMPLATES)}"
        raise UsageError(f"there is no template {kind!r}", hint=f"did you mean {near}? {one_of}" if near else one_of)
    for folder in _FOLDERS:
        if (folder / kind).is_dir():
            return folder / kind
    raise UsageError(f"this installation of lumctl lacks the template {kind!r}", hint="reinstall lumctl")


def copy_template(kind: str, folder: Path) -> tuple[Path, ...]:
    """Copy a template into a new or empty folder; return the files that were written.

    Raises:
        UsageError: there is no such template, or the folder cannot be written.
        RefusedError: the folder is not empty.
    """
    found = template(kind)
    try:
        # copytree() would write over files of the same names without a word.
        if folder.is_dir() and any(folder.iterdir()):
            raise RefusedError(f"{folder} is not empty; nothing was written", hint="name a folder that does not exist")
        shutil.copytree(found, folder, ignore=_BUILT, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{folder} cannot be written: {reason}", hint="name another folder") from error
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


app = noun_app(NOUNS["plugin"].help)

OFFERED = (
    OutputColumn("NAME", "name"),
    OutputColumn("DISTRIBUTION", "distribution", gives_way=3),
    OutputColumn("VERSION", "version", gives_way=2),
)
UNSEEN: dict[str, Any] = dict.fromkeys(("kind", "capabilities", "proven", "state", "problem"))
LOADED = (
    OutputColumn("KIND", "kind"),
    OutputColumn("CAPABILITIES", "capabilities", gives_way=1),
    OutputColumn("PROVEN", "proven"),
    OutputColumn("STATE", "state"),
    OutputColumn("MODULE", "module", wide=True),
)


@app.callback()
def plugin() -> None:
    """Keep ``list`` as a separate verb: Typer would merge a single verb into the noun."""


@verb(app, "list", pages=True)
def show_installed(
    cx: Invocation,
    check: Annotated[
        bool,
        typer.Option("--check", help="Import each one: show its kind, its capabilities and what it was tested on."),
    ] = False,
) -> None:
    """List the installed drivers, kinds of job control, probes and sharing policies.

    Without --check (or -o wide) none is imported.

    KIND of a driver is the ``kind`` of its devices in the inventory: mesh, switch or power (a management controller of
    hosts). A driver of kind transponder is for transponders of a host, or for a device of ``kind: chassis``. The others
    are job control (the ``kind`` of a job's ``hook``), probe (the ``probe`` of a host) and sharing policy (the
    ``policy`` of ``sharing``).
    """
    drivers, jobs, probes, policies = installed(), offered(JOB_KINDS), offered(PROBES), offered(SHARING)
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([info.name for info in (*drivers, *jobs, *probes, *policies)])
        return
    looked_into = check or cx.out.format is OutputFormat.WIDE
    rows = [_offered(info) | (_loaded(info) if looked_into else UNSEEN) for info in drivers]
    controls = [_offered(info) | (_loaded_control(info) if looked_into else UNSEEN) for info in jobs]
    read_by = [_offered(info) | (_loaded_probe(info) if looked_into else UNSEEN) for info in probes]
    shared_by = [_offered(info) | (_loaded_policy(info) if looked_into else UNSEEN) for info in policies]
    every = (*rows, *controls, *read_by, *shared_by)
    for problem in [row["problem"] for row in every if row["problem"]]:
        cx.out.narrate(f"warning: {problem}")
    if cx.out.structured:
        cx.out.document("plugin", {"drivers": rows, "jobs": controls, "probes": read_by, "sharing": shared_by})
        return
    flat = [row | {"capabilities": ", ".join(row["capabilities"] or ())} for row in every]
    cx.out.table(OFFERED + (LOADED if looked_into else ()), flat)


def _offered(info: DriverInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "distribution": info.distribution,
        "version": info.version,
        "module": info.target,
    }


def _loaded(info: DriverInfo) -> dict[str, Any]:
    """The description of a driver; a driver that does not load is only a warning, because it was not requested."""
    try:
        driver = load(info.name)
    except UsageError as error:
        return {**UNSEEN, "state": "failed", "problem": error.message}
    return {
        "kind": driver.kind,
        "capabilities": sorted(driver.capabilities),
        "proven": getattr(driver, "proven", "not stated"),
        "state": "ok",
        "problem": None,
    }


def _loaded_control(info: Offer) -> dict[str, Any]:
    from lumctl.jobs.control import load

    try:
        load(info.name)
    except UsageError as error:
        return {**UNSEEN, "state": "failed", "problem": error.message}
    return {**UNSEEN, "kind": "job control", "state": "ok"}


def _loaded_probe(info: Offer) -> dict[str, Any]:
    from lumctl.fleet.probe_plugins import load

    try:
        probe = load(info.name)
    except UsageError as error:
        return {**UNSEEN, "state": "failed", "problem": error.message}
    return {**UNSEEN, "kind": "probe", "proven": probe.proven, "state": "ok"}


def _loaded_policy(info: Offer) -> dict[str, Any]:
    from lumctl.spares.decision import load

    try:
        load(info.name)
    except UsageError as error:
        return {**UNSEEN, "state": "failed", "problem": error.message}
    return {**UNSEEN, "kind": "sharing policy", "state": "ok"}


@verb(app, "template")
def copy(
    cx: Invocation,
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="mesh, switch, transponder, power, job, probe or sharing.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.")],
) -> None:
    """Copy a complete plug-in as a starting point: code, a twin of its device, the contract suite. Prints the files."""
    written = [str(each) for each in copy_template(kind, folder)]
    if cx.out.structured:
        cx.out.document("plugin-template", {"kind": kind, "folder": str(folder), "files": written})
        return
    cx.out.names(written)
    page = {"job": "lumctl-job-plugin(7)", "probe": "lumctl-probe(7)", "sharing": "lumctl-inventory(5)"}.get(
        kind, "lumctl-driver(7)"
    )
    cx.out.narrate(f"next: {folder / 'README.md'} and {page}")


plugin_check.register(app)
plugin_doctor.register(app)
