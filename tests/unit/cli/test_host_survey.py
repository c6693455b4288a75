"""Which interfaces of a host lead to the fabric, by what the host tells of them."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from lumctl.cli.host_survey import FoundHost, FoundInterface, survey
from lumctl.errors import UsageError


def host(*interfaces):
    found = [FoundInterface(name, state, speed, None, heard) for name, state, speed, heard in interfaces]
    return FoundHost("h1", (), tuple(found))


def test_interfaces_that_hear_the_rack_come_first_and_switches_do_not_count():
    found = host(
        ("eno1", "up", 1000, ()),
        ("eth0", "up", 400_000, (("tor-7", "Ethernet12"),)),
        ("eth2", "up", 100_000, (("h2.example.org", "eth3"),)),
        ("eth10", "up", 100_000, (("h3", "eth2"),)),
        ("eth3", "up", 400_000, ()),
    )
    assert found.fabric_interfaces(2, ["h1", "h2", "h3"]) == ("eth2", "eth10")
    assert found.fabric_interfaces(3, ["h1", "h2", "h3"]) == ("eth2", "eth3", "eth10")


def test_dark_interfaces_come_before_slower_ones_that_are_up():
    found = host(("eno1", "up", 1000, ()), ("eth2", "down", None, ()), ("eth3", "up", 400_000, ()))
    assert found.fabric_interfaces(2, ["h1"]) == ("eth2", "eth3")


def test_too_few_are_refused_with_all_that_there_are():
    found = host(("eth0", "up", 400_000, (("tor-7", "Ethernet12"),)), ("eth2", "up", 100_000, ()))
    with pytest.raises(UsageError, match="it has: eth0, eth2") as refused:
        found.fabric_interfaces(2, ["h1", "h2"])
    assert "--interfaces" in refused.value.hint


def test_only_interfaces_with_a_port_of_their_own_are_found(monkeypatch):
    virtual = ("lo", "bond0", "br-1a2b", "cilium_host", "eth2.100", "ip6tnl0", "podman0", "team0", "veth1@if2")
    names = (*virtual, "vxlan_sys_4789", "eth2", "ens1f0np0", "ib0")
    seen = SimpleNamespace(
        reachable=True,
        gpus=(SimpleNamespace(minor=0, pci="0000:17:00.0"),),
        interfaces={name: SimpleNamespace(operstate="up", speed_mbps=400_000) for name in names},
        adapters=SimpleNamespace(interfaces={}),
        neighbours={},
    )
    fleet = nullcontext(SimpleNamespace(collect=lambda: SimpleNamespace(hosts={"h1": seen})))
    monkeypatch.setattr("lumctl.cli.host_survey.Fleet", lambda *_, **__: fleet)
    found = survey(None, SimpleNamespace(hosts={}), enrol_hint="")
    assert [each.name for each in found["h1"].interfaces] == ["ens1f0np0", "eth2", "ib0"]


def test_a_comment_has_state_rate_and_neighbours():
    (found,) = host(("eth2", "up", 100_000, (("h2", "eth3"),))).interfaces
    assert found.words() == "eth2 (up, 100 Gb/s, hears h2 eth3)"
