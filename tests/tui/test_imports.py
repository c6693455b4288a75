"""Each module of the dashboard can be imported alone: a script or a test needs no other one before it."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import lumctl.tui
names = [m.name for m in pkgutil.walk_packages(lumctl.tui.__path__, "lumctl.tui.") if m.name != "lumctl.tui.web"]
for name in names:
    for loaded in [each for each in sys.modules if each.startswith("lumctl.tui")]:
        del sys.modules[loaded]
    importlib.import_module(name)
print(len(names))
"""


def test_every_module_of_the_dashboard_can_be_imported_first():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert ended.stderr == ""
    assert int(ended.stdout) > 60
