"""The health of circuits and links of a job that changes its light while it is read."""

import pytest

from lumctl.context.health_memory import _with_changing
from lumctl.health.persistence import _expected
from lumctl.health.states import CircuitEndHealth, CircuitHealth, ComponentHealth, Finding, HealthReport, State, judged

DARK = Finding("a", "link.down", State.FAILED, "eth3 is down", "look at it", 1.0)
MODULE = Finding("a", "link.module", State.FAILED, "the module reports a fault", "replace it", 1.0)
SILENT = Finding("a", "host.unreachable", State.UNKNOWN, "h1 does not answer", "look at it", 1.0)
WEAK = Finding("a", "link.margin", State.DEGRADED, "weak light", "clean it", 1.0)
ELSEWHERE = Finding("c", "circuit.wrong-transmitter", State.FAILED, "a hears x instead of b", "look", 1.0)


def report(*, link, circuit):
    """A circuit between lanes a and b, and the findings on a and on the circuit."""
    ends = tuple(CircuitEndHealth(name, "rail0", at, None, None, None) for at, name in enumerate("ab"))
    of_link = judged(ComponentHealth("a", "link", State.OK, otherwise=State.OK), link)
    of_circuit = judged(CircuitHealth("c", "train", "duplex", State.OK, ends, None, otherwise=State.OK), circuit)
    return HealthReport(2.0, {}, {}, {"a": of_link}, {}, {"c": of_circuit})


@pytest.mark.parametrize(
    ("link", "circuit", "states"),
    [
        ((), (), ("ok", "ok")),
        ((_expected(DARK),), (_expected(ELSEWHERE),), ("ok", "ok")),
        ((SILENT,), (), ("unknown", "ok")),
        ((_expected(MODULE),), (), ("unknown", "ok")),
        ((WEAK,), (), ("degraded", "ok")),
        ((DARK,), (ELSEWHERE,), ("failed", "failed")),
    ],
)
def test_what_is_read_while_light_changes_counts_only_if_it_was_there_before(link, circuit, states):
    found = _with_changing(report(link=link, circuit=circuit), {"c": True})
    assert (str(found.links["a"].state), str(found.circuits["c"].state)) == states


def test_without_evidence_circuits_are_unknown():
    found = _with_changing(report(link=(_expected(DARK),), circuit=()), {"c": False})
    assert (str(found.links["a"].state), str(found.circuits["c"].state)) == ("unknown", "unknown")
