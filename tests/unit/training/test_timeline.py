import json

import pytest

from lumctl.training.timeline import MORPHLUX, TITLES, KnownBy, Moment, Timeline, Track, timeline_of


def spans(timeline):
    return {span.name: (round(span.starts_s, 4), round(span.ends_s, 4)) for span in timeline.spans()}


def test_both_figures_count_from_the_failure(recovered):
    timeline = recovered()
    assert timeline.failure_to_circuits_s == pytest.approx(0.13, abs=1e-6)
    assert timeline.failure_to_step_s == pytest.approx(0.19, abs=1e-6)
    assert timeline.at("failure") == 0


def test_what_ran_beside_what(recovered):
    assert spans(recovered()) == {
        "detect": (0, 0.002),
        "park": (0.002, 0.009),
        "wait": (0.009, 0.16),
        "health": (0.002, 0.04),
        "plan": (0.04, 0.06),
        "program": (0.06, 0.08),
        "verify": (0.08, 0.13),
        "load": (0.009, 0.02),
        "join": (0.13, 0.16),
        "step": (0.16, 0.19),
    }
    lanes = {span.name: span.track for span in recovered().spans()}
    assert (lanes["wait"], lanes["verify"], lanes["load"], lanes["step"]) == (
        Track.SURVIVORS,
        Track.SWAP,
        Track.STATE,
        Track.JOB,
    )


def test_the_group_is_formed_after_whatever_came_last(recovered):
    assert spans(recovered(state=0.15))["join"] == (0.15, 0.16)


def test_a_plan_that_did_not_wait_for_the_health_begins_with_the_detection(recovered):
    assert spans(recovered(planned=0.03))["plan"] == (0.002, 0.03)


def test_without_a_swap_there_are_no_circuits_and_the_rest_is_there(recovered):
    timeline = recovered(planned=None, circuits=None, verified=None)
    assert timeline.failure_to_circuits_s is None
    assert timeline.failure_to_step_s == pytest.approx(0.19, abs=1e-6)
    assert set(spans(timeline)) == {"detect", "park", "wait", "health", "load", "join", "step"}
    assert spans(timeline)["join"] == (0.02, 0.16)


def test_moments_stand_in_the_order_in_which_they_came(recovered):
    assert [m.name for m in recovered().moments] == [
        "failure", "detected", "held", "state", "health", "planned", "circuits", "verified", "joined", "step",
    ]  # fmt: skip
    at_once = [m.name for m in recovered(planned=0.08).moments]
    assert at_once.index("planned") < at_once.index("circuits")


def test_a_clock_that_is_behind_puts_nothing_before_the_failure(recovered):
    assert recovered(detected=-0.003).at("detected") == 0


def test_what_was_not_noted_does_not_stretch_what_follows(recovered):
    found = spans(recovered(circuits=None, held=None))
    assert found["verify"] == (0.06, 0.13)
    assert found["wait"] == (0.002, 0.16)
    assert found["load"] == (0.002, 0.02)


@pytest.fixture
def recovery():
    return {
        "at": 100.0,
        "cause": "was killed by signal 9",
        "failed": ["h2-gpu0"],
        "replaced_by": {"h2-gpu0": "h5-gpu0"},
        "failure_to_circuits_s": 0.1,
        "failure_to_step_s": 0.2,
        "run": "r1",
        "marks": {"held": 0.01, "verified": 0.1, "joined": 0.15, "step": 0.2, "cheered": 0.3, "state": None},
    }


def test_what_the_status_of_a_job_tells_counts_from_the_detection(recovery):
    timeline = timeline_of(recovery, job="train")
    assert (timeline.known_by, timeline.at("detected")) == (KnownBy.DETECTION, 0)
    assert timeline.failure_to_step_s == pytest.approx(0.2)
    assert (timeline.job, timeline.replaced_by, timeline.run) == ("train", ("h5-gpu0",), "r1")
    assert timeline.at("state") is None
    assert timeline.moments[-1].title == "cheered"


def test_and_from_the_kill_where_that_is_known(recovery):
    timeline = timeline_of(recovery, killed_at=99.995)
    assert timeline.known_by is KnownBy.KILL
    assert timeline.at("detected") == pytest.approx(0.005)
    assert timeline.failure_to_circuits_s == pytest.approx(0.105)
    assert timeline.failure_to_step_s == pytest.approx(0.205)


def test_the_document_has_what_scripts_rely_on(recovered):
    document = json.loads(json.dumps(recovered().document()))
    assert (document["failure_to_circuits_s"], document["failure_to_step_s"]) == (0.13, 0.19)
    assert document["timeline"][1] == {"name": "detected", "title": TITLES["detected"], "at_s": 0.002}
    load = {"name": "load", "title": "state loaded", "lane": "state", "starts_s": 0.009, "ends_s": 0.02}
    assert load in document["spans"]
    assert (document["t0_known_by"], document["failed"], document["run"]) == ("kill", ["h2-gpu0"], "r1")


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_moment_is_at_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match=r"expected 0 or more"):
        Timeline(0.0, KnownBy.KILL, (Moment("step", "step", seconds),))


def test_a_moment_is_there_once():
    with pytest.raises(ValueError, match="a moment occurs twice"):
        Timeline(0.0, KnownBy.KILL, (Moment("step", "", 1.0), Moment("step", "", 2.0)))


def test_a_moment_is_never_before_the_failure():
    with pytest.raises(ValueError, match=r"step is -0\.1 s"):
        Timeline(0.0, KnownBy.KILL, (Moment("step", "step", -0.1),))


def test_the_published_timeline_is_whole():
    found = [(span.starts_s, span.ends_s) for span in MORPHLUX.spans()]
    assert found == [(0, 1.1), (1.1, 4.5), (4.5, 14.5), (14.5, 16.6), (16.6, 25.6)]
    assert (MORPHLUX.failure_to_circuits_s, MORPHLUX.failure_to_step_s) == (1.1, found[-1][1])
    assert "2508.03674" in MORPHLUX.source
