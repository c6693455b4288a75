import pytest

from lumctl.training.repeated_recoveries import several
from lumctl.training.timeline import KnownBy


def test_the_median_and_the_worst_of_each_moment(recovered):
    found = several([recovered(), recovered(3.0), recovered(2.0)])
    assert found.typical.failure_to_step_s == pytest.approx(0.38, abs=1e-6)
    assert found.worst["step"] == pytest.approx(0.57, abs=1e-6)
    assert found.worst["verified"] == pytest.approx(0.39, abs=1e-6)


def test_one_slow_moment_is_the_worst_of_its_own(recovered):
    found = several([recovered(), recovered(state=0.5, joined=0.6, step=0.7), recovered()])
    assert found.worst["state"] == pytest.approx(0.5, abs=1e-6)
    assert found.worst["verified"] == pytest.approx(0.13, abs=1e-6)
    assert found.typical.at("state") == pytest.approx(0.02, abs=1e-6)


def test_as_data(recovered):
    document = several([recovered(), recovered(2.0), recovered(step=None, joined=None)]).document()
    assert (document["runs"], document["recovered"]) == (3, 2)
    assert document["failure_to_circuits_s"] == 0.13
    assert document["failure_to_circuits_worst_s"] == 0.26
    assert (document["failure_to_step_s"], document["failure_to_step_worst_s"]) == (0.285, 0.38)
    step = document["timeline"][-1]
    assert step == {"name": "step", "title": "next step done", "at_s": 0.285, "worst_s": 0.38, "runs": 2}
    assert document["t0_known_by"] == "kill"


def test_where_nobody_swapped_there_is_no_figure_for_it(recovered):
    document = several([recovered(planned=None, circuits=None, verified=None)]).document()
    assert document["failure_to_circuits_s"] is None
    assert document["failure_to_circuits_worst_s"] is None


def test_the_weakest_knowledge_of_the_failure_holds_for_all(recovered):
    assert several([recovered(), recovered(known_by=KnownBy.DETECTION)]).typical.known_by is KnownBy.DETECTION


def test_of_none_there_is_no_median():
    with pytest.raises(ValueError, match="no recovery"):
        several([])
