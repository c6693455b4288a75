"""Controllers whose answers are slow, cut off or endless: every call is bounded, and orders are sent once."""

import contextlib

import pytest

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError

ROOT, SYSTEM = "/redfish/v1/", "/redfish/v1/Systems/a"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


def silence(connection) -> None:
    connection.recv(1)


def hang_up(connection) -> None:
    del connection


def drips(start=b"HTTP/1.1 200 OK\r\nX-", piece=b"a"):
    def script(connection) -> None:
        connection.sendall(start)
        with contextlib.suppress(OSError):
            connection.settimeout(0.05)
            while True:
                connection.sendall(piece)
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(1):
                        return

    return script


def floods(start, piece):
    def script(connection) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(start)
            while True:
                connection.sendall(piece)

    return script


LOST = {
    "silence": silence,
    "closed": hang_up,
    "dripping headers": drips(),
    "dripping body": drips(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    "dripping continue": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "cut in its headers": lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "cut in its body": lambda connection: connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"Power'),
    "cut in a chunk": lambda connection: connection.sendall(
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"a"'
    ),
    "chunk below nothing": floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", b" " * 65536),
    "no HTTP": lambda connection: connection.sendall(b"\x00\xff\xfeSSH-2.0-OpenSSH\r\n\r\n"),
    "endless line": floods(b"HTTP/1.1 200 ", b"a" * 65536),
    "endless headers": floods(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 9999),
    "endless body": floods(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536),
    "endless chunks": floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\naaaa\r\n" * 9999),
}


@pytest.mark.parametrize("path", [ROOT, SYSTEM], ids=["root", "system"])
@pytest.mark.parametrize("fault", LOST)
def test_a_reading_without_an_answer_is_unreachable(controller, driver, bounded, path, fault):
    controller.says["GET", path] = LOST[fault]
    with bounded(), pytest.raises(DeviceUnreachableError):
        driver.read_power()
    del controller.says["GET", path]
    assert driver.read_power().watts == 321.5


@pytest.mark.parametrize("fault", LOST)
def test_an_order_without_an_answer_has_an_unknown_outcome_and_is_sent_once(controller, driver, bounded, fault):
    controller.says["POST", RESET] = LOST[fault]
    with bounded(), pytest.raises(OutcomeUnknownError) as unknown:
        driver.reset()
    assert "may or may not" in unknown.value.message
    assert controller.orders == ["PowerCycle"]
