"""How the dashboard acknowledges what is found, as ``lumctl health ack`` does it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.errors import RefusedError

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.health.states import Finding


def acknowledge(cx: Invocation, components: Sequence[str], comment: str) -> str:
    """Say that all findings of some components are known, until they clear; a line that says what was done.

    Each rack keeps what is said of its own components, as one run with a runbook.

    Raises:
        RefusedError: nothing is found of them any more.
        StoreError: a store cannot be written.
    """
    from lumctl.context import Context
    from lumctl.runbook.actions import acknowledge as said
    from lumctl.runbook.actions import record, save_quietly

    with Context(cx.inventory, cx.target) as context:
        by_rack = _by_rack(context, components)
        runs, troubles = [], []
        for rack, named in by_rack.items():
            steps: list[Any] = [said(rack, each, None, comment, None, found) for each, found in named.items()]
            first, *more = named
            title = f"acknowledge all findings of {first}" + (f" and {len(more)} more" if more else "")
            runs.append(record(context, "ack", steps, at=context.now(), title=title))
            if trouble := save_quietly(context, runs[-1], rack):
                troubles.append(f"warning: {trouble}")
    count = sum(map(len, by_rack.values()))
    told = f"{components[0] if count == 1 else f'{count} components'} acknowledged until it clears ({', '.join(runs)})"
    return "; ".join([told, *troubles])


def _by_rack(context: "Context", components: Sequence[str]) -> "dict[str, dict[str, list[Finding]]]":
    """The faults of the components that still have any, by rack and component."""
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.cli.health_faults import faults_of

    # Read once more: what has cleared meanwhile is not acknowledged.
    seen, among = context.observe(), circuits(context)
    by_rack: dict[str, dict[str, list[Finding]]] = {}
    for component in components:
        if found := faults_of(seen, component):
            by_rack.setdefault(rack_of_named(context.inventory, component, among), {})[component] = found
    if not by_rack:
        raise RefusedError(f"nothing is found of {components[0]} any more: there is nothing to acknowledge")
    return by_rack
