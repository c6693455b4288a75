"""Addresses of devices as drivers use them."""

import pytest

from lumctl.devices.ways import host_and_port


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("mesh.example", "mesh.example", 7),
        ("mesh.example:830", "mesh.example", 830),
        ("http://mesh.example:80", "mesh.example", 80),
        ("10.0.0.1:830", "10.0.0.1", 830),
        ("[fe80::1]", "fe80::1", 7),
        ("[fe80::1]:830", "fe80::1", 830),
        ("http://[fe80::1]:80", "fe80::1", 80),
        ("fe80::1", "fe80::1", 7),
        ("::1", "::1", 7),
        ("fe80::a", "fe80::a", 7),
    ],
)
def test_only_after_brackets_has_an_ipv6_address_a_port(address, host, port):
    assert host_and_port(address, 7) == (host, port)
