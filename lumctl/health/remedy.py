"""The remedy of each fault that health found: what to repair, and how. All offered swaps are based on it.

The words of a finding's advice are in ``rules/*.yaml``; :mod:`lumctl.health.rulebook` puts them into the finding.

A remedy belongs to a cause: that of an incident, or a component with a fault of its own. It gives the accelerators that
spares should replace, the PUCs that light should avoid, or the manual repair, and the reason.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from lumctl.health.lateness import STRAGGLER
from lumctl.health.states import (
    SEVERITY,
    SPARE_FIRST,
    Finding,
    Health,
    HealthReport,
    Incident,
    State,
    is_fault,
    kind_and_id,
)
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Assignment, circuits_of, jobs_in, networks_of
from lumctl.printable import counted, is_or_are

_SHOWN = 3
_DEAD_LANE = frozenset({"link.tx-power", "link.down", "link.missing"})
_LIGHT_ARRIVES_WEAK = frozenset({"link.rx-power", "circuit.dim", "circuit.rx-margin"})
_COOLED_FIRST = frozenset({"gpu.temperature"})
"""Findings on an accelerator that still works. Cool it before you swap in a spare, which may become as hot."""
_DRAINS_HOST = re.compile(r"\bdrain\b[^,;]*\bhost\b")
"""An advice that begins with draining the host: its work is moved away before the host stops."""
_DEVICE_GOES_ON = frozenset({"device.alarm", "device.temperature"})
"""Findings on a device that still answers, so that its circuits can still be changed."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The repair of a cause. ``components`` are the cause and all affected ones; ``state`` is their worst.

    ``evidence`` shows the cause. ``replace`` are accelerators with ranks that spares should replace together.
    ``avoid`` are PUCs or fibres that light should be routed around. Both are empty if nothing in the rack repairs the
    job, or if no rank depends on the cause. ``by_hand`` is the manual repair, with the reason; ``hand_first``: try it
    before a spare, because it may be enough. ``certain`` is false if no reading shows which of several components is at
    fault. ``suspects`` are PUCs that may be at fault, listed if there are too few spares for the repair. ``drain`` is
    the host that the manual repair says to drain, if ranks run on it, on accelerators that have not failed, that
    ``replace`` does not move: those ``on_it``.
    """

    cause: str
    kind: str
    state: State
    components: tuple[str, ...]
    evidence: str = ""
    replace: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    by_hand: str = ""
    certain: bool = True
    suspects: tuple[str, ...] = ()
    hand_first: bool = False
    drain: str = ""
    on_it: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Kind and id of the cause; this is also the id of its incident, if it has one."""
        return f"{self.kind}:{self.cause}"

    @property
    def command(self) -> str:
        """The command that plans the repair; empty if no command does."""
        return swap_command(self.replace, self.avoid)

    @property
    def without_swap(self) -> str:
        """The manual repair in words, if no swap comes before it."""
        return self.by_hand.removeprefix("then ").removeprefix(f"repair {self.cause}: ")

    @property
    def words(self) -> str:
        """What to do, in one line."""
        if self.hand_first and self.command:
            return f"{self.by_hand}; if that does not help: {self.command}"
        return "; ".join(part for part in (self.command, self.by_hand) if part)


def swap_command(replaced: Iterable[str], avoid: Iterable[str]) -> str:
    """The command that plans to replace accelerators and to route light around PUCs; empty without either."""
    options = [("--failed", tuple(replaced)), ("--avoid", tuple(avoid))]
    words = [f"{name} {','.join(values)}" for name, values in options if values]
    return f"lumctl swap plan {' '.join(words)}" if words else ""


def remedies(report: HealthReport, inventory: Inventory, assignment: Assignment) -> tuple[Remedy, ...]:
    """The remedy of each cause of the faults in a report, the worst first; of equal states, what affects a job first.

    Components out of service or in maintenance need no remedy.
    """
    causes, parts = _Remedies(report, inventory, assignment), job_parts(report, inventory, assignment)
    found = map(causes.with_drain, causes.all())
    return tuple(sorted(found, key=lambda each: (-SEVERITY.index(each.state), parts.isdisjoint(each.components))))


