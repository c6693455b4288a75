"""Metrics as a real scrape sees them: names by convention, lost readings gone, the daemon's own state told."""

import gzip
import http.client
import re
import socket
from urllib.request import Request, urlopen

import pytest
from fake_torus import FakeRack
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from lumctl.daemon.history import LatestObservation, TransitionQueue
from lumctl.daemon.metrics.collectors import metrics_text
from lumctl.daemon.metrics.exporter import DEFAULT_LISTEN, MetricsServer, SelfMetrics, parse_listen
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import example, load_inventory
from lumctl.slices.documents import report_document

GPU = "s1-gpu0"
BASE_UNITS = {"seconds", "celsius", "watts", "bytes", "amperes", "ratio", "dbm", "db"}
OTHER_UNITS = re.compile(r"_(ms|us|milliseconds|minutes|hours|fahrenheit|milliamps|mib|gib|percent|c|mw)(_|$)")


class Counted:
    """An outbox as the metrics see it."""

    waiting = 3

    def counts(self):
        return {"sent": 5, "retried": 2, "failed": 1, "dropped": 0}


@pytest.fixture
def newest(clock):
    return LatestObservation(clock)


@pytest.fixture
def errors(said):
    return ErrorLog(said.append)


@pytest.fixture
def self_metrics(newest, errors, seen):
    return SelfMetrics(newest, 1.0, errors, TransitionQueue(lambda *_: None), Counted(), now=lambda: seen.now)


@pytest.fixture
def exporter(self_metrics):
    with MetricsServer(("127.0.0.1", 0), self_metrics) as opened:
        yield opened


def get(exporter, path="/metrics", **headers):
    request = Request(f"http://127.0.0.1:{exporter.port}{path}", headers=headers)
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - our own
        return answer.headers, answer.read()


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(exporter):
    return samples(get(exporter)[1].decode())


def named(found, name, **labels):
    wanted = set(labels.items())
    return {key: value for key, value in found.items() if key[0] == name and wanted <= set(key[1:])}


def one(found, name, **labels):
    (value,) = named(found, name, **labels).values()
    return value


def test_a_look_is_told_in_base_units(exporter, newest, seen):
    seen.find(GPU, State.DEGRADED, "gpu.ecc")
    newest.put(seen.look(unfinished=("swap-1",)))
    found = scrape(exporter)
    assert one(found, "lumctl_component_state", kind="accelerator", id=GPU, state="degraded", target="sim") == 1
    assert one(found, "lumctl_component_state", kind="accelerator", id=GPU, state="ok") == 0
    assert one(found, "lumctl_component_read_timestamp_seconds", kind="accelerator", id=GPU) == seen.now - 1
    assert one(found, "lumctl_component_read_age_seconds", kind="accelerator", id=GPU) == 1
    assert one(found, "lumctl_finding_since_timestamp_seconds", id=GPU, rule="gpu.ecc") == seen.now
    assert one(found, "lumctl_accelerator_temperature_celsius", id=GPU) == 44
    assert one(found, "lumctl_accelerator_utilization_ratio", id=GPU) == pytest.approx(0.97)
    assert one(found, "lumctl_accelerator_memory_used_bytes", id=GPU) == 1024**3
    assert one(found, "lumctl_accelerator_power_watts", id=GPU) == 300
    assert one(found, "lumctl_accelerator_ecc_errors_total", id=GPU, scope="volatile", correctable="false") == 2
    assert one(found, "lumctl_accelerator_info", id=GPU, host="s1", role="active") == 1
    lane = next(lane for lane in seen.inventory.transponders.values() if lane.accelerator == GPU)
    assert one(found, "lumctl_link_rx_power_dbm", id=lane.id) == float("-inf")
    assert one(found, "lumctl_link_bias_amperes", id=lane.id) == pytest.approx(0.035)
    assert one(found, "lumctl_link_carrier_changes_total", id=lane.id) == 2
    circuit = seen.circuits[0]
    assert one(found, "lumctl_circuit_rx_power_dbm", circuit=circuit.id, lane=circuit.b.transponder) == float("-inf")
    assert one(found, "lumctl_circuit_expected_loss_db", circuit=circuit.id) == 4.25
    assert one(found, "lumctl_host_up", host="s1") == 1
    assert one(found, "lumctl_probe_success", host="s1", probe="optics") == 1
    assert one(found, "lumctl_unfinished_runs") == 1


def test_what_is_lost_disappears(exporter, newest, seen):
    seen.gpu_read_at = seen.now - seen.inventory.thresholds.stale_after_s - 1
    seen.silent_hosts.add("s2")
    newest.put(seen.look())
    found = scrape(exporter)
    assert not named(found, "lumctl_accelerator_temperature_celsius")
    assert not named(found, "lumctl_accelerator_ecc_errors_total")
    assert named(found, "lumctl_link_up")
    assert not named(found, "lumctl_link_up", id="s2-gpu0-a")
    assert one(found, "lumctl_host_up", host="s2") == 0
    assert not named(found, "lumctl_probe_success", host="s2")
    assert one(found, "lumctl_watch_hosts_late") == 1


