"""Where readings come from, as an inventory says it."""

from pathlib import Path

import pytest

from lumctl.inventory.exporters import Exporter, ReadingSource
from lumctl.inventory.load import load_inventory

HOST = "  - name: h[1-3]\n"


@pytest.fixture
def loaded(small, write):
    return lambda text, small=small: load_inventory(write(small.replace(HOST, HOST + text))).hosts


def test_a_host_is_read_by_its_shell_unless_it_says_otherwise(loaded):
    assert {(host.readings, host.exporters) for host in loaded("").values()} == {(ReadingSource.SHELL, ())}


def test_without_a_kind_dcgm_and_node_are_read_at_their_usual_ports(loaded):
    host = loaded("    readings: prometheus\n    address: 10.0.0.[1-3]\n")["h2"]
    assert host.readings is ReadingSource.PROMETHEUS
    assert [exporter.url for exporter in host.exporters] == [
        "http://10.0.0.2:9400/metrics",
        "http://10.0.0.2:9100/metrics",
    ]


def test_ports_urls_and_logins_are_resolved(loaded):
    text = """\
    readings: both
    exporters:
      dcgm: 9500
      node: "https://{name}.example/node?collect[]=netclass"
      gpud: 15132
      user: prom
      secret_variable: SCRAPE
      ca_file: ca.pem
"""
    dcgm, node, gpud = loaded(text)["h1"].exporters
    login = {"user": "prom", "secret_variable": "SCRAPE"}
    assert isinstance(dcgm.ca_file, Path)
    assert dcgm.ca_file.name == "ca.pem"
    assert dcgm == Exporter("dcgm", "http://h1:9500", "/metrics", ca_file=dcgm.ca_file, **login)
    assert (node.origin, node.path) == ("https://h1.example", "/node?collect[]=netclass")
    assert gpud.url == "https://h1:15132/v1/states"


def test_defaults_hold_for_all_hosts_and_a_hosts_own_kinds_replace_theirs(small, loaded):
    defaults = "defaults:\n  readings: both\n  exporters: {dcgm: 1, node: 2, user: prom, secret_variable: S}\n"
    small = defaults.join(small.split("hosts:\n", 1)).replace(defaults, f"{defaults}hosts:\n", 1)
    assert [e.origin for e in loaded("", small)["h1"].exporters] == ["http://h1:1", "http://h1:2"]
    (amd,) = loaded("    exporters: {amd: 5000}\n", small)["h1"].exporters
    assert (amd.origin, amd.user) == ("http://h1:5000", "prom")
    assert loaded("    readings: shell\n", small)["h1"].exporters == ()


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("    readings: push\n", (6, 15), "shell"),
        ("    exporters: {dcgm: 9400}\n", (6, 16), "found 'exporters' for a host whose readings come from its shell"),
        ("    readings: both\n    exporters: {dcgm: 0}\n", (7, 23), "1"),
        ("    readings: both\n    exporters: {dcgm: 'ftp://h/x'}\n", (7, 23), "found 'ftp://h/x', expected a port"),
        ("    readings: both\n    exporters: {dcgm: 'http://h:99999/x'}\n", (7, 23), "expected a port"),
        ("    readings: both\n    exporters: {dcgm: 'http://{host}/x'}\n", (7, 23), "'{address}' or '{name}'"),
        ("    readings: both\n    exporters: {password: x}\n", (7, 17), "password"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(small, problems_of, text, where, said):
    (problem,) = problems_of(small.replace(HOST, HOST + text))
    assert (problem.mark.line, problem.mark.column) == where
    assert said in problem.message


def test_a_password_in_a_url_is_refused_and_not_printed(small, problems_of):
    text = "    readings: both\n    exporters: {dcgm: 'http://prom:geheim@h1:9400/metrics'}\n"
    (problem,) = problems_of(small.replace(HOST, HOST + text))
    assert "geheim" not in problem.message
    assert "secret_file" in problem.hint


def test_gpus_that_only_exporters_tell_of_need_a_key_that_exporters_print(small, problems_of):
    text = small.replace(HOST, f"{HOST}    readings: prometheus\n").replace("        pci: 0000:17:00.0\n", "")
    (problem,) = problems_of(text)
    assert "'pci' or 'uuid'" in problem.message
