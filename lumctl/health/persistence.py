"""Which findings are active, and since when. Some count only after they last; some stay for a while after they end.

An observation without information changes nothing: a finding whose probe returned no answer is neither confirmed nor
refuted.
"""

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from lumctl.health.look import Place
from lumctl.health.rulebook import advice_of, has_case, looks_at, verdict
from lumctl.health.states import SEVERITY, Finding, Health, Judged, State, gravest_first, judged, kind_and_id

_MOST_MARKS, _MOST_CHARACTERS = 64, 400
"""Limits: findings per component, and characters of evidence. So a host with invalid output cannot fill the memory."""

Key = tuple[str, str, str]
"""Rule, case and subject: the identity of a finding of one component."""


@dataclass
class FindingMark:
    """One remembered finding. ``first`` and ``last`` are the times of the first and last observation that showed it.

    ``read_at`` is the time of its last reading. ``since`` is the start that the finding states. ``clear_since`` is the
    time from which every observation has refuted the finding. ``looks`` counts the new readings that showed it.
    ``stands``: the finding is active.
    """

    first: float
    last: float
    since: float
    state: State
    evidence: str
    looks: int = 0
    read_at: float | None = None
    stands: bool = False
    clear_since: float | None = None


def key_of(finding: Finding) -> Key:
    """The identity of a finding within its component."""
    return finding.rule, finding.case, finding.about


class StandingFindings:
    """The marks of all components."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        document = document or {}
        looked_at = document.get("looked_at")
        self._looked_at: float | None = None if looked_at is None else float(looked_at)
        self._marks: dict[Place, dict[Key, FindingMark]] = {}
        for kind, component, rule, case, about, *mark in document.get("marks", ()):
            # Another edition of the rules, or a plug-in that was removed, may have known more cases.
            if has_case(rule, case):
                marks = self._marks.setdefault((str(kind), str(component)), {})
                marks[rule, case, str(about)] = _mark_from(mark)

    def lost_hosts(self) -> frozenset[str]:
        """The hosts that are known to be unreachable."""
        return frozenset(
            component
            for (kind, component), marks in self._marks.items()
            if kind == "host" and any(rule == "host.unreachable" for rule, _, _ in marks)
        )

    def begin(self, places: Collection[Place], now: float, *, forgets_after_s: float) -> None:
        """Begin an observation of these components: forget all others, and everything if the last one is too old."""
        # Also if the clock was set back: no duration could be trusted.
        if self._looked_at is not None and not 0 <= now - self._looked_at <= forgets_after_s:
            self._marks.clear()
        for place in [place for place in self._marks if place not in places]:
            del self._marks[place]

    def clear(self, place: Place, rule: str, until: float) -> None:
        """Forget a rule's findings about a component up to a time at once, without waiting until it is stable."""
        marks = self._marks.get(place, {})
        for key in [key for key, mark in marks.items() if key[0] == rule and mark.last <= until]:
            del marks[key]

    @property
    def looked_at(self) -> float | None:
        """When the last observation ended; ``None`` before the first."""
        return self._looked_at

    def end(self, now: float) -> None:
        """End an observation."""
        self._looked_at = now

    def settle(self, health: Judged, now: float, *, at_work: bool, moving: bool) -> Judged:
        """A component with its active findings.

        During maintenance a finding ends as soon as it is refuted. While a run changes the component's light path, new
        findings are expected and count as ``unknown``.
        """
        known = self._marks.get(kind_and_id(health))
        if not health.findings and not known:
            return health
        return judged(health, self._findings(health, now, at_work=at_work, moving=moving))

    def _findings(self, health: Health, now: float, *, at_work: bool, moving: bool) -> tuple[Finding, ...]:
        marks = self._marks.setdefault(kind_and_id(health), {})
        seen = {key_of(finding) for finding in health.findings}
        found = [self._confirmed(marks, finding, health.read_at, now, moving=moving) for finding in health.findings]
        found += [self._unseen(marks, key, health, now, at_work=at_work) for key in list(marks) if key not in seen]
        if not marks:
            del self._marks[kind_and_id(health)]
        return gravest_first(finding for finding in found if finding is not None)

    @staticmethod
    def _confirmed(
        marks: dict[Key, FindingMark], finding: Finding, read_at: float | None, now: float, *, moving: bool
    ) -> Finding | None:
        """A finding of this observation, if it is active."""
        key = key_of(finding)
        mark = marks.get(key)
        if mark is None:
            # Only a new finding: what was there before the run is not explained by it.
            if moving:
                return _expected(finding)
            if len(marks) >= _MOST_MARKS:
                # There is no room to remember it, so only a finding that needs no time can count.
                return finding if verdict(finding.rule, finding.case).at_once else None
            mark = marks[key] = FindingMark(now, now, finding.since, finding.state, "")
        return replace(finding, since=mark.since) if _seen_again(mark, finding, read_at, now) else None

    def _unseen(
        self,
        marks: dict[Key, FindingMark],
        key: Key,
        health: Health,
        now: float,
        *,
        at_work: bool,
    ) -> Finding | None:
        """A finding that this observation does not repeat, if it is still active."""
        mark = marks[key]
        # A rule without probes needs `seen` alone: the empty set is within any other.
        told = bool(health.seen) and looks_at(key[0]).probes <= health.seen
        if told and self._is_over(key, mark, now, at_work=at_work):
            del marks[key]
            return None
        if not told:
            mark.clear_since = None
        # Components of an unread host have no findings: the host's own finding is the reason.
        shown = mark.stands and health.otherwise is not State.UNKNOWN
        return _remembered(health.id, key, mark, now) if shown else None

    def _is_over(self, key: Key, mark: FindingMark, now: float, *, at_work: bool) -> bool:
        """Whether a finding that this observation does not show has ended."""
        if not mark.stands or at_work:
            return True
        sticks_s = verdict(key[0], key[1]).clears_after_s
        if self._looked_at is not None and now - self._looked_at > sticks_s:
            # The last observation is further back than the time that the finding would stay, so it does not stay.
            return True
        mark.clear_since = now if mark.clear_since is None else min(mark.clear_since, now)
        return now - mark.clear_since >= sticks_s

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "looked_at": self._looked_at,
            "marks": [
                [*place, *key, *astuple(mark)] for place, marks in self._marks.items() for key, mark in marks.items()
            ],
        }


