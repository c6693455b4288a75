"""The breaker: where much of a rack fails at once it is no single fault, and nothing is swapped for it.

It stands in the way of swaps only. What recovers or takes back goes on, and so does everything a person does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lumctl.health.states import ComponentHealth, State, is_fault
from lumctl.inventory.policies import Breaker
from lumctl.site.observation import Observation

Onsets = Mapping[tuple[str, str], float]
"""When each accelerator and host (kind, id) last began to be at fault."""

_LOST = frozenset({"host.missed"})
"""What says of a host that it may be gone, before it is certain."""


@dataclass(frozen=True, slots=True)
class BreakerState:
    """A breaker of one policy in one rack. ``closed_at``: what began before that is left to people."""

    open_since: float | None = None
    why: str = ""
    closed_at: float = 0.0


def onsets_of(look: Observation, rack: str, kept: Onsets, *, keep_s: float) -> dict[tuple[str, str], float]:
    """The onsets known so far with those of a look; one that recovered within ``keep_s`` still counts."""
    found = {place: at for place, at in kept.items() if look.at - at < keep_s}
    lost_hosts = set()
    whole = {i.id for i in look.report.incidents if i.id.partition(":")[0] in {"rack", "host"}}
    for name, host in look.report.hosts.items():
        if look.inventory.hosts[name].rack == rack and (began := _began(host, whole, look)) is not None:
            lost_hosts.add(name)
            found["host", name] = max(began, found.get(("host", name), began))
    for name, accelerator in look.report.accelerators.items():
        place = look.inventory.accelerators[name]
        # Behind a host that is lost there is one fault, not eight.
        if place.rack == rack and place.host not in lost_hosts and (began := _began(accelerator, whole, look)):
            found["accelerator", name] = max(began, found.get(("accelerator", name), began))
    return found


def _began(health: ComponentHealth, whole: set[str], look: Observation) -> float | None:
    if health.disabled or health.maintenance is not None or health.state is State.DISABLED:
        return None
    began = [f.since for f in health.findings if is_fault(f.state) or f.rule in _LOST or f.incident in whole]
    if health.kind == "host" and not began:
        began = [i.since for i in look.report.incidents if i.id == f"host:{health.id}"]
    return min(max(began), look.at) if began else None


def step(
    state: BreakerState, settings: Breaker, look: Observation, rack: str, onsets: Onsets, now: float
) -> BreakerState:
    """The breaker after one look; the same object where nothing changed."""
    why = _too_much(settings, look, rack, onsets, now)
    if state.open_since is None:
        return state if why is None else replace(state, open_since=now, why=why)
    if why is None and now - max(onsets.values(), default=0.0) >= settings.quiet_s:
        return BreakerState(closed_at=now)
    return state


def closes_at(settings: Breaker, onsets: Onsets) -> float:
    """When an open breaker closes if nothing more fails."""
    return max(onsets.values(), default=0.0) + max(settings.quiet_s, settings.window_s)


def _too_much(settings: Breaker, look: Observation, rack: str, onsets: Onsets, now: float) -> str | None:
    """Why the breaker opens, in words; ``None`` if it does not."""
    for kind, group in (("host", look.report.hosts), ("accelerator", look.report.accelerators)):
        members = look.inventory.hosts if kind == "host" else look.inventory.accelerators
        serving = [name for name, health in group.items() if members[name].rack == rack and not health.disabled]
        began = [
            name for (of, name), at in onsets.items() if of == kind and name in group and now - at < settings.window_s
        ]
        if len(began) >= settings.least and len(began) > settings.share * len(serving):
            shown = ", ".join(began[:3]) + (f" and {len(began) - 3} more" if len(began) > 3 else "")  # noqa: PLR2004
            return (
                f"{len(began)} of {len(serving)} {kind}s of {rack} began to fail within {settings.window_s:g} s "
                f"({shown}), more than {settings.share:.0%}"
            )
    return None
