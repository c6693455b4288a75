"""XIDs (errors of a GPU in the kernel log) and the recovery action of a GPU. Each misses some faults of the other."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lumctl.fleet.readings import GpuReading, XidEvent
from lumctl.health.events import clear_hint, count_text, earliest_at
from lumctl.health.rulebook import found, has_case, rulebook, verdict
from lumctl.health.rules.cases import GpuCase
from lumctl.health.states import SEVERITY, Finding

RECOVERY_ACTIONS = ("none", "reset", "reboot", "drain p2p", "drain and reset")
"""Cases of the rule gpu.recovery-action, in the order of the codes that the driver writes into XID 154."""
_NEW_RECOVERY_ACTION = re.compile(r"\bto 0x([0-9a-f]{1,4})\b", re.IGNORECASE)
_OLD_RECOVERY_ACTION = re.compile(r"\bfrom 0x([0-9a-f]{1,4})\b", re.IGNORECASE)
_UNIT = re.compile(r"\(?(GPC \d+, TPC \d+(?:, SM \d+)?)\)?|\b((?:GPC\d+ )?(?:GPC|HUB)CLIENT_\w+)")
_SUB_CODE = re.compile(
    r"\b(?P<unit>[A-Z][A-Z0-9_/]{1,60}) (?:Fatal|Nonfatal) XC ?[0-9] i ?[0-9]{1,3} Link (?P<link>-?[0-9]{1,4})"
    r" [(\[](?P<info>0x[0-9a-f]{1,8})(?: (?P<status>0x[0-9a-f]{1,8}))?",
    re.IGNORECASE,
)
"""How lines of XIDs 144 to 150 name a unit and a link, followed by IntrInfo and the error status."""
_PROGRAM = re.compile(r"\bpid='?(\d+)")


def xids(case: GpuCase) -> Iterator[Finding]:
    """XIDs of the kernel log, one finding for each number."""
    book = rulebook()
    for number in dict.fromkeys(event.xid for event in case.xids):
        every = [event for event in case.xids if event.xid == number]
        # If the recovery action is known, gpu.recovery-action reports it, so the line that announces it adds nothing.
        quiet = {"ignore"} | ({"read-recovery-action"} if _recovery_action(case) is not None else set())
        actions = [action for event in every if (action := action_of(event)) not in quiet]
        if not actions:
            continue
        action = max(actions, key=lambda action: SEVERITY.index(verdict("gpu.xid", action).state))
        meaning = book.xid_meanings.get(number, "not in the catalogue" if action == "unknown" else "")
        events = [event for event in every if action_of(event) == action]
        where = next(filter(None, map(_nvlink_unit, events)), "")
        evidence = f"{meaning}{where} (XID {number})" if meaning else f"XID {number}"
        evidence += count_text(events, case.events)
        since = earliest_at(events, default=case.read_at)
        finding = found(case.id, "gpu.xid", action, evidence, since=since, about=str(number))
        if case.reading is not None and not asks_for_reset(case.reading):
            # A GPU that works and requires no reset may have been repaired, but lumctl has no evidence of that.
            hint = clear_hint(case.id, verdict("gpu.xid", action).ends, events, case.events)
            finding = replace(finding, advice=f"{finding.advice}{hint}")
        yield finding


def action_of(event: XidEvent) -> str:
    """The case of gpu.xid for one line: by its sub-code if the catalogue decodes it, else by its number."""
    book = rulebook()
    decoded = _SUB_CODE.search(event.text) if event.xid in book.xid_units else None
    if decoded is not None:
        info, status = (int(decoded[name] or "0", 16) for name in ("info", "status"))
        for unit in book.xid_units[event.xid]:
            if (action := unit.action(info, status)) is not None:
                return action
    return book.xid_actions.get(event.xid, "unknown")


def _nvlink_unit(event: XidEvent) -> str:
    """The unit and the link that a line of NVLink 5 names."""
    named = _SUB_CODE.search(event.text)
    return f": {named['unit']} of link {int(named['link'])}" if named is not None and int(named["link"]) >= 0 else ""


def tells_of_reset(event: XidEvent) -> bool:
    """Whether a line reports that a GPU no longer requires the reset that it required before."""
    if rulebook().xid_actions.get(event.xid) != "read-recovery-action":
        return False
    before, after = (_recovery_code(pattern, event.text) for pattern in (_OLD_RECOVERY_ACTION, _NEW_RECOVERY_ACTION))
    return after == "none" and before is not None and verdict("gpu.recovery-action", before).ends == "reset"


def asks_for_reset(reading: GpuReading) -> bool | None:
    """Whether a GPU requires a reset; ``None`` if nvidia-smi does not report it, or it requires something else."""
    if reading.reset_required or reading.says_reset or reading.drain_and_reset_recommended:
        return True
    if reading.recovery_action is None:
        return reading.reset_required
    action = reading.recovery_action.strip().lower()
    if action == "none":
        return False
    asks = has_case("gpu.recovery-action", action) and verdict("gpu.recovery-action", action).ends == "reset"
    return True if asks else None


def _recovery_code(pattern: re.Pattern[str], text: str) -> str | None:
    """The case of gpu.recovery-action for a code that XID 154 names."""
    code = pattern.search(text)
    number = int(code[1], 16) if code else len(RECOVERY_ACTIONS)
    return RECOVERY_ACTIONS[number] if number < len(RECOVERY_ACTIONS) else None


def repeated(case: GpuCase) -> Iterator[Finding]:
    """Repeated XIDs that programs normally cause.

    If they repeat on one unit of the chip, or with different programs, the chip is at fault.
    """
    book = rulebook()
    for number in dict.fromkeys(event.xid for event in case.xids):
        # An exporter shows an XID without a time, so it does not show how often it occurred.
        events = [event for event in case.xids if event.xid == number and event.at is not None]
        match book.xid_actions.get(number, "unknown"):
            case "restart-application" if number in book.counted_by_unit:
                yield from _by_unit(case, number, events)
                yield from _by_program(case, number, events)
            case "restart-application":
                yield from _by_program(case, number, events)
            case "preemptive-cleanup":
                yield from _alone(case, number, events)


def _by_unit(case: GpuCase, number: int, events: Iterable[XidEvent]) -> Iterator[Finding]:
    seen = [frozenset(filter(None, map(_unit, times))) for times in _occasions(events)]
    units = sorted({unit for units in seen for unit in units})
    since = case.read_at
    again = [unit for unit in units if sum(unit in units_then for units_then in seen) >= _least("same-unit")]
    if again:
        evidence = f"XID {number} on {again[0]} repeatedly"
        yield found(case.id, "gpu.xid-repeated", "same-unit", evidence, since=since, about=str(number))
    elif len(seen) >= _least("different-units") and len(units) > 1:
        evidence = f"XID {number} {len(seen)} times, each time on another unit"
        yield found(case.id, "gpu.xid-repeated", "different-units", evidence, since=since, about=str(number))


def _by_program(case: GpuCase, number: int, events: Iterable[XidEvent]) -> Iterator[Finding]:
    programs = {pid[1] for event in events if (pid := _PROGRAM.search(event.text))}
    if len(programs) >= _least("many-programs"):
        evidence = f"XID {number} with {len(programs)} different programs"
        yield found(case.id, "gpu.xid-repeated", "many-programs", evidence, since=case.read_at, about=str(number))


def _alone(case: GpuCase, number: int, events: Iterable[XidEvent]) -> Iterator[Finding]:
    times = _occasions(events)
    if len(times) >= _least("cleanup-alone") and {event.xid for event in case.xids} == {number}:
        evidence = f"XID {number} {len(times)} times, and no other XID that explains it"
        yield found(case.id, "gpu.xid-repeated", "cleanup-alone", evidence, since=case.read_at, about=str(number))


def _least(case: str) -> float:
    return verdict("gpu.xid-repeated", case).limit


def _occasions(events: Iterable[XidEvent]) -> list[list[XidEvent]]:
    """Group events that belong together: one fault writes a line for each unit that it affects."""
    together_s = verdict("gpu.xid-repeated", "same-unit").limits["together_s"]
    found_: list[list[XidEvent]] = []
    for event in sorted(events, key=lambda event: event.at or 0.0):
        if found_ and (event.at or 0.0) - (found_[-1][0].at or 0.0) <= together_s:
            found_[-1].append(event)
        else:
            found_.append([event])
    return found_


def _unit(event: XidEvent) -> str | None:
    """The part of the chip that a line names."""
    named = _UNIT.search(event.text)
    return (named[1] or named[2]) if named else None


def _recovery_action(case: GpuCase) -> str | None:
    """The required action of a GPU: by nvidia-smi, which is current, otherwise by the last readable XID 154."""
    if case.reading is not None and case.reading.recovery_action is not None:
        return case.reading.recovery_action
    announced = _announcements(case)
    return _recovery_code(_NEW_RECOVERY_ACTION, announced[-1].text) if announced else None


def _announcements(case: GpuCase) -> list[XidEvent]:
    """The lines in which the driver announces another recovery action (XID 154)."""
    return [event for event in case.xids if rulebook().xid_actions.get(event.xid) == "read-recovery-action"]


def recovery_action(case: GpuCase) -> Iterator[Finding]:
    """The recovery action that the GPU requires, in the words of its driver's version."""
    word = _recovery_action(case) or "none"
    action = word.strip().lower()
    if action != "none":
        known = has_case("gpu.recovery-action", action)
        known_as = word if known else f"{word!r}, which is not in the catalogue"
        evidence = f"the driver asks for: {known_as}"
        name = action if known else "unknown"
        finding = found(case.id, "gpu.recovery-action", name, evidence, since=case.read_at)
        if case.reading is not None and case.reading.recovery_action is None:
            hint = clear_hint(case.id, "reset", _announcements(case), case.events)
            finding = replace(finding, advice=f"{finding.advice}{hint}")
        yield finding
    elif (reading := case.reading) is None:
        return
    elif reading.reset_required or reading.says_reset:
        evidence = f"{reading.says_reset or 'nvidia-smi'} says that the GPU requires a reset"
        yield found(case.id, "gpu.recovery-action", "reset", evidence, since=case.read_at)
    elif reading.drain_and_reset_recommended:
        evidence = "nvidia-smi recommends to drain and reset it"
        yield found(case.id, "gpu.recovery-action", "drain and reset", evidence, since=case.read_at)


RULES = (xids, repeated, recovery_action)
