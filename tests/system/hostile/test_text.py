"""What hosts and devices say never commands a terminal: every byte that a command prints is looked at."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import yaml

from lumctl.inventory.load import example

SITE = Path(__file__).resolve().parents[2] / "contract" / "hostile_site"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")
"""Nothing of what lumctl prints in a pipe."""
COMMANDED = re.compile("\x1b\\]52|V\x1b\\[77;77H|[\x80-\x9f\u202e\u2066\x7f]")
"""What a hostile word does to a terminal, among the sequences that draw tables and the dashboard."""
LONGEST_S = 30


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "run").mkdir(mode=0o700)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "XDG_STATE_HOME": str(folder / "state"),
        "LUMCTL_INVENTORY": str(example("prototype")),
        "LUMCTL_TARGET": "sim",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(SITE),
        "HOSTILE_NAMES": str(folder / "names"),
        "TERM": "xterm-256color",
        "PAGER": "cat",  # a pager waits for keys
    }
    up = subprocess.run([*LUMCTL, "sim", "up", "--detach"], env=variables, capture_output=True, check=False)
    assert up.returncode == 0, up.stderr
    (folder / "names").touch()
    yield variables
    subprocess.run([*LUMCTL, "sim", "down"], env=variables, capture_output=True, check=True)


LUMCTL = (sys.executable, "-m", "lumctl")


SAMPLE = ("status -o wide", "status -o json", "status -o yaml", "device show s0-gpu0-a", "top --plain")
WHOLE = (
    *SAMPLE,
    "check",
    "device list",
    "device show s0-gpu0-a -o json",
    "device show s0-gpu0-a -o yaml",
    "health explain s0-gpu0-a",
    "health explain s0-gpu0 -o yaml",
    "top --plain",
)


@pytest.mark.parametrize("words", WHOLE if os.environ.get("LUMCTL_CAMPAIGN") else SAMPLE)
def test_no_control_character_of_a_host_or_device_is_printed(environment, words):
    told = "overview\nfindings\nlinks\nquit\n" if words.startswith("top") else None
    ran = subprocess.run(
        [*LUMCTL, *words.split()], env=environment, input=told, capture_output=True, text=True, check=False
    )
    assert ran.stdout
    assert not UNSAFE.findall(ran.stdout)
    assert not UNSAFE.findall(ran.stderr)
    if words.endswith(("json", "yaml")):  # a script gets what was said
        said = yaml.safe_load(ran.stdout) if words.endswith("yaml") else json.loads(ran.stdout)
        assert "\u202e" in json.dumps(said, ensure_ascii=False)


@pytest.mark.parametrize("words", [("status",), ("top", "--interval", "60")])
def test_a_terminal_gets_none_either(environment, words):
    assert not COMMANDED.findall(on_a_terminal(environment, words))


def on_a_terminal(environment, words):
    """What a command writes on a terminal; the dashboard is left once it shows what a host said."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    with subprocess.Popen(
        [*LUMCTL, *words], env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = bytearray()
        panes = iter(b"2345678")
        ends = time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            if select.select([ours], [], [], 0.3)[0]:
                try:
                    shown += os.read(ours, 65536)
                except OSError:  # the terminal's other end is closed
                    break
            elif process.poll() is not None:  # what it has left behind keeps the terminal open
                break
            elif words[0] == "top" and b"live" in shown:
                os.write(ours, b"q" if b"aGk=" in shown else bytes([next(panes)]))
        process.kill()
        os.close(ours)
    assert b"aGk=" in shown
    return shown.decode(errors="surrogateescape")
