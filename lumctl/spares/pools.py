"""The pools of spares of a rack: for each class its accelerators by host, their failure rates, and what is enough.

A class is a model of accelerator with an amount of memory. A spare replaces accelerators of its class in its rack, so
each rack has a pool for each class. If light can lead only to some of them, as where each rail has a mesh of its own,
the pool has parts that share no spare, and each part needs its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1

from lumctl.errors import UsageError
from lumctl.inventory.model import Accelerator, Inventory, Role, classes_of
from lumctl.inventory.problems import nearest
from lumctl.inventory.wiring import devices_of, networks_of
from lumctl.printable import counted
from lumctl.spares.assumptions import Assumptions
from lumctl.spares.rates import FailureHistory, RateEstimate, RateRange, host_rate
from lumctl.spares.sizing import (
    FailureGroup,
    FailureUnit,
    Groups,
    PoolSize,
    even_groups,
    even_rates,
    in_part,
    resized,
    scaled,
    size_pool,
    spread,
    with_rates,
    within,
)
from lumctl.time_text import age_text


@dataclass(frozen=True)
class PoolHistory:
    """The failures in the history of a pool. ``by_host`` are those of its accelerators, ``hosts`` those of hosts.

    ``repair_s`` and ``host_repair_s`` are the mean lengths of outages that the rates of the pool are made with.
    """

    since: float
    until: float
    accelerators: RateEstimate
    by_host: Mapping[str, RateEstimate]
    hosts: RateEstimate
    repair_s: float
    host_repair_s: float


@dataclass(frozen=True)
class PoolPart:
    """Accelerators of a pool whose lanes lead to the same devices, and their spares, as :class:`Pool` counts them."""

    devices: tuple[str, ...]
    spares: int
    reserved: int


@dataclass(frozen=True)
class Pool:
    """The accelerators of one class in one rack, those that are spares included; out of service ones are left out.

    ``rack`` and ``accelerator_class`` are ``None`` without an inventory, and so is ``spares``, the number of spares
    that any job may use now; ``reserved`` are kept for one job. ``hosts_known`` tells that the groups are real hosts.
    ``low`` and ``high`` are the groups with the rates at the ends of their intervals, if they were estimated from
    ``history``; ``given`` are the rates that an operator gave. ``parts`` share no spare, and the units of the groups
    have their numbers; empty if all share them.
    """

    groups: Groups
    hosts_known: bool
    rack: str | None = None
    accelerator_class: str | None = None
    spares: int | None = None
    reserved: int = 0
    repair_s: float | None = None
    low: Groups | None = None
    high: Groups | None = None
    history: PoolHistory | None = None
    given: RateRange | None = None
    parts: tuple[PoolPart, ...] = ()


@dataclass(frozen=True)
class SizedPool:
    """A pool and the number of spares it needs; ``low`` and ``high`` at the ends of the rates' intervals.

    ``size`` is that of the pool if all of it shared its spares. ``parts`` are the sizes of its parts: it needs the sum.
    """

    pool: Pool
    size: PoolSize
    low: int | None
    high: int | None
    parts: tuple["SizedPart", ...] = ()

    @property
    def exact(self) -> int:
        """The smallest number of spares that is enough."""
        return sum(part.size.exact for part in self.parts) if self.parts else self.size.exact

    @property
    def published(self) -> int:
        """The number of spares by the published rule."""
        return sum(part.size.published for part in self.parts) if self.parts else self.size.published

    @property
    def missing(self) -> int | None:
        """How many spares the pool has too few; ``None`` without an inventory."""
        if self.parts:
            return sum(part.missing for part in self.parts)
        return None if self.pool.spares is None else max(self.size.exact - self.pool.spares, 0)

    @property
    def probability_more_down(self) -> float:
        """The probability that more are down than the spares that are enough; of parts the highest."""
        return max(each.probability_more_down(each.exact) for each in self._sizes)

    @property
    def waits_per_year(self) -> float | None:
        """The expected waits per year with as many spares as are enough; ``None`` without a repair time."""
        waits = [each.expected_waits_per_year(each.exact) for each in self._sizes]
        return None if None in waits else sum(filter(None, waits))

    @property
    def _sizes(self) -> list[PoolSize]:
        return [part.size for part in self.parts] or [self.size]


@dataclass(frozen=True)
class SizedPart:
    """The number of spares that a part of a pool needs."""

    part: PoolPart
    size: PoolSize

    @property
    def missing(self) -> int:
        """How many spares it has too few."""
        return max(self.size.exact - self.part.spares, 0)


def assumed_pool(accelerators: int, per_host: int | None) -> Pool:
    """A pool without an inventory: so many accelerators without faults, ``per_host`` of them in each server."""
    return Pool(even_groups(accelerators, per_host or 1), hosts_known=per_host is not None)


def members_by_pool(inventory: Inventory, wanted: str | None) -> dict[tuple[str, str], list[Accelerator]]:
    """The accelerators in service of each rack and class, in the order of the inventory.

    ``wanted`` selects classes: a name, or a part of names, in upper or lower case.

    Raises:
        UsageError: no class is called so, or no accelerator is in service.
    """
    classes = classes_of(inventory.accelerators)
    found: dict[tuple[str, str], list[Accelerator]] = {}
    for accelerator in inventory.accelerators.values():
        name = classes[accelerator.id]
        if accelerator.role is not Role.DISABLED and (wanted or "").lower() in name.lower():
            found.setdefault((accelerator.rack, name), []).append(accelerator)
    if not found:
        if wanted is None:
            raise UsageError(f"no accelerator of {inventory.path} is in service")
        near = nearest(wanted, classes.values())
        known = f"did you mean {near!r}?" if near else f"classes: {', '.join(sorted(set(classes.values())))}"
        raise UsageError(f"--class: no accelerator in service is a {wanted!r}", hint=known)
    return found


def members_in(inventory: Inventory, wanted: str | None, rack: str | None) -> dict[tuple[str, str], list[Accelerator]]:
    """As :func:`members_by_pool`, in one rack if one is named.

    Raises:
        UsageError: no class of that rack is called so, or no accelerator of it is in service.
    """
    found = {key: each for key, each in members_by_pool(inventory, wanted).items() if rack in {None, key[0]}}
    if not found:
        whose = f"no accelerator in service is a {wanted!r}" if wanted else "no accelerator is in service"
        raise UsageError(f"--rack: {whose} in rack {rack}", hint="see: lumctl spare list")
    return found


def pools_of(inventory: Inventory, wanted: str | None = None, in_rack: str | None = None) -> list[Pool]:
    """The pools of an inventory, or of one rack, with rates of 0.

    Raises:
        UsageError: no class (of that rack) is called ``wanted``.
    """
    found = members_in(inventory, wanted, in_rack)
    return [_pool(inventory, rack, name, members) for (rack, name), members in found.items()]


def estimated_pools(
    inventory: Inventory,
    wanted: str | None,
    history: Callable[[str], FailureHistory],
    repair_s: float | None,
    in_rack: str | None = None,
) -> list[Pool]:
    """As :func:`pools_of`, with rates from the history of their racks; ``repair_s`` overrides its repair times.

    Raises:
        UsageError: no class is called ``wanted``; a rack has too little history, or no repair in it has ended.
    """
    pools: list[Pool] = []
    found = members_in(inventory, wanted, in_rack)
    # All of them before any pool: a repair time, which a pool may need, is no help to a rack without a history.
    histories = {rack: history(rack) for rack in dict.fromkeys(rack for rack, _ in found)}
    for (rack, name), members in found.items():
        of_rack = [host.name for host in inventory.hosts.values() if host.rack == rack]
        pools.append(_with_history(_pool(inventory, rack, name, members), members, of_rack, histories[rack], repair_s))
    return pools


def _pool(inventory: Inventory, rack: str, name: str, members: Sequence[Accelerator]) -> Pool:
    shared = {each.id: networks_of(inventory, each.id) for each in members}
    networks = sorted(set(shared.values()), key=sorted)
    part_of = {name: networks.index(of) for name, of in shared.items()}
    by_part = [[each for each in members if shared[each.id] == network] for network in networks]
    parts = tuple(_part(inventory, each) for each in by_part) if by_part[1:] else ()
    groups = tuple(FailureGroup(_units(on_it, part_of)) for on_it in _by_host(members).values())
    whole = _part(inventory, members)
    return Pool(
        groups,
        hosts_known=True,
        rack=rack,
        accelerator_class=name,
        spares=whole.spares,
        reserved=whole.reserved,
        parts=parts,
    )


def _part(inventory: Inventory, members: Sequence[Accelerator]) -> PoolPart:
    spares = [each for each in members if each.role is Role.SPARE]
    reserved = sum(each.reserved or each.reserved_for is not None for each in spares)
    devices = {device for each in members for device in devices_of(inventory, each.id)}
    return PoolPart(tuple(sorted(devices)), len(spares) - reserved, reserved)


def _by_host(members: Iterable[Accelerator]) -> dict[str, list[Accelerator]]:
    found: dict[str, list[Accelerator]] = {}
    for each in members:
        found.setdefault(each.host, []).append(each)
    return found


def _units(members: Iterable[Accelerator], part_of: Mapping[str, int]) -> tuple[FailureUnit, ...]:
    together: dict[str, list[int]] = {}
    for each in members:
        key = each.id if each.tied is None else f"tied {each.tied}"
        together.setdefault(key, []).append(part_of[each.id])
    return tuple(
        FailureUnit(parts.count(part), 0.0, part, len(parts) if len(set(parts)) > 1 else 0)
        for parts in together.values()
        for part in dict.fromkeys(parts)
    )


def _with_history(
    pool: Pool, members: list[Accelerator], hosts: list[str], history: FailureHistory, repair_s: float | None
) -> Pool:
    of_class = history.estimate("accelerator", [each.id for each in members])
    by_host = {
        host: history.estimate("accelerator", [each.id for each in on_it]) for host, on_it in _by_host(members).items()
    }
    of_hosts = history.estimate("host", hosts)
    own, whole = repair_s or of_class.repair_s, repair_s or of_hosts.repair_s
    own, whole = own or whole, whole or own
    if own is None or whole is None:
        failed = counted(of_class.failures + of_hosts.failures, "failures")
        length = age_text(history.until - history.since)
        raise UsageError(
            f"the history of {history.rack} ({failed} of {pool.accelerator_class} or its hosts in {length}) has no "
            "repair, and how many spares are enough depends on how long one takes",
            hint="give the mean repair time: lumctl spare size --repair 5d",
        )
    known = PoolHistory(history.since, history.until, of_class, by_host, of_hosts, own, whole)
    accelerator_rates = [host_rate(each, of_class) for each in by_host.values()]
    host_rates = [host_rate(history.estimate("host", [host]), of_hosts) for host in by_host]

    def at(accelerator_rate: float, rate_of_hosts: float) -> Groups:
        """The groups if the rates of class and hosts (per second) are these; hosts keep their ratios to the mean."""
        groups: list[FailureGroup] = []
        for group, one, host in zip(pool.groups, accelerator_rates, host_rates, strict=True):
            rate = _down(_at(one, of_class.rate, accelerator_rate), own)
            units = tuple(replace(unit, rate=rate) for unit in group.units)
            groups.append(FailureGroup(units, _down(_at(host, of_hosts.rate, rate_of_hosts), whole)))
        return tuple(groups)

    groups = at(of_class.rate, of_hosts.rate)
    return replace(
        pool,
        groups=groups,
        low=at(of_class.low, of_hosts.low),
        high=at(of_class.high, of_hosts.high),
        repair_s=_mean_repair_s(groups, own, whole),
        history=known,
    )


def _at(rate: float, mean: float, other_mean: float) -> float:
    return rate * other_mean / mean if mean else other_mean


def _down(failures_per_s: float, repair_s: float) -> float:
    """The probability of being down in the long run."""
    return failures_per_s * repair_s / (1 + failures_per_s * repair_s)


def _mean_repair_s(groups: Groups, own_s: float, whole_s: float) -> float:
    """The mean outage of an accelerator: by its own fault, or with its host."""
    own = sum(unit.size * unit.down for group in groups for unit in group.units)
    whole = sum(group.size * group.rate for group in groups)
    return (own + whole) / (own / own_s + whole / whole_s) if own + whole else own_s


def changed(pool: Pool, assumed: Assumptions) -> Pool:
    """The pool under other assumptions. Longer repairs leave the failures as frequent as they are.

    Raises:
        UsageError: the repair time is to change, and the present one is not known; a rate of hosts is given for a pool
            without hosts.
    """
    if assumed.accelerators is not None:
        count = assumed.accelerators
        pool = _changed(pool, lambda groups: resized(groups, count))
    if assumed.failure_rate is not None:
        rates = assumed.failure_rate
        pool = replace(
            pool,
            groups=spread(pool.groups, rates.low, rates.high),
            low=None,
            high=None,
            history=None,
            given=rates,
            repair_s=assumed.repair_s or pool.repair_s,
        )
    elif assumed.repair_s is not None:
        if pool.repair_s is None:
            raise UsageError("--what-if repair needs the present repair time", hint="give it with --repair, such as 5d")
        factor = assumed.repair_s / pool.repair_s
        pool = _changed(pool, lambda groups: with_rates(groups, lambda rate: scaled(rate, factor)))
        pool = replace(pool, repair_s=assumed.repair_s, given=None)
    if assumed.host_failure_rate is not None:
        if not pool.hosts_known:
            raise UsageError(
                "a failure rate of hosts needs the accelerators of a host", hint="add --per-host, such as 8"
            )
        of_hosts = even_rates(len(pool.groups), assumed.host_failure_rate.low, assumed.host_failure_rate.high)
        groups = tuple(replace(group, rate=rate) for group, rate in zip(pool.groups, of_hosts, strict=True))
        pool = replace(pool, groups=groups, low=None, high=None, history=None)
    return pool


def _changed(pool: Pool, change: Callable[[Groups], Groups]) -> Pool:
    low, high = (None if groups is None else change(groups) for groups in (pool.low, pool.high))
    return replace(pool, groups=change(pool.groups), low=low, high=high)


def sized(pool: Pool, availability: float, horizon_s: float | None = None) -> SizedPool:
    """The number of spares that a pool needs, in the long run or at the end of a horizon.

    Raises:
        UsageError: there is a horizon, and no repair time.
    """
    repair_s = pool.repair_s
    if horizon_s is not None:
        if repair_s is None:
            raise UsageError("--horizon needs the repair time", hint="give it with --repair, such as 5d")
        length_s, mean_s = horizon_s, repair_s
        pool = _changed(pool, lambda groups: with_rates(groups, lambda rate: within(rate, mean_s, length_s)))
        pool = replace(pool, given=None)
        # Failures are as frequent as before, and fewer of the parts are down: they have been for a shorter time.
        repair_s = -mean_s * expm1(-length_s / mean_s)
    low, high = (None if groups is None else _enough(groups, pool, availability) for groups in (pool.low, pool.high))
    parts = tuple(
        SizedPart(part, size_pool(in_part(pool.groups, number), availability, repair_s))
        for number, part in enumerate(pool.parts)
    )
    return SizedPool(pool, size_pool(pool.groups, availability, repair_s), low, high, parts)


def _enough(groups: Groups, pool: Pool, availability: float) -> int:
    by_part = [in_part(groups, number) for number in range(len(pool.parts))] or [groups]
    return sum(size_pool(each, availability).exact for each in by_part)
