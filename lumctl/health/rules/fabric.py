"""Whether a GPU is registered with its NVLink fabric, and the health of its routes there."""

from collections.abc import Iterator
from types import MappingProxyType

from lumctl.health.rulebook import found
from lumctl.health.rules.cases import GpuCase
from lumctl.health.states import Finding

_UNSUPPORTED = "not supported"
_REGISTERED = frozenset({"completed", _UNSUPPORTED})
_WELL = frozenset({"success", "healthy", "full", "false", "none", "no", _UNSUPPORTED})
"""Words in lower case that mean no fault; an unknown word is a fault. Readings never contain ``N/A``."""
_PARTS = MappingProxyType(
    {
        "health/summary": "summary",
        "health/bandwidth": "bandwidth",
        "health/route_recovery_in_progress": "route-recovery",
        "health/route_unhealthy": "route-unhealthy",
        "health/access_timeout_recovery": "access-timeout",
        "health/incorrect_configuration": "configuration",
    }
)
"""The case for each part of a GPU's fabric health. Other parts, such as an assigned partition, are not health."""
_LIMITED = "limited capacity"


def registration(case: GpuCase) -> Iterator[Finding]:
    """A registration with the fabric that is missing, in progress, or ended with an error."""
    told = case.reading.fabric if case.reading is not None else {}
    state, status = told.get("state", _UNSUPPORTED), told.get("status", _UNSUPPORTED)
    since = case.read_at
    if state.lower() == "in progress":
        evidence = "its registration with the fabric is in progress"
        yield found(case.id, "gpu.fabric", "registering", evidence, since=since)
        # A case of its own, which counts only after it has lasted.
        yield found(case.id, "gpu.fabric", "not-registered", f"{evidence} and does not end", since=since)
    elif state.lower() not in _REGISTERED:
        evidence = f"it is not registered with the fabric (state: {state})"
        yield found(case.id, "gpu.fabric", "not-started", evidence, since=since)
    elif status.lower() not in _WELL:
        evidence = f"its registration with the fabric ended with an error (status: {status})"
        yield found(case.id, "gpu.fabric", "error", evidence, since=since)


def health(case: GpuCase) -> Iterator[Finding]:
    """Faults that newer drivers report about the links and routes behind a GPU."""
    told = case.reading.fabric if case.reading is not None else {}
    for part, name in _PARTS.items():
        word = told.get(part, _UNSUPPORTED)
        if word.lower() not in _WELL:
            limited = name == "summary" and word.lower() == _LIMITED
            evidence = f"fabric health: {part.partition('/')[2].replace('_', ' ')} is {word}"
            yield found(case.id, "gpu.fabric", "limited" if limited else name, evidence, since=case.read_at)


RULES = (registration, health)
