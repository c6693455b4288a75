"""The sharing policies that come with lumctl: in which order waiting demands are served, and with which spares."""

from collections.abc import Callable, Mapping
from itertools import groupby
from math import inf
from operator import attrgetter
from random import Random
from typing import Any

from lumctl.spares.sharing import Answer, Demand, SharingPolicy, SharingQuestion, serve, tightest_first

DEFAULT = "best-fit"


def fifo(asked: SharingQuestion) -> Answer:
    """The oldest demand first; each accelerator gets the first spare found."""
    return serve(asked.demands, asked.spares)


def best_fit(asked: SharingQuestion) -> Answer:
    """The oldest demand first, common parts before rare ones."""
    return serve(asked.demands, asked.spares, tightest_first(asked))


def at_random(asked: SharingQuestion) -> Answer:
    """In a random order, common parts before rare ones."""
    order = list(asked.demands)
    Random(asked.seed).shuffle(order)  # noqa: S311 - no secret depends on it
    return serve(order, asked.spares, tightest_first(asked))


def srsf(asked: SharingQuestion) -> Answer:
    """The demand with the smallest remaining service first: spares times the time that its job still runs."""
    return _by(asked, lambda demand: inf if demand.remaining_s is None else demand.size * demand.remaining_s)


def las(asked: SharingQuestion) -> Answer:
    """The job with the least attained service first."""
    return _by(asked, lambda demand: demand.attained_s or 0.0)


def priority(asked: SharingQuestion) -> Answer:
    """The job with the largest weight first; waiting adds to the weight."""
    return _by(asked, lambda demand: -(demand.weight + (asked.at - demand.asked_at) / asked.ageing_s))


def _by(asked: SharingQuestion, key: Callable[[Demand], Any]) -> Answer:
    return serve(sorted(asked.demands, key=key), asked.spares, tightest_first(asked))


def scarce(asked: SharingQuestion) -> Answer:
    """Protects scarce classes: demands are grouped by the classes that they can use, and each group gets a share.

    The group with the fewest spares chooses first. A group with more may then take of its share, as long as more of it
    waits for each spare. Within a group, the oldest demand comes first. The method is that of Venn (arXiv 2312.08298).
    """
    groups: dict[frozenset[str], list[Demand]] = {}
    waiting: dict[frozenset[str], int] = {}
    # Most neighbours can use the same classes, and to unite these takes longer than to compare them.
    for _, neighbours in groupby(asked.demands, attrgetter("able")):
        alike = list(neighbours)
        group = alike[0].classes
        groups.setdefault(group, []).extend(alike)
        waiting[group] = waiting.get(group, 0) + sum([len(demand.usable) for demand in alike])
    prefer = tightest_first(asked)
    left: dict[str, list[str]] = {}
    for spare in sorted(asked.spares, key=prefer):
        left.setdefault(asked.spares[spare].accelerator_class, []).append(spare)
    free = {name: len(spares) for name, spares in left.items()}
    order = sorted(groups, key=lambda group: (sum(free.get(name, 0) for name in group), len(group), sorted(group)))
    answer: dict[str, tuple[str, ...]] = {}
    for group, share in _shares(order, free, waiting).items():
        mine = [spare for name, count in share.items() for spare in left[name][:count]]
        found = serve(groups[group], mine, prefer)
        answer |= found
        taken = {spare for spares in found.values() for spare in spares}
        for name in share:
            left[name] = [spare for spare in left[name] if spare not in taken]
    # No spare stays idle because the group that has it cannot use it now.
    unused = [spare for spares in left.values() for spare in spares]
    if not unused:
        return answer
    rest = [demand for group in order for demand in groups[group] if demand.id not in answer]
    return answer | serve(rest, unused, prefer)


def _shares(
    order: list[frozenset[str]], free: Mapping[str, int], waiting: Mapping[frozenset[str], int]
) -> dict[frozenset[str], dict[str, int]]:
    """How many spares of each class each group may use; ``order`` has the scarcest group first."""
    left, share, total = dict(free), dict[frozenset[str], dict[str, int]](), dict[frozenset[str], int]()
    for group in order:
        share[group] = {name: left.pop(name) for name in sorted(group) if name in left}
        total[group] = sum(share[group].values())
    for at, group in enumerate(order):
        for scarcer in order[:at]:
            for name in sorted(group & scarcer):
                moved, most = 0, share[scarcer].get(name, 0)
                # More of the larger group waits for each of its spares, even after it gets one more.
                while moved < most and (
                    waiting[group] * (total[scarcer] - moved - 1) > waiting[scarcer] * (total[group] + moved + 1)
                ):
                    moved += 1
                if moved:
                    share[scarcer][name] -= moved
                    share[group][name] = share[group].get(name, 0) + moved
                    total[scarcer] -= moved
                    total[group] += moved
    return share


POLICIES: Mapping[str, SharingPolicy] = {
    DEFAULT: best_fit,
    "fifo": fifo,
    "random": at_random,
    "srsf": srsf,
    "las": las,
    "priority": priority,
    "scarce": scarce,
}
