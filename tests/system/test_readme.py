"""The README's commands, extracted from it and run in their order, as a new user types them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from terminals import terminal

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
UNSET = ("LUMCTL_", "COLUMNS", "LINES")
"""What a user's own environment does not have: a terminal tells its size itself."""
UNHEALTHY = {"lumctl check": 2}
"""Commands that report the fault by their exit code when they run first; later ones find it acknowledged."""


def commands(heading: str) -> list[str]:
    """The indented lines of a section, without their comments."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^    (\S.*)$", section, re.MULTILINE)
    return [re.sub(r"\s+#\s.*", "", line) for line in lines]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


@pytest.fixture
def short_folder():
    """Sockets live there: pytest's own folders have names too long for them."""
    with TemporaryDirectory(prefix="lumctl-") as folder:
        yield folder


@pytest.mark.timeout(300)
def test_ten_minutes_with_the_simulator(tmp_path, short_folder):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(UNSET)},
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": short_folder,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    found: dict[str, str] = {}
    ran = []
    # Some commands write a file where they are run.
    (tmp_path / "inventories").symlink_to(ROOT / "inventories")
    try:
        for command in commands("Ten minutes with the simulator"):
            if command.startswith("export "):
                settings = shlex.split(command)[1:]
                environment |= dict(s.split("=", 1) for s in settings if not s.startswith("PATH="))
                continue
            words = [found.get(word, word) for word in shlex.split(command)]
            assert words[0] == "lumctl"
            ran.append(words[1])
            if words[1] == "top":
                with terminal(
                    ["lumctl", "-i", str(ROOT / "inventories/rack64.yaml"), *words[1:]], environment
                ) as dashboard:
                    dashboard.see("Racks", "live")
                    dashboard.press("q", "q quit")
                    assert dashboard.code() == 0
                continue
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == UNHEALTHY.get(command, 0), (command, done.stdout[-2000:], done.stderr[-2000:])
            if words[1:3] == ["swap", "plan"]:
                found["PLAN"] = re.search(r"lumctl swap apply (\S+)", done.stdout + done.stderr)[1]
            elif words[1:3] == ["swap", "apply"]:
                found["RUN"] = re.search(r"\bswap-\d+\b", done.stdout + done.stderr)[0]
        assert {"check", "swap", "job", "runbook", "top"} <= set(ran)
    finally:
        subprocess.run(["lumctl", "sim", "down"], cwd=tmp_path, env=environment, capture_output=True, check=False)
