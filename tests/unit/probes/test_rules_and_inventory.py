"""Rules of plug-ins say where they are wrong; an inventory names only probes that there are."""

import pytest
from lumctl_amd import AmdSmi

from lumctl.fleet.probes import probes_for
from lumctl.health import probe_rules
from lumctl.health.rulebook import has_case, looks_at, verdict
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError

HEAD = 'schema: lumctl/probe-rules/v1\nedition: "1"\nrules:\n  gpu.amd-smi.x:\n    y:\n'
RACK = "lumctl: 1\nracks: {{r: }}\nhosts:\n  - name: h1\n    probe: {probe}\n"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("when: {reading: pendin_pages}\n      limit: 1\n      state: failed", ":6: found reading 'pendin_pages'"),
        ("when: {event: ring-timeot}\n      state: failed", ":6: found event 'ring-timeot'"),
        ("when: {reading: pending_pages}\n      limit: 1\n      state: broken", ":8: found state 'broken'"),
        ("when: {reading: pending_pages}\n      limt: 1\n      state: failed", ":7: found field 'limt'"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, monkeypatch, case, said):
    file = tmp_path / "rules.yaml"
    file.write_text(f"{HEAD}      {case}\n      advice: a\n      origin: o\n")
    monkeypatch.setattr(probe_rules, "file_of", lambda *_given: file)
    with pytest.raises(probe_rules.ProbeRulesError) as raised:
        probe_rules.read_rules(AmdSmi)
    assert any(f"{file}{said}" in problem for problem in raised.value.problems)


def test_cases_of_plugins_are_found_like_any_other():
    assert verdict("gpu.amd-smi.lost", "kernel").state == "failed"
    assert has_case("gpu.hl-smi.reset", "failed")
    assert not has_case("gpu.unheard-of.reset", "failed")
    assert looks_at("gpu.amd-smi.lost").probes == {"kernel"}


def test_a_host_of_a_plugin_is_asked_nothing_of_nvidia():
    probes = probes_for((), sudo=False, accelerators="amd-smi")
    assert not [probe for probe in probes if "nvidia-smi" in probe.command]
    assert {"gpu", "gpu:list", "gpu:static", "gpu:bad-pages", "kernel"} <= {probe.name for probe in probes}


def test_a_probe_that_is_not_installed_leaves_the_host_without_accelerators():
    (gpu,) = (probe for probe in probes_for((), sudo=False, accelerators="gone") if probe.name == "gpu")
    assert gpu.take.__self__.why.startswith("no probe 'gone' is installed")


def test_an_unknown_probe_is_named_with_the_nearest_one(tmp_path):
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.format(probe="amd-smy"))
    with pytest.raises(InventoryError, match="amd-smi"):
        load_inventory(path)
    path.write_text(RACK.format(probe="amd-smi"))
    assert load_inventory(path).hosts["h1"].probe == "amd-smi"
