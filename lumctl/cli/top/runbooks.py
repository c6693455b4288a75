"""Runbooks for the dashboard: read from the store, compared, and replayed on a private simulator."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lumctl.errors import LumctlError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.change.plan import Step
    from lumctl.cli.invocation import Invocation
    from lumctl.context import Context
    from lumctl.runbook.diff import Count
    from lumctl.runbook.document import Runbook
    from lumctl.runbook.replay import ReplayResult
    from lumctl.tui.threads.replay import Gate, ReplayView
    from lumctl.tui.views.comparison import ComparisonView

_OF_THE_PLAN = ("precondition", "verification", "undo")
"""The fields of a plan's step that its runbook lacks, because it can be replayed on any rack."""


def runbook_of(cx: "Invocation", key: str) -> dict[str, Any]:
    """The runbook of a run, ``RACK/ID``: as ``runbook show`` prints it, with additions from its plan and template."""
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        return runbook_in(context, key)


def runbook_in(context: "Context", key: str) -> dict[str, Any]:
    """As :func:`runbook_of`, from the stores of a context."""
    from lumctl.runbook.templates import template_of

    run, runbook = context.store(key.partition("/")[0]).runs.get(key.rpartition("/")[2]), _found(context, key)
    planned = {str(step["id"]): step for step in run.plan["steps"]}
    document = dict(runbook.document)
    document["steps"] = [
        {**step, **{word: planned.get(str(step["id"]), {}).get(word) for word in _OF_THE_PLAN}}
        for step in document["steps"]
    ]
    with suppress(UsageError):  # it has nothing that could be meant again
        document["parameters"] = template_of(runbook)["parameters"]
    return document


def compared(cx: "Invocation", a: str, b: str) -> "ComparisonView":
    """The differences between the runbooks of two runs."""
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        return compared_in(context, a, b)


def compared_in(context: "Context", a: str, b: str) -> "ComparisonView":
    """As :func:`compared`, from the stores of a context."""
    from lumctl.runbook.diff import counted, times, unlike
    from lumctl.tui.views.comparison import ComparisonView, Differing

    one, other = _found(context, a).document, _found(context, b).document
    found = unlike(one, other)
    told = tuple(Differing(each.part, each.what, each.a, each.b) for each in found)
    counts = tuple(_counted(each) for each in counted(found))
    return ComparisonView(_named(one), _named(other), told, times(one, other), counts)


def replayed(cx: "Invocation", key: str, progress: "Callable[[str], None]", gate: "Gate") -> "ReplayView":
    """Replay on a private simulator, which is removed when this returns; ``gate`` lets each step through."""
    from lumctl.context import Context
    from lumctl.runbook.replay import replay_on_simulator
    from lumctl.tui.threads.replay import ReplayView

    stopped: list[Step] = []

    def before_step(step: "Step") -> None:
        if not gate(step.id):
            stopped.append(step)
            raise RefusedError(f"stopped before step {step.id}")

    with Context(cx.inventory, cx.target) as context:
        runbook = _found(context, key)
    if runbook.inventory_digest != cx.inventory.digest:
        progress(f"note: {runbook.id} was recorded with a different version of the inventory")
    try:
        result = replay_on_simulator(runbook, cx.inventory, progress=progress, before_step=before_step)
    except LumctlError:
        if not stopped:
            raise
    if stopped:
        return ReplayView(f"stopped before step {stopped[0].id}; the changes on the simulator were undone", None)
    return replay_view(runbook, result)


def replay_view(runbook: "Runbook", result: "ReplayResult") -> "ReplayView":
    """The result of a replay in one line, and where it differs."""
    from lumctl.tui.threads.replay import ReplayView

    odd = result.first_difference
    if odd is None:
        steps = f"{len(runbook.steps)} steps" if len(runbook.steps) != 1 else "1 step"
        told = f"identical: {runbook.outcome} as recorded, {steps} and the end compared, {result.seconds:.2f} s"
        return ReplayView(told, result.identical)
    where = f"at its {odd.step}" if odd.step in {"start", "end"} else f"at step {odd.step}"
    return ReplayView(f"first difference {where}: {odd.what}", False, odd.step, odd.recorded, odd.replayed)  # noqa: FBT003


def _found(context: "Context", key: str) -> "Runbook":
    from lumctl.runbook.document import make, parse
    from lumctl.runbook.yaml_text import plain

    rack, _, name = key.rpartition("/")
    store = context.store(rack)
    return parse(plain(make(store.runs.get(name), store, context.inventory)), name)


def _counted(count: "Count") -> str:
    where = f" on {count.where}" if count.where else ""
    told = f"{count.unlike} different, {count.only_a} only in the first, {count.only_b} only in the second"
    return f"{count.part}{where}: {told}"


def _named(document: Mapping[str, Any]) -> str:
    return f"{document['id']}: {document['title']}"