def test_a_look_that_is_too_old_disappears_as_a_whole(exporter, newest, seen, clock):
    newest.put(seen.look())
    clock.at += 10.1
    found = scrape(exporter)
    assert not named(found, "lumctl_component_state")
    assert one(found, "lumctl_watch_look_age_seconds") == pytest.approx(10.1)


def test_several_findings_of_a_rule_are_one_series(exporter, newest, seen):
    seen.find(GPU)
    seen.now += 5
    seen.find(GPU)
    newest.put(seen.look())
    assert one(scrape(exporter), "lumctl_finding_since_timestamp_seconds", id=GPU) == seen.now - 5


def test_maintenance_and_acknowledgement_are_told(exporter, newest, seen):
    seen.maintenance[GPU] = "s1 by ops: new fan"
    seen.find(GPU, acknowledged="by ops")
    newest.put(seen.look())
    found = scrape(exporter)
    assert one(found, "lumctl_component_in_maintenance", id=GPU) == 1
    assert one(found, "lumctl_finding_since_timestamp_seconds", id=GPU, acknowledged="true")


def test_the_daemon_tells_of_itself(exporter, self_metrics, errors, newest, seen):
    with self_metrics.tick_duration.time():
        pass
    self_metrics.missed(4)
    self_metrics.changed(Transition(1.0, GPU, "accelerator", State.OK, State.FAILED, (), ""))
    errors.record("look", UsageError("gone"))
    seen.now += 7
    newest.put(seen.look())
    found = scrape(exporter)
    assert one(found, "lumctl_watch_tick_duration_seconds_count") == 1
    assert one(found, "lumctl_watch_overruns_total") == 4
    assert one(found, "lumctl_watch_transitions_total", kind="accelerator", state="failed") == 1
    assert one(found, "lumctl_watch_errors_total", place="look", kind="UsageError") == 1
    assert one(found, "lumctl_watch_notifications_total", outcome="sent") == 5
    assert one(found, "lumctl_watch_notifications_waiting") == 3
    assert one(found, "lumctl_watch_look_timestamp_seconds") == seen.now
    assert one(found, "lumctl_watch_history_write_failures_total") == 0
    assert len(named(found, "lumctl_build_info")) == 1


def _ends_in_its_unit(family):
    parts = family.name.split("_")
    return not (BASE_UNITS & set(parts)) or parts[-1] in BASE_UNITS or family.type == "counter"


RULES = {
    "no prefix": lambda f: f.name.startswith(("lumctl_", "process_")),
    "no help in a sentence": lambda f: f.documentation.endswith(".") or f.name.startswith("process_"),
    "an odd name": lambda f: (
        re.fullmatch(r"[a-z][a-z0-9_]*", f.name) and not re.search(r"gauge|counter|metric", f.name)
    ),
    "not in a base unit": lambda f: not OTHER_UNITS.search(f.name),
    "its unit is not at its end": _ends_in_its_unit,
    "_total is for counters": lambda f: f.type == "counter" or not f.name.endswith("_total"),
    "a counter without _total": lambda f: f.type != "counter" or all(s.name.endswith("_total") for s in f.samples),
    "a name of histograms": lambda f: not f.name.endswith(("_count", "_sum", "_bucket")),
    "an odd label": lambda f: all(re.fullmatch(r"[a-z_]+", label) for s in f.samples for label in s.labels),
    "le is for histograms": lambda f: f.type == "histogram" or not any("le" in s.labels for s in f.samples),
}


def lint(families):
    """The conventions that promtool checks, and those of base units."""
    return [f"{family.name}: {said}" for family in families for said, keeps in RULES.items() if not keeps(family)]


def test_names_units_and_types_keep_the_conventions(exporter, newest, seen, self_metrics):
    seen.find(GPU)
    seen.maintenance[GPU] = "x"
    newest.put(seen.look())
    with self_metrics.tick_duration.time():
        pass
    families = list(text_string_to_metric_families(get(exporter)[1].decode()))
    assert lint(families) == []
    assert len({family.name for family in families}) == len(families)
    assert lint(text_string_to_metric_families(metrics_text(seen.look()))) == []


def test_the_lint_finds_what_is_wrong():
    text = """
# HELP lumctl_x_ms A text.
# TYPE lumctl_x_ms gauge
lumctl_x_ms 1
# HELP lumctl_y_total no sentence
# TYPE lumctl_y_total gauge
lumctl_y_total{badLabel="1"} 1
# HELP other A text.
# TYPE other gauge
other 1
# HELP lumctl_seconds_z A text.
# TYPE lumctl_seconds_z gauge
lumctl_seconds_z 1
"""
    assert [found.partition(": ")[2] for found in lint(text_string_to_metric_families(text))] == [
        "not in a base unit",
        "no help in a sentence",
        "_total is for counters",
        "an odd label",
        "no prefix",
        "its unit is not at its end",
    ]


