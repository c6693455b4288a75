"""POSTs to real HTTP servers that hang, refuse, fail or redirect; and alerts to Alertmanager."""

import json
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import pytest

from lumctl.daemon.notifications.http_receivers import (
    Alertmanager,
    DeliveryError,
    Webhook,
    alertmanager_at,
    parse_webhook,
    post,
    webhook_from,
)
from lumctl.daemon.notifications.ledger import NotificationFile, NotificationLedger
from lumctl.daemon.notifications.message import autopilot_message, case_message
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.health.states import State

SECRET = "T0K/EN-path"  # noqa: S105 - it opens nothing


class Receiver(ThreadingHTTPServer):
    """Answers with ``status`` and ``headers``; keeps what it got."""

    daemon_threads = True

    def __init__(self):
        self.status, self.headers, self.got = 200, {}, []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/{SECRET}?key=v"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def of(listener):
    return parse_webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/{SECRET}")


def test_a_document_arrives_with_its_token(receiver):
    post(parse_webhook(receiver.url, "abc"), b'{"x": 1}')
    ((path, headers, body),) = receiver.got
    assert path == f"/{SECRET}?key=v"
    assert (headers["Content-Type"], headers["Authorization"]) == ("application/json", "Bearer abc")
    assert json.loads(body) == {"x": 1}


def test_without_a_token_there_is_no_header_for_one(receiver):
    post(parse_webhook(receiver.url), b"{}")
    assert "Authorization" not in receiver.got[0][1]


@pytest.mark.parametrize(
    ("status", "again"),
    [(500, True), (503, True), (429, True), (408, True), (400, False), (401, False), (404, False), (410, False)],
)
def test_what_may_pass_is_worth_another_attempt(receiver, status, again):
    receiver.status = status
    with pytest.raises(DeliveryError) as told:
        post(parse_webhook(receiver.url), b"{}")
    assert told.value.again is again
    assert told.value.message == f"127.0.0.1 answered {status}"


@pytest.mark.parametrize(
    ("said", "wait_s"), [("7", 7), ("99999", 300), ("Fri, 31 Dec 1999 23:59:59 GMT", 0), ("-1", 0)]
)
def test_a_receiver_may_ask_for_a_pause(receiver, said, wait_s):
    receiver.status, receiver.headers = 429, {"Retry-After": said}
    with pytest.raises(DeliveryError) as told:
        post(parse_webhook(receiver.url), b"{}")
    assert told.value.wait_s == wait_s


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_followed_elsewhere(receiver, listener, status):
    receiver.status, receiver.headers = status, {"Location": f"http://127.0.0.1:{listener.getsockname()[1]}/"}
    with pytest.raises(DeliveryError, match="redirects are not followed") as told:
        post(parse_webhook(receiver.url, "abc"), b"{}")
    assert told.value.again is False
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_nobody_there(listener):
    webhook = of(listener)
    listener.close()
    with pytest.raises(DeliveryError, match="Connection refused") as told:
        post(webhook, b"{}")
    assert told.value.again is True
    assert SECRET not in told.value.message


def test_one_that_hangs_is_cut_off(listener):
    began = time.monotonic()
    with pytest.raises(DeliveryError) as told:
        post(of(listener), b"{}", timeout_s=0.2)
    assert told.value.again is True
    assert time.monotonic() - began < 5


def test_one_that_drips_is_cut_off(listener):
    """Each byte comes within the time limit of the socket; the whole answer never does."""
    ended = threading.Event()

    def drip():
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            try:
                while not ended.wait(0.02):
                    connection.sendall(b"X-Drip: 1\r\n"[:1])
            except OSError:
                return

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(DeliveryError) as told:
        post(of(listener), b"{}", timeout_s=0.3)
    took = time.monotonic() - began
    ended.set()
    thread.join()
    assert told.value.again is True
    assert took < 5


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x00" * 100_000])
def test_one_that_speaks_no_http(listener, answer):
    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(DeliveryError) as told:
        post(of(listener), b"{}", timeout_s=5)
    thread.join()
    assert told.value.again is True
    assert SECRET not in told.value.message


def test_a_certificate_that_nobody_vouches_for_is_refused(listener, require_program, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [require_program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen = []

    def serve():
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                seen.append(secure.recv(4096))
        except OSError as error:
            seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    webhook = parse_webhook(f"https://127.0.0.1:{listener.getsockname()[1]}/{SECRET}", "abc")
    with pytest.raises(DeliveryError) as told:
        post(webhook, b"{}", timeout_s=10)
    thread.join()
    assert "CERTIFICATE_VERIFY_FAILED" in told.value.message or "certificate" in told.value.message
    assert not any(isinstance(each, bytes) and each for each in seen)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://hooks.example.com/a", (True, "hooks.example.com", 443, "/a")),
        ("http://h:8080", (False, "h", 8080, "/")),
        ("https://[::1]:9/x?y=z", (True, "::1", 9, "/x?y=z")),
    ],
)
def test_urls(url, wanted):
    webhook = parse_webhook(url)
    assert (webhook.https, webhook.host, webhook.port, webhook.path) == wanted


@pytest.mark.parametrize(
    "url",
    ["", "hooks.example.com", "file:///etc/SECRET", "ftp://h/SECRET", "https:///SECRET", "https://h:70000/SECRET",
     "https://[::1/SECRET", "https://h/SECRET\r\nX: y", "https://h/SECRET x", "https://h/SECRET\u00e9",
     "https://user:SECRET@h/", "https://SECRET@h/"],
)  # fmt: skip
def test_what_is_no_url_is_refused_without_repeating_it(url):
    with pytest.raises(UsageError) as told:
        parse_webhook(url)
    assert "SECRET" not in f"{told.value.message} {told.value.hint}"


