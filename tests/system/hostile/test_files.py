"""Files from elsewhere, made to break who reads them: refused in a line, in bounded time and memory."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from lumctl.inventory.load import example

MOST_BYTES = 2 * 1024**3

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
FILES = {
    "aliases of aliases": ALIASES,
    "nested": "[" * 100_000 + "]" * 100_000,
    "a long number": f"id: {'9' * 6000}\n",
    "the same key twice": "id: 1\nid: 2\n",
    "a tag that runs a program": "!!python/object/apply:os.system ['touch made']\n",
}


WHOLE = [(words, name) for words in ("inventory validate", "runbook lint", "swap apply --yes") for name in FILES]
SAMPLE = [
    ("inventory validate", "aliases of aliases"),
    ("runbook lint", "a long number"),
    ("swap apply --yes", "nested"),
]


@pytest.mark.parametrize(
    ("words", "name"), [*(WHOLE if os.environ.get("LUMCTL_CAMPAIGN") else SAMPLE), ("swap apply --yes", "/dev/zero")]
)
def test_a_file_made_to_break_its_reader_is_refused_in_one_line(tmp_path, words, name):
    path = Path(name)
    if name in FILES:
        path = tmp_path / "hostile.yaml"
        path.write_text(FILES[name])
    ran = subprocess.run(
        [sys.executable, "-m", "lumctl", *words.split(), str(path)],
        env={
            "LUMCTL_INVENTORY": str(example("prototype")),
            "LUMCTL_TARGET": "sim",
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path),
            "XDG_RUNTIME_DIR": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)),
    )
    assert ran.returncode == 2, ran.stderr
    assert "bug" not in ran.stderr
    assert not (tmp_path / "made").exists()
