"""The studies: their numbers beside those of the sources, and that a broken model changes a verdict."""

import json
from dataclasses import replace
from functools import cache

import pytest
from study_claims import changed, claims_of

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import STUDIES, collectives, find_study, matchings, rails, results, run_study, spares
from lumctl.studies.claim import ClaimVerdict
from lumctl.studies.results import recorded_verdicts


@cache
def quick(name):
    """The result of a short run."""
    return run_study(STUDIES[name], STUDIES[name].settings(quick=True))


def test_each_claim_has_one_id_and_a_recorded_verdict():
    claims = [claim.id for study in STUDIES.values() for claim in study.claims]
    assert sorted(claims) == sorted(recorded_verdicts())
    assert all(claim.id.startswith(f"{study.name}.") for study in STUDIES.values() for claim in study.claims)


@pytest.mark.parametrize("name", STUDIES)
def test_each_claim_is_tested_or_says_what_a_test_lacks_and_the_recorded_verdicts_hold(name):
    for each in quick(name).claims:
        assert bool(each.values) is not bool(each.claim.missing), each.claim.id
        assert not each.has_changed, each.claim.id


@pytest.mark.parametrize("name", STUDIES)
def test_all_rows_have_the_columns_that_are_printed_and_drawn(name):
    result = quick(name)
    assert {tuple(row) for row in result.rows} == {result.columns}
    for plot in result.study.plots:
        assert {plot.x, *plot.y, *plot.by} <= set(result.columns)
        assert plot.x_label
        assert plot.y_label


def test_the_published_cluster_has_the_published_power_and_price():
    given = ["gpus=512", "domain=8"]
    one, two = (row for row in run_study(rails.STUDY, rails.STUDY.settings(given)).rows if row["kind"] == "H200")
    names = ("electrical_kw", "optical_kw", "electrical_musd", "optical_musd")
    assert [round(float(one[name]), 3) for name in names] == [131.68, 5.52, 4.192, 0.983]
    assert [round(float(two[name]), 2) for name in ("times_less_power", "times_less_cost")] == [12.38, 2.93]
    assert (one["ports_per_rail"], one["switches_per_rail"]) == (128, 1)


def test_the_schedules_gains_are_those_of_the_reference():
    rows = [row for row in quick("collectives").rows if row["buffers"] == "large"]
    after = {row["ranks"]: round(float(row["after_the_arrival"]), 3) for row in rows}
    assert [after[ranks] for ranks in (4, 8, 16, 64, 256)] == [1.125, 1.361, 1.562, 1.824, 1.939]
    whole = {row["ranks"]: round(float(row["best_delay"]), 3) for row in rows}
    assert [whole[ranks] for ranks in (4, 8, 16)] == [1.083, 1.217, 1.316]
    assert max(whole.values()) < 1.5


def test_replacing_a_server_takes_more_than_replacing_its_chip():
    rows = [row for row in quick("spares").rows if row["availability"] == 0.999]
    assert rows
    assert all(float(row["as_servers"]) > float(row["exact_rule"]) > 0 for row in rows)


def test_with_other_costs_after_the_arrival_the_gain_is_another(monkeypatch):
    honest = collectives.stragglar_cost

    def dearer(*given):
        return replace(honest(*given), after_s=2.0 * honest(*given).after_s)

    monkeypatch.setattr(collectives, "stragglar_cost", dearer)
    assert changed(collectives.STUDY, quick=True) == {"collectives.gain-v1", "collectives.gain-v2", "collectives.twice"}


def test_with_free_switch_ports_the_optical_network_saves_less(monkeypatch):
    free = {name: replace(each, port_w=0.0, port_usd=0.0) for name, each in rails.GENERATIONS.items()}
    monkeypatch.setattr(rails, "GENERATIONS", free)
    assert changed(rails.STUDY, quick=True) == {claim.id for claim in rails.STUDY.claims[:6]}


def test_with_a_larger_switch_a_rail_needs_one(monkeypatch):
    monkeypatch.setattr(rails, "OPTICAL_PORTS", 512)
    assert changed(rails.STUDY, "radix=512", quick=True) == {"rails.one-switch"}


def test_where_chips_never_fail_no_number_of_spares_is_reproduced(monkeypatch):
    monkeypatch.setattr(spares, "spread", lambda groups, _low, _high: groups)
    assert changed(spares.STUDY, quick=True) == {claim.id for claim in spares.STUDY.claims}


