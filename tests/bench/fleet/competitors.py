"""A virtual environment for the tools that lumctl is measured against, apart from lumctl's own; made once and kept."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_FOLDER = Path(__file__).resolve().parents[3] / "build" / "bench-fleet" / "venv"


def competitors_python() -> str:
    """The Python that has them, after they were installed if need be."""
    python, stamp = _FOLDER / "bin" / "python", _FOLDER / "installed"
    wanted = hashlib.sha256(_REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing what lumctl is measured against into {_FOLDER}", file=sys.stderr)
        shutil.rmtree(_FOLDER, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", _FOLDER], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--requirement", _REQUIREMENTS], check=True)
        stamp.write_text(wanted)
    return str(python)
