"""A sharing policy of a plug-in is found, asked and followed; one that misbehaves costs its own answer only."""

import json
import sys
import threading
from itertools import count

import pytest

from lumctl.cli import main
from lumctl.errors import UsageError
from lumctl.spares import Demand, FreeSpare, SharingQuestion
from lumctl.spares.decision import decide, load, policy_names

SPARES = {"s1": FreeSpare("s1", "X100", 1), "s2": FreeSpare("s2", "X100", 1)}
ASKED = SharingQuestion(
    100.0,
    (
        Demand("demand-0001", "old", 1.0, (("s1",),), (frozenset({"X100"}),)),
        Demand("demand-0002", "new", 2.0, (("s1", "s2"),), frozenset({"X100"})),
    ),
    SPARES,
)
BEST_FIT = {"demand-0001": ("s1",), "demand-0002": ("s2",)}
NEWEST_FIRST = "def share(asked): return {asked.demands[-1].id: ['s1']}"
_modules = count()


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Offers a policy with this code under a name of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def offered(code, name="acme"):
        module = f"acme_sharing_{next(_modules)}"
        (tmp_path / f"{module}.py").write_text(code)
        metadata = tmp_path / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[lumctl.sharing]\n{name} = {module}:share\n")
        return name

    return offered


def test_it_is_found_by_its_entry_point_and_followed(offer):
    name = offer(NEWEST_FIRST)
    assert name in policy_names()
    decision = decide(name, ASKED)
    assert (decision.given, decision.policy, decision.fault) == ({"demand-0002": ("s1",)}, "acme", None)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("def share(asked): raise ValueError('no')", "raised ValueError"),
        ("def share(asked): raise SystemExit(3)", "raised SystemExit"),
        ("from lumctl.errors import RefusedError\ndef share(asked): raise RefusedError('no')", "no"),
        ("def share(asked): return None", "its answer is NoneType, not a mapping"),
        ("def share(asked): return {'demand-0001': ['s1'], 'demand-0002': ['s1']}", "s1 goes to demand-0001 and to"),
        ("def share(asked): return {'demand-0001': ['s9']}", "'s9' cannot be used for demand-0001"),
        ("share = 7", "is not a function"),
        ("import no_such_module_of_acme", "does not import"),
    ],
)
def test_a_wrong_one_is_told_and_best_fit_decides(offer, code, fault):
    decision = decide(offer(code), ASKED)
    assert (decision.given, decision.policy) == (BEST_FIT, "best-fit")
    assert fault in decision.fault
    assert "acme" in decision.fault


def test_one_that_is_late_is_not_asked_again(offer, monkeypatch):
    asked_for, done = [], threading.Event()
    monkeypatch.setitem(sys.modules, "acme_waits", type(sys)("acme_waits"))
    sys.modules["acme_waits"].wait = lambda: (asked_for.append(1), done.wait(60))
    name = offer("import acme_waits\ndef share(asked): acme_waits.wait()\n", "late")
    try:
        first, again = decide(name, ASKED), decide(name, ASKED)
    finally:
        done.set()
    assert first.given == again.given == BEST_FIT
    assert "it is not asked again" in first.fault
    assert again.fault == first.fault
    assert asked_for == [1]


def test_no_plug_in_takes_the_name_of_a_policy_of_lumctl(offer):
    offer(NEWEST_FIRST, "best-fit")
    assert decide("best-fit", ASKED).given == BEST_FIT


def test_one_that_is_not_installed_is_refused_where_it_is_named():
    with pytest.raises(UsageError, match="no sharing policy 'absent' is installed"):
        load("absent")


def test_plugins_and_simulated_years_know_it(offer, capsys):
    offer(NEWEST_FIRST)
    offer("def share(asked): raise ValueError('no')", "raises")
    assert main.run(["plugin", "list", "--check", "-o", "json"]) == 0
    sharing = {row["name"]: row for row in json.loads(capsys.readouterr().out)["sharing"]}
    assert (sharing["acme"]["kind"], sharing["acme"]["state"]) == ("sharing policy", "ok")
    pool = ["--accelerators", "64", "--spares", "a=2", "--mtbf", "3000h", "--years", "1"]
    assert main.run(["policy", "test", "--year", *pool, "--policy", "raises", "-o", "json"]) == 0
    said = capsys.readouterr()
    assert "warning: best-fit decided some questions instead: sharing policy 'raises' of" in said.err
    rows = {row["policy"]: row for row in json.loads(said.out)["policies"] if row["class"] == "all"}
    assert rows["raises"]["mean_wait_s"] == rows["best-fit"]["mean_wait_s"]
    assert main.run(["policy", "test", "--year", *pool, "--policy", "absent"]) == 2
