"""From a host's own data to readings of its mounts, disks, clock, crashes, services, memory and cards.

All of it is read rarely. A host whose tools lack one of these has no fault because of that.
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
"""How smaller versions of a tool refuse what they are asked."""
_NO_SYSTEMD = ("system has not been booted with systemd", "failed to connect to bus", "failed to get d-bus")
"""The message of systemctl in a container, or if another program starts the services."""


class MountTable:
    """``/proc/self/mounts``."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        mounts = parse_mounts(answer.text)
        # Every host has something at its root: without it the answer is of something else, or was cut at its begin.
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
        """The exit status is ignored: it is 1 if one of many may not be read."""
        disks = parse_disks(answer.text, taken_at)
        if disks is None:
            return _failure(answer, otherwise="df prints no table of disks")
        gathered.disks = disks
        return _whole("disks", answer)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.disks is not None:
            gathered.disks = replace(gathered.disks, taken_at=taken_at)


class Clock:
    """``date``: it was printed after the question went out, and before the answer came."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """In a capture the time of the answer is unknown."""
        time = parse_clock(answer.text)
        if time is None:
            return _failure(answer, otherwise="date prints no time")
        told, coarse_s = time
        if gathered.heard_at is not None:
            gathered.clock = ClockReading(taken_at, told - gathered.heard_at, told + coarse_s - taken_at)
        return OK

    def again(self, _taken_at: float, gathered: Gathered) -> None:
        """The same time again is no reading: a host's clock does not stop."""
        gathered.clock = None


class Crashes:
    """The records of crashed kernels, as far as we may see them."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """One of the folders is not there as a rule, and a host need not let everybody look into the other."""
        gathered.crashes = parse_crashes(answer.text)
        if gathered.crashes or is_harmless(answer.text):
            return _whole("crashes", answer)
        said = said_in(answer.text)
        if is_denial(said):
            return ProbeStatus.ABSENT, said
        if said.startswith("find: ") and "no such file or directory" in said.lower():
            return _whole("crashes", answer)
        return _failure(answer, otherwise=f"find prints no time: {said}")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Records bear their own times."""


class FabricLog:
    """The end of the fabric manager's log. Hosts without NVSwitches have none, and it may be kept from our user."""

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
        return _failure(answer, otherwise="find does not say when the log was written")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Errors bear their own times."""


class NetworkCards:
    """Where the host's network interfaces and RDMA devices sit on its PCI bus."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """Virtual interfaces sit nowhere."""
        adapters = parse_adapters(answer.text)
        if adapters is not None:
            gathered.adapters = adapters
            return _whole("adapters", answer)
        if is_harmless(answer.text):
            return ProbeStatus.ABSENT, "none on this host"
        return _failure(answer, otherwise="grep prints no PCI address")

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """An adapter does not move while the host runs."""


class ServiceTable:
    """``systemctl show`` of the services that GPUs need."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """A host without systemd, or whose systemd we may not ask, has no such services to judge."""
        services = parse_services(answer.text)
        if services is not None:
            gathered.services = Services(taken_at, services)
            return _whole("services", answer)
        if any(words in answer.text.lower() for words in _NO_SYSTEMD):
            return ProbeStatus.ABSENT, said_in(answer.text)
        return _failure(answer, otherwise="systemctl describes no unit")

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.services is not None:
            gathered.services = replace(gathered.services, taken_at=taken_at)


class CapacityTable:
    """How much memory and how many processors the kernel uses."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Either may be missing on its own."""
        capacity = parse_capacity(answer.text, taken_at)
        if capacity is not None:
            gathered.capacity = capacity
            return _whole("capacity", answer)
        if is_harmless(answer.text):
            return ProbeStatus.ABSENT, "the kernel shows neither"
        return _failure(answer, otherwise="grep prints neither memory nor processors")

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        if gathered.capacity is not None:
            gathered.capacity = replace(gathered.capacity, taken_at=taken_at)


def _whole(kind: str, answer: ProbeAnswer) -> Verdict:
    """How an answer is of which something was read: well, if it holds nothing that cannot be read."""
    unread = unread_line(kind, answer.text)
    return OK if unread is None else (ProbeStatus.FAILED, first_line(f"a line that cannot be read: {unread}"))


def _failure(answer: ProbeAnswer, *, otherwise: str) -> Verdict:
    status, said = failure(answer, otherwise=otherwise)
    no_option = status is ProbeStatus.FAILED and any(words in answer.text.lower() for words in _NO_OPTION)
    return (ProbeStatus.ABSENT if no_option else status), said


class Net:
    """``/sys/class/net``: state, carrier changes and speed of the interfaces that the inventory names."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """What can be read is taken, even beside a line that cannot."""
        found = parse_interfaces(answer.text, taken_at)
        gathered.interfaces = found or gathered.interfaces
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.interfaces = all_read_at(gathered.interfaces, taken_at)


class Infiniband:
    """``/sys/class/infiniband``: the state of every port."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """As of :class:`Net`."""
        found = parse_infiniband(answer.text, taken_at)
        gathered.infiniband = found or gathered.infiniband
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.infiniband = read_at(gathered.infiniband, taken_at)


class Counters:
    """What interfaces and InfiniBand ports have counted."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """As of :class:`Net`."""
        found = parse_counters(answer.text, taken_at)
        gathered.counters = found or gathered.counters
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.counters = all_read_at(gathered.counters, taken_at)


def _sysfs_verdict(answer: ProbeAnswer, found: Sized) -> Verdict:
    """The exit status is ignored: that of grep is 2 if one of many files has no value."""
    said = said_in(answer.text)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    unread = unread_sysfs_line(answer.text)
    if unread is not None:
        return ProbeStatus.FAILED, first_line(f"a line that cannot be read: {unread}")
    return OK if found else (ProbeStatus.ABSENT, said or "none on this host")
