"""Drivers of a made-up device, right and deliberately wrong ones, and how to install them as a package would.

``WRONG`` are those that break the contract of drivers: the contract kit must catch each. ``HOSTILE`` are those that
would take the program down: it must continue without them. ``LINGERING`` answer, and hold up the end of their
process; ``CRASHING`` end it from C: ask both in a process of their own. ``install(folder)`` writes all of them as
one distribution, ``wrong-drivers 0.7``, into a folder for ``sys.path`` or ``PYTHONPATH``; two more of it fail or hang
when they are imported. ``Twin`` serves their device on loopback; an address that ends in ``.memory`` needs none.
"""

import inspect
import shutil
from dataclasses import dataclass
from pathlib import Path

from wrong_drivers import crashing, hostile, lingering, meshes, others, untrue
from wrong_drivers.device import DARK, INPUTS, LIT, PORTS, PUCS, Device, Twin
from wrong_drivers.right import (
    LateMesh,
    PortSwitch,
    RightMesh,
    RightPower,
    RightSwitch,
    RightTransponder,
    TimedMesh,
)

__all__ = [
    "CRASHING",
    "DARK",
    "HOSTILE",
    "INPUTS",
    "LINGERING",
    "LIT",
    "PORTS",
    "PUCS",
    "RIGHT",
    "WRONG",
    "Device",
    "Offered",
    "Twin",
    "install",
]

LIGHT = {"mesh", "switch"}
"""The kinds whose device has a twin."""
DISTRIBUTION, VERSION = "wrong-drivers", "0.7"


@dataclass(frozen=True)
class Offered:
    """One driver: the name that an inventory writes after ``driver:``, and its class, whose docstring says it all."""

    name: str
    driver: type

    @property
    def target(self) -> str:
        """What its entry point names."""
        return f"{self.driver.__module__}:{self.driver.__name__}"


def _name(driver: type) -> str:
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in driver.__name__)
    return words.removeprefix("-")


def _drivers_of(module: object) -> dict[str, Offered]:
    found = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    return {_name(each): Offered(_name(each), each) for each in found if hasattr(each, "api_version")}


RIGHT = {
    _name(each): Offered(_name(each), each)
    for each in (RightMesh, TimedMesh, LateMesh, RightSwitch, PortSwitch, RightTransponder, RightPower)
}
WRONG = _drivers_of(meshes) | _drivers_of(others) | _drivers_of(untrue)
HOSTILE = _drivers_of(hostile)
LINGERING = _drivers_of(lingering)
CRASHING = _drivers_of(crashing)
IMPORTED = {
    "fails-at-import": "raise RuntimeError('this driver cannot be imported')\n",
    "needs-a-library": "import acme_optical_line_systems_management_interface_library\n",
    "hangs-at-import": "from wrong_drivers.marks import hang\nhang()\n",
    "exits-at-import": "import sys\nsys.exit(3)\n",
    "prints-at-import": "print('\\x1b[2Jhello {')\nfrom wrong_drivers.right import RightMesh as Driver\n",
}
"""The text of drivers that are wrong before they are asked anything."""


def install(folder: Path) -> None:
    """Write the distribution with all of these drivers, and twins of those of meshes and switches, into a folder."""
    shutil.copytree(Path(__file__).parent, folder / "wrong_drivers", ignore=shutil.ignore_patterns("__pycache__"))
    drivers = [each for offered in (RIGHT, WRONG, HOSTILE, LINGERING, CRASHING) for each in offered.values()]
    points = {each.name: each.target for each in drivers}
    meshes = [each for each in drivers if each.driver.kind in LIGHT]
    twins = dict.fromkeys((*(each.name for each in meshes), *IMPORTED), "wrong_drivers.device:twin")
    for name, text in IMPORTED.items():
        module = f"wrong_{name.replace('-', '_')}"
        (folder / f"{module}.py").write_text(text)
        points[name] = f"{module}:Driver"
    metadata = folder / f"wrong_drivers-{VERSION}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {VERSION}\n")
    (metadata / "entry_points.txt").write_text(_section("lumctl.drivers", points) + _section("lumctl.twins", twins))


def _section(group: str, points: dict[str, str]) -> str:
    return f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
