"""The HTTP client that drivers share: one deadline, bounded answers, errors that state what was sent."""

import base64
import json
import threading
from dataclasses import replace

import pytest

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceLoginError,
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    StaleFenceError,
)
from lumctl.devices.http import HttpClient, error_text
from lumctl.devices.logins import Login
from lumctl.devices.permission import sending_with
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct

VARIABLE = "VARIABLE_OF_S1"


def whole(status, body=b"", headers="") -> bytes:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Device:
    """Gives ``says`` as its answer to everything; ``asked`` holds each request with its headers and its body."""

    def __init__(self) -> None:
        self.says = whole(200, {})
        self.asked = []

    def __call__(self, connection) -> None:
        with connection.makefile("rb") as lines:
            while request := lines.readline().split():
                headers = {}
                while line := lines.readline().strip():
                    name, _, value = line.decode().partition(": ")
                    headers[name.lower()] = value
                body = lines.read(int(headers.get("content-length", 0)))
                self.asked.append((request[0].decode(), request[1].decode(), headers, body))
                if callable(self.says):
                    self.says(connection)
                    return
                connection.sendall(self.says)


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def context(device, serve):
    address = serve(device)
    return DriverContext("s1", f"http://{address}", Direct(address), timeout_s=5.0)


@pytest.fixture
def client(context):
    return HttpClient(context)


def test_a_change_is_sent_as_json_and_its_answer_comes_back(client, device):
    device.says = whole(202, {"job": 7}, "Location: /jobs/7\r\n")
    answer = client.send("PUT", "/ports/3", {"enabled": True})
    assert (answer.status, answer.headers["location"], json.loads(answer.body)) == (202, "/jobs/7", {"job": 7})
    ((method, path, headers, body),) = device.asked
    assert (method, path, headers["content-type"], json.loads(body)) == (
        "PUT",
        "/ports/3",
        "application/json",
        {"enabled": True},
    )


@pytest.mark.parametrize(
    ("status", "read", "sent"),
    [
        (401, DeviceLoginError, DeviceLoginError),
        (403, DeviceLoginError, DeviceLoginError),
        (307, DeviceRefusedError, DeviceRefusedError),
        (404, DeviceRefusedError, DeviceRefusedError),
        (409, DeviceRefusedError, DeviceRefusedError),
        (423, DeviceRefusedError, DeviceBusyError),
        (429, DeviceRefusedError, DeviceBusyError),
        (500, DeviceUnreachableError, OutcomeUnknownError),
        (501, DeviceUnreachableError, DeviceRefusedError),
        (503, DeviceUnreachableError, OutcomeUnknownError),
    ],
)
def test_a_status_is_the_error_that_it_means(client, device, status, read, sent):
    device.says = whole(status, {"error": {"message": "the\x1b[2J words\nof the device"}}, "Location: http://else/\r\n")
    for expected, act in ((read, lambda: client.get("/a")), (sent, lambda: client.send("POST", "/a"))):
        with pytest.raises(expected) as raised:
            act()
        assert type(raised.value) is expected
        assert raised.value.message.isprintable()
        assert "s1 at http://127.0.0.1" in raised.value.message
        if status != 307:
            assert "words of the device" in raised.value.message


@pytest.mark.parametrize(
    "cut",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"\x00" * 99],
    ids=["none", "headers", "body", "noise"],
)
def test_a_lost_answer_to_a_change_leaves_its_outcome_unknown_and_it_is_sent_once(client, device, cut):
    device.says = lambda connection: connection.sendall(cut)
    with pytest.raises(OutcomeUnknownError, match="it may or may not have been applied"):
        client.send("POST", "/commits", {})
    assert len(device.asked) == 1
    with pytest.raises(DeviceUnreachableError, match="no answer to GET /ports"):
        client.get_json("/ports")


def test_where_nothing_listens_nothing_was_sent(nobody):
    client = HttpClient(DriverContext("s1", nobody, Direct(nobody)))
    with pytest.raises(DeviceUnreachableError, match="nothing was sent"):
        client.send("POST", "/commits", {})


