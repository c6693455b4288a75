"""``job phases`` on a simulated rack of two rails: what it shows, what damage changes, and after a swap."""

import json

import pytest
from forked_commands import lumctl_on_sim

from lumctl.inventory.load import example


@pytest.fixture(scope="module")
def lumctl(tmp_path_factory):
    """Run lumctl on a simulated rack whose first phase is lit."""
    with lumctl_on_sim(example("rails"), tmp_path_factory.mktemp("state")) as run:
        yield run


def phases(lumctl):
    shown = lumctl("job", "phases", "train", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["schema"] == "lumctl/phases/v1"
    return document


def possible(document):
    return {each["phase"]: each["possible"] for each in document["phases"]}


def test_both_phases_of_a_healthy_rack_are_possible_and_share_the_ports(lumctl):
    document = phases(lumctl)
    assert possible(document) == {"pipeline": True, "gradients": True}
    assert document["order"] == ["pipeline", "gradients"]
    (change,) = document["changes"]
    assert change == {"between": ["pipeline", "gradients"], "cells": {"rail0": 2, "rail1": 2}, "settling_s": 0.01}
    shown = lumctl("job", "phases", "train", "-o", "wide").stdout
    assert "a training step needs 2 changes of light, which settle in 20 ms" in shown
    assert "rail0: 2 connections, rail1: 2 connections" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("gradients")][1:] == [
        *("train/0-4", "train/1-5", "train/2-6", "train/3-7"),
    ]


def test_a_dark_transmitter_leaves_its_phases_in_doubt_and_the_hint_works(lumctl):
    assert lumctl("sim", "fault", "h2-gpu0-a", "dark").returncode == 0
    found = phases(lumctl)
    assert possible(found) == {"pipeline": None, "gradients": None}
    assert "h2-gpu0-a is failed" in found["phases"][0]["doubts"]
    shown = lumctl("job", "phases", "train")
    assert "lumctl status" in shown.stderr
    assert "h2-gpu0-a" in lumctl("status").stdout
    assert lumctl("sim", "clear", "h2-gpu0-a").returncode == 0
    assert possible(phases(lumctl)) == {"pipeline": True, "gradients": True}


def lit(lumctl):
    """The circuits that status shows, with what their receivers hear."""
    shown = json.loads(lumctl("status", "-o", "json").stdout)
    return {each["id"]: each["state"] for each in shown["circuits"]}


PIPELINE = dict.fromkeys(("train/0-2", "train/1-3", "train/4-6", "train/5-7"), "ok")
GRADIENTS = dict.fromkeys(("train/0-4", "train/1-5", "train/2-6", "train/3-7"), "ok")


def test_another_phase_is_given_light_proved_and_taken_back(lumctl, tmp_path):
    assert lit(lumctl) == PIPELINE
    plan = lumctl("job", "phases", "train", "--light", "gradients", "-o", "name").stdout.strip()
    assert lit(lumctl) == PIPELINE  # a plan changes nothing
    applied = lumctl("swap", "apply", plan, "--yes")
    assert applied.returncode == 0, applied.stderr
    assert "8 receivers proved" in applied.stdout
    run = applied.stdout.split(":")[0]
    assert lit(lumctl) == GRADIENTS
    found = phases(lumctl)
    assert found["lit"] == "gradients"
    assert possible(found) == {"pipeline": True, "gradients": True}
    again = lumctl("fabric", "apply", "--yes")
    assert "rails carries every circuit that its jobs need" in again.stderr
    exported = tmp_path / "run.yaml"
    assert lumctl("runbook", "export", run, "--out", str(exported)).returncode == 0
    assert lumctl("runbook", "lint", str(exported)).returncode == 0
    exported.write_text(exported.read_text().replace("[gradients]", "[gradient]"))
    linted = lumctl("runbook", "lint", str(exported))
    assert linted.returncode != 0
    assert "it has no phase gradient" in linted.stdout + linted.stderr
    assert lumctl("swap", "rollback", run, "--yes").returncode == 0
    assert lit(lumctl) == PIPELINE
    assert phases(lumctl)["lit"] == "pipeline"
    replayed = lumctl("runbook", "replay", run, "--target", "sim")
    assert replayed.returncode == 0, replayed.stderr


def test_jobs_placed_as_written_have_their_first_phase(lumctl):
    plan = lumctl("job", "phases", "train", "--light", "gradients", "-o", "name").stdout.strip()
    assert lumctl("swap", "apply", plan, "--yes").returncode == 0
    placed = lumctl("fabric", "apply", "--as-written", "--yes")
    assert placed.returncode == 0, placed.stderr
    assert lit(lumctl) == PIPELINE
    assert phases(lumctl)["lit"] == "pipeline"


def test_a_phase_that_has_light_or_is_unknown_is_refused(lumctl):
    lit_now = lumctl("job", "phases", "train", "--light", phases(lumctl)["lit"])
    assert lit_now.returncode == 5
    assert "is the one that should have light" in lit_now.stderr
    unknown = lumctl("job", "phases", "train", "--light", "gradient")
    assert unknown.returncode == 2
    assert "no phase 'gradient' in job train" in unknown.stderr
    assert "did you mean gradients?" in unknown.stderr


def test_after_a_swap_the_phases_are_those_of_the_spare(lumctl):
    assert lumctl("sim", "fault", "h1-gpu0", "gpu-lost").returncode == 0
    planned = json.loads(lumctl("swap", "plan", "--failed", "h1-gpu0", "-o", "json").stdout)
    assert lumctl("swap", "apply", planned["id"], "--yes").returncode == 0
    found = phases(lumctl)
    assert possible(found) == {"pipeline": True, "gradients": True}
    ends = {each["id"]: (each["from"], each["to"]) for phase in found["phases"] for each in phase["circuits"]}
    assert (ends["train/0-2"], ends["train/0-4"]) == (("h5-gpu0-a", "h2-gpu0-a"), ("h5-gpu0-a", "h3-gpu0-a"))


def test_what_has_no_phases_is_refused_in_one_line_with_a_hint_that_works(lumctl):
    refused = lumctl("-i", str(example("rack64")), "job", "phases", "train-a")
    assert refused.returncode == 5
    assert "job train-a has no phases" in refused.stderr
    assert "job show train-a" in refused.stderr
    unknown = lumctl("job", "phases", "trian")
    assert unknown.returncode == 2
    assert "no job 'trian'" in unknown.stderr
    assert lumctl("job", "phases", "train", "-o", "name").stdout == "pipeline\ngradients\n"


def test_to_run_a_job_with_phases_needs_a_yes_even_without_swaps_and_a_gateway(lumctl):
    asked = lumctl("job", "run", "train", "--no-swap")
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    refused = lumctl("job", "run", "train", "--no-swap", "--yes")
    assert refused.returncode == 5
    assert "only a gateway of rack rails may do" in refused.stderr
    assert "lumctl gateway run rails --target sim" in refused.stderr
    unchecked = lumctl("job", "phases", "train", "--check")
    assert unchecked.returncode == 5
    assert "the ranks of train have reported no change of phase" in unchecked.stderr
