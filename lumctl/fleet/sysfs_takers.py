"""From what stands in ``/sys/class`` to readings of interfaces and InfiniBand ports."""

from collections.abc import Sized

from lumctl.devices.formats.complaint import first_line, is_denial
from lumctl.fleet.gathered import Answer, Gathered, Verdict
from lumctl.fleet.parsers.complaints import said_in
from lumctl.fleet.parsers.sysfs import parse_counters, parse_infiniband, parse_interfaces, unread_line
from lumctl.fleet.readings import ProbeStatus
from lumctl.fleet.taking import OK, all_read_at, read_at


class Net:
    """``/sys/class/net``: state, carrier changes and speed of the interfaces that the inventory names."""

    def take(self, answer: Answer, taken_at: float, gathered: Gathered) -> Verdict:
        """What can be read is taken, even beside a line that cannot."""
        found = parse_interfaces(answer.text, taken_at)
        gathered.interfaces = found or gathered.interfaces
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """As the protocol says."""
        gathered.interfaces = all_read_at(gathered.interfaces, taken_at)


class Infiniband:
    """``/sys/class/infiniband``: the state of every port."""

    def take(self, answer: Answer, taken_at: float, gathered: Gathered) -> Verdict:
        """As of :class:`Net`."""
        found = parse_infiniband(answer.text, taken_at)
        gathered.infiniband = found or gathered.infiniband
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """As the protocol says."""
        gathered.infiniband = read_at(gathered.infiniband, taken_at)


class Counters:
    """What interfaces and InfiniBand ports have counted."""

    def take(self, answer: Answer, taken_at: float, gathered: Gathered) -> Verdict:
        """As of :class:`Net`."""
        found = parse_counters(answer.text, taken_at)
        gathered.counters = found or gathered.counters
        return _sysfs_verdict(answer, found)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """As the protocol says."""
        gathered.counters = all_read_at(gathered.counters, taken_at)


def _sysfs_verdict(answer: Answer, found: Sized) -> Verdict:
    """The exit status says nothing here: that of grep is 2 where one of many files has no value."""
    said = said_in(answer.text)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    unread = unread_line(answer.text)
    if unread is not None:
        return ProbeStatus.FAILED, first_line(f"a line that cannot be read: {unread}")
    return OK if found else (ProbeStatus.ABSENT, said or "none on this host")