def test_of_a_search_that_leaves_out_a_pair_the_count_is_not_reproduced(monkeypatch):
    honest = matchings.AllToAllSearch.run

    def lost(search):
        return replace(honest(search), unreachable=((0, 1),))

    monkeypatch.setattr(matchings.AllToAllSearch, "run", lost)
    assert changed(matchings.STUDY, quick=True) == {"matchings.count"}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("collectives", ["ranks=4,5"]),
        ("spares", ["accelerators=16"]),
        ("rails", ["gpus=256,1024"]),
        ("matchings", ["ports=4"]),
    ],
)
def test_a_claim_whose_case_is_left_out_is_not_judged(name, given):
    for each in claims_of(find_study(name), *given, quick=True).values():
        assert each.verdict is (ClaimVerdict.NOT_TESTABLE if each.claim.missing else None)
        assert not each.values


def test_one_of_the_sizes_is_no_range_of_them():
    assert claims_of(rails.STUDY, "gpus=512,512", quick=True)["rails.power-gb200-least"].verdict is None
    assert claims_of(rails.STUDY, "domain=32", quick=True)["rails.power-gb200-least"].verdict is None
    assert claims_of(rails.STUDY, "transceivers=2", quick=True)["rails.power-h200"].verdict is None


def test_a_study_that_names_a_claim_wrongly_fails():
    study = replace(spares.STUDY, values=lambda *_: {"spares.0-2": {}})
    with pytest.raises(ValueError, match=r"study spares has no claim spares\.0-2"):
        run_study(study, study.settings())


def test_a_changed_verdict_ends_the_check_with_4_and_is_named(monkeypatch, capsys):
    recorded = {**recorded_verdicts(), "spares.1-3": ClaimVerdict.BOUNDED_AWAY}
    monkeypatch.setattr(results, "recorded_verdicts", lambda: recorded)
    assert run(["study", "check", "spares"]) == ExitCode.UNHEALTHY
    assert "spares.1-3 is reproduced, but was recorded as bounded away" in capsys.readouterr().err
    assert run(["study", "check", "spares", "-o", "name"]) == ExitCode.UNHEALTHY
    assert capsys.readouterr().out == "spares.1-3\n"


def test_a_claim_without_a_value_is_a_changed_one(monkeypatch, capsys):
    broken = replace(spares.STUDY, values=lambda *_: {})
    monkeypatch.setitem(STUDIES, "spares", broken)
    assert run(["study", "check", "spares"]) == ExitCode.UNHEALTHY
    assert "spares.0-1 is not judged, but was recorded as reproduced" in capsys.readouterr().err


def test_a_new_claim_can_be_shown_before_it_has_a_verdict(monkeypatch, capsys):
    monkeypatch.setattr(results, "recorded_verdicts", dict)
    assert run(["study", "show", "spares"]) == ExitCode.DONE
    assert capsys.readouterr().out.count("not recorded") == len(spares.STUDY.claims)
    assert run(["study", "show", "spares", "-o", "json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["claims"][0]["recorded"] is None


def test_the_check_as_data(capsys):
    assert run(["study", "check", "rails", "-o", "json"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lumctl/study-check/v1"
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
        (["run", "matchings", "--set", "columns=3", "--set", "rows=3"], "32 ports of 3x3 cannot be connected"),
        (["run", "rails", "--set", "gpus=100"], "gpus is 100, expected 4 or more whole domains of 8, 16, 32, 64"),
        (["show", "nothing"], "there is no study 'nothing'"),
        (["check", "spares", "rail"], "there is no study 'rail'"),
    ],
)
def test_wrong_input_is_one_line(words, said, capsys):
    assert run(["study", *words]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0].startswith(f"lumctl: {said}")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["list"], "STUDY"),
        (["show", "rails"], "What do optical circuit switches"),
        (["run", "rails"], "GPUS"),
        (["run", "spares", "--quick"], "ACCELERATORS"),
    ],
)
def test_every_form_of_output(words, first, capsys):
    assert run(["study", *words]) == ExitCode.DONE
    assert capsys.readouterr().out.startswith(first)
    assert run(["study", *words, "-o", "json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["schema"].startswith("lumctl/stud")
    assert run(["study", *words, "-o", "name"]) == ExitCode.DONE
    assert " " not in capsys.readouterr().out
