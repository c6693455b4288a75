"""A host that is read by exporters: when pages are fetched, what is waited for, and what two sources say together."""

import http.server
import math
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import replace

import pytest
from exporter_pages import because, dcgm_page, node_page, reader_of

from lumctl.devices.errors import DeviceError, DeviceLoginError
from lumctl.fleet.exporters.combination import combined
from lumctl.fleet.exporters.reader import MOST_PAGE_BYTES, PageClient
from lumctl.fleet.readings import GpuReading, HostSnapshot, ProbeOutcome, ProbeStatus, XidEvent
from lumctl.fleet.rounds import Round
from lumctl.inventory.exporters import Exporter

OK, FAILED, TIMED_OUT, NOT_ASKED = ProbeStatus.OK, ProbeStatus.FAILED, ProbeStatus.TIMED_OUT, ProbeStatus.NOT_ASKED


def refused():
    return because(ConnectionRefusedError(), "connection refused")


def no_route():
    return because(TimeoutError(), "no answer in time")


def read(made, wanted=None):
    made.reader.read_now(Round(), wanted)
    return made.reader.snapshot(wanted, None)


def statuses(snapshot):
    return {name: outcome.status for name, outcome in snapshot.probes.items()}


def test_pages_answer_the_questions_of_the_shell_and_the_others_were_not_asked():
    snapshot = read(reader_of({"dcgm": dcgm_page(), "node": node_page()}))
    assert snapshot.reachable
    assert statuses(snapshot) == {
        **dict.fromkeys(("dcgm", "node", "gpu", "net", "mounts", "disks", "clock", "counters"), OK),
        **dict.fromkeys(("nvlink", "kernel", "lldp", "optics:eth2"), NOT_ASKED),
    }
    assert [gpu.source for gpu in snapshot.gpus] == ["dcgm-exporter"] * 2


def test_an_exporter_that_is_down_is_named_with_its_url_and_the_host_is_there():
    snapshot = read(reader_of({"dcgm": refused(), "node": node_page()}))
    assert snapshot.reachable
    assert snapshot.probes["dcgm"].status is FAILED
    assert "http://h1:9400" in snapshot.probes["dcgm"].detail
    assert "gpu" not in snapshot.probes


def test_a_host_of_which_nothing_answers_is_not_reachable_and_a_refusal_is_an_answer():
    made = reader_of({"dcgm": no_route(), "node": no_route()})
    snapshot = read(made)
    assert not snapshot.reachable
    assert "no answer in time" in snapshot.error
    assert read(reader_of({"dcgm": refused()})).reachable
    assert read(reader_of({"dcgm": DeviceLoginError("401")})).reachable
    for client in made.clients.values():
        client.page = dcgm_page() if client.exporter.kind == "dcgm" else node_page()
    assert read(made).reachable


def test_a_page_that_is_not_sound_leaves_old_readings_to_grow_old():
    times = iter(range(1000, 2000, 10))
    made = reader_of({"dcgm": dcgm_page()}, now=lambda: float(next(times)))
    first = read(made)
    made.clients["dcgm"].page = dcgm_page()[:-5]
    second = read(made)
    assert second.probes["dcgm"].status is FAILED
    assert second.gpus == first.gpus
    assert made.reader.snapshot(None, 1500.0).gpus == ()


def test_a_round_waits_for_a_page_that_was_asked_for_after_it_began():
    made = reader_of({"dcgm": dcgm_page()})
    made.workers.holds = True
    made.reader.read_due(Round())
    round_ = Round()
    made.reader.read_now(round_, None)
    assert len(made.workers.held) == 1
    made.workers.held.pop(0)()
    assert not is_over(round_)
    made.workers.go_on()
    assert is_over(round_)
    assert made.clients["dcgm"].fetched == 2


def is_over(round_):
    over = []
    round_.wait(time.monotonic(), lambda _: over.append(1) or math.inf)
    return round_._settled.is_set()


def test_a_page_that_hangs_is_let_go_at_its_deadline_and_no_second_is_put_beside_it():
    made = reader_of({"dcgm": dcgm_page(), "node": node_page()})
    entered, leave = threading.Event(), threading.Event()

    def hang(_most_s):
        entered.set()
        leave.wait(20)
        return dcgm_page()

    made.clients["dcgm"].fetch = hang
    made.workers.submit = lambda call: threading.Thread(target=call, daemon=True).start()
    round_ = Round()
    made.reader.read_now(round_, None)
    assert entered.wait(20)
    assert made.reader.expire(time.monotonic()) < math.inf
    made.reader.expire(time.monotonic() + 60)
    assert made.reader.snapshot(None, None).probes["dcgm"].status is TIMED_OUT
    again = Round()
    made.reader.read_now(again, ["gpu"])
    assert is_over(again)
    assert "still does not answer" in made.reader.snapshot(None, None).probes["dcgm"].detail
    leave.set()


