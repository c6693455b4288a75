"""The headline: the worst fault, its effect on jobs, and the key to press; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from lumctl.daemon.notifications.message import Case, cases_of
from lumctl.health.observation import Observation, orders_text, out_of_service
from lumctl.health.remedy import Remedy
from lumctl.health.states import SEVERITY, State
from lumctl.jobs.stopped_jobs import StoppedJob
from lumctl.printable import counted, ranks_text
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.views.incidents import condition_of, named, remedy_of
from lumctl.tui.views.job_risks import job_risks
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import fitting, swap_obstacle, ways_back

_PHRASES: Mapping[str, str] = {
    "host.unreachable": "does not answer",
    "host.missed": "did not answer the last time",
    "host.driver-hung": "has a GPU driver that hangs",
    "device.unreachable": "does not answer",
    "gpu.lost": "fell off the bus",
    "gpu.amd-smi.lost": "fell off the bus",
    "gpu.hung": "hangs",
    "gpu.ecc": "has memory errors",
    "gpu.row-remap": "cannot remap a bad row of memory",
    "gpu.temperature": "is too hot",
    "gpu.throttled": "is throttled",
    "link.down": "is down",
    "link.missing": "is missing on its host",
    "link.tx-power": "sends too little light",
    "link.rx-power": "receives too little light",
    "circuit.dark": "is dark",
    "circuit.dim": "is dim",
    "circuit.rx-margin": "has too little margin",
    "circuit.wrong-transmitter": "hears the wrong transmitter",
}
"""The predicate of a sentence about a component, by rule; for other rules the evidence is shown."""
_PHRASES_OF_CASES: Mapping[tuple[str, str], str] = {
    ("link.tx-power", "dark"): "sends no light",
    ("link.rx-power", "dark"): "receives no light",
    ("host.unreachable", "no-session"): "does not answer over SSH",
    ("host.unreachable", "no-exporter"): "does not answer over HTTP",
    ("host.unreachable", "host-key"): "shows an SSH key that is not trusted",
}
"""As ``_PHRASES``, by rule and case; these come first."""
_HOW = {"link": "cut off", "circuit": "cut off", "host": "out of sight", "rack": "out of sight"}
"""The effect on a rank when a component of this kind fails; for other kinds the rank is ``down``."""
_DETAILS = "5: details"
_FIND_OUT = "5: find out whether it is really down"
_OFF_THE_BUS = "fell off the bus"
_LONGEST_EVIDENCE = 72
_DETAIL = re.compile(r": | \(")


@dataclass(frozen=True, slots=True)
class News:
    """One message of the headline: what happened, its effect, and what to do.

    ``swaps`` are the accelerators whose replacement repairs it. ``by_key``: the key p replaces them, and ``do`` names
    that key. ``leads_on`` names the key that shows more of a fault for which ``do`` names none. ``pane`` is the id of
    the pane that the named key opens; empty if it opens none.
    """

    state: State
    what: str
    means: str = ""
    do: str = ""
    swaps: tuple[str, ...] = ()
    by_key: bool = False
    leads_on: str = ""
    pane: str = ""

    @property
    def words(self) -> str:
        """The whole message in one line."""
        return "; ".join(part for part in (self.what, self.means, self.do) if part)


def news_of(seen: RecordedLook) -> tuple[News, ...]:
    """Messages for the operator: first runs in progress, then faults, worst first, and jobs to resume.

    Of equal state, a job to resume comes first, then what affects a job. Plans that wait for approval are last. That
    the target was forgotten comes before all: everything else is a consequence.
    """
    moving, parts = set(seen.moving), seen.observation.job_parts
    cases = sorted(_open_cases(seen), key=lambda case: parts.isdisjoint((case.component, *case.members)))
    found = [*_unfinished(seen), *(_of_case(seen, case) for case in cases)]
    # A fault that a run under way repairs needs no message: the run has one.
    found = [news for news in found if not (news.swaps and moving.issuperset(news.swaps))]
    if seen.daemon_trouble:
        found.append(News(State.DEGRADED, seen.daemon_trouble, do="start it: lumctl watch"))
    found = sorted((*map(_not_resumed, seen.stopped_jobs), *found), key=lambda news: -SEVERITY.index(news.state))
    slip = [News(State.UNKNOWN, seen.forgotten_target)] if seen.forgotten_target else []
    found = [*slip, *_under_way(seen), *found, *_waiting(seen)]
    return tuple(replace(news, do=seen.aimed(news.do)) for news in found)


def quiet_line(observation: Observation, silent: int, *, is_safe: bool = True) -> str:
    """The headline without a fault; ``silent`` is the number of acknowledged or maintained incidents.

    ``is_safe`` is false if something is to be done, or a job is at risk, nevertheless.
    """
    report = observation.report
    groups = ((report.accelerators, "accelerators"), (report.circuits, "circuits"), (report.hosts, "hosts"))
    unknown = sum(h.state is State.UNKNOWN for group, _ in groups for h in group.values())
    if unknown:
        return f"no fault is known, but {counted(unknown, 'components')} could not be read"
    known = f"; {counted(silent, 'known incidents')}" if silent else ""
    working = [sum(health.state is not State.DISABLED for health in group.values()) for group, _ in groups]
    of_all = [f"{n} of " if n < len(group) else "" for n, (group, _) in zip(working, groups, strict=True)]
    said = ", ".join(f"{of}{counted(len(g), noun)}" for of, (g, noun) in zip(of_all, groups, strict=True) if g)
    orders = orders_text(out_of_service(observation))
    service = " in service" if any(of_all) else ""
    well = "nothing is wrong" if is_safe else "no fault is found"
    return f"{well}: {said}{service}{f' (accelerators: {orders})' if orders else ''}{known}"


def headline(seen: RecordedLook, news: Sequence[News], marks: Marks, width: int = 0) -> Text:
    """The headline of every pane: the first of its messages, and the number of others, or the key that leads on.

    If it needs no further line of ``width`` columns, it also says what the second message is about.
    """
    if not news:
        # The next step first: a small terminal does not show the end.
        line = "; ".join((*(f"{said} (S: how)" for said, _ in ways_back(seen)), _quiet(seen)))
        state = State.UNKNOWN if "could not be read" in line else State.OK
        return Text().append(f"{marks.glyphs.get(state, '')} ", STATE_STYLES[state]).append(line)
    first, *more = news
    text = Text().append(f"{marks.glyphs.get(first.state, '')} {first.what}", STATE_STYLES[first.state])
    if first.means:
        text.append(f"; {first.means}")
    if first.leads_on and not more:  # before the advice, whose end a small terminal does not show
        text.append(f" ({first.leads_on})")
    if first.do:
        text.append("; ")
        text.append(first.do, style="bold")
    if more:
        others = f"  5: {len(more)} more"
        also = f"; also: {more[0].what}"
        named = more[0].what.partition(" ")[0] in text.plain
        if width and not named and _lines(f"{text}{also}{others}", width) == _lines(f"{text}{others}", width):
            text.append(also)
        text.append(others, style=STATE_STYLES[max((n.state for n in more), key=SEVERITY.index)])
    return text


def _lines(text: str, width: int) -> int:
    return -(-len(text) // width)


def sentence(seen: RecordedLook) -> str:
    """The headline as a sentence, without keys and marks."""
    # In read-only mode no message names a key.
    first, *more = news_of(replace(seen, forbidden=seen.forbidden or "no keys")) or (None,)
    if first is None:
        back = (": ".join(filter(None, each)) for each in ways_back(seen))
        quiet = "; ".join((_quiet(seen), *back))
        return f"{quiet[0].upper()}{quiet[1:]}."
    return f"{first.words}{f'; and {len(more)} more' if more else ''}."


def _quiet(seen: RecordedLook) -> str:
    silent = sum(case.silent for case in cases_of(seen.observation.report).values())
    return quiet_line(seen.observation, silent, is_safe=not (ways_back(seen) or job_risks(seen)))


def _open_cases(seen: RecordedLook) -> list[Case]:
    return [case for case in cases_of(seen.observation.report).values() if not case.silent]


def _of_case(seen: RecordedLook, case: Case) -> News:
    remedy = remedy_of(seen, case)
    swaps = _swaps(seen, remedy)
    # If the cause is not certain, or a manual repair comes first, p plans a swap only for a selected component.
    is_clear = remedy is not None and remedy.certain and not remedy.hand_first
    offers = is_clear and bool(swaps) and not seen.forbidden
    obstacle = swap_obstacle(seen, swaps) if offers else ""
    spares = _spares(seen, swaps) if offers and not obstacle else ""
    if spares and condition_of(case) and _lit(seen, case)[0]:
        # It may be up, so p is not offered before the operator knows that it is down.
        do, spares = _FIND_OUT, ""
    elif offers:
        do = _brief(obstacle) if obstacle else f"{condition_of(case)}{spares}"
    else:
        do = _do(seen, case, remedy)
    means, leads_on = _means(seen, case, swaps), "" if spares or do == _FIND_OUT else _DETAILS
    pane = "" if spares else "incidents"
    return News(case.state, _what(seen, case), means, do, swaps, by_key=bool(spares), leads_on=leads_on, pane=pane)


def _what(seen: RecordedLook, case: Case) -> str:
    if case.key == f"rack:{case.component}":
        hosts = sum(member in seen.observation.inventory.hosts for member in case.members)
        every = hosts == sum(each.rack == case.component for each in seen.observation.inventory.hosts.values())
        silent = counted(hosts, "hosts")
        return (
            f"{case.component} is unreachable: "
            f"{f'none of its {silent} answers' if every else f'{silent} do not answer'}"
        )
    # The finding by which the case is named, of the cause itself where it has one.
    told = [each for each in case.findings if each.rule == case.rule]
    finding = next((each for each in told if each.component == case.component), next(iter(told), None))
    evidence = finding.evidence if finding is not None else case.summary.partition(": ")[2]
    kind = "" if finding is None else "dark" if "no light" in evidence else finding.case
    if _OFF_THE_BUS in evidence:
        return f"{case.component} {_OFF_THE_BUS}"
    speaks = finding is None or finding.component == case.component
    phrase = _PHRASES_OF_CASES.get((case.rule, kind)) or _PHRASES.get(case.rule)
    if speaks and phrase:
        return f"{case.component} {phrase}{_links(seen, case)}"
    short = evidence if len(evidence) <= _LONGEST_EVIDENCE else f"{evidence[: _LONGEST_EVIDENCE - 3]}..."
    where = case.component if speaks or finding is None else f"{case.component}: {finding.component}"
    return f"{where}: {short}"


def _links(seen: RecordedLook, case: Case) -> str:
    """Whether the links of a host that does not answer carry light, by the receivers at other hosts, if they tell."""
    lit, read = _lit(seen, case) if condition_of(case) else (0, 0)
    if not read:
        return ""
    if lit == read:
        return ", but its links carry light"
    return f", {lit} of its {read} links carry light" if lit else ", and its links are dark"


def _lit(seen: RecordedLook, case: Case) -> tuple[int, int]:
    """How many links of a host carry light, and of how many that was read."""
    return seen.observation.lit_transmitters.get(case.component, (0, 0))


def _swaps(seen: RecordedLook, remedy: Remedy | None) -> tuple[str, ...]:
    """The accelerators to replace; all of them run ranks.

    Empty if light must also be routed around PUCs, or if an operator must first find out which accelerator fails.
    """
    is_clear = remedy is not None and not remedy.avoid and (remedy.certain or len(remedy.replace) == 1)
    replaced = remedy.replace if remedy is not None and is_clear else ()
    return tuple(each for each in replaced if seen.observation.place_of(each) is not None)


def _means(seen: RecordedLook, case: Case, swaps: tuple[str, ...]) -> str:
    """The effect of an incident: which ranks of which jobs are down or at risk."""
    observation, touched = seen.observation, (case.component, *case.members)
    ranks: dict[str, set[int]] = {}
    for name in swaps or (each for each in touched if each in observation.inventory.accelerators):
        if (place := observation.place_of(name)) is not None:
            ranks.setdefault(place[0], set()).add(place[1])
    if ranks:
        count = sum(map(len, ranks.values()))
        verb = "is" if count == 1 else "are"
        how = "at risk" if case.state is not State.FAILED else _HOW.get(case.key.partition(":")[0], "down")
        if all(len(own) == len(observation.assignment[job]) for job, own in ranks.items()):
            return f"{' and '.join(sorted(ranks))} {'is' if len(ranks) == 1 else 'are'} {how}"
        return f"{ranks_text((job, rank) for job, own in ranks.items() for rank in own)} {verb} {how}"
    jobs = {observation.report.circuits[each].owner for each in touched if each in observation.report.circuits}
    return f"{' and '.join(sorted(jobs))} {'are' if len(jobs) > 1 else 'is'} affected" if jobs else ""


def _spares(seen: RecordedLook, replaced: tuple[str, ...]) -> str:
    """The text about the key p and its spares."""
    if len(replaced) > 1:
        return f"p: swap in {counted(len(replaced), 'spares')}"
    (spares,) = fitting(seen, replaced)
    # A plan may use a spare that does not fit by itself: one that is tied to others, for instance.
    one = f" {spares[0]}" if len(spares) == 1 else f" one of {counted(len(spares), 'spares')}" if spares else " a spare"
    return f"p: swap in{one}"


def _brief(obstacle: str) -> str:
    """Why no swap can be applied, without the details that follow a colon or stand in brackets."""
    return _DETAIL.split(obstacle, maxsplit=1)[0]


def _do(seen: RecordedLook, case: Case, remedy: Remedy | None) -> str:
    """What to do if p is not offered."""
    if remedy is not None and remedy.hand_first:
        return remedy.by_hand
    if remedy is not None and remedy.command:
        command = seen.avoid_checks.get(remedy.key, remedy.command)
        if not isinstance(command, str):
            return command.message
        return f"{condition_of(case)}{command}" if remedy.certain else f"measure where, or: {command}"
    if remedy is not None and (freed_by := seen.freed_by.get(remedy.key)):
        return freed_by
    advice = next((finding.advice for finding in case.findings if finding.advice), "")
    # Only the first clause; the incident's screen shows the rest.
    return ((remedy.by_hand if remedy is not None else "") or advice).partition("; ")[0]


def _unfinished(seen: RecordedLook) -> Iterator[News]:
    """Messages about runs that were interrupted or left half done."""
    states = {run.id: run for run in seen.records.runs}
    for run in seen.observation.unfinished:
        known = states.get(run)
        title = f" ({known.title})" if known is not None else ""
        yield News(
            State.FAILED, f"{run}{title} is not finished", do=f"finish it: lumctl swap resume {run}, or abort {run}"
        )


def _under_way(seen: RecordedLook) -> Iterator[News]:
    for run in seen.under_way:
        yield News(State.DEGRADED, f"{run.id} is in progress", run.title, do="6: steps", pane="swaps")


def _not_resumed(stopped: StoppedJob) -> News:
    idle = f"{named(stopped.idle)} {'is' if len(stopped.idle) == 1 else 'are'} idle"
    return News(State.DEGRADED, stopped.words, idle, stopped.advice)


def _waiting(seen: RecordedLook) -> Iterator[News]:
    for autopilot in seen.records.autopilots:
        for asked in autopilot["waiting"]:
            waits = f"{asked['plan']} waits for approval"
            yield News(State.DEGRADED, waits, str(asked["title"]), do="8: answer it", pane="policies")
