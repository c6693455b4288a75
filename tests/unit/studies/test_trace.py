"""The study of jobs that come and go, beside a second simulation, and what it says of files that are not valid."""

import json
import math
from dataclasses import replace
from itertools import islice, product
from random import Random

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode, RefusedError
from lumctl.studies import cluster_jobs, run_study, trace
from lumctl.studies.cluster_jobs import JobCluster, slice_size
from lumctl.studies.engine import StudyWorkers
from lumctl.studies.torus_cluster import FIBRES, UNLIMITED
from lumctl.studies.trace_file import ClusterJob, read_trace, trace_of

SHAPES = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 8: (2, 2, 2), 16: (2, 2, 4), 32: (2, 4, 4), 64: (4, 4, 4)}
HEADER = "submit,duration,accelerators\n"
PLAIN = f"{HEADER}100,10,64\n102,4,2\n105,5,3\n106,1,100\n107,1,0\n110,2,4\n"


def drawn_jobs(seed, count=60, sizes=(1, 2, 3, 4, 8, 16, 32)):
    """Jobs at whole seconds, so many that not all have a place at once."""
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    times = sorted(rng.randrange(100) for _ in range(count))
    return [ClusterJob(at, rng.randrange(1, 40), rng.choice(sizes)) for at in times]


def started(jobs, fibres, *, is_queued, racks):
    cluster = JobCluster(fibres, is_queued, racks=racks)
    return [cluster.submit(job).start_s for job in jobs]


def second_simulation(jobs, find, *, is_queued, racks):
    """When each job starts, found second by second; ``find(free, size)`` gives the accelerators of a slice."""
    free = [set(product(range(4), repeat=3)) for _ in range(racks)]
    starts, waiting, live = [None] * len(jobs), [], []
    for now in range(100_000):
        for each in [each for each in live if each[0] == now]:
            live.remove(each)
            free[each[1]] |= each[2]
        waiting += [at for at, job in enumerate(jobs) if job.submit_s == now]
        while waiting:
            job = jobs[waiting[0]]
            size = min(size for size in SHAPES if size >= job.accelerators)
            places = ((rack, find(free[rack], size)) for rack in range(racks))
            rack, cells = next((each for each in places if each[1]), (None, None))
            if cells is None and is_queued:
                break
            at = waiting.pop(0)
            if cells is not None:
                starts[at] = now
                free[rack] -= cells
                live.append((now + job.duration_s, rack, cells))
        if now > jobs[-1].submit_s and not waiting:
            return starts
    raise AssertionError


def aligned(free, size):
    x, y, z = SHAPES[size]
    for a, b, c in product(range(0, 4, x), range(0, 4, y), range(0, 4, z)):
        cells = set(product(range(a, a + x), range(b, b + y), range(c, c + z)))
        if cells <= free:
            return cells
    return None


def any_accelerators(free, size):
    return set(sorted(free)[:size]) if len(free) >= size else None


