"""The studies: their numbers beside those of the sources, and that a broken model changes a verdict."""

import json
from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import STUDIES, collectives, find_study, rails, results, run_study, spares
from lumctl.studies.claim import Verdict
from lumctl.studies.results import recorded_verdicts


def changed(name, *given):
    """The claims of a study whose verdict is not the recorded one."""
    study = find_study(name)
    return {each.claim.id for each in run_study(study, study.settings(given, quick=True)).claims if each.has_changed}


def test_each_claim_has_one_id_and_a_recorded_verdict():
    claims = [claim.id for study in STUDIES.values() for claim in study.claims]
    assert sorted(claims) == sorted(recorded_verdicts())
    assert all(claim.id.startswith(f"{study.name}.") for study in STUDIES.values() for claim in study.claims)


@pytest.mark.parametrize("name", STUDIES)
def test_the_recorded_verdicts_hold(name):
    assert changed(name) == set()


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_prints_the_columns_that_it_has(name):
    study = STUDIES[name]
    found = run_study(study, study.settings(quick=True))
    assert found.rows
    assert {tuple(row) for row in found.rows} == {study.columns}


def test_the_published_cluster_has_the_published_power_and_price():
    (row,) = (
        row
        for row in run_study(rails.STUDY, rails.STUDY.settings(["gpus=512", "transceivers=1"])).rows
        if row["kind"] == "H200"
    )
    assert [round(float(row[name]), 3) for name in ("kw", "optical_kw", "musd", "optical_musd")] == [
        131.68,
        5.52,
        4.192,
        0.983,
    ]
    assert (row["ports_per_rail"], row["switches_per_rail"]) == (128, 1)


def test_the_schedules_gains_are_those_of_the_reference():
    rows = [row for row in run_study(collectives.STUDY, collectives.STUDY.settings()).rows if row["buffers"] == "large"]
    after = {row["ranks"]: round(float(row["after"]), 3) for row in rows}
    assert [after[ranks] for ranks in (4, 8, 16, 64, 256)] == [1.125, 1.361, 1.562, 1.824, 1.939]
    whole = {row["ranks"]: round(float(row["best_delay"]), 3) for row in rows}
    assert [whole[ranks] for ranks in (4, 8, 16)] == [1.083, 1.217, 1.316]
    assert max(whole.values()) < 1.5


def test_without_the_rounds_after_the_arrival_the_gain_is_another(monkeypatch):
    honest = collectives.stragglar_cost
    monkeypatch.setattr(
        collectives, "stragglar_cost", lambda *given: replace(honest(*given), after_s=0.9 * honest(*given).after_s)
    )
    assert "collectives.gain-v1" in changed("collectives") | {"collectives.twice"} & changed("collectives")


def test_with_free_switch_ports_the_optical_network_saves_less(monkeypatch):
    free = {name: replace(each, port_w=0.0, port_usd=0.0) for name, each in rails.GENERATIONS.items()}
    monkeypatch.setattr(rails, "GENERATIONS", free)
    assert {"rails.power-h200", "rails.cost-h200", "rails.power-gb200-most"} <= changed("rails")


def test_with_a_larger_switch_a_rail_needs_one(monkeypatch):
    monkeypatch.setattr(rails, "RADIX", 512)
    assert changed("rails") == {"rails.one-switch"}


def test_where_chips_never_fail_no_number_of_spares_is_reproduced(monkeypatch):
    monkeypatch.setattr(spares, "spread", lambda groups, _low, _high: groups)
    assert changed("spares") == {"spares.0-1", "spares.1-3", "spares.3-5"}


def test_where_a_matching_is_lost_the_count_is_not_reproduced(monkeypatch):
    from lumctl.studies import matchings

    honest = matchings.all_to_all

    def lost(*given, **named):
        found = honest(*given, **named)
        return replace(found, matchings=found.matchings[:-1])

    monkeypatch.setattr(matchings, "all_to_all", lost)
    assert "matchings.count" in changed("matchings")


def test_a_claim_whose_case_is_left_out_keeps_its_verdict():
    study = collectives.STUDY
    found = run_study(study, study.settings(["ranks=4,5"]))
    assert not any(each.has_changed or each.readings for each in found.claims)


def test_a_changed_verdict_ends_the_check_with_4_and_is_named(monkeypatch, capsys):
    recorded = {**recorded_verdicts(), "spares.1-3": Verdict.REPRODUCED}
    monkeypatch.setattr(results, "recorded_verdicts", lambda: recorded)
    assert run(["study", "check", "spares"]) == ExitCode.UNHEALTHY
    said = capsys.readouterr()
    assert "spares.1-3 is reproduced under some readings, but was recorded as reproduced" in said.err
    assert run(["study", "check", "spares", "-o", "name"]) == ExitCode.UNHEALTHY
    assert capsys.readouterr().out == "spares.1-3\n"


def test_the_check_as_data(capsys):
    assert run(["study", "check", "rails", "-o", "json"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lumctl/study/v1"
    (claim,) = (each for each in document["claims"] if each["id"] == "rails.power-h200")
    assert claim["published"] == 23.86
    assert round(claim["measured"], 2) == 23.86
    assert (claim["verdict"], claim["recorded"]) == ("reproduced under some readings",) * 2
    assert [each["holds"] for each in claim["readings"]] == [True, False]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "colectives"], "there is no study 'colectives'"),
        (["run", "collectives", "--set", "rank=4"], "study collectives has no parameter 'rank'"),
        (["run", "collectives", "--set", "ranks"], "--set ranks: expected NAME=VALUE"),
        (["run", "collectives", "--set", "ranks=4,x"], "ranks is 'x', expected a whole number"),
        (["run", "collectives", "--set", "ranks=2"], "ranks is 2, expected 3 to 1024"),
        (["run", "spares", "--set", "availability=nan"], "availability is nan, expected 0.5 to 0.99999"),
        (["run", "matchings", "--set", "columns=4,5"], "columns takes one value, but was given 2"),
        (["show", "nothing"], "there is no study 'nothing'"),
        (["check", "spares", "rail"], "there is no study 'rail'"),
    ],
)
def test_wrong_input_is_one_line(words, said, capsys):
    assert run(["study", *words]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0] == f"lumctl: {said}"


@pytest.mark.parametrize("words", [["list"], ["show", "rails"], ["run", "rails"], ["run", "spares", "--quick"]])
@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
def test_every_form_of_output(words, form, capsys):
    assert run(["study", *words, "-o", form]) == ExitCode.DONE
    assert capsys.readouterr().out
