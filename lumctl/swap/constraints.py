"""What the inventory requires of a job's spares: versions, free memory, loss, and hosts of those taken together."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from lumctl.context import Observation
from lumctl.inventory.model import Inventory
from lumctl.inventory.sharing import SpareConstraints, SpareHosts
from lumctl.swap.light_paths import LightPaths

HOSTS_IN_WORDS = {SpareHosts.SAME: "one host", SpareHosts.DIFFERENT: "different hosts"}
_MIB = 1024
_NONE = SpareConstraints()


def constraints_of(inventory: Inventory, job: str) -> SpareConstraints:
    """The constraints of a job; a slice has none."""
    return inventory.jobs[job].constraints


def constraint_objections(seen: Observation, job: str, failed: str, spare: str) -> Iterator[str]:
    """Why a spare does not meet the constraints of a job. What was not read meets none."""
    wanted = constraints_of(seen.inventory, job)
    if wanted == _NONE:
        return
    gpu = seen.gpus.get(spare)
    versions = (
        ("driver", wanted.driver, None if gpu is None else gpu.driver),
        ("firmware", wanted.firmware, None if gpu is None else gpu.firmware),
    )
    for what, patterns, version in versions:
        if patterns and not any(fnmatchcase(version or "", pattern) for pattern in patterns):
            has = f"has {what} {version}" if version else f"does not report the version of its {what}"
            yield f"{has}, but {job} needs {' or '.join(patterns)}"
    # A filler job gives its memory back when it is paused.
    if wanted.free_memory_gib is not None and seen.filler_on(spare) is None:
        yield from _memory_objections(job, wanted.free_memory_gib, seen, spare)
    if wanted.hosts is SpareHosts.DIFFERENT:
        host = seen.inventory.accelerators[spare].host
        stay = [name for name in seen.assignment[job] if name != failed and not seen.in_trouble(name)]
        beside = next((name for name in stay if seen.inventory.accelerators[name].host == host), None)
        if beside is not None:
            yield f"is on {host} like {beside} of {job}, whose spares must be on different hosts"


def _memory_objections(job: str, needed_gib: float, seen: Observation, spare: str) -> Iterator[str]:
    gpu = seen.gpus.get(spare)
    if gpu is None or gpu.memory_used_mib is None or gpu.memory_total_mib is None:
        yield f"does not report its free memory, but {job} needs {needed_gib:g} GiB"
        return
    free_gib = (gpu.memory_total_mib - gpu.memory_used_mib) / _MIB
    if free_gib < needed_gib:
        used = gpu.memory_used_mib / _MIB
        yield f"has {free_gib:.1f} GiB of free memory ({used:.1f} in use), but {job} needs {needed_gib:g}"


def loss_objection(inventory: Inventory, paths: LightPaths) -> str | None:
    """Why new circuits lose more than their jobs allow, or ``None``."""
    for circuit in paths.add:
        limit = inventory.jobs[circuit.owner].constraints.most_loss_db if circuit.owner in inventory.jobs else None
        if limit is not None and circuit.loss_db is not None and circuit.loss_db > limit:
            return f"{circuit.id} would lose {circuit.loss_db:.1f} dB, more than the {limit:g} of {circuit.owner}"
    return None


def host_sets(inventory: Inventory, spares: Sequence[str]) -> Mapping[str, frozenset[int]]:
    """The spares of each host, by their numbers in the sequence."""
    found: dict[str, set[int]] = {}
    for column, spare in enumerate(spares):
        found.setdefault(inventory.accelerators[spare].host, set()).add(column)
    return {host: frozenset(columns) for host, columns in found.items()}


def rows_by_hosts(inventory: Inventory, jobs: Sequence[str], wanted: SpareHosts) -> list[list[int]]:
    """The rows (failures, each with its job) of every job whose spares must be on the same, or on different hosts."""
    rows: dict[str, list[int]] = {}
    for row, job in enumerate(jobs):
        if constraints_of(inventory, job).hosts is wanted:
            rows.setdefault(job, []).append(row)
    return [found for found in rows.values() if len(found) > 1]
