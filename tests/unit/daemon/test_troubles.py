"""What goes wrong is told once for each kind, counted each time, and told again when it is over."""

import pytest

from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError


@pytest.fixture
def troubles(said):
    return ErrorLog(said.append)


def test_each_kind_is_told_once_and_counted_each_time(troubles, said):
    for _ in range(3):
        troubles.arose("look", UsageError("the mesh is gone", hint="plug it in"))
    troubles.arose("look", ValueError("odd"))
    troubles.arose("history", UsageError("full"))
    assert said[0] == "look: the mesh is gone (hint: plug it in)"
    assert said[1] == "look: unexpected ValueError: odd"
    assert said[2] == "history: full"
    assert len(said) == 3
    assert troubles.counts() == {("look", "UsageError"): 3, ("look", "ValueError"): 1, ("history", "UsageError"): 1}


def test_the_end_is_told_and_the_next_time_is_news_again(troubles, said):
    troubles.passed("look")
    assert said == []
    troubles.arose("look", UsageError("gone"))
    troubles.arose("look", UsageError("gone"))
    troubles.passed("history")
    troubles.passed("look")
    troubles.passed("look")
    troubles.arose("look", UsageError("gone"))
    assert said == ["look: gone", "look: well again after 2 failures", "look: gone"]
    assert troubles.counts()["look", "UsageError"] == 3


def test_a_bug_is_named_with_its_place_and_its_trace_on_request(troubles, said, monkeypatch):
    def fall(where):
        try:
            {}["h01"]
        except KeyError as error:
            troubles.arose(where, error)

    fall("look")
    assert said[0].startswith("look: unexpected KeyError: 'h01' at test_troubles.py:")
    monkeypatch.setenv("LUMCTL_TRACEBACK", "1")
    fall("history")
    assert "Traceback" in said[1]
