import subprocess
import sys
from dataclasses import replace

import pytest

from lumctl.devices import drivers
from lumctl.devices.drivers import installed, load
from lumctl.errors import UsageError


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Install a package that offers a driver, as pip would leave it on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(distribution, name, text, attribute="Driver"):
        module = distribution.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(text)
        metadata = tmp_path / f"{module}-2.5.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.5\n")
        (metadata / "entry_points.txt").write_text(f"[lumctl.drivers]\n{name} = {module}:{attribute}\n")
        return module

    yield install
    for module in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[module]


GOOD = """
class Driver:
    api_version = 1
    kind = "mesh"
    capabilities = frozenset()
    proven = "on my bench"
    close = identify = stage = compare = commit = confirm = roll_back = None.__init__
    read_states = read_powers = read_temperature = read_alarms = None.__init__
"""


def names():
    return {info.name for info in installed()}


def test_the_drivers_of_this_distribution_are_installed():
    assert {"smartlight", "hostport", "sim-mesh"} <= names()


def test_each_says_where_it_comes_from():
    info = next(info for info in installed() if info.name == "smartlight")
    assert (info.target, info.distribution) == ("lumctl_smartlight:SmartlightMesh", "lumctl")
    assert info.origin.startswith("lumctl ")


def test_listing_imports_no_plugin():
    script = (
        "import sys; from lumctl.devices.drivers import installed; assert installed(); "
        "print([m for m in sys.modules if m.startswith(('lumctl_', 'lumctl.sim'))])"
    )
    listed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert listed.stdout == "[]\n"


def test_a_named_driver_is_imported():
    assert load("smartlight").kind == "mesh"


def test_a_foreign_package_is_found(offer):
    offer("acme-mesh", "acme", GOOD)
    assert "acme" in names()
    assert load("acme").proven == "on my bench"


def test_an_unknown_name_is_met_with_the_nearest_and_the_installed():
    with pytest.raises(UsageError) as caught:
        load("smartlite")
    assert caught.value.message == "no driver 'smartlite' is installed"
    assert "did you mean smartlight?" in caught.value.hint
    listed = caught.value.hint.rpartition("installed: ")[2].split(", ")
    assert listed == sorted(names())
    assert {"hostport", "sim-mesh", "smartlight"} <= set(listed)


def test_a_broken_plugin_stops_nobody_who_does_not_name_it(offer):
    module = offer("acme-broken", "acme", "import no_such_library_of_acme")
    assert "acme" in names()
    assert load("smartlight")
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import no_such_library_of_acme", "does not import: ModuleNotFoundError"),
        ("raise RuntimeError('two\\nlines')", "does not import: RuntimeError: two lines"),
        ("def Driver(context): ...", "is not a class"),
        ("Other = 1", "does not import: AttributeError"),
        (
            "class Driver: pass",
            "does not state its driver API version: acme_broken.Driver has no api_version of its own",
        ),
        (GOOD.replace("= 1", "= 2"), "was written for driver API version 2; lumctl has version 1"),
        (GOOD.replace("mesh", "toaster"), "has kind 'toaster'"),
        (GOOD.replace("frozenset()", "{'fly'}"), "does not declare its capabilities"),
    ],
)
def test_a_broken_plugin_that_is_named_is_one_line(offer, text, complaint):
    offer("acme-broken", "acme", text)
    with pytest.raises(UsageError) as caught:
        load("acme")
    assert "driver 'acme' of acme-broken 2.5" in caught.value.message
    assert complaint in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_two_packages_that_offer_one_name_are_refused(offer):
    offer("acme-one", "acme", GOOD)
    offer("acme-two", "acme", GOOD)
    with pytest.raises(UsageError, match=r"offered twice, by acme-one 2\.5 and acme-two 2\.5"):
        load("acme")


def test_a_driver_that_lacks_methods_says_which(offer):
    offer("acme-mesh", "acme", GOOD.replace("confirm = ", "").replace("read_powers = ", ""))
    with pytest.raises(UsageError, match="lacks confirm, read_powers"):
        load("acme")


def test_a_driver_that_ends_the_program_at_import_is_one_line(offer):
    offer("acme-mesh", "acme", "import sys; sys.exit(3)")
    with pytest.raises(UsageError, match="does not import: SystemExit: 3"):
        load("acme")


INHERITED = """
from lumctl_smartlight import SmartlightMesh

class Driver(SmartlightMesh):
    pass
"""


def test_a_version_that_only_another_package_states_is_not_the_authors(offer):
    offer("acme-mesh", "acme", INHERITED)
    with pytest.raises(UsageError) as caught:
        load("acme")
    assert caught.value.message == (
        "driver 'acme' of acme-mesh 2.5 does not state its driver API version: "
        "acme_mesh.Driver has no api_version of its own"
    )
    assert "api_version: ClassVar[int] = 1" in caught.value.hint
    assert "another version of acme-mesh" in caught.value.hint


def test_a_base_class_of_the_same_package_may_state_the_version(offer):
    text = INHERITED.replace("pass", "api_version = 1") + "class Special(Driver): pass\n"
    offer("acme-mesh", "acme", text, attribute="Special")
    assert load("acme").__name__ == "Special"


@pytest.mark.parametrize(("stated", "hint"), [(2, "upgrade lumctl, or"), (0, "upgrade acme-mesh: pip install")])
def test_the_hint_says_which_of_the_two_to_upgrade(offer, stated, hint):
    offer("acme-mesh", "acme", GOOD.replace("= 1", f"= {stated}"))
    with pytest.raises(
        UsageError, match=f"was written for driver API version {stated}; lumctl has version 1"
    ) as caught:
        load("acme")
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("stated", ["True", "'1'", "1.0"])
def test_a_version_is_a_whole_number(offer, stated):
    offer("acme-mesh", "acme", GOOD.replace("= 1", f"= {stated}"))
    with pytest.raises(UsageError, match="which is not a whole number"):
        load("acme")


def test_an_older_driver_is_adapted_where_there_is_an_adapter(offer, monkeypatch):
    """As the next version of the API will do: what an older driver lacks is added to it."""

    def adapt(older):
        return type("Adapted", (older,), {"api_version": 2, "read_progress": lambda _self: None})

    offer("acme-mesh", "acme", GOOD)
    monkeypatch.setattr(drivers, "API", replace(drivers.API, version=2, adapters={1: adapt}))
    monkeypatch.setitem(drivers._METHODS, "mesh", drivers._METHODS["mesh"] | {"read_progress"})
    assert load("acme").api_version == 2
    monkeypatch.setattr(drivers, "API", replace(drivers.API, adapters={}))
    with pytest.raises(UsageError, match="was written for driver API version 1; lumctl has version 2"):
        load("acme")


def test_every_driver_that_comes_with_lumctl_states_its_version():
    """One that does not is refused, here with its name."""
    for info in installed():
        if info.distribution == "lumctl":
            assert load(info.name).api_version == 1, info.name