def test_no_series_comes_twice(seen_of, newest, exporter):
    seen = seen_of("rack64")
    seen.group("h01", "h01", *(a for a in seen.inventory.accelerators if a.startswith("h01")))
    newest.put(seen.look())
    lines = [line.rpartition(" ")[0] for line in get(exporter)[1].decode().splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    assert len(lines) > 1000


def test_openmetrics_for_who_asks_for_it(exporter, newest, seen):
    newest.put(seen.look())
    headers, body = get(exporter, Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert any(family.name == "lumctl_component_state" for family in openmetrics(body.decode()))


def test_packed_for_who_can_unpack(exporter, newest, seen):
    newest.put(seen.look())
    headers, body = get(exporter, **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert b"lumctl_component_state" in gzip.decompress(body)


def ask(exporter, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=10)
    connection.request(method, path)
    with connection.getresponse() as answer:
        body = answer.read()
    connection.close()
    return answer.status, body


def test_health_is_that_of_the_newest_look(exporter, newest, seen, clock):
    assert ask(exporter, "GET", "/healthz") == (503, b"no observation within 10 s\n")
    newest.put(seen.look())
    assert ask(exporter, "GET", "/healthz") == (200, b"ok\n")
    clock.at += 10.1
    assert ask(exporter, "GET", "/healthz")[0] == 503


def test_other_requests(exporter):
    assert ask(exporter, "GET", "/etc/passwd")[0] == 404
    assert ask(exporter, "HEAD", "/healthz") == (503, b"")
    assert ask(exporter, "POST", "/metrics")[0] == 501


def test_who_says_nothing_or_nonsense_harms_nobody(exporter):
    with socket.create_connection(("127.0.0.1", exporter.port)) as silent:
        for nonsense in (b"\x00\xff\r\n\r\n", b"GET " + b"x" * 70_000):
            with socket.create_connection(("127.0.0.1", exporter.port)) as odd:
                odd.sendall(nonsense)
        assert ask(exporter, "GET", "/healthz")[0] == 503
        silent.close()


def test_a_port_that_is_taken_is_said(exporter, self_metrics):
    with pytest.raises(UsageError, match="cannot listen at 127"):
        MetricsServer(("127.0.0.1", exporter.port), self_metrics)
    with pytest.raises(UsageError, match="cannot listen"):
        MetricsServer(("host.invalid", 1), self_metrics)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (DEFAULT_LISTEN, ("127.0.0.1", 9469)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("none", None),
    ],
)
def test_places_to_listen_at(text, place):
    assert parse_listen(text) == place


@pytest.mark.parametrize("text", ["", "9469", ":9469", "h:", "h:x", "h:65536", "h:-1", "[]:1"])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(UsageError, match="not an address to listen at"):
        parse_listen(text)


def test_the_text_file_has_times_and_no_ages(seen):
    found = samples(metrics_text(seen.look()))
    assert one(found, "lumctl_check_timestamp_seconds") == seen.now
    assert one(found, "lumctl_check_collection_seconds") == 0.25
    assert not any(key[0].endswith("age_seconds") for key in found)


def test_of_a_torus_what_is_free_and_how_fragmented_it_is():
    rack = FakeRack(load_inventory(example("torus64")))
    rack.carry_out(rack.planned("2x2x2", "tenant"))
    rack.silent = ("m07",)
    found = samples(metrics_text(rack.observe()))
    assert one(found, "lumctl_torus_free_accelerators", rack="torus64") == 64 - 8 - 4 - 8 - 4
    shown = report_document(rack, seen=rack.observe())["racks"][0]
    for form, count in shown["largest"].items():
        assert one(found, "lumctl_slice_largest_accelerators", rack="torus64", form=form) <= count
    used = one(found, "lumctl_torus_ports", rack="torus64", state="used")
    assert used == shown["ports_used"] > 0
    assert used + one(found, "lumctl_torus_ports", rack="torus64", state="idle") == shown["ports"]
    assert one(found, "lumctl_torus_fibres", rack="torus64", state="used") == shown["fibres_used"]


def test_of_each_class_the_spares_and_those_that_are_free(seen):
    found = samples(metrics_text(seen.look()))
    where = {"rack": "prototype", "class": "NVIDIA RTX 6000 Ada Generation"}
    assert one(found, "lumctl_spares", **where) == one(found, "lumctl_spares_free", **where) == 1
    seen.find("s3-gpu0", State.UNKNOWN, "host.down")
    found = samples(metrics_text(seen.look()))
    assert (one(found, "lumctl_spares", **where), one(found, "lumctl_spares_free", **where)) == (1, 0)
