"""The dashboard in a browser: on this machine only, for its own page only, with nothing loaded from elsewhere."""

import builtins
import re
import socket
import subprocess
import sys
from http.client import HTTPConnection

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode

# Serves what cannot be started: the door is what is tested.
PROGRAM = """
import sys
from lumctl.tui.web import Door, listen
door = Door("false", listen("127.0.0.1", 0))
print(door.address, flush=True)
door.open()
"""


@pytest.fixture(scope="module")
def port():
    pytest.importorskip("textual_serve")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            yield int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", address)[1])
        finally:
            server.terminate()


def get(port, path="/", **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    finally:
        connection.close()


def test_a_page_is_served_that_loads_nothing_from_elsewhere(port):
    status, headers, page = get(port)
    assert status == 200
    assert f"ws://127.0.0.1:{port}/ws" in page
    names = {"http://www.w3.org/2000/svg"}  # the name of a language, which nobody fetches
    elsewhere = set(re.findall(r"https?://[^\"')\s]+", page)) - names
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in elsewhere), elsewhere
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "https:" not in headers["Content-Security-Policy"]


def test_its_parts_are_served_and_held_to_the_same(port):
    for path in set(re.findall(rf"http://127\.0\.0\.1:{port}(/static/[^\"')]+\.\w+)", get(port)[2])):
        status, headers, _ = get(port, path)
        assert status == 200, path
        assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1"])
@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js"])
def test_another_name_that_points_here_is_refused(port, path, host):
    status, _, told = get(port, path, Host=host)
    assert status == 403
    assert told == f"only http://127.0.0.1:{port}/ is served here\n"


def test_a_page_from_elsewhere_may_not_connect(port):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert get(port, "/ws", Origin="http://evil.example", **upgrade)[0] == 403


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
        f"lumctl: port {number} cannot be listened on: Address already in use\n"
        "  hint: name another one with --port, or 0 for any that is free\n"
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
