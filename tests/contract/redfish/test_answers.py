"""Whole answers of controllers: what each status, redirect and document means to the driver."""

import contextlib

import pytest

from lumctl.devices.errors import (
    DeviceLoginError,
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
)

CHASSIS, SYSTEM = "/redfish/v1/Chassis/a", "/redfish/v1/Systems/a"
ROOT, RESET = "/redfish/v1/", f"{SYSTEM}/Actions/ComputerSystem.Reset"


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, DeviceLoginError, "401 Not you"),
        (403, DeviceLoginError, "403 Not you"),
        (400, DeviceRefusedError, "400 Not you"),
        (409, DeviceRefusedError, "409 Not you"),
        (307, DeviceRefusedError, "307 Not you"),
        (501, DeviceRefusedError, "501 Not you"),
        (500, OutcomeUnknownError, "500 Not you"),
        (503, OutcomeUnknownError, "503 Not you"),
    ],
)
def test_what_is_said_against_an_order_is_told(controller, driver, status, error, words):
    said = {"error": {"message": "general", "@Message.ExtendedInfo": [{"MessageId": "x"}, {"Message": "Not\n you"}]}}
    controller.says["POST", RESET] = controller.whole(status, said, f"Location: {SYSTEM}\r\n")
    with pytest.raises(error, match=words):
        driver.set_power(on=False)
    assert controller.orders == ["GracefulShutdown"]


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_order_that_is_accepted_returns(controller, driver, status):
    controller.says["POST", RESET] = controller.whole(status)
    driver.set_power(on=False, force=True)
    assert controller.orders == ["ForceOff"]


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, DeviceRefusedError), (410, DeviceRefusedError), (500, DeviceUnreachableError), (403, DeviceLoginError)],
)
def test_a_reading_that_is_refused(controller, driver, status, error):
    controller.says["GET", SYSTEM] = controller.whole(status, b"<html>no</html>")
    with pytest.raises(error, match=str(status)):
        driver.read_power()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"PowerState": ' + b"9" * 10_000 + b"}",
        b'{"a": "' + b"a" * 3_000_000 + b'"}',
    ],
    ids=["nothing", "text", "a list", "no text", "deep list", "deep object", "huge number", "huge text"],
)
def test_what_is_no_document_is_unreachable(controller, driver, bounded, body):
    controller.says["GET", SYSTEM] = controller.whole(200, body)
    with bounded(), pytest.raises(DeviceUnreachableError):
        driver.read_power()


STRANGE = [
    None,
    True,
    -1,
    1e999,
    "",
    "\x1b[31m\r\nOn",
    [],
    [[]],
    {},
    {"@odata.id": 7},
    [{"@odata.id": "/a b\r\n"}],
    "x" * 9999,
]


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("at", range(5))
def test_values_of_the_wrong_kind_never_break_it(controller, driver, bounded, at, value):
    """Whatever stands in a document's place, a reading comes or a device error does."""
    path, document = list(controller.documents.items())[at]
    for key in document:
        controller.documents[path] = document | {key: value}
        with bounded(), contextlib.suppress(DeviceRefusedError, DeviceUnreachableError):
            reading = driver.read_power()
            assert len(f"{reading.health} {reading.model}".splitlines()) == 1
            assert len(driver.identify().splitlines()) == 1


def test_redirects_are_followed_within_the_controller_only(controller, make_controller, serve, make_driver):
    driver = make_driver(serve(controller))
    other = make_controller()
    controller.says["GET", ROOT] = controller.whole(301, b"", "Location: /moved\r\n")
    controller.documents["/moved"] = controller.documents[ROOT]
    assert driver.read_power().on is True
    controller.says["GET", SYSTEM] = controller.whole(302, b"", f"Location: http://{serve(other)}{SYSTEM}\r\n")
    with pytest.raises(DeviceRefusedError, match="redirects to another host"):
        driver.read_power()
    controller.says["GET", SYSTEM] = controller.whole(302, b"", f"Location: {SYSTEM}\r\n")
    with pytest.raises(DeviceRefusedError, match="redirects too many times"):
        driver.read_power()
    assert other.asked == []


def test_a_controller_that_closes_between_two_requests_is_asked_again(controller, driver):
    for path, document in controller.documents.items():
        said = controller.whole(200, document)
        controller.says["GET", path] = lambda connection, said=said: connection.sendall(said)
    assert driver.read_power().watts == 321.5


def test_a_broken_meter_leaves_out_the_draw_and_nothing_else(controller, driver):
    for said in (controller.whole(500), controller.whole(200, b"[]"), controller.whole(403)):
        controller.says["GET", CHASSIS] = said
        reading = driver.read_power()
        assert (reading.on, reading.watts) == (True, None)


def test_nobody_there_is_unreachable(nobody, make_driver):
    with pytest.raises(DeviceUnreachableError, match="connection refused; nothing was sent"):
        make_driver(nobody).set_power(on=False)