@pytest.mark.parametrize("is_queued", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_on_the_torus_jobs_start_as_in_a_second_simulation(seed, is_queued):
    jobs, racks = drawn_jobs(seed), 1 + seed % 2
    starts = started(jobs, 0, is_queued=is_queued, racks=racks)
    assert starts == second_simulation(jobs, aligned, is_queued=is_queued, racks=racks)
    assert (None in starts) is not is_queued
    assert not is_queued or any(start > job.submit_s for start, job in zip(starts, jobs, strict=True))


@pytest.mark.parametrize("is_queued", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_with_unlimited_fibres_only_the_number_of_free_accelerators_counts(seed, is_queued):
    jobs = drawn_jobs(seed, 40, sizes=(1, 2, 4, 8, 16))
    starts = started(jobs, UNLIMITED, is_queued=is_queued, racks=1)
    assert starts == second_simulation(jobs, any_accelerators, is_queued=is_queued, racks=1)


def fragmented_jobs():
    """Slices of one server fill a rack, of which every second one then ends; then 8 accelerators are asked for."""
    return [*(ClusterJob(0, 10 + 90 * (at % 2), 4) for at in range(16)), *(ClusterJob(20, 5, 8) for _ in range(4))]


def test_light_places_what_a_fragmented_torus_refuses():
    jobs = fragmented_jobs()
    for fibres, places in ((0, 0), (FIBRES, 4)):
        cluster = JobCluster(fibres, is_queued=False, sample_s=[20], racks=1)
        found = [cluster.submit(job) for job in jobs][16:]
        assert [each.start_s for each in found].count(20) == places
        assert [each.by_light for each in found].count(True) == places
        assert [each.fragmented for each in found].count(True) == 4 - places
        # 32 are free, one slice of 4 is the largest box; light joins them to a slice of 32, or to one of 16.
        assert cluster.indices == [1 - 4 / 32] if not fibres else cluster.indices[0] <= 1 - 16 / 32


def test_without_fibres_light_places_nothing_more(monkeypatch):
    honest = cluster_jobs.with_slice

    def dark(torus, placement):
        return replace(honest(torus, placement), edges=tuple(replace(each, capacity=each.used) for each in torus.edges))

    monkeypatch.setattr(cluster_jobs, "with_slice", dark)
    assert started(fragmented_jobs(), FIBRES, is_queued=False, racks=1)[16:] == [None] * 4


def test_if_ended_jobs_keep_their_accelerators_more_are_refused(monkeypatch):
    jobs = drawn_jobs(1)
    honest = started(jobs, 0, is_queued=False, racks=1).count(None)
    monkeypatch.setattr(cluster_jobs, "_without", lambda torus, _: torus)
    assert started(jobs, 0, is_queued=False, racks=1).count(None) > honest


@pytest.mark.parametrize("fibres", [0, FIBRES])
def test_once_all_jobs_have_ended_the_racks_are_as_before(fibres):
    cluster = JobCluster(fibres, is_queued=True, racks=1)
    empty = cluster._racks[0].torus
    for job in drawn_jobs(5, 30):
        cluster.submit(job)
        assert all(edge.used <= edge.capacity for edge in cluster._racks[0].torus.edges)
    cluster.advance(10_000)
    assert cluster._racks[0].torus == empty


def test_the_generator_asks_for_the_stated_load():
    jobs = list(islice(trace._generated(0.9, 50.0, 0.5, 600.0, 1), 20_000))
    asked = sum(job.duration_s * job.accelerators for job in jobs)
    assert asked / jobs[-1].submit_s / 4096 == pytest.approx(0.9, rel=0.03)
    assert sum(job.accelerators < 4 for job in jobs) / len(jobs) == pytest.approx(0.5, abs=0.02)
    assert sorted(job.duration_s for job in jobs)[10_000] == pytest.approx(600, rel=0.03)
    assert all(slice_size(job.accelerators) == job.accelerators for job in jobs)


def rows_of(path, *given, mapping=None, workers=1):
    study = trace.of_trace(path, mapping)
    return run_study(study, study.settings(["fibres=4", *given]), workers=StudyWorkers(workers)).rows


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN)
    return path


def test_the_rows_of_a_trace_are_those_that_a_hand_finds(plain):
    first, second = (row for row in rows_of(plain, "periods=2", "queue=0") if row["way"] == "torus")
    # Seconds 0 to 5: 64 accelerators all the time, and 2 from second 2 to 5.
    assert (first["requests"], second["requests"]) == (2, 2)
    assert first["used_percent"] == pytest.approx(100 * (5 * 64 + 3 * 2) / (5 * 4096))
    assert first["migrated_parts"] == pytest.approx((5 * 64**2 + 3 * 2**2) / (5 * 64 + 3 * 2))
    # Seconds 5 to 10: 64, 2 for one second more, and 3 that take a slice of 4.
    assert second["used_percent"] == pytest.approx(100 * (5 * 64 + 2 + 5 * 4) / (5 * 4096))
    assert second["asked_percent"] == pytest.approx(100 * (5 * 64 + 2 + 5 * 3) / (5 * 4096))
    assert (second["too_large"], second["without"]) == (1, 1)
    # At second 5 the slice of 2 leaves 32 free in its rack as a slice.
    assert first["fragmentation"] == pytest.approx(1 - (62 * 64 + 32) / (62 * 64 + 62))
    assert second["fragmentation"] == 0


def test_a_full_cluster_lets_jobs_wait_in_line(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + "0,100,64\n" * 64 + "10,5,4\n20,5,64\n")
    by_queue = {row["queue"]: row for row in rows_of(path, "periods=1") if row["way"] == "torus"}
    assert (by_queue[0]["refused"], by_queue[0]["waited"], by_queue[0]["mean_wait_s"]) == (2, 0, 0)
    assert (by_queue[1]["refused"], by_queue[1]["waited"], by_queue[1]["longest_wait_s"]) == (0, 2, 90)
    assert by_queue[1]["mean_wait_s"] == pytest.approx((90 + 80) / 66)
    assert math.isclose(by_queue[1]["used_percent"], 100)


def test_a_trace_out_of_order_is_sorted_and_its_columns_and_units_are_the_map_s(plain, tmp_path):
    other, mapping = tmp_path / "other.csv", tmp_path / "map.yaml"
    lines = [line.split(",") for line in PLAIN.splitlines()[1:]]
    written = [
        f"{int(n) * 100},x,1970-01-01 00:{int(at) // 60:02}:{int(at) % 60:02},{int(s) * 1000}" for at, s, n in lines
    ]
    other.write_text("\ufeff" + "\n".join(["gpus,user,at,ms", *reversed(written), ""]))
    mapping.write_text(
        "columns: {submit: at, duration: ms, accelerators: gpus}\n"
        "units: {submit: datetime, duration: ms, accelerators: percent}\n"
    )
    one, two = (rows_of(path, "periods=2", mapping=of) for path, of in ((plain, None), (other, mapping)))
    assert one[0]["trace"] != two[0]["trace"]
    assert [{**row, "trace": ""} for row in one] == [{**row, "trace": ""} for row in two]


def test_other_processes_read_the_trace_too_and_find_the_same(plain):
    assert rows_of(plain, "periods=1", workers=2) == rows_of(plain, "periods=1")


def test_a_trace_that_changes_during_a_run_is_refused(plain):
    source = next(iter(trace.of_trace(plain, None).cases(trace.of_trace(plain, None).settings())))[0]
    read_trace.cache_clear()  # as another process, which has not read it yet
    plain.write_text(PLAIN + "111,1,1\n")
    with pytest.raises(RefusedError, match="has changed since this run began"):
        trace_of(source)


def test_a_comparison_names_the_traces_of_two_runs(plain, tmp_path, capsys):
    for number in range(2):
        words = ["study", "run", "trace", "--trace", str(plain), "--out", str(tmp_path / str(number)), "--quick"]
        assert run(words) == ExitCode.DONE
        plain.write_text(plain.read_text() + "500,1,1\n")
    capsys.readouterr()
    assert run(["study", "compare", str(tmp_path / "0"), str(tmp_path / "1"), "-o", "json"]) == ExitCode.DONE
    (trace,) = json.loads(capsys.readouterr().out)["inputs"]
    assert (trace["name"], len(trace["a"])) == ("trace", 64)
    assert trace["a"] != trace["b"]


def test_a_run_continues_with_the_same_trace_only(plain, tmp_path, capsys):
    words = ["study", "run", "trace", "--trace", str(plain), "--out", str(tmp_path / "out"), "-o", "json"]
    words += ["--set", "periods=1"]
    assert run(words) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["inputs"]["trace"] == document["rows"][0]["trace"]
    assert run([*words, "--resume"]) == ExitCode.DONE
    plain.write_text(PLAIN + "111,1,1\n")
    assert run([*words, "--resume"]) == ExitCode.REFUSED
    assert "has a run with another trace, or other columns of it" in capsys.readouterr().err


LONG = HEADER + "".join(f"{at},1,1\n" for at in range(20_000))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", " is empty"),
        (HEADER, " has no jobs, only the names of columns"),
        ("submit,duration\n1,2\n", ":1: there is no column 'accelerators' for accelerators"),
        ("submit,submit,duration,accelerators\n", ":1: there are several columns 'submit' for submit"),
        (LONG.replace("12345,1,1", "12345,1"), ":12347: the line has 2 values, so none for column accelerators"),
        (LONG.replace("12345,1,1", "12345,-1,1"), ":12347: duration is '-1', expected a number of 0 or more"),
        (HEADER + "-1,1,1\n", ":2: submit is '-1', expected a number of 0 or more"),
        (HEADER + "1,1,1\n\n1,1,nan\n", ":4: accelerators is 'nan', expected a number of 0 or more"),
        (HEADER + "1,inf,1\n", ":2: duration is 'inf', expected a number of 0 or more"),
        (HEADER + "1,1,1\n1,,1\n", ":3: duration is '', expected a number of 0 or more"),
        (HEADER + '1,1,1\n1,"1,1\n' + "1,1,1\n" * 30_000, ":3: not valid CSV: field larger than field limit (131072)"),
        (HEADER + "1,1,1\n" + "1" * 70_000, ":3: the line is longer than 65536 bytes"),
        (HEADER.encode() + b"1,1,1\n1,\xff,1\n", ":3: found byte 0xff, expected UTF-8 text"),
    ],
)
def test_a_trace_that_is_not_valid_is_refused_in_one_line(content, said, tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run(["study", "run", "trace", "--trace", str(path), "--out", str(tmp_path / "out")]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", f"lumctl: {path}{said}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", " is empty"),
        ("columns: {submitted: at}", ":1:11: key 'submitted' is not known; did you mean 'submit'?"),
        ("units: {duration: days}", ":1:19: "),
        ("- columns", ":1:1: found a list, expected a mapping with the keys columns, units"),
        ("columns: {submit: at}", None),
    ],
)
def test_a_map_that_is_not_valid_is_refused_in_one_line(content, said, plain, tmp_path, capsys):
    path = tmp_path / "map.yaml"
    path.write_text(content)
    assert run(["study", "run", "trace", "--trace", str(plain), "--trace-map", str(path)]) == ExitCode.USAGE
    shown = capsys.readouterr()
    expected = f"{plain}:1: there is no column 'at' for submit" if said is None else f"{path}{said}"
    assert shown.err.startswith(f"lumctl: {expected}")
    assert len(shown.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rails", "--trace", "jobs.csv"], "study rails takes no trace"),
        (["trace", "--trace-map", "map.yaml"], "--trace-map needs --trace FILE"),
        (["trace", "--trace", "nothing.csv"], "nothing.csv cannot be read: No such file or directory"),
        (["trace", "--set", "load=0"], "load is 0, expected 0.01 to 10"),
    ],
)
def test_wrong_input_is_one_line(words, said, capsys):
    assert run(["study", "run", *words]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, "".join(shown.err.splitlines()[:1]).replace("/", " ").endswith(said.replace("/", " "))) == (
        "",
        True,
    )


def test_a_trace_has_no_use_for_the_parameters_of_the_generator(plain, capsys):
    assert run(["study", "run", "trace", "--trace", str(plain), "--set", "load=0.5"]) == ExitCode.USAGE
    assert "study trace has no parameter 'load'" in capsys.readouterr().err
