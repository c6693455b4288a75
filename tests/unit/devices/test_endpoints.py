"""What a simulator left about itself, as commands read it."""

import json
import os

import pytest

from lumctl.devices.endpoints import RUNTIME_FILE, sim_endpoints
from lumctl.errors import UnreachableError
from lumctl.inventory.load import example, load_inventory

INVENTORY = load_inventory(example("prototype"))
RUNTIME = {
    "pid": os.getpid(),
    "digest": INVENTORY.digest,
    "user": "sim",
    "key_file": "/run/key",
    "known_hosts": "/run/known_hosts",
    "hosts": {"s0": {"address": "127.0.0.1", "port": 2200}},
    "devices": {"m1": "unix:/run/control.sock"},
    "lanes": "/run/lanes.sock",
}


def read(folder, runtime):
    (folder / RUNTIME_FILE).write_text(json.dumps(runtime))
    return sim_endpoints(INVENTORY, folder)


def test_a_running_simulator_says_where_it_answers(tmp_path):
    found = read(tmp_path, RUNTIME)
    assert (found.hosts["s0"].ssh.port, found.devices["m1"].address) == (2200, "unix:/run/control.sock")


@pytest.mark.parametrize("key", RUNTIME)
def test_without_a_key_it_cannot_be_used_and_the_way_out_is_named(tmp_path, key):
    with pytest.raises(UnreachableError, match=f"'{key}' is missing") as refused:
        read(tmp_path, {name: value for name, value in RUNTIME.items() if name != key})
    assert refused.value.hint == "lumctl sim down, then lumctl sim up --detach"


@pytest.mark.parametrize(
    "runtime",
    [
        [],
        None,
        RUNTIME | {"pid": "none"},
        RUNTIME | {"pid": 10**30},
        RUNTIME | {"key_file": None},
        RUNTIME | {"hosts": []},
        RUNTIME | {"hosts": {"s0": "127.0.0.1:2200"}},
        RUNTIME | {"hosts": {"s0": {"address": "127.0.0.1"}}},
        RUNTIME | {"hosts": {"other": {"address": "127.0.0.1", "port": 2200}}},
    ],
)
def test_nor_with_a_value_that_means_nothing(tmp_path, runtime):
    with pytest.raises(UnreachableError, match="cannot be read"):
        read(tmp_path, runtime)
