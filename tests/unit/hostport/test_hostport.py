from dataclasses import dataclass, field

import pytest
from lumctl_hostport import HostPort

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import CommandResult, DriverContext
from lumctl.devices.types import Neighbour

MARK = "lldpcli configure lldp custom-tlv replace oui 02,6c,6d subtype 1 oui-info 0a,0b"

LLDP = """{"lldp": {"interface": [
 {"eth2": {"age": "0 day, 00:01:00", "chassis": {"old": {"id": {"type": "mac", "value": "x"}}},
  "port": {"id": {"type": "ifname", "value": "eth7"}}}},
 {"eth2": {"age": "0 day, 00:00:05", "chassis": {"h02": {"id": {"type": "mac", "value": "x"}}},
  "port": {"id": {"type": "mac", "value": "y"}, "descr": "eth3"}}}]}}"""


@dataclass
class Host:
    """A host with one interface, as a shell sees it."""

    flags: int = 0x1003
    obeys: bool = True
    answers: dict[str, CommandResult] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)

    def run(self, command, *, timeout_s):
        self.asked.append((command, timeout_s))
        first, _, then = command.partition(" && ")
        result = self.answer(first)
        return self.answer(then) if then and result.exit_status == 0 else result

    def answer(self, command):
        if command in self.answers:
            return self.answers[command]
        match command.split():
            case ["ip", "link", "set", "dev", "eth2", word]:
                if self.obeys:
                    self.flags = self.flags & ~1 | (word == "up")
                return CommandResult(0, "", "")
            case ["cat", "/sys/class/net/eth2/flags"]:
                return CommandResult(0, f"{self.flags:#x}\n", "")
            case ["lldpcli", "configure", *_]:
                return CommandResult(0, "", "")
            case ["lldpctl", "-f", "json"]:
                return CommandResult(0, LLDP, "")
        return CommandResult(127, "", f"sh: 1: {command.split()[0]}: not found\n")


def port(host, **more):
    return HostPort(DriverContext(device="t1", shell=host, interface="eth2", timeout_s=2.0, now=lambda: 4.0, **more))


def test_switching_is_read_back():
    host = Host()
    driver = port(host)
    driver.set_transmit(enabled=False)
    assert (driver.transmitting(), host.flags) == (False, 0x1002)
    driver.set_transmit(enabled=True)
    assert (driver.transmitting(), host.flags) == (True, 0x1003)
    assert set(host.asked) == {
        ("ip link set dev eth2 down && cat /sys/class/net/eth2/flags", 2.0),
        ("ip link set dev eth2 up && cat /sys/class/net/eth2/flags", 2.0),
        ("cat /sys/class/net/eth2/flags", 2.0),
    }


@pytest.mark.parametrize(("flags", "wanted"), [(0x1003, False), (0x1002, True)])
def test_an_interface_that_does_not_follow(flags, wanted):
    with pytest.raises(InconsistentError, match="eth2"):
        port(Host(flags=flags, obeys=False)).set_transmit(wanted)


def test_a_switch_whose_outcome_is_unknown_is_not_repeated():
    class Silent(Host):
        def run(self, command, *, timeout_s):
            self.asked.append((command, timeout_s))
            raise OutcomeUnknownError("late")

    host = Silent()
    with pytest.raises(OutcomeUnknownError):
        port(host).set_transmit(enabled=True)
    assert len(host.asked) == 1


def test_a_switch_that_cannot_be_read_back_is_in_doubt():
    said = "cat: /sys/class/net/eth2/flags: Permission denied\n"
    denied = Host(answers={"cat /sys/class/net/eth2/flags": CommandResult(1, "", said)})
    with pytest.raises(OutcomeUnknownError, match="Permission denied; eth2 was set down just before"):
        port(denied).set_transmit(enabled=False)
    assert not denied.flags & 1
    odd = Host(answers={"cat /sys/class/net/eth2/flags": CommandResult(0, "\n", "")})
    with pytest.raises(OutcomeUnknownError, match="read ''; eth2 was set down just before"):
        port(odd).set_transmit(enabled=False)


def test_a_switch_that_the_host_refuses_is_not_in_doubt():
    said = "RTNETLINK answers: Operation not permitted\n"
    denied = Host(answers={"ip link set dev eth2 down": CommandResult(2, "", said)})
    with pytest.raises(DeviceRefusedError, match=r"t1: ip link set dev eth2 down: RTNETLINK answers") as refused:
        port(denied).set_transmit(enabled=False)
    assert "sudo" in refused.value.hint


@pytest.mark.parametrize("call", ["read_optics", "transmitting", "neighbours"])
def test_a_reading_that_does_not_end_leaves_nothing_in_doubt(call):
    class Silent(Host):
        def run(self, command, *, timeout_s):
            raise OutcomeUnknownError(f"h1: {command} did not end within {timeout_s:g} s")

    with pytest.raises(DeviceUnreachableError, match=r"t1 could not be read: h1: .* did not end within 2 s"):
        getattr(port(Silent()), call)()


def test_whom_it_hears():
    assert port(Host()).neighbours() == (Neighbour("h02", "eth3", 5.0), Neighbour("old", "eth7", 60.0))


def test_its_module():
    text = "Receiver signal average optical power : 0.0794 mW / -11.00 dBm\nLaser output power : 1 mW / 0.00 dBm\n"
    optics = port(Host(answers={"ethtool -m eth2": CommandResult(0, text, "")})).read_optics()
    assert (optics.rx_power_dbm, optics.transmitting, optics.taken_at) == (-11.0, True, 4.0)


def test_sudo_goes_before_every_command():
    host = Host()
    with pytest.raises(UnsupportedError):
        port(host, sudo=True).announce("0a0b")
    assert host.asked == [(f"sudo -n {MARK}", 2.0)]


def test_what_the_host_says_against_it_is_the_error():
    denied = Host(answers={MARK: CommandResult(1, "", "Operation not permitted\n")})
    with pytest.raises(DeviceRefusedError, match=r"t1: lldpcli configure .*: Operation not permitted") as refused:
        port(denied).announce("0a0b")
    assert "sudo" in refused.value.hint
    with pytest.raises(UnsupportedError, match="not found") as absent:
        port(Host()).read_optics()
    assert absent.value.hint == "install ethtool on the host"
    odd = Host(answers={"cat /sys/class/net/eth2/flags": CommandResult(0, "\n", "")})
    with pytest.raises(DeviceRefusedError):
        port(odd).transmitting()


def test_without_a_host_it_can_do_nothing():
    driver = HostPort(DriverContext(device="t1", interface="eth2"))
    with pytest.raises(UnsupportedError, match="has no host"):
        driver.neighbours()
    driver.close()
    driver.close()
