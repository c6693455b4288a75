"""``lumctl plugin``: which device drivers are installed, read from package metadata unless asked to look further."""

from typing import Annotated, Any

import typer

from lumctl.cli import plugin_doctor
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Column, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.devices.drivers import DriverInfo, installed, load
from lumctl.errors import UsageError

app = noun_app(NOUNS["plugin"].help)

OFFERED = (Column("NAME", "name"), Column("DISTRIBUTION", "distribution"), Column("VERSION", "version"))
UNSEEN: dict[str, Any] = dict.fromkeys(("kind", "capabilities", "proven", "state", "problem"))
LOADED = (
    Column("KIND", "kind"),
    Column("CAPABILITIES", "capabilities"),
    Column("PROVEN", "proven"),
    Column("STATE", "state"),
    Column("MODULE", "module", wide=True),
)


@app.callback()
def plugin() -> None:
    """Keep ``list`` a word of its own: Typer would make a single command the whole noun."""


@verb(app, "list")
def show_installed(
    cx: Invocation,
    check: Annotated[
        bool, typer.Option("--check", help="Import each driver: its kind, capabilities, on what it was proven.")
    ] = False,
) -> None:
    """List the installed drivers. Without --check (or -o wide) no plug-in is imported."""
    drivers = installed()
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([info.name for info in drivers])
        return
    looked_into = check or cx.out.format is OutputFormat.WIDE
    rows = [_offered(info) | (_loaded(info) if looked_into else UNSEEN) for info in drivers]
    for problem in [row["problem"] for row in rows if row["problem"]]:
        cx.out.narrate(f"warning: {problem}")
    if cx.out.structured:
        cx.out.document("plugin", {"drivers": rows})
        return
    flat = [row | {"capabilities": ", ".join(row["capabilities"] or ())} for row in rows]
    cx.out.table(OFFERED + (LOADED if looked_into else ()), flat)


def _offered(info: DriverInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "distribution": info.distribution,
        "version": info.version,
        "module": info.target,
    }


def _loaded(info: DriverInfo) -> dict[str, Any]:
    """What the driver says of itself; one that does not load is a warning here, for nobody has named it."""
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


plugin_doctor.register(app)
