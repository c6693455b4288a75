"""Values below the expected ones, which come from the inventory or from most others of the kind in the rack."""

from collections.abc import Iterator

from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.cases import GpuCase, HostCase, LinkCase
from lumctl.health.rules.nvlink import is_mig, none_is_active, part_of
from lumctl.health.states import Finding


def nvlinks(case: GpuCase) -> Iterator[Finding]:
    """Fewer active NVLinks than expected, unless gpu.nvlink already reports the missing ones."""
    expected = case.expected_nvlinks
    told_of = any(link.active is not None for link in case.nvlinks)
    if expected is None or not told_of or none_is_active(case) or is_mig(case):
        return
    active = [link.active for link in case.nvlinks].count(True)
    if active >= expected.value:
        return
    worked = case.trend.worked if case.trend is not None else set()
    told = sum(link.active is False and part_of(link) in worked for link in case.nvlinks)
    if active + told < expected.value:
        evidence = f"{active} NVLinks are active, expected {expected.value:g} ({expected.source})"
        yield found(case.id, "gpu.expected", "nvlinks", evidence, since=case.read_at)


def pcie_width(case: GpuCase) -> Iterator[Finding]:
    """A PCIe link with fewer lanes than expected, or with at most a quarter of the lanes that it supports."""
    reading, expected = case.reading, case.expected_pcie_width
    if reading is None or not reading.pcie_width:
        return
    width, best = reading.pcie_width, reading.pcie_width_max
    if expected is not None and width < expected.value:
        evidence = f"PCIe x{width}, expected x{expected.value:g} ({expected.source})"
        yield found(case.id, "gpu.expected", "pcie-width", evidence, since=case.read_at)
    elif best and width <= verdict("gpu.expected", "pcie-quarter").limit * best:
        evidence = f"PCIe x{width}, its best is x{best}"
        yield found(case.id, "gpu.expected", "pcie-quarter", evidence, since=case.read_at)


def port(case: LinkCase) -> Iterator[Finding]:
    """A port that runs slower or narrower than expected, and a module of another part number."""
    if not case.in_use or case.stale is not None:
        return
    expected = case.expected_rate
    for rate in case.rates:
        if expected is not None and rate.gb_s < expected.value:
            evidence = f"{case.name} runs at {rate.gb_s:g} Gb/s, expected {expected.value:g} ({expected.source})"
            yield found(case.id, "link.expected", "rate", evidence, since=case.read_at)
        if case.expected_lanes is not None and rate.lanes is not None and rate.lanes < case.expected_lanes:
            evidence = f"{case.name} runs on {rate.lanes} lanes, expected {case.expected_lanes} (the inventory)"
            yield found(case.id, "link.expected", "lanes", evidence, since=case.read_at)
    part = case.optics.part if case.optics is not None else None
    if case.expected_part is not None and part is not None and part != case.expected_part:
        evidence = f"its module is {part}, expected {case.expected_part} (the inventory)"
        yield found(case.id, "link.expected", "module", evidence, since=case.read_at)


def rdma_ports(case: HostCase) -> Iterator[Finding]:
    """Fewer InfiniBand and RoCE ports than expected."""
    expected = case.expected_rdma_ports
    if expected is not None and case.rdma_ports is not None and case.rdma_ports < expected.value:
        evidence = f"{case.rdma_ports} InfiniBand and RoCE ports, expected {expected.value:g} ({expected.source})"
        yield found(case.id, "host.expected", "rdma-ports", evidence, since=case.read_at)


def capacity(case: HostCase) -> Iterator[Finding]:
    """Less main memory or fewer processors than like hosts: the firmware may have disabled a module or processor."""
    reading, memory, processors = case.capacity, case.expected_memory_gib, case.expected_processors
    if reading is None:
        return
    line = verdict("host.capacity", "memory")
    if memory is not None and reading.memory_gib is not None and reading.memory_gib < line.limit * memory.value:
        evidence = f"{reading.memory_gib:.0f} GiB of main memory, expected {memory.value:.0f} ({memory.source})"
        yield found(case.id, "host.capacity", "memory", evidence, since=reading.taken_at)
    if processors is not None and reading.processors is not None and reading.processors < processors.value:
        evidence = f"{reading.processors} processors, expected {processors.value:g} ({processors.source})"
        yield found(case.id, "host.capacity", "processors", evidence, since=reading.taken_at)


GPU_RULES = (nvlinks, pcie_width)
LINK_RULES = (port,)
HOST_RULES = (rdma_ports, capacity)