def test_an_exporter_that_fails_is_asked_ever_more_rarely_and_at_once_on_request():
    made = reader_of({"dcgm": refused()})
    for _ in range(5):
        made.reader.read_due(Round())
    assert made.clients["dcgm"].fetched == 1
    read(made)
    assert made.clients["dcgm"].fetched == 2


def test_only_pages_that_answer_what_is_wanted_are_fetched():
    made = reader_of({"dcgm": dcgm_page(), "node": node_page()})
    snapshot = read(made, ["net"])
    assert set(snapshot.probes) == {"node", "net"} | {"mounts", "disks", "clock", "counters"}
    assert made.clients["dcgm"].fetched == 0
    assert read(made, ["lldp"]).probes == {}


# --- over HTTP ---


@pytest.fixture
def serve():
    """Serve raw bytes to one request each; the URL's origin and the requests."""
    sockets = []

    def run(answer):
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)
        requests = []

        def answer_all():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(4096).decode())
                    connection.sendall(answer)

        threading.Thread(target=answer_all, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}", requests

    yield run
    for each in sockets:
        each.close()


VARIABLE = {"secret_variable": "SCRAPE"}


def client_of(origin, **login):
    return PageClient(Exporter("dcgm", origin, "/metrics", **login), timeout_s=10.0)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n", "no answer to GET"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n", "no answer to GET"),
        (b"HTTP/1.0 200 OK\r\n\r\na 1\n", "the end of its page"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "503"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n", "another host"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"a 1\n" * (MOST_PAGE_BYTES // 4 + 9), "exceeds"),
    ],
    ids=["cut", "cut-chunks", "endless", "error", "redirect", "too-long"],
)
def test_a_page_without_its_end_and_an_error_are_no_page(serve, answer, why):
    origin, _ = serve(answer)
    with pytest.raises(DeviceError, match=why):
        client_of(origin).fetch(10.0)


def test_the_login_comes_from_the_environment_or_a_file(serve, monkeypatch, tmp_path):
    origin, requests = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n")
    monkeypatch.setenv("SCRAPE", "geheim")
    assert client_of(origin, user="prom", **VARIABLE).fetch(10.0) == "a 1\n"
    assert "Authorization: Basic cHJvbTpnZWhlaW0=" in requests[0]
    token = tmp_path / "token"
    token.write_text("abc\n")
    token.chmod(0o600)
    client_of(origin, secret_file=token).fetch(10.0)
    assert "Authorization: Bearer abc" in requests[1]
    token.chmod(0o644)
    with pytest.raises(DeviceLoginError, match="other users may read it"):
        client_of(origin, secret_file=token).fetch(10.0)
    monkeypatch.delenv("SCRAPE")
    with pytest.raises(DeviceLoginError, match="SCRAPE is not set"):
        client_of(origin, **VARIABLE).fetch(10.0)
    assert len(requests) == 2
    assert all(line.startswith("GET /metrics ") for line in requests)


def test_a_chunked_page_is_whole():
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"4\r\na 1\n\r\n0\r\n\r\n")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True).start()
        assert client_of(f"http://127.0.0.1:{server.server_port}").fetch(10.0) == "a 1\n"
        server.shutdown()


