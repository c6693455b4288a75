"""What a figure ends with: lines that pass or fail, where and when it was measured, and all of it as JSON."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "build" / "bench-fleet"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise held against what was measured. ``value`` is ``None`` where nothing was."""

    promise: str
    value: float | None
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def passed(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        value = "not measured" if self.value is None else f"{self.value:.3g}{self.unit}"
        word = "----" if self.value is None else "PASS" if self.passed else "FAIL"
        return f"{word}  {self.promise:62} {value:>14}   {sign} {self.limit:g}{self.unit}"


def table(rows: Iterable[tuple[object, ...]]) -> str:
    """Columns, the first to the left and the others to the right."""
    texts = [tuple(map(str, row)) for row in rows]
    widths = [max(len(row[at]) for row in texts) for at in range(len(texts[0]))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in texts
    )


def finish(figure: str, measured: Mapping[str, object], verdicts: list[Verdict], path: Path | None) -> int:
    """Print the verdicts and where this was, write the JSON; the exit status: 0 if all that is promised holds."""
    where = machine()
    print()
    for verdict in verdicts:
        print(verdict)
    print(f"\n{where['date']}  {where['cpu']}, {where['cores']} cores, Linux {where['kernel']}, {where['openssh']}")
    path = path or FOLDER / f"{figure}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [
        {"promise": v.promise, "value": v.value, "limit": v.limit, "unit": v.unit, "passed": v.passed} for v in verdicts
    ]
    document = {"figure": figure, "machine": where, **measured, "verdicts": told}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def machine() -> dict[str, object]:
    """The machine, its versions and the time."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "openssh": ssh.partition(",")[0].strip(),
        "load": os.getloadavg()[0],
        "tools": _versions(),
    }


def _versions() -> dict[str, str]:
    text = Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8")
    return {name: version for name, _, version in (line.partition("==") for line in text.splitlines()) if version}
