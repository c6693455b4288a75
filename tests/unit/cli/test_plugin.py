import json
import sys

import pytest

from lumctl.cli import main, plugin_doctor
from lumctl.devices.drivers import KINDS
from lumctl.errors import ExitCode
from lumctl.inventory.model import DeviceKind


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A package on the path whose driver does not import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    metadata = tmp_path / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lumctl.drivers]\nacme = no_such_module_of_acme:Driver\n")


def test_names_are_for_scripts(capsys):
    assert main.run(["plugin", "list", "-o", "name"]) == 0
    assert "smartlight" in capsys.readouterr().out.split()


@pytest.mark.usefixtures("broken")
def test_a_broken_plugin_is_listed_without_a_word(capsys):
    assert main.run(["plugin", "list"]) == 0
    said = capsys.readouterr()
    assert "acme" in said.out
    assert said.err == ""


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("look", [["--check"], ["-o", "wide"]])
def test_looking_into_it_warns_and_goes_on(capsys, look):
    assert main.run(["plugin", "list", *look]) == 0
    said = capsys.readouterr()
    assert "warning: driver 'acme' of acme 1.0 does not import: ModuleNotFoundError" in said.err
    assert "not run on hardware" in said.out
    assert "no_such_module_of_acme" not in sys.modules


def test_the_document_has_the_same_fields_looked_into_or_not(capsys):
    documents = []
    for look in ([], ["--check"]):
        assert main.run(["plugin", "list", "-o", "json", *look]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    plain, checked = ({row["name"]: row for row in document["drivers"]} for document in documents)
    assert documents[0]["schema"] == "lumctl/plugin/v1"
    assert plain["smartlight"].keys() == checked["smartlight"].keys()
    assert plain["smartlight"]["kind"] is None
    assert (checked["smartlight"]["kind"], checked["smartlight"]["state"]) == ("mesh", "ok")


def test_each_silent_device_has_its_own_advice(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_RECORDINGS", raising=False)
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(
        "lumctl: 1\nracks: {lab: {}}\nhosts:\n"
        "  - {name: 'h[1-2]', power: 'bmc[1-2]', accelerators: [{id: '{host}-gpu0', model: L4, memory_gib: 24}]}\n"
        "devices:\n  - {id: 'bmc[1-2]', kind: power, driver: replay-power, address: '{id}.example:443'}\n"
    )
    command = ["-i", str(inventory), "--target", "rack", "plugin", "doctor", "replay-power", "-o", "json"]
    assert main.run(command) == 4
    said = capsys.readouterr().out
    assert "lumctl device show bmc1 --target rack" in said
    assert "lumctl device show bmc2 --target rack" in said


def test_the_doctor_lists_only_what_the_inventory_uses(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(
        "lumctl: 1\nracks: {lab: {store: 'postgresql://db.example/lumctl'}}\n"
        "hosts:\n  - {name: h1, accelerators: [{id: h1-gpu0, model: L4, memory_gib: 24}]}\n"
    )
    monkeypatch.setattr(plugin_doctor, "find_spec", lambda _name: None)
    assert main.run(["-i", str(inventory), "--target", "rack", "plugin", "doctor"]) == ExitCode.UNHEALTHY
    said = capsys.readouterr()
    assert "redfish" not in said.out
    assert "redfish" in said.err.partition("not used by the inventory, and not checked: ")[2]
    assert "the store of lab is a PostgreSQL database, but psycopg is not installed" in said.out
    assert "install 'lumctl[postgres]'" in said.out


@pytest.mark.parametrize(("value", "says"), [("1", True), ("0", False)])
def test_the_doctor_says_that_hosts_are_read_over_the_public_api_alone(monkeypatch, tmp_path, capsys, value, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    monkeypatch.setenv("LUMCTL_PLAIN_SSH", value)
    main.run(["plugin", "doctor"])
    said = capsys.readouterr().out
    assert ("which is slower: LUMCTL_PLAIN_SSH is set" in said) is says
    assert "hostport" in said


def test_the_help_says_what_the_inventory_calls_each_kind(capsys):
    assert main.run(["plugin", "list", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(kind in said for kind in (*KINDS, *DeviceKind, "job control", "probe", "sharing policy"))
