"""Where the processes of a job are told that a host is: what ssh's configuration makes of its address, if anything."""

from contextlib import closing

import pytest

from lumctl.devices.endpoints import rack_endpoints
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import load_inventory

RACK = """
lumctl: 1
racks: {r: {}}
defaults: {ssh: {config_file: ssh_config}}
hosts:
  - {name: h1, address: first, accelerators: [{id: a, model: M, memory_gib: 1}]}
  - {name: h2, address: 10.9.8.7, accelerators: [{id: b, model: M, memory_gib: 1}]}
"""


@pytest.fixture
def fleet(tmp_path):
    (tmp_path / "rack.yaml").write_text(RACK)
    (tmp_path / "ssh_config").write_text("Host first\n  HostName h1.rack.example\n  User operator\n")
    inventory = load_inventory(tmp_path / "rack.yaml")
    with closing(Fleet(inventory, rack_endpoints(inventory))) as made:
        yield made


def test_an_alias_is_told_as_what_it_stands_for_and_all_else_as_it_is(fleet):
    assert (fleet.address("h1"), fleet.address("h2")) == ("h1.rack.example", "10.9.8.7")
