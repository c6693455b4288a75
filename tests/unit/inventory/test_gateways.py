"""Where the inventory says that a rack's gateway is, and which of it counts."""

import pytest

from lumctl.devices.endpoints import default_socket, gateways_of, rack_endpoints
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError

RACK = """\
lumctl: 1
racks:
  r1: {r1}
  r2:
hosts:
  - {{name: h1, rack: r1, accelerators: [{{id: g1, model: X100, memory_gib: 80}}]}}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.delenv("LUMCTL_GATEWAY", raising=False)

    def loaded(r1):
        path = tmp_path / "rack.yaml"
        path.write_text(RACK.format(r1=r1))
        return load_inventory(path)

    return loaded


def found(inventory, target="rack"):
    hosts = rack_endpoints(inventory).hosts
    return {rack: where.place for rack, where in gateways_of(inventory, target, hosts).items()}


def test_a_rack_has_the_gateway_that_it_names_and_others_have_none(load, tmp_path):
    assert found(load("{gateway: run/r1.sock}")) == {"r1": str(tmp_path / "run" / "r1.sock")}
    assert found(load("{gateway: /run/r1.sock, gateway_via: h1}")) == {"r1": "h1:/run/r1.sock"}
    assert found(load("{location: here}")) == {}


def test_the_gateway_of_the_rack_is_not_that_of_its_simulator(load):
    assert found(load("{gateway: /run/r1.sock}"), "sim") == {}


@pytest.mark.parametrize("target", ["rack", "sim"])
def test_the_variable_goes_before_the_inventory_and_may_name_a_folder(load, tmp_path, monkeypatch, target):
    inventory = load("{gateway: /run/r1.sock}")
    monkeypatch.setenv("LUMCTL_GATEWAY", "/run/one.sock")
    assert found(inventory, target) == {"r1": "/run/one.sock", "r2": "/run/one.sock"}
    monkeypatch.setenv("LUMCTL_GATEWAY", str(tmp_path))
    assert found(inventory, target) == {rack: str(tmp_path / f"{rack}.sock") for rack in ("r1", "r2")}


def test_one_that_is_not_told_listens_where_only_its_user_may_enter(load, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    inventory = load("{location: here}")
    rack, sim = (default_socket(inventory, "r1", target) for target in ("rack", "sim"))
    assert rack.parent.parent == tmp_path / "lumctl"
    assert rack.parent != sim.parent
    assert (tmp_path / "lumctl").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{gateway: 5}", "3:17: found 5, expected a text"),
        ("{gateway: /run/r1.sock, gateway_via: h2}", "3:44: host .h2. is not known"),
        ("{gateway_via: h1}", "3:21: found gateway_via without the key gateway"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(load, written, says):
    with pytest.raises(InventoryError, match=says):
        load(written)
