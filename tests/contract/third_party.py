"""Plug-ins that a stranger ships, installed as packages, and lumctl beside them on a simulator of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forked_commands import run_lumctl

PLUGIN = Path(__file__).parents[1] / "system" / "rehearsal" / "acme_lab"


def install(folder: Path, entry_points: str) -> Path:
    """Install the package ``acme-lab 2.5`` with these entry points into a folder."""
    shutil.copytree(PLUGIN, folder / "acme_lab", ignore=shutil.ignore_patterns("__pycache__"))
    about = folder / "acme_lab-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lab\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text(entry_points)
    return folder


class Lumctl:
    """lumctl with these packages installed, on the simulator of an inventory; each call states the exit code."""

    def __init__(self, inventory: Path, packages: Path, runtime: str) -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(inventory.parent),
            "PYTHONPATH": str(packages),
            "LUMCTL_STATE": str(inventory.parent / "state"),
            "LUMCTL_TARGET": "sim",
            "LUMCTL_INVENTORY": str(inventory),
            "XDG_RUNTIME_DIR": runtime,
        }

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_lumctl(*words, env=self._environment, timeout=None)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def begun(self, *words: str) -> subprocess.Popen[str]:
        """A command that continues."""
        return subprocess.Popen(
            [sys.executable, "-m", "lumctl", *words], env=self._environment, stderr=subprocess.PIPE, text=True
        )


@contextmanager
def shell(inventory: Path, packages: Path, runtime: str) -> Iterator[Lumctl]:
    """lumctl with these packages; the simulator ends with the block."""
    lumctl = Lumctl(inventory, packages, runtime)
    try:
        yield lumctl
    finally:
        lumctl("sim", "down")