def test_a_certificate_is_checked_against_the_authorities_of_the_file(require_program, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [require_program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"a 1\n")

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """A client that refuses the certificate is what is tested."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True).start()
        origin = f"https://127.0.0.1:{server.server_port}"
        with pytest.raises(DeviceError, match="certificate is not accepted"):
            client_of(origin).fetch(10.0)
        assert client_of(origin, ca_file=certificate).fetch(10.0) == "a 1\n"
        server.shutdown()


# --- both ---

SHELL_GPU = GpuReading(1000.0, "0000:1b:00.0", minor=0, uuid="GPU-0", temperature_c=40.0, memory_used_mib=9.0)


def shell(*gpus, status=OK, reachable=True, **more):
    probes = {"gpu": ProbeOutcome("gpu", status, 1000.0, 0.1), "kernel": ProbeOutcome("kernel", OK, 1000.0, 0.1)}
    return HostSnapshot(
        "h1",
        1000.0,
        reachable,
        None if reachable else "no route",
        probes=probes if reachable else {},
        gpus=gpus,
        **more,
    )


def pages(first=None, *, gpus=1):
    return read(reader_of({"dcgm": dcgm_page(first, gpus=gpus), "node": node_page()}))


@pytest.mark.parametrize(
    ("field", "mine", "metric", "theirs", "expected"),
    [
        ("temperature_c", 40.0, "GPU_TEMP", 95, 95),
        ("temperature_c", 95.0, "GPU_TEMP", 40, 95),
        ("ecc_volatile_uncorrectable", 0, "ECC_DBE_VOL_TOTAL", 2, 2),
        ("ecc_volatile_uncorrectable", 2, "ECC_DBE_VOL_TOTAL", 0, 2),
        ("remap_failed", False, "ROW_REMAP_FAILURE", 1, True),
        ("remap_failed", True, "ROW_REMAP_FAILURE", 0, True),
        ("remap_uncorrectable", 1, "UNCORRECTABLE_REMAPPED_ROWS", 600, 600),
        ("ecc_enabled", True, "ECC_CURRENT", 0, False),
        ("pcie_width", 16, "PCIE_LINK_WIDTH", 4, 4),
        ("recovery_action", "None", "GPU_RECOVERY_ACTION", 1, "Reset"),
        ("recovery_action", "Reboot", "GPU_RECOVERY_ACTION", 0, "Reboot"),
        ("utilization_percent", 50.0, "GPU_UTIL", 10, 50),
        ("pcie_replays", 3, "PCIE_REPLAY_COUNTER", 900, 3),
        ("power_limit_w", None, "POWER_MGMT_LIMIT", 700, 700),
    ],
)
def test_where_two_sources_disagree_about_a_fault_the_worse_counts(field, mine, metric, theirs, expected):
    (gpu,) = combined(shell(replace(SHELL_GPU, **{field: mine})), pages({metric: theirs})).gpus
    assert getattr(gpu, field) == expected
    assert gpu.minor == 0
    assert gpu.source == "nvidia-smi and dcgm-exporter"


def test_readings_of_two_moments_are_not_mixed():
    old = replace(SHELL_GPU, taken_at=900.0, temperature_c=95.0)
    (gpu,) = combined(shell(old, status=TIMED_OUT), pages()).gpus
    assert (gpu.temperature_c, gpu.taken_at, gpu.source, gpu.minor) == (45, 1000.0, "dcgm-exporter", 0)


def test_a_gpu_that_nvidia_smi_does_not_list_is_not_taken_from_an_exporter():
    seen = combined(shell(SHELL_GPU), pages(gpus=2))
    assert [gpu.pci for gpu in seen.gpus] == ["0000:1b:00.0"]
    assert len(combined(shell(status=TIMED_OUT), pages(gpus=2)).gpus) == 2


def test_a_gpu_that_an_exporter_does_not_list_is_marked():
    other = replace(SHELL_GPU, pci="0000:2c:00.0", uuid="GPU-1")
    assert [gpu.unlisted_by for gpu in combined(shell(SHELL_GPU, other), pages()).gpus] == [None, "dcgm-exporter"]


def test_xids_of_the_kernel_log_go_before_those_of_the_exporter():
    logged = XidEvent(990.0, "0000:1b:00.0", 79, "GPU has fallen off the bus")
    both = combined(shell(SHELL_GPU, xids=(logged,)), pages({"XID_ERRORS": 79}))
    assert both.xids == (logged,)
    assert [e.xid for e in combined(shell(SHELL_GPU), pages({"XID_ERRORS": 79})).xids] == [79]


def test_the_failure_of_either_side_stays_among_the_probes():
    without_shell = combined(shell(reachable=False), pages())
    assert without_shell.reachable
    assert without_shell.probes["shell"].status is FAILED
    assert without_shell.probes["shell"].detail == "no route"
    assert NOT_ASKED not in statuses(without_shell).values()
    without_pages = combined(shell(SHELL_GPU), read(reader_of({"dcgm": no_route()})))
    assert without_pages.probes["dcgm"].status is FAILED
    assert without_pages.gpus == (SHELL_GPU,)
    assert not combined(shell(reachable=False), read(reader_of({"dcgm": no_route()}))).reachable