def test_a_token_never_crosses_a_network_in_the_clear():
    with pytest.raises(UsageError, match="unencrypted") as told:
        parse_webhook("http://hooks.example.com/", "SECRET")
    assert "SECRET" not in f"{told.value.message} {told.value.hint}"
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert parse_webhook(f"http://{host}/", "abc").token
    with pytest.raises(UsageError, match="not allowed in a header"):
        parse_webhook("https://h/", "a\nb")


def test_secrets_are_not_shown_by_mistake():
    shown = repr(Webhook(https=True, host="h", port=443, path="/SECRET", token="SECRET"))  # noqa: S106 - as above
    assert "SECRET" not in shown


def test_files_win_over_the_environment(tmp_path, monkeypatch):
    assert webhook_from(None, None) is None
    monkeypatch.setenv("LUMCTL_WEBHOOK_URL", "https://environment/")
    monkeypatch.setenv("LUMCTL_WEBHOOK_TOKEN", "abc\n")
    found = webhook_from(None, None)
    assert (found.host, found.token) == ("environment", "abc")
    (tmp_path / "url").write_text("https://file/x\n")
    (tmp_path / "token").write_text("def\n")
    found = webhook_from(tmp_path / "url", tmp_path / "token")
    assert (found.host, found.path, found.token) == ("file", "/x", "def")


def test_files_that_say_nothing_are_named(tmp_path, monkeypatch):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UsageError, match="empty is empty"):
        webhook_from(tmp_path / "empty", None)
    with pytest.raises(UsageError, match="cannot read"):
        webhook_from(tmp_path / "absent", None)
    monkeypatch.setenv("LUMCTL_WEBHOOK_TOKEN", "abc")
    with pytest.raises(UsageError, match="no URL"):
        webhook_from(None, None)


GPU = "s1-gpu0"
STARTS_WITHIN_S = 60.0


class Server:
    """Alertmanager itself; it forgets all when it is started again."""

    def __init__(self, program, folder):
        self._program, self._folder = program, folder
        (folder / "config.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            [
                self._program,
                "--config.file=config.yml",
                "--storage.path=kept",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--cluster.listen-address=",
            ],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < end:
            with suppress(OSError), urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310 - our own
                return
            time.sleep(0.05)
        raise TimeoutError("Alertmanager has not started")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def alerts(self):
        """What is wrong, as it would call people: severity, name of the component and summary."""
        with urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as answer:  # noqa: S310 - our own
            found = json.load(answer)
        return sorted(
            (each["labels"]["severity"], each["labels"].get("component", ""), each["annotations"]["summary"])
            for each in found
        )


@pytest.fixture
def server(require_program, tmp_path):
    opened = Server(require_program("prometheus-alertmanager"), tmp_path)
    opened.start()
    yield opened
    opened.stop()


@pytest.fixture
def ledger(tmp_path):
    return NotificationLedger(NotificationFile(tmp_path / "watch.json"))


@pytest.fixture
def manager(server, ledger, said):
    return Alertmanager(
        alertmanager_at(f"{server.url}/", None), lambda: ledger.still_open("sim"), ErrorLog(said.append)
    )


@pytest.fixture
def look(seen, ledger, manager):
    """Look, and deliver what there is to tell."""

    def act():
        seen.now = time.time()
        for notification in ledger.review(seen.look()):
            manager.deliver(case_message(notification))

    return act


def test_a_case_is_an_alert_until_it_is_over(server, seen, look):
    seen.find(GPU)
    look()
    assert server.alerts() == [("critical", GPU, f"prototype (sim): failed: {GPU}: gpu.lost was seen")]
    seen.heal()
    look()
    assert server.alerts() == []


def test_a_case_that_gets_worse_is_one_alert(server, seen, look):
    seen.find(GPU, State.DEGRADED, "gpu.ecc")
    look()
    assert [each[:2] for each in server.alerts()] == [("warning", GPU)]
    seen.find(GPU, State.FAILED, "gpu.lost")
    look()
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_an_alertmanager_that_was_started_anew_is_told_again(server, seen, look, manager):
    seen.find(GPU)
    look()
    server.stop()
    with pytest.raises(DeliveryError):
        manager.post_open(time.time())
    server.start()
    assert server.alerts() == []
    manager.post_open(time.time())
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_what_is_acknowledged_calls_no_more_and_calls_again_when_that_is_over(server, seen, look, manager):
    seen.find(GPU)
    look()
    seen.heal()
    seen.find(GPU, acknowledged="by ops: ticket 17")
    look()
    manager.post_open(time.time())
    assert server.alerts() == []
    seen.heal()
    seen.find(GPU)
    look()
    manager.post_open(time.time())
    assert [each[:2] for each in server.alerts()] == [("critical", GPU)]


def test_what_the_autopilot_says_is_an_alert(server, manager):
    letter = autopilot_message("swapped", "s1-gpu0 was replaced", {"rack": "r1"}, target="sim", at=time.time())
    manager.deliver(letter)
    assert server.alerts() == [("warning", "", "s1-gpu0 was replaced")]


def test_a_url_that_is_none_is_refused():
    with pytest.raises(UsageError, match="the URL of --alertmanager must start with http"):
        alertmanager_at("am:9093", None)
