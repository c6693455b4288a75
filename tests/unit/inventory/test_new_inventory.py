"""The text of a new inventory is read back as what it was made of, whatever hosts and devices call things."""

from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.inventory.load import inventory_from
from lumctl.inventory.new_inventory import (
    NewAccelerator,
    NewHost,
    NewInventory,
    NewMesh,
    hosts_text,
    scalar,
    text_of,
)
from lumctl.inventory.wiring import circuits_of, initial_assignment

PATH = Path("new.yaml")


def rack(hosts, *, spare="", **more):
    """Hosts by name and number of GPUs, all on one mesh."""
    ports = iter(range(0, 44, 2))
    made = []
    for name, count in hosts.items():
        gpus = []
        for number in range(count):
            port = next(ports)
            lanes = (f"eth{2 * number}", f"eth{2 * number + 1}")
            own = f"{name}-gpu{number}"
            gpus.append(
                NewAccelerator(own, "GPU", 80, "mesh", (port, port + 1), lanes, spare=own == spare, **more.get(own, {}))
            )
        made.append(NewHost(name, tuple(gpus), more.get("remarks", ())))
    ring = tuple(gpu.id for host in made for gpu in host.accelerators if not gpu.spare)
    mesh = NewMesh("mesh", "{id}:65432", {"columns": 7, "rows": 3})
    return NewInventory("r", tuple(made), (mesh,), "smartlight", "train", (ring,))


@pytest.mark.parametrize(
    ("hosts", "spare"),
    [
        ({f"h{n:02}": 1 for n in range(1, 12)}, "h11-gpu0"),
        ({"a": 2, "b": 3, "c7": 1, "c8": 1}, "b-gpu1"),
        ({"a-9": 1, "a-10": 1, "z": 1}, ""),
        ({"on": 1, "true": 2, "12": 1, "0x1": 1}, "12-gpu0"),
    ],
)
def test_it_reads_back_as_it_was_meant(hosts, spare):
    new = rack(hosts, spare=spare)
    read = inventory_from(text_of(new).encode(), PATH)
    assert list(read.hosts) == list(hosts)
    for host in new.hosts:
        for gpu in host.accelerators:
            found = read.accelerators[gpu.id]
            assert (found.model, found.memory_gib, found.role == "spare") == (gpu.model, gpu.memory_gib, gpu.spare)
            lanes = read.transponders_of(gpu.id)
            assert tuple(lane.lane.tx for lane in lanes) == gpu.ports
            assert tuple(lane.interface for lane in lanes) == gpu.interfaces
    assert read.jobs["train"].ranks == new.rings[0]
    assert len(circuits_of(read, initial_assignment(read))) == len(new.rings[0])


def test_hosts_that_are_alike_are_written_once():
    text = text_of(rack({f"h{n:02}": 2 for n in range(1, 9)}))
    assert text.count("- name: h") == 1
    assert "h[01-08]" in text


def test_texts_of_devices_are_written_so_that_they_stay_texts():
    model, remark = "H100: {x} # \x1b[31m\u202e 'q' \"d\"", "eth0\nhosts: []\x07"
    new = rack({"a": 1, "b": 1}, remarks=(remark,), **{"a-gpu0": {"pci": "0000:1b:00.0", "uuid": "GPU-1"}})
    gpu = new.hosts[0].accelerators[0]
    strange = NewAccelerator(gpu.id, model, 80, "mesh", gpu.ports, gpu.interfaces, pci=gpu.pci, uuid="yes")
    new = NewInventory(
        "r", (NewHost("a", (strange,), (remark,)), new.hosts[1]), new.meshes, "smartlight", "train", new.rings
    )
    text = text_of(new)
    assert text.isprintable() or all(character.isprintable() or character == "\n" for character in text)
    found = inventory_from(text.encode(), PATH).accelerators["a-gpu0"]
    assert found.model == "H100: {x} # \\x1b[31m\\u202e 'q' \"d\""
    assert (found.pci, found.uuid) == ("0000:1b:00.0", "yes")


@pytest.mark.parametrize("text", ["yes", "Null", "12", "a: b", "- x", "&x", "", "a #b", "a ", "1.5", "~"])
def test_a_text_that_yaml_takes_for_something_else_is_quoted(text):
    assert scalar(text).startswith('"')


def test_hosts_alone_can_be_reached():
    read = inventory_from(hosts_text(["h1", "on"], "{name}.example", "me").encode(), PATH)
    assert [(host.address, host.ssh.user) for host in read.hosts.values()] == [
        ("h1.example", "me"),
        ("on.example", "me"),
    ]


def test_listed_addresses_go_to_the_hosts_in_their_order_however_the_hosts_are_grouped():
    new = replace(rack({"g01": 2, "g02": 2, "g03": 2}, spare="g02-gpu1"), address="10.0.0.[7-8],192.0.2.1")
    read = inventory_from(text_of(new).encode(), PATH)
    assert {host.name: host.address for host in read.hosts.values()} == {
        "g01": "10.0.0.7",
        "g02": "10.0.0.8",
        "g03": "192.0.2.1",
    }
