"""How the newest run of each probe of one host ended."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime

from lumctl.fleet.lanes import Running
from lumctl.fleet.probe_output import Verdict
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeOutcome, ProbeStatus


class Outcomes:
    """By the number of the probe: its place among the host's probes. ``now`` gives epoch seconds."""

    def __init__(self, probes: Sequence[Probe], now: Callable[[], float]) -> None:
        self._probes = probes
        self._now = now
        self._all = range(len(probes))
        self._found: dict[int, ProbeOutcome | None] = dict.fromkeys(self._all)

    def numbers(self, names: Collection[str] | None) -> Sequence[int]:
        """All probes, or those named by name or kind."""
        if names is None:
            return self._all
        return [n for n in self._all if self._probes[n].name in names or self._probes[n].kind in names]

    def known(self, number: int) -> bool:
        """Whether the probe has ended in any way since the host is read."""
        return self._found[number] is not None

    @property
    def complete(self) -> bool:
        """Whether every probe has ended in any way since the host is read."""
        return None not in self._found.values()

    def named(self, names: Collection[str] | None) -> dict[str, ProbeOutcome]:
        """What is known of some probes, by name."""
        return {self._probes[n].name: found for n in self.numbers(names) if (found := self._found[n]) is not None}

    def answered(self, number: int, verdict: Verdict, began_at: float, seconds: float) -> None:
        """An answer came, and was read."""
        status, detail = verdict
        self._found[number] = ProbeOutcome(self._probes[number].name, status, began_at, seconds, detail)

    def note(self, numbers: Iterable[int], status: ProbeStatus, detail: str) -> None:
        """Some probes were not even begun."""
        for number in numbers:
            self._found[number] = ProbeOutcome(self._probes[number].name, status, self._now(), 0.0, detail)

    def overdue(self, number: int, hanging: Running, now: float, *, again: bool) -> None:
        """A probe hangs (``now``: monotonic), or another before it; ``again``: somebody asks for it meanwhile."""
        if number != hanging.probe:
            self.note((number,), ProbeStatus.TIMED_OUT, f"waits behind {self._probes[hanging.probe].name}, which hangs")
            return
        detail, at = f"no answer within {self._probes[number].deadline_s:g} s", hanging.began_at
        if again:
            since = datetime.fromtimestamp(hanging.began_at, UTC)
            detail, at = f"still hanging since {since:%Y-%m-%dT%H:%M:%SZ}", self._now()
        self.answered(number, (ProbeStatus.TIMED_OUT, detail), at, now - hanging.since)
