"""The dashboard in a browser: on this machine only, for its own page only, with nothing loaded from elsewhere."""

import builtins
import json
import re
import socket
import subprocess
import sys
from http.client import HTTPConnection
from typing import NamedTuple

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode

# Serves what shows nothing, and ends with the door: the door is what is tested.
PROGRAM = """
import sys
from lumctl.tui import web
web.MOST_PAGES = 2
door = web.Door("cat >/dev/null", web.listen("127.0.0.1", 0))
print(door.address, flush=True)
door.open()
"""
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


class Address(NamedTuple):
    """Where the door is, as it printed it."""

    port: int
    token: str


@pytest.fixture(scope="module")
def door():
    pytest.importorskip("textual_serve")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{43})/", address).groups()
            yield Address(int(port), token)
        finally:
            server.kill()


@pytest.fixture
def port(door):
    return door.port


@pytest.fixture
def token(door):
    return door.token


def get(port, path="/", **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    finally:
        connection.close()


def test_the_page_fits_a_phone_and_has_keys_for_fingers(port, token):
    page = get(port, f"/{token}/")[2]
    assert 'name="viewport" content="width=device-width' in page
    assert "(pointer: coarse)" in page
    script = re.search(r"Object\.entries\((\{.*?\})\)", page).group(1)
    keys = json.loads(script)
    assert keys["esc"] == "\x1b"
    assert keys["↑"] == "\x1b[A"
    assert {"p", "enter", "m", "?", "1", "5"} <= set(keys)


def test_a_page_is_served_that_loads_nothing_from_elsewhere(port, token):
    status, headers, page = get(port, f"/{token}/")
    assert status == 200
    assert f"ws://127.0.0.1:{port}/{token}/ws" in page
    names = {"http://www.w3.org/2000/svg"}  # the name of a language, which nobody fetches
    elsewhere = set(re.findall(r"https?://[^\"')\s]+", page)) - names
    assert all(url.startswith(f"http://127.0.0.1:{port}/{token}/") for url in elsewhere), elsewhere
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "https:" not in headers["Content-Security-Policy"]


def test_its_parts_are_served_and_held_to_the_same(port, token):
    parts = set(re.findall(rf"http://127\.0\.0\.1:{port}(/{token}/static/[^\"')]+\.\w+)", get(port, f"/{token}/")[2]))
    assert parts
    for path in parts:
        status, headers, _ = get(port, path)
        assert status == 200, path
        assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1"])
@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js"])
def test_another_name_that_points_here_is_refused(port, token, path, host):
    status, _, told = get(port, f"/{token}{path}", Host=host)
    assert status == 403
    assert told == f"this server serves only http://127.0.0.1:{port}/\n"


def test_a_page_from_elsewhere_may_not_connect(port, token):
    assert get(port, f"/{token}/ws", Origin="http://evil.example", **UPGRADE)[0] == 403


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/%C3%A9/", "//", "/download/x"])
def test_without_the_token_there_is_neither_page_nor_session(port, token, path):
    for begin in ("", f"/{token[:-1]}", f"/{token}x", f"/{'A' * len(token)}", f"/x/{token}"):
        status, _, told = get(port, begin + path, **UPGRADE)
        assert (status, told) == (
            403,
            "open the whole address that lumctl top --web printed: it contains a secret token\n",
        )
    assert get(port, f"{path}?token={token}", **UPGRADE)[0] == 403


def test_no_other_file_is_served(port, token):
    for path in ("../server.py", "..%2fserver.py", "%2fetc/passwd", "js"):
        assert get(port, f"/{token}/static/{path}")[0] == 404


def test_only_so_many_pages_are_open_at_once(port, token):
    def opened():
        page = HTTPConnection("127.0.0.1", port, timeout=20)
        page.request("GET", f"/{token}/ws", headers=UPGRADE)
        return page, page.getresponse()

    pages = [opened() for _ in range(2)]
    try:
        assert [answer.status for _, answer in pages] == [101, 101]
        page, answer = opened()
        assert (answer.status, answer.read()) == (503, b"2 pages are open: close one of them\n")
        page.close()
        assert get(port, f"/{token}/")[0] == 503
    finally:
        for page, _ in pages:
            page.close()


def test_nothing_listens_beyond_loopback(port):
    other = socket.gethostbyname_ex(socket.gethostname())[2]
    for address in (*(address for address in other if not address.startswith("127.")), "127.0.0.2"):
        with socket.socket() as asking:
            asking.settimeout(2)
            assert asking.connect_ex((address, port)) != 0


def test_a_port_that_is_taken_is_an_error(capsys):
    pytest.importorskip("textual_serve")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert run(["top", "-i", "inventories/prototype.yaml", "--web", "--port", str(number)]) == ExitCode.USAGE
    assert capsys.readouterr().err == (
        f"lumctl: cannot listen on port {number}: Address already in use\n  hint: choose another one with "
        "--port, or 0 for any free port\n"
    )


def test_without_the_extra_it_is_named(capsys, monkeypatch):
    really = builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] in {"textual_serve", "aiohttp"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return really(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "lumctl.tui.web", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["top", "-i", "inventories/prototype.yaml", "--web"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "lumctl: --web needs textual-serve\n  hint: pip install 'lumctl[web]'\n"
