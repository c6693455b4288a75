"""``lumctl plugin check`` for probes: the kit of lumctl.fleet.testing, in a process of its own."""

import json
import subprocess
import sys
from typing import Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import Column, OutputFormat
from lumctl.devices.drivers import installed
from lumctl.errors import ExitCode, UsageError
from lumctl.offers import PROBES, Offer, offered

_LIMIT_S = 600.0
_COLUMNS = (Column("RULE", "rule"), Column("RESULT", "state"), Column("TEXT", "text"))


def check_probes(cx: Invocation, package: str) -> int | None:
    """Check the probe of a name, or all of a package that offers no driver; ``None`` if there is none."""
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
    command = [sys.executable, "-m", "lumctl.fleet.testing", info.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the tests of {info.name} did not finish within {_LIMIT_S:.0f} s") from error
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rule"')]
    if done.returncode != 0 or not rows:
        said = " ".join(done.stderr.split())[-300:]
        rows.append({"rule": "loading", "text": "the probe loads and its tests end", "broken": said or "no result"})
    return [row | {"state": "failed" if row["broken"] else "ok"} for row in rows]