def _seen_again(mark: FindingMark, finding: Finding, read_at: float | None, now: float) -> bool:
    """Note that a finding was seen; return whether it is active."""
    if mark.read_at is None or read_at is None or read_at > mark.read_at:
        # The same reading in another observation is no new evidence.
        mark.looks += 1
        mark.read_at = read_at
    mark.last, mark.clear_since = now, None
    mark.since = min(mark.since, finding.since)
    mark.state, mark.evidence = finding.state, finding.evidence[:_MOST_CHARACTERS]
    line = verdict(finding.rule, finding.case)
    if mark.looks >= line.appears_looks and now - mark.first >= line.appears_after_s:
        mark.stands = True
    return mark.stands


def _remembered(component: str, key: Key, mark: FindingMark, now: float) -> Finding:
    rule, case, about = key
    evidence = f"{mark.evidence}; last seen {max(now - mark.last, 0.0):.0f} s ago"
    line = verdict(rule, case)
    advice = advice_of(line, component, about)
    return Finding(component, rule, mark.state, evidence, advice, mark.since, case, about=about, gravity=line.gravity)


def _expected(finding: Finding) -> Finding:
    """A finding while a run moves the light: not a fault yet and no proof of health, so its state is ``unknown``."""
    if SEVERITY.index(finding.state) <= SEVERITY.index(State.UNKNOWN):
        return finding
    return replace(finding, state=State.UNKNOWN, evidence=f"{finding.evidence}; its light path is being changed")


def _mark_from(written: list[Any]) -> FindingMark:
    first, last, since, state, evidence, looks, read_at, stands, clear_since = written
    return FindingMark(
        float(first),
        float(last),
        float(since),
        State(state),
        str(evidence),
        int(looks),
        None if read_at is None else float(read_at),
        bool(stands),
        None if clear_since is None else float(clear_since),
    )