def host_to_drain(
    report: HealthReport, inventory: Inventory, ranked: Collection[str], component: str, advice: str
) -> tuple[str, tuple[str, ...]]:
    """The host that the advice about a component says to drain, and the accelerators there that run ranks and work.

    ``ranked`` are all accelerators that run ranks. The host is empty if the advice says no such thing.
    """
    if not _DRAINS_HOST.search(advice):
        return "", ()
    part = inventory.accelerators.get(component) or inventory.transponders.get(component)
    host = component if component in inventory.hosts else part.host if part is not None else ""
    there = (each.id for each in inventory.accelerators_of(host) if each.id in ranked) if host else ()
    return host, tuple(name for name in there if report.accelerators[name].state is not State.FAILED)


def job_parts(report: HealthReport, inventory: Inventory, assignment: Assignment) -> frozenset[str]:
    """What jobs run on: the accelerators of ranks, their hosts, and the circuits.

    A fault elsewhere affects no running job. It may prevent help: a mesh whose controller does not answer keeps its
    light paths, but cannot be changed.
    """
    ranked = [name for ranks in jobs_in(assignment).values() for name in ranks if name in inventory.accelerators]
    return frozenset((*ranked, *(inventory.accelerators[name].host for name in ranked), *report.circuits))


class _Remedies:
    def __init__(self, report: HealthReport, inventory: Inventory, assignment: Assignment) -> None:
        self._report = report
        self._inventory = inventory
        jobs = jobs_in(assignment)
        self._ranked = frozenset(accelerator for ranks in jobs.values() for accelerator in ranks)
        self._assignment = assignment
        self._spares = Counter(
            self._place(a.id)
            for a in inventory.accelerators.values()
            if a.role is Role.SPARE and a.id not in self._ranked and self._is_fit(a.id)
        )

    def all(self) -> Iterator[Remedy]:
        for incident in self._report.incidents:
            if any(self._needs_one(health) for health in self._members(incident)):
                yield self._of_incident(incident)
        for health in self._report.with_findings:
            own = [finding for finding in health.findings if is_fault(finding.state) and finding.incident is None]
            if own and self._needs_one(health):
                kind, name = kind_and_id(health)
                yield self._of(kind, name, health.state, (name,), own[0])

    def with_drain(self, remedy: Remedy) -> Remedy:
        """The remedy with the host to drain and the accelerators of the ranks that still run there, if it has any."""
        host, there = host_to_drain(self._report, self._inventory, self._ranked, remedy.cause, remedy.by_hand)
        on_it = tuple(name for name in there if name not in remedy.replace)
        return replace(remedy, drain=host, on_it=on_it) if on_it else remedy

    @staticmethod
    def _needs_one(health: Health) -> bool:
        return is_fault(health.state)

    def _members(self, incident: Incident) -> list[Health]:
        return [
            health
            for health in self._report.with_findings
            if any(finding.incident == incident.id for finding in health.findings)
        ]

    def _of_incident(self, incident: Incident) -> Remedy:
        kind = incident.id.partition(":")[0]
        members = tuple(dict.fromkeys((incident.cause, *incident.members)))
        findings = [f for health in self._members(incident) for f in health.findings if f.incident == incident.id]
        # The circuit's own finding shows which end lost its light; other findings of a link do not.
        own = [f for f in findings if f.component == incident.cause] if kind == "circuit" else []
        speaking = next(iter(own), None) or next((f for f in findings if f.rule == incident.rule), findings[0])
        remedy = self._of(kind, incident.cause, incident.state, members, speaking, incident.suspects)
        # Several transmitters of one circuit may be dead at once: all of them must be replaced to repair it.
        dead = [f.component for f in findings if f.rule in _DEAD_LANE and f.component != incident.cause]
        more = [a for lane in dead if (a := self._at(lane)) is not None and a not in remedy.replace]
        return replace(remedy, replace=(*remedy.replace, *dict.fromkeys(more))) if kind == "link" else remedy

    def _of(  # noqa: PLR0911 - one for each kind of cause
        self,
        kind: str,
        cause: str,
        state: State,
        components: tuple[str, ...],
        finding: Finding,
        suspects: tuple[str, ...] = (),
    ) -> Remedy:
        remedy = Remedy(cause, kind, state, components, f"{finding.component}: {finding.evidence}")
        if finding.rule == STRAGGLER:  # what makes a rank late is unknown, and a spare may not change it
            return replace(remedy, by_hand=finding.advice)
        match kind:
            case "rack" | "device":
                return replace(remedy, by_hand=_mended_by_hand(kind, cause, finding))
            case "puc":
                pucs = suspects or (cause,)
                return replace(remedy, avoid=pucs, by_hand=_then_written(pucs))
            case "fibre":
                return replace(remedy, avoid=(cause,), by_hand=self._fibre_words(cause))
            case "circuit":
                return self._of_circuit(remedy, finding, suspects)
            case "link":
                return self._of_link(remedy, finding)
            case "host":
                return self._of_host(remedy, finding)
            case _:
                failed = (cause,) if cause in self._ranked else ()
                if finding.rule.startswith(("circuit.", "link.")):
                    where = f"the light of all its lanes is lost at {cause}{_or_at(suspects)}"
                    return self._by_spares(replace(remedy, certain=not suspects), failed, where, suspects)
                if finding.rule in _COOLED_FIRST:
                    return self._by_spares(replace(remedy, hand_first=True), failed, finding.advice)
                return self._by_spares(remedy, failed, f"then repair {cause}: {after_a_swap(finding.advice)}")

    def _of_link(self, remedy: Remedy, finding: Finding) -> Remedy:
        cause, advice = remedy.cause, finding.advice
        circuit = next(
            (c for c in circuits_of(self._inventory, self._assignment) if cause in {c.a.transponder, c.b.transponder}),
            None,
        )
        # Weak light may be weakened at either end or between them, so the whole circuit is suspected.
        if circuit is not None and finding.rule in _LIGHT_ARRIVES_WEAK and finding.case != "dark":
            return self._of_circuit(remedy, finding, (circuit.a.transponder, circuit.b.transponder))
        accelerator = self._at(cause)
        failed = (accelerator,) if accelerator is not None else ()
        if finding.rule == "link.rx-power":
            advice = "replace its module: light arrives, as the other direction proves, but its receiver reads dark"
        return self._by_spares(remedy, failed, f"then repair {cause}: {after_a_swap(advice)}")

    def _fibre_words(self, name: str) -> str:
        """The manual repair of a fibre that loses light."""
        fibre = self._inventory.fibres[name]
        alone = len(fibre.pairs) == 1
        ends = [f"{place.device}/port/{place.port}" for place in fibre.pairs[0]] if alone else fibre.devices
        return f"the light is lost between {' and '.join(ends)}: clean or replace the fibre and its connectors"

    def _of_host(self, remedy: Remedy, finding: Finding) -> Remedy:
        """Replace all accelerators of a failed host that run ranks; for another host only those that have faults."""
        lost = self._report.hosts[remedy.cause].state is State.FAILED
        failed = tuple(
            a.id
            for a in self._inventory.accelerators_of(remedy.cause)
            if a.id in self._ranked and (lost or is_fault(self._report.accelerators[a.id].state))
        )
        if finding.rule in _COOLED_FIRST:
            return self._by_spares(replace(remedy, hand_first=True), failed, finding.advice)
        return self._by_spares(remedy, failed, f"then repair {remedy.cause}: {after_a_swap(finding.advice)}")

    def _of_circuit(self, remedy: Remedy, finding: Finding, suspects: tuple[str, ...]) -> Remedy:
        """The remedy of a circuit. No reading shows which end loses the light, so both ends are replaced."""
        suspects = suspects or tuple(end.transponder for end in self._report.circuits[remedy.cause].ends)
        ends = tuple(name for name in suspects if name in self._inventory.transponders)
        pucs = tuple(name for name in suspects if name in self._inventory.fibres or "/puc/" in name)
        if not ends:
            why = f"the light is lost at {' or '.join(suspects)}; no reading shows at which"
            return replace(remedy, certain=False, avoid=pucs, by_hand=why)
        lanes = [self._inventory.transponders[name] for name in ends]
        failed = tuple(dict.fromkeys(a for name in ends if (a := self._at(name)) is not None))
        ports = " and ".join(f"{lane.lane.device}/port/{lane.lane.rx}" for lane in lanes)
        lost = "weakened" if finding.rule in _LIGHT_ARRIVES_WEAK and finding.case != "dark" else "lost"
        where = f"the light is {lost} at a fibre, a media converter, a receiver or a port of {' or '.join(ends)}"
        why = f"{where}{_or_at(pucs)}, and no reading shows at which: measure it at {ports}"
        return self._by_spares(replace(remedy, certain=False), failed, why, pucs)

    def _by_spares(self, remedy: Remedy, failed: tuple[str, ...], by_hand: str, pucs: tuple[str, ...] = ()) -> Remedy:
        """Replace failed accelerators by spares, if there are enough, and route light around PUCs that may be stuck."""
        by_hand = by_hand.removeprefix("then ") if not failed else by_hand
        needed = Counter(map(self._place, failed))
        fitting = sum(min(count, self._spares[place]) for place, count in needed.items())
        if fitting == len(failed):
            return replace(remedy, replace=failed, avoid=pucs, by_hand=by_hand)
        # To replace some of them mends no job, so with too few spares none is replaced.
        few = f"{counted(fitting, 'spares that fit', 'spare that fits')} {is_or_are(fitting)} free"
        few = f"{few}, but {len(failed)} are needed" if fitting else "no spare that fits is free"
        alone = by_hand.removeprefix("then ").removeprefix(f"repair {remedy.cause}: ")
        return replace(remedy, by_hand=f"{few}; {alone}", suspects=pucs)

    def _place(self, accelerator: str) -> tuple[str, frozenset[str]]:
        """The rack and the networks of an accelerator: a spare can replace it only if it has the same."""
        return self._inventory.accelerators[accelerator].rack, networks_of(self._inventory, accelerator)

    def _at(self, lane: str) -> str | None:
        """The accelerator that a lane serves, if a rank runs on it."""
        written = self._inventory.transponders.get(lane)
        return written.accelerator if written is not None and written.accelerator in self._ranked else None

    def _is_fit(self, accelerator: str) -> bool:
        lanes = self._inventory.transponders_of(accelerator)
        links = [self._report.links[lane.id].state for lane in lanes]
        return self._report.accelerators[accelerator].state is State.OK and State.FAILED not in links


