"""Read a host's mounts, disks, clock, crashes, services, memory, network cards, interfaces, ports and counters.

A host whose tools lack an option or whose files are missing is not at fault: the probe is then absent.
"""

from collections.abc import Sized
from dataclasses import replace

from lumctl.devices.formats.complaint import first_line, is_denial
from lumctl.fleet.host_readings import ClockReading, Mounts, Services
from lumctl.fleet.parsers.fields import is_harmless, said_in
from lumctl.fleet.parsers.machine import (
    parse_adapters,
    parse_capacity,
    parse_clock,
    parse_crashes,
    parse_disks,
    parse_fabric_log,
    parse_mounts,
    parse_services,
    unread_line,
)
from lumctl.fleet.parsers.sysfs import parse_counters, parse_infiniband, parse_interfaces
from lumctl.fleet.parsers.sysfs import unread_line as unread_sysfs_line
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict, all_read_at, failure, read_at
from lumctl.fleet.readings import ProbeStatus

_NO_OPTION = ("unrecognized option", "invalid option", "illegal option", "unknown option", "unrecognized: ", "usage:")
"""How a reduced version of a tool refuses an option that it does not have."""
_NO_SYSTEMD = ("system has not been booted with systemd", "failed to connect to bus", "failed to get d-bus")
"""The messages of systemctl in a container, or if a program other than systemd starts the services."""


class MountTable:
    """``/proc/self/mounts``."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        mounts = parse_mounts(answer.text)
        # Every host has a mount at "/". An answer without it was cut at its beginning, or is not a table of mounts.
        if answer.status != 0 or "/" not in mounts:
            return failure(answer, otherwise="there is nothing mounted at /")
        gathered.mounts = Mounts(taken_at, mounts)
        return _whole("mounts", answer)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.mounts is not None:
            gathered.mounts = replace(gathered.mounts, taken_at=taken_at)


class DiskTable:
    """``df`` of the local file systems."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the table. The exit status is ignored, because it is 1 if one of many file systems may not be read."""
        disks = parse_disks(answer.text, taken_at)
        if disks is None:
            return _failure(answer, otherwise="df printed no table of disks")
        gathered.disks = disks
        return _whole("disks", answer)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.disks is not None:
            gathered.disks = replace(gathered.disks, taken_at=taken_at)


class Clock:
    """``date``: the time was printed after the request went out and before the answer came."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the time. In a capture it gives no reading, because the arrival time of the answer is unknown."""
        time = parse_clock(answer.text)
        if time is None:
            return _failure(answer, otherwise="date printed no time")
        told, coarse_s = time
        if gathered.heard_at is not None:
            gathered.clock = ClockReading(taken_at, told - gathered.heard_at, told + coarse_s - taken_at)
        return OK

    def again(self, _taken_at: float, gathered: Gathered) -> None:
        """Drop the reading: the same time twice cannot be right, because a host's clock does not stop."""
        gathered.clock = None


class Crashes:
    """The records of crashed kernels, as far as our user may read them."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """Read the records. Usually one of the two folders is missing, and the other may be closed to our user."""
        gathered.crashes = parse_crashes(answer.text)
        if gathered.crashes or is_harmless(answer.text):
            return _whole("crashes", answer)
        said = said_in(answer.text)
        if is_denial(said):
            return ProbeStatus.ABSENT, said
        if said.startswith("find: ") and "no such file or directory" in said.lower():
            return _whole("crashes", answer)
        return _failure(answer, otherwise=f"find printed no time: {said}")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: records have their own times."""


class FabricLog:
    """The end of the fabric manager's log. Hosts without NVSwitches have none, and our user may lack access to it."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        errors = parse_fabric_log(answer.text)
        denied = next((line for line in answer.text.splitlines() if is_denial(line)), None)
        if denied is not None:
            return ProbeStatus.ABSENT, first_line(denied)
        if errors is not None:
            gathered.fabric_errors = errors
            return OK
        if is_harmless(answer.text):
            gathered.fabric_errors = ()
            return ProbeStatus.ABSENT, "none on this host"
        return _failure(answer, otherwise="find did not print when the log was written")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: errors have their own times."""


class NetworkCards:
    """The PCI addresses of the host's network interfaces and RDMA devices."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """Read the addresses. Virtual interfaces have none."""
        adapters = parse_adapters(answer.text)
        if adapters is not None:
            gathered.adapters = adapters
            return _whole("adapters", answer)
        if is_harmless(answer.text):
            return ProbeStatus.ABSENT, "none on this host"
        return _failure(answer, otherwise="grep printed no PCI address")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: the address of an adapter does not change while the host runs."""


class ServiceTable:
    """``systemctl show`` of the services that GPUs need."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the services. If the host has no systemd or systemctl cannot reach it, there is nothing to judge."""
        services = parse_services(answer.text)
        if services is not None:
            gathered.services = Services(taken_at, services)
            return _whole("services", answer)
        if any(words in answer.text.lower() for words in _NO_SYSTEMD):
            return ProbeStatus.ABSENT, said_in(answer.text)
        return _failure(answer, otherwise="systemctl described no unit")

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.services is not None:
            gathered.services = replace(gathered.services, taken_at=taken_at)


class CapacityTable:
    """How much memory and how many processors the kernel uses."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the capacity. The memory or the processors alone may be missing."""
        capacity = parse_capacity(answer.text, taken_at)
        if capacity is not None:
            gathered.capacity = capacity
            return _whole("capacity", answer)
        if is_harmless(answer.text):
            return ProbeStatus.ABSENT, "the kernel reports neither"
        return _failure(answer, otherwise="grep printed neither memory nor processors")

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.capacity is not None:
            gathered.capacity = replace(gathered.capacity, taken_at=taken_at)


def _whole(kind: str, answer: ProbeAnswer) -> Verdict:
    """The verdict on an answer that gave a reading: ok, unless it has an unreadable line."""
    unread = unread_line(kind, answer.text)
    return OK if unread is None else (ProbeStatus.FAILED, first_line(f"unreadable line: {unread}"))


def _failure(answer: ProbeAnswer, *, otherwise: str) -> Verdict:
    status, said = failure(answer, otherwise=otherwise)
    no_option = status is ProbeStatus.FAILED and any(words in answer.text.lower() for words in _NO_OPTION)
    return (ProbeStatus.ABSENT if no_option else status), said


class Net:
    """``/sys/class/net``: state, carrier changes and speed of the interfaces that the inventory names."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read all interfaces that can be read, even if a line cannot."""
        found = parse_interfaces(answer.text, taken_at)
        gathered.interfaces = found or gathered.interfaces
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.interfaces = all_read_at(gathered.interfaces, taken_at)


class Infiniband:
    """``/sys/class/infiniband``: the state of every port."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """As in :class:`Net`."""
        found = parse_infiniband(answer.text, taken_at)
        gathered.infiniband = found or gathered.infiniband
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.infiniband = read_at(gathered.infiniband, taken_at)


class Counters:
    """What interfaces and InfiniBand ports have counted."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """As in :class:`Net`."""
        found = parse_counters(answer.text, taken_at)
        gathered.counters = found or gathered.counters
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.counters = all_read_at(gathered.counters, taken_at)


def _sysfs_verdict(answer: ProbeAnswer, found: Sized) -> Verdict:
    """The exit status is ignored: grep returns 2 if one of many files has no value."""
    said = said_in(answer.text)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    unread = unread_sysfs_line(answer.text)
    if unread is not None:
        return ProbeStatus.FAILED, first_line(f"unreadable line: {unread}")
    return OK if found else (ProbeStatus.ABSENT, said or "none on this host")
