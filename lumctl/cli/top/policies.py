"""Policies for the dashboard: what they would decide, the plans that wait for approval, the autopilot's switch."""

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lumctl.errors import LumctlError, UnreachableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumctl.change import Plan
    from lumctl.cli.invocation import Invocation
    from lumctl.context import Context
    from lumctl.daemon.autopilot.stop_switch import StopResult
    from lumctl.health.observation import Observation
    from lumctl.tui.actions import ApplyView, PlanView

ANSWERS_WITHIN_S = 0.5
"""How long a daemon may take to answer."""


def explained(cx: "Invocation", seen: "Observation", rack: str) -> tuple[dict[str, Any], ...]:
    """What policies would decide in a rack about an observation, with every condition; nothing is done."""
    from lumctl.cli.policy import decisions
    from lumctl.context import Context
    from lumctl.daemon.autopilot.decision import decision_document
    from lumctl.daemon.autopilot.policy import require_sound

    require_sound(cx.inventory)
    with Context(cx.inventory, cx.target) as context:
        return tuple(decision_document(decision) for decision in decisions(context, seen, rack))


def asked_plan(cx: "Invocation", rack: str, name: str) -> "PlanView":
    """A plan that waits for approval, as ``swap apply --dry-run`` shows it, with its effect on each mesh."""
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        view = plan_view(_kept(context, rack, name))
        # A plan can be read without its picture: what a mesh holds may be uncertain by now.
        with suppress(LumctlError):
            return with_meshes(context, view)
        return view


def _kept(context: "Context", rack: str, name: str) -> "Plan":
    from lumctl.change import from_document

    kept = context.store(rack).runs.plan(name)
    if kept is None:
        raise UsageError(f"{rack} has no stored plan {name!r}", hint="see: lumctl autopilot status")
    return from_document(kept)


def answer_plan(cx: "Invocation", rack: str, name: str, comment: str, *, approve: bool) -> "ApplyView":
    """Approve or reject a plan, as ``swap approve`` does."""
    from lumctl.cli.swap_approve import answer
    from lumctl.cli.verbs import aimed
    from lumctl.context import Context
    from lumctl.tui.actions import ApplyView

    with Context(cx.inventory, cx.target) as context:
        plan = _kept(context, rack, name)
        answered = answer(context, plan, approve=approve, comment=comment)
    told = f"{plan.id} ({plan.title}): {answered.state} by {answered.by}"
    if not approve:
        return ApplyView(told, done=True)
    if answered.made_by.startswith("autopilot:"):
        return ApplyView(told, done=True, lines=("the autopilot applies it if the fault still persists",))
    apply_it = aimed(cx, f"apply it: lumctl swap apply {plan.id} --target {plan.target}")
    return ApplyView(told, done=True, lines=(apply_it,))


def stop_autopilot(cx: "Invocation", rack: str, comment: str) -> "ApplyView":
    """Stop the autopilot of a rack in every possible way, as ``autopilot stop --rack`` does.

    Raises:
        UnreachableError: no way worked.
    """
    from lumctl.change.origin import origin
    from lumctl.cli.autopilot import keep_runbook, said_in_files
    from lumctl.cli.autopilot_status import sockets_of
    from lumctl.daemon.autopilot import stop_switch
    from lumctl.store import files_of, open_store
    from lumctl.tui.actions import ApplyView

    who, at = origin(), time.time()
    files = [files_of(cx.inventory, rack, cx.target)]
    ways = stop_switch.stop_by_files(stop_switch.places([rack], files, alone=True), said_in_files(who, at, comment))
    if len(cx.inventory.racks) == 1:  # an order to a daemon is about all of its racks
        ways += stop_switch.order_daemons(sockets_of(cx, cx.inventory), "stop", who)
    opened = partial(open_store, cx.inventory, rack, cx.target)
    ways.append(stop_switch.stop_in_store(opened, rack, who=who, comment=comment, at=at))
    if all(way.trouble for way in ways):
        raise UnreachableError(
            f"the autopilot of {rack} could not be stopped in any way: {ways[0].trouble}", hint="lumctl autopilot stop"
        )
    lines = _told(ways)
    # The last way is the store, where the runbook is written as well.
    if not ways[-1].trouble:
        trouble = keep_runbook(cx.inventory, cx.target, rack, "stopped", comment)
        lines += [f"warning: no runbook was written: {trouble}"] if trouble else []
        lines += _under_way(cx, rack)
    return ApplyView(f"the autopilot of {rack} is stopped", done=True, lines=tuple(lines))


def start_autopilot(cx: "Invocation", rack: str, comment: str) -> "ApplyView":
    """Let the autopilot of a rack act again, as ``autopilot start --rack`` does."""
    from lumctl.change.origin import origin
    from lumctl.cli.autopilot import keep_runbook
    from lumctl.cli.autopilot_status import sockets_of
    from lumctl.context import Context
    from lumctl.daemon.autopilot import stop_switch
    from lumctl.tui.actions import ApplyView

    with Context(cx.inventory, cx.target) as context:
        store = context.store(rack)
        stop_switch.start_in_store(store, who=origin(), comment=comment, at=context.now())
        stop_switch.release_files(stop_switch.places([rack], [store.files]))
    ways = stop_switch.order_daemons(sockets_of(cx, cx.inventory), "start", origin())
    lines = _told(way for way in ways if way.trouble)
    trouble = keep_runbook(cx.inventory, cx.target, rack, "running", comment)
    lines += [f"warning: no runbook was written: {trouble}"] if trouble else []
    return ApplyView(f"the autopilot of {rack} may act", done=True, lines=tuple(lines))


def daemon_answers(cx: "Invocation") -> bool:
    """Whether a daemon of this user watches the inventory and answers."""
    from lumctl.cli.autopilot_status import sockets_of
    from lumctl.daemon import client

    for path in sockets_of(cx, cx.inventory):
        try:
            client.send_order(path, "status", timeout_s=ANSWERS_WITHIN_S)
        except (OSError, ValueError):
            continue
        return True
    return False


def _told(ways: "Iterable[StopResult]") -> list[str]:
    """The stop methods that failed, with the reason, and the number of those that worked."""
    found = list(ways)
    worked = sum(not way.trouble for way in found)
    lines = [f"by {worked} of {len(found)} ways"] if worked else []
    return [*lines, *(f"not by {way.way}: {way.trouble}" for way in found if way.trouble)]


def _under_way(cx: "Invocation", rack: str) -> list[str]:
    """The run that the autopilot is executing: it continues to its end."""
    from lumctl.context import Context
    from lumctl.daemon.autopilot.stop_switch import own_runs

    try:
        with Context(cx.inventory, cx.target) as context:
            mine = [run.id for run in own_runs(context.store(rack), now=context.now())]
    except LumctlError as error:
        return [f"whether it has a run in progress is unknown: {error.message}"]
    return [f"{', '.join(mine)} is in progress: it will be finished or rolled back, not interrupted"] if mine else []
