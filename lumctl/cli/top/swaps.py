"""Plans the swaps that the dashboard would offer, so that it offers none that would be refused."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from lumctl.cli.remedies import MOST_PLANNED
from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.health.remedy import Remedy
    from lumctl.spares.ledger import LedgerEntry
    from lumctl.tui.views.records import RecordedLook

AGAIN_S = 10.0
"""How long a result holds while no state changes: a reading, such as that of free memory, may change it too."""


@dataclass(frozen=True, slots=True)
class _Checks:
    """The results of one time, as a look has them."""

    swaps: Mapping[frozenset[str], LumctlError | None] = field(default_factory=dict)
    returns: Mapping[str, LumctlError | None] = field(default_factory=dict)
    avoided: Mapping[str, str | LumctlError] = field(default_factory=dict)
    freed_by: Mapping[str, str] = field(default_factory=dict)


class SwapChecker:
    """Plans the repairs of the worst faults, and the returns to what was repaired.

    While nothing changes, the results of the last time are used.
    """

    def __init__(self, open_context: "Callable[[], Context]", now: Callable[[], float] = time.monotonic) -> None:
        self._open_context = open_context
        self._now = now
        self._last: tuple[object, float, _Checks] = (None, 0.0, _Checks())

    def __call__(self, seen: "RecordedLook") -> "RecordedLook":
        """The look with why no swap of a group, and no return of a job, can be applied now; ``None`` if one can.

        For light to route around something, it has the command, or why there is none; for a fault for which no spare
        is left, the return that frees one.
        """
        from lumctl.swap.spare_pool import swapped_out
        from lumctl.tui.views.swap_choice import swap_groups

        groups = tuple(islice(dict.fromkeys(swap_groups(seen)), MOST_PLANNED))
        entries = swapped_out(seen.observation)
        avoiding = tuple(islice((remedy for remedy in seen.observation.remedies if remedy.avoid), MOST_PLANNED))
        basis, now = _basis(seen, groups, entries), self._now()
        if basis != self._last[0] or now - self._last[1] >= AGAIN_S:
            wanted = groups or entries or avoiding
            self._last = (basis, now, self._planned(seen, groups, entries, avoiding) if wanted else _Checks())
        checks = self._last[2]
        return replace(
            seen,
            swap_checks=checks.swaps,
            return_checks=checks.returns,
            avoid_checks=checks.avoided,
            freed_by=checks.freed_by,
        )

    def _planned(
        self,
        seen: "RecordedLook",
        groups: Sequence[Sequence[str]],
        entries: "Sequence[LedgerEntry]",
        avoiding: "Sequence[Remedy]",
    ) -> _Checks:
        from lumctl.swap.restoration import return_refusals
        from lumctl.swap.suggestions import suggested_command, swap_obstacle, way_to_free

        swaps = dict[frozenset[str], LumctlError | None]()
        try:
            with self._open_context() as context:
                check = partial(swap_obstacle, context, seen.observation)
                swaps.update((frozenset(group), check(group)) for group in groups)
                avoided = {each.key: suggested_command(context, seen.observation, [each]) for each in avoiding}
                returns = return_refusals(context, seen.observation, entries)
                # Only a return frees spares, so there must be something that can return.
                without = [each for each in seen.observation.remedies if not each.command] if entries else []
                freed_by = {each.key: way_to_free(context, seen.observation, each) for each in without[:MOST_PLANNED]}
                return _Checks(swaps, returns, avoided, freed_by)
        except LumctlError:  # a store cannot be read: the dashboard says so, and a plan will
            return _Checks(swaps)


def _basis(seen: "RecordedLook", groups: Sequence[Sequence[str]], entries: "Sequence[LedgerEntry]") -> tuple[Any, ...]:
    """What the plans depend on, except for readings that change no state."""
    states = [
        (name, health.state) for group in seen.observation.report.groups().values() for name, health in group.items()
    ]
    runs = [(run.id, run.state) for run in seen.records.runs]
    out = [(entry.accelerator.id, entry.state) for entry in entries]
    return (groups, out, states, seen.observation.assignment, seen.records.waiting, runs)
