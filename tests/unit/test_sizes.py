import subprocess
import sys
from pathlib import Path

import pytest

SIZES = Path(__file__).parents[1] / "sizes.py"

FILES = {
    "lumctl/__init__.py": "",
    "lumctl/told.py": "from lumctl import routing\n\n\nclass Answer:\n    pass\n",
    "lumctl/routing.py": "def route():\n    from lumctl.told import Answer\n    return Answer()\n",
    "lumctl/taking_back.py": "# Why.\nimport lumctl.other  # noqa: F401\n\n\nclass Answer:\n    pass\n",
    "lumctl/other.py": "class _Answer:\n    pass\n",
    "plugins/lumctl_maker/__init__.py": "from lumctl.routing import route\n",
}


@pytest.fixture
def counted(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = subprocess.run([sys.executable, SIZES, tmp_path, "--list"], capture_output=True, text=True, check=True)
    counts, _, lists = ran.stdout.partition("\n\n")
    return {line[:46].strip(): line[47:] for line in counts.splitlines()}, lists


def test_each_count_names_what_it_says(counted):
    counts, lists = counted
    assert counts["lines"] == "17 (lumctl 16, plug-ins 1)"
    assert counts["files"] == "6 (lumctl 5, plug-ins 1)"
    assert counts["classes"] == "3"
    assert counts["files with one importer"] == "2"  # other and told; routing has two
    assert counts["class names with several meanings"] == "1"
    assert counts["modules named by a gerund"] == "1"
    assert counts["modules named by a participle"] == "1"
    assert counts["import circles"] == "1 (of 2 files)"
    assert counts["comment lines"].startswith("1 ")
    assert "  Answer: lumctl.taking_back, lumctl.told\n" in lists
    assert "  lumctl.routing lumctl.told\n" in lists
