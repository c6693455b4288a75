"""The doctor of drivers: declared and not there, there and not declared, imported and missing."""

import pytest

from lumctl.devices.doctor import examine
from lumctl.devices.drivers import few, installed, not_installed
from lumctl.inventory.load import example, load_inventory

WHOLE = """
from lumctl.devices.base import BaseMesh
from lumctl.devices.types import Capability

class Driver(BaseMesh):
    api_version = 1
    capabilities = frozenset({Capability.READ_TEMPERATURE})
    proven = "firmware 7.2"
    def identify(self): return ""
    def stage(self, changes): ...
    def compare(self, staged): return ()
    def commit(self, staged, *, revert_after_s=None): ...
    def confirm(self, receipt): ...
    def roll_back(self, receipt): ...
    def read_temperature(self): return 20.0
"""


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Put a package with one driver on the path."""

    def put(text, *, requires=()):
        monkeypatch.syspath_prepend(str(tmp_path))
        package = tmp_path / "acme_driver"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(text)
        metadata = tmp_path / "acme-1.0.dist-info"
        metadata.mkdir()
        wanted = "".join(f"Requires-Dist: {line}\n" for line in requires)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n{wanted}")
        (metadata / "entry_points.txt").write_text("[lumctl.drivers]\nacme = acme_driver:Driver\n")
        (info,) = [each for each in installed() if each.name == "acme"]
        return examine(info)

    yield put
    import sys

    sys.modules.pop("acme_driver", None)


def ill(findings):
    return [finding for finding in findings if not finding.ok]


def test_a_driver_that_is_what_it_says_is_well(offer):
    found = offer(WHOLE)
    assert ill(found) == []
    assert [finding.text for finding in found] == [
        "of kind mesh, driver API 1: read-temperature",
        "proven on: firmware 7.2",
    ]


def test_our_own_drivers_are_well():
    for info in installed():
        assert ill(examine(info)) == [], info.name


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{Capability.READ_TEMPERATURE}", "{Capability.READ_POWERS}", "declares read-powers but does not implement"),
        ("{Capability.READ_TEMPERATURE}", "{Capability.READ_POWERS}", "read_temperature() but does not declare"),
        ("{Capability.READ_TEMPERATURE}", "{Capability.SET_POWER}", "declares set-power, which a mesh does not have"),
        ('proven = "firmware 7.2"', "", "does not state what it was tested on"),
        ('proven = "firmware 7.2"', 'proven = ""', "does not state what it was tested on"),
        ("api_version = 1", "api_version = 2", "driver API version 2"),
        ("    api_version = 1\n", "", "has no api_version of its own"),
        ("class Driver", "import no_such_library\nclass Driver", "it needs no_such_library, which is not installed"),
        ("class Driver", "raise RuntimeError('boom')\nclass Driver", "does not import: RuntimeError: boom"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(offer, old, new, says):
    found = ill(offer(WHOLE.replace(old, new)))
    assert any(says in finding.text for finding in found), found
    assert all(finding.advice for finding in found)


def test_a_library_of_an_extra_is_told_by_the_extra(offer):
    found = ill(offer(f"import no_such_library\n{WHOLE}", requires=["no-such-library>=2; extra == 'fast'"]))
    assert found[0].advice.endswith("pip install 'acme[fast]'")


def test_a_library_that_is_required_is_told_as_it_is_required(offer):
    found = ill(offer(f"import no_such_library\n{WHOLE}", requires=["other", "No.Such_Library <3,>=2"]))
    assert found[0].advice.endswith("pip install 'No.Such_Library <3,>=2'")


def test_a_module_is_not_taken_for_a_package_of_its_name(offer):
    found = ill(offer(f"import no_such_library\n{WHOLE}"))
    assert found[0].advice == "acme does not declare which package provides it; ask its author"


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import no_such_library\nexcept ImportError:\n    no_such_library = None\n" + WHOLE,
        "try:\n    import no_such_library as fast\nexcept Exception:\n    import json as fast\n" + WHOLE,
        WHOLE.replace("return 20.0", "\n        try: import no_such_library\n        except ImportError: return 20.0"),
    ],
)
def test_what_it_goes_on_without_is_not_missed(offer, text):
    assert [finding.shown for finding in offer(text)] == ["ok", "ok"]


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("return 20.0", "import no_such_library"),
        WHOLE.replace(
            "return 20.0",
            "\n        try: import no_such_library\n        except ImportError as error: raise OSError from error",
        ),
    ],
)
def test_what_some_calls_import_is_said_and_is_no_failure(offer, text):
    found = offer(text)
    assert ill(found) == []
    assert [(each.shown, each.text) for each in found][-1] == (
        "degraded",
        "some of its calls import no_such_library, which is not installed",
    )


def test_modules_that_the_driver_does_not_import_are_not_judged(offer, tmp_path):
    inner = tmp_path / "acme_driver"
    inner.mkdir()
    (inner / "used.py").write_text("import no_such_library\n")
    (inner / "other_driver.py").write_text("import neither_here\n")
    found = ill(offer(f"from .used import *\n{WHOLE}"))
    assert any("no_such_library" in each.text for each in found)
    assert not any("neither_here" in each.text for each in found)


def test_what_is_imported_for_types_only_is_not_missed(offer):
    found = offer("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such_library\n" + WHOLE)
    assert ill(found) == []


def test_drivers_that_an_inventory_names_and_nobody_has(tmp_path):
    file = tmp_path / "rack.yaml"
    file.write_text(example("prototype").read_text().replace("driver: smartlight", "driver: smartlihgt"))
    ((name, (text, advice)),) = not_installed(load_inventory(file)).items()
    assert (name, text) == ("smartlihgt", f"{file} uses it for mesh, but it is not installed here")
    assert "did you mean smartlight?" in advice
    assert "hostport" in advice
    assert not_installed(load_inventory(example("prototype"))) == {}


def test_many_users_are_told_by_a_few():
    assert few(f"m{n}-{c}" for c in "abcde" for n in range(3)) == "m[0-2]-a, m[0-2]-b, m[0-2]-c and 2 more"