def without_vain_spares(report: HealthReport, inventory: Inventory, assignment: Assignment) -> HealthReport:
    """The same report, without the advice to swap in a spare for accelerators for which there are too few spares."""
    advised = {
        health.id
        for health in report.accelerators.values()
        if any(finding.advice.startswith(SPARE_FIRST) for finding in health.findings)
    }
    if not advised:
        return report
    vain = advised - {name for remedy in remedies(report, inventory, assignment) for name in remedy.replace}
    changed = {
        name: replace(
            report.accelerators[name],
            findings=tuple(
                replace(each, advice=after_a_swap(each.advice)) for each in report.accelerators[name].findings
            ),
        )
        for name in vain
    }
    return replace(report, accelerators={**report.accelerators, **changed})


def after_a_swap(advice: str) -> str:
    """The part of an advice that remains after a spare is swapped in."""
    return advice.removeprefix(SPARE_FIRST)


def _mended_by_hand(kind: str, cause: str, finding: Finding) -> str:
    """What to do about a rack or a device, which a spare cannot replace."""
    if kind == "rack":
        # First what ends the search for a spare, and what to check: a small terminal may cut the rest.
        return f"no swap helps: check its power, network, cooling; all spares are in {cause} too"
    if finding.rule in _DEVICE_GOES_ON:
        return finding.advice
    return f"{finding.advice}; until then {cause} cannot be changed: no swap that writes it can be applied"


def _or_at(pucs: Collection[str]) -> str:
    if len(pucs) > _SHOWN:
        return f", or at one of {len(pucs)} PUCs of {next(iter(pucs)).partition('/')[0]}"
    return f", or at {' or '.join(pucs)}" if pucs else ""


def _then_written(pucs: Collection[str]) -> str:
    """Advice to mark a PUC as damaged in the inventory, so that no later plan uses it."""
    numbers = ", ".join(puc.rpartition("/")[2] for puc in pucs)
    device = next(iter(pucs)).partition("/")[0]
    one = "it does" if len(pucs) == 1 else "one of them does"
    return f"{one} not take the written state; then add `damaged: [{numbers}]` to {device} in the inventory"
