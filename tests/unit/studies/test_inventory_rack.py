"""Studies of the rack of an inventory: what each takes from it, and what it says of one that it cannot use."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode, UsageError
from lumctl.inventory.load import load_inventory
from lumctl.studies import STUDIES, run_study

INVENTORIES = Path(__file__).parents[3] / "inventories"


def settings_of(name, inventory):
    """The settings of a study that an inventory changes."""
    study = STUDIES[name]
    found = study.settings(study.inventory_settings(inventory))
    return {key: value for key, value in found.items() if value != study.settings()[key]}


@pytest.mark.parametrize(
    ("name", "inventory", "settings"),
    [
        ("spares", "ring8", {"accelerators": (10,), "per_server": (2,)}),
        ("collectives", "ring8", {"ranks": (8,)}),
        ("matchings", "prototype", {"columns": (7,), "rows": (3,), "ports": (16,)}),
        ("rails", "rails", {"gpus": (10,), "domain": (2,), "radix": (8,)}),
        ("rails", "torus64", {"gpus": (64,), "domain": (4,)}),
        ("fragmentation", "torus64", {"racks": (1,), "fibres": (4,)}),
        ("placement", "torus64", {"racks": (1,), "fibres": (4,)}),
        ("overprovisioning", "torus64", {"racks": (1,), "below_percent": (0.0, 100.0)}),
    ],
)
def test_an_inventory_gives_what_the_published_rack_has(name, inventory, settings):
    assert settings_of(name, load_inventory(INVENTORIES / f"{inventory}.yaml")) == settings


@pytest.fixture
def torus():
    return load_inventory(INVENTORIES / "torus64.yaml")


def test_of_two_servers_those_with_the_fewest_fibres_count(torus):
    narrow = replace(torus, fibres={**torus.fibres, "z1": replace(torus.fibres["z1"], capacity=3)})
    # Between x neighbours there are two bundles, directly and around the end, and between z neighbours one.
    double = replace(torus, fibres={**torus.fibres, "x1": replace(torus.fibres["x1"], capacity=1)})
    counts = [STUDIES["placement"].inventory_settings(each)[1] for each in (narrow, double)]
    assert counts == ["fibres=3", "fibres=4"]


def test_the_rates_of_ports_are_taken_from_lanes(torus):
    with pytest.raises(UsageError, match=r"no transponder in .* states its rate"):
        STUDIES["bandwidth"].inventory_settings(torus)
    rates = dict(zip(torus.transponders, (400.0, 200.0), strict=False))
    lanes = {name: replace(each, rate_gb_s=rates.get(name)) for name, each in torus.transponders.items()}
    assert settings_of("bandwidth", replace(torus, transponders=lanes)) == {"port_gb_s": (25.0, 50.0)}


@pytest.mark.parametrize(
    ("name", "inventory", "said"),
    [
        ("recovery", "ring8", "study recovery uses nothing of an inventory; these take -i: bandwidth, collectives, "),
        ("rails", "prototype", "rails need hosts with equally many accelerators, 2 or more; those in "),
        ("matchings", "torus64", "no mesh in "),
        ("placement", "ring8", "no rack in "),
    ],
)
def test_a_rack_that_a_study_cannot_use_is_one_line(capsys, name, inventory, said):
    assert run(["study", "run", name, "-i", str(INVENTORIES / f"{inventory}.yaml")]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lumctl: {said}")


def test_a_torus_of_another_shape_is_one_line(torus):
    rack = torus.racks["torus64"]
    other = replace(torus, racks={"torus64": replace(rack, torus=replace(rack.torus, shape=(4, 4, 8)))})
    said = "rack torus64 is a torus of 4x4x8 in servers of 2x2x1; the study has racks of 4x4x4 accelerators in servers"
    with pytest.raises(UsageError, match=said):
        STUDIES["overprovisioning"].inventory_settings(other)


@pytest.mark.parametrize(
    ("name", "column"), [("fragmentation", "free"), ("overprovisioning", "failed"), ("placement", "free")]
)
def test_a_cluster_of_other_racks_has_other_rows_and_no_verdict(name, column):
    study = STUDIES[name]
    one, two = (run_study(study, study.settings([f"racks={racks}"], quick=True)) for racks in (1, 2))
    assert not any(each.verdict for each in (*one.claims, *two.claims))
    most = [max(float(row[column]) for row in each.rows) for each in (one, two)]
    assert 0 < most[0] < most[1] <= 128


def test_the_ports_of_the_inventory_s_switch_decide_how_many_a_rail_needs(capsys):
    assert run(["study", "run", "rails", "-i", str(INVENTORIES / "rails.yaml"), "-o", "json"]) == ExitCode.DONE
    rows = json.loads(capsys.readouterr().out)["rows"]
    # Five GPUs of a rail have two ports each, and a switch eight.
    assert {(row["ports_per_rail"], row["switches_per_rail"]) for row in rows} == {(10, 2)}
