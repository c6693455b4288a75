"""What goes wrong is told once for each kind, counted each time, and told again when it is over."""

import pytest

from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError


@pytest.fixture
def errors(said):
    return ErrorLog(said.append)


def test_each_kind_is_told_once_and_counted_each_time(errors, said):
    for _ in range(3):
        errors.record("look", UsageError("the mesh is gone", hint="plug it in"))
    errors.record("look", ValueError("odd"))
    errors.record("history", UsageError("full"))
    assert said[0] == "look: the mesh is gone (hint: plug it in)"
    assert said[1] == "look: unexpected ValueError: odd"
    assert said[2] == "history: full"
    assert len(said) == 3
    assert errors.counts() == {("look", "UsageError"): 3, ("look", "ValueError"): 1, ("history", "UsageError"): 1}


def test_the_end_is_told_and_the_next_time_is_news_again(errors, said):
    errors.resolve("look")
    assert said == []
    errors.record("look", UsageError("gone"))
    errors.record("look", UsageError("gone"))
    errors.resolve("history")
    errors.resolve("look")
    errors.resolve("look")
    errors.record("look", UsageError("gone"))
    assert said == ["look: gone", "look: ok again after 2 failures", "look: gone"]
    assert errors.counts()["look", "UsageError"] == 3


def test_a_bug_is_named_with_its_place_and_its_trace_on_request(errors, said, monkeypatch):
    def fall(where):
        try:
            {}["h01"]
        except KeyError as error:
            errors.record(where, error)

    fall("look")
    assert said[0].startswith("look: unexpected KeyError: 'h01' at test_errors.py:")
    monkeypatch.setenv("LUMCTL_TRACEBACK", "1")
    fall("history")
    assert "Traceback" in said[1]