def test_a_dripping_answer_ends_with_the_call(context, device):
    """The time is for the whole answer, not for each byte of it: each takes a second here."""
    seconds = iter(range(1000))
    client = HttpClient(context, clock=lambda: float(next(seconds)))
    over = threading.Event()

    def drip(connection) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        while not over.wait(0.001):
            connection.sendall(b" ")

    device.says = drip
    with pytest.raises(DeviceUnreachableError, match="no answer to GET /ports: no answer in time"):
        client.get("/ports")
    with pytest.raises(OutcomeUnknownError, match="then no answer in time"):
        client.send("POST", "/ports")
    over.set()


def test_an_answer_is_bounded(context, device):
    device.says = whole(200, b" " * 5000)
    with pytest.raises(DeviceUnreachableError, match="the answer exceeds 4096 bytes"):
        HttpClient(context, most_bytes=4096).get("/ports")
    assert HttpClient(context, most_bytes=6000).get("/ports").body == b" " * 5000


def test_what_is_no_json_is_no_reading(client, device):
    for said in (b"<html>", b"", b"[" * 100_000):
        device.says = whole(200, said)
        with pytest.raises(DeviceUnreachableError, match="is not JSON"):
            client.get_json("/ports")


def test_a_call_inside_a_call_is_a_part_of_it(client, device):
    with client.call():
        outer = client.left_s()
        with client.call(0.001):
            assert client.left_s() > 0.001
            assert client.get_json("/ports") == {}
        assert client.get_json("/ports") == {}
        assert 0 < client.left_s() <= outer
    assert len(device.asked) == 2


def test_the_login_is_shown_with_each_request(context, device, monkeypatch):
    monkeypatch.setenv(VARIABLE, "open-sesame")
    HttpClient(replace(context, login=Login("operator", secret_variable=VARIABLE))).get("/a")
    HttpClient(replace(context, login=Login(secret_variable=VARIABLE))).get("/a")
    HttpClient(context).get("/a")
    HttpClient(context, authorization=lambda: {"X-Key": "k"}).get("/a")
    basic = "Basic " + base64.b64encode(b"operator:open-sesame").decode()
    shown = [headers.get("authorization") or headers.get("x-key") for *_, headers, _ in device.asked]
    assert shown == [basic, "Bearer open-sesame", None, "k"]


def test_a_token_that_could_not_be_sent_is_a_wrong_login(context, device, monkeypatch):
    monkeypatch.setenv(VARIABLE, "two\nlines")
    client = HttpClient(replace(context, login=Login(secret_variable=VARIABLE)))
    with pytest.raises(DeviceLoginError, match="is not a valid token"):
        client.send("POST", "/a")
    assert device.asked == []


def test_without_permission_nothing_is_sent(client, device):
    def lease_ended() -> None:
        raise StaleFenceError("the lease has ended")

    with sending_with(lease_ended):
        for act in (lambda: client.send("POST", "/a"), lambda: client.get("/a")):
            with pytest.raises(StaleFenceError):
                act()
    assert device.asked == []


@pytest.mark.parametrize("path", ["", "ports", "/a b", "/a\r\nX: y", "/ä", "/" * 2000])
def test_what_is_no_path_is_not_sent(client, device, path):
    with pytest.raises(DeviceRefusedError, match="is not a path; nothing was sent"):
        client.send("POST", path)
    assert device.asked == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"message": "busy"}, "busy"),
        ({"detail": "busy"}, "busy"),
        ({"errors": [{"error": {"message": "busy"}}]}, "busy"),
        ({"errors": [{"title": "busy"}]}, "busy"),
        ({"error": {"error": {"error": {"message": "deep"}}}}, ""),
        ([], ""),
        ({"message": 7}, ""),
        ("busy", "busy"),
    ],
)
def test_the_words_of_a_device_are_found(body, text):
    assert error_text(json.dumps(body).encode()) == text
