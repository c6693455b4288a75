"""Wrong inventories: each error has its place, what was found, what was expected and the nearest word."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.errors import ExitCode
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.problems import InventoryError, Problem, nearest

ProblemsOf = Callable[[str | bytes], tuple[Problem, ...]]


def edited(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} must be there once"
    return text.replace(old, new)


RING = "      - kind: ring\n"
IN_ITS_URL = (
    "found a database URL with a password in it, expected one without; keep it in ~/.pgpass, "
    "in the file that $PGPASSFILE names, or in the URL in $LUMCTL_STATE"
)

CASES = [
    # keys, types and words
    ("lumctl: 1", "lumctl: 2", "1:9: found 2, expected 1"),
    ("racks:", "rakcs:", "2:1: key 'rakcs' is not known; did you mean 'racks'?"),
    ("    driver: smartlight\n", "", "12:5: key 'driver' is missing here"),
    ("model: X100", "modell: X100", "8:9: key 'modell' is not known; did you mean 'model'?"),
    ("memory_gib: 80", "memory_gib: much", "9:21: found 'much', expected a number"),
    ("memory_gib: 80", "memory_gib: 0", "9:21: found 0, expected a number above 0"),
    ("pci: 0000:17:00.0", "pci: 17:00", "10:14: found '17:00', expected a PCI address such as 0000:9b:00.0"),
    (
        "model: X100",
        "model: X100\n        role: spar",
        "9:15: found 'spar', expected active, spare or disabled; did you mean 'spare'?",
    ),
    ("kind: mesh", "kind: mash", "13:11: found 'mash', expected mesh, switch, chassis or power; did you mean 'mesh'?"),
    ("geometry: {columns: 3, rows: 2}", "geometry: 3", "16:15: found 3, expected a mapping"),
    (
        "    device: mesh\n    port: [0, 2, 4]",
        "    device: mesh\n    port: [0, x, 4]",
        "22:15: found 'x', expected a whole number",
    ),
    ("name: job", "name: 7", "29:11: found 7, expected a text (quote it if it looks like a number)"),
    ("kind: ring", "kind: rong", "32:15: found 'rong', expected ring, pairs or torus; did you mean 'ring'?"),
    ("      - kind: ring", "      - ranks: 0-1", "32:9: key 'kind' is missing here; expected ring, pairs or torus"),
    ("jobs:", "policies: [x]\njobs:", "28:12: found 'x', expected a mapping"),
    ("  r1:\n", "  r1: {store: 'postgresql://me:hunter2@db/racks'}\n", f"3:15: {IN_ITS_URL}"),
    ("  r1:\n", "  r1: {store: 'postgresql:///racks?user=me&password=hunter2'}\n", f"3:15: {IN_ITS_URL}"),
    # names
    ("name: h[1-3]", "name: h[1-3", "5:11: 'h[1-3' has a bracket without its partner, or one inside another"),
    ("name: job", "name: jo/b", "29:11: 'jo/b' cannot be a name, expected letters, digits, '-', '_' and '.'"),
    ("name: job", "name: h1", "29:11: job 'h1' is defined twice, first as host in line 5"),
    ('"{host}-gpu0"', '"{hots}-gpu0"', "7:13: found '{hots}', expected '{host}'"),
    (
        "rows: 2}\n",
        "rows: 2}\n  - {id: mesh, kind: switch, driver: x, address: 'x:1', port_count: 9}\n",
        "17:10: switch 'mesh' is defined twice, first as mesh in line 12",
    ),
    (
        "gpu0\n    interface: eth2",
        "gpu[0,1]\n    interface: eth2",
        "19:18: found 6 values of 'accelerator', expected 3",
    ),
    ("[0, 2, 4]", "[0, 2]", "22:11: found 2 values of 'port', expected 3 (one for each name) or one for all"),
    # references
    ("ranks: h[1-2]-gpu0", "ranks: h[1-4]-gpu0", "30:12: accelerator 'h4-gpu0' is not known; did you mean"),
    (
        "    device: mesh\n    port: [0, 2, 4]",
        "    device: mehs\n    port: [0, 2, 4]",
        "21:13: device 'mehs' is not known; did you mean 'mesh'?",
    ),
    ("name: h[1-3]", "name: h[1-3]\n    rack: r2", "6:11: rack 'r2' is not known; expected one of: r1"),
    (
        "  r1:\nhosts:\n  - name: h[1-3]",
        "  r1:\n  r2:\nhosts:\n  - name: h[1-3]\n    rack: [r1, r1, r1]",
        "14:5: key 'rack' is missing here: the file has several racks",
    ),
    # ports, PUCs, interfaces, addresses
    (
        "name: h[1-3]",
        "name: h[1-3]\n    address: '{name} example'",
        "6:14: found '{name} example', expected a host name",
    ),
    ("[1, 3, 5]", "[1, 3, 4]", "27:18: port 4 of mesh is used twice, by h3-gpu0-a and by h3-gpu0-b"),
    ("[1, 3, 5]", "[1, 3, 24]", "27:18: found port 24 of mesh, expected 0 to 23"),
    (
        "    port: [1, 3, 5]",
        "    tx: [1, 3, 5]",
        "27:9: found 'tx', expected 'port' (a duplex lane) or both 'tx' and 'rx'",
    ),
    ("rows: 2}", "rows: 2}\n    blocked_ports: [23, 24]", "17:25: found port 24, expected 0 to 23"),
    ("rows: 2}", "rows: 2}\n    blocked_ports: [3]", "28:15: found port 3 of mesh, which is blocked there"),
    ("rows: 2}", "rows: 2}\n    stuck: {27: bar}", "17:13: found PUC 27, expected 0 to 26"),
    ("rows: 2}", "rows: 2}\n    port_count: 9", "17:17: a mesh has no 'port_count', expected 'geometry'"),
    ("    geometry: {columns: 3, rows: 2}\n", "", "12:5: key 'geometry' is missing here: a mesh needs it"),
    ("eth3", "eth2", "25:16: interface eth2 of h1 is used twice, by h1-gpu0-a and by h1-gpu0-b"),
    ("eth3", "eth3;reboot", "25:16: found 'eth3;reboot', expected an interface such as eth2"),
    ("mesh.example:65432", "mesh.example", "15:14: found 'mesh.example', expected HOST:PORT"),
    ("mesh.example:65432", "mesh.example:65536", "15:14: found 'mesh.example:65536', expected HOST:PORT"),
    # jobs
    (
        "ranks: h[1-2]-gpu0",
        "ranks: [h1-gpu0, h1-gpu0]",
        "30:22: accelerator h1-gpu0 is used twice, by rank 0 of job and by rank 1",
    ),
    (
        "model: X100",
        "model: X100\n        role: disabled",
        "31:12: rank 0 runs on h1-gpu0, which is disabled, expected an active one",
    ),
    (
        "ranks: h[1-2]-gpu0",
        "ranks: h[1-2]-gpu0\n    hook: {pause: [p], rezume: [r]}",
        "31:24: key 'rezume' is not known; did you mean 'resume'?",
    ),
    (
        "ranks: h[1-2]-gpu0",
        "ranks: h[1-2]-gpu0\n    hook: {pause: p, resume: [r]}",
        "31:19: found 'p', expected a list",
    ),
    (
        "ranks: h[1-2]-gpu0",
        "ranks: h[1-2]-gpu0\n    hook: {pause: [p], resume: [r], timeout_s: 0}",
        "31:48: found 0, expected a number above 0",
    ),
    (RING, "      - {kind: ring, ranks: 0-2}\n", "32:29: found rank 2, expected 0 to 1"),
    (RING, "      - {kind: ring, ranks: [1]}\n", "32:29: found a ring of 1 rank, expected 2 or more"),
    (RING, "      - {kind: ring, ranks: [1, 1]}\n", "32:29: rank 1 is listed twice"),
    (RING, "      - {kind: ring, ranks: one}\n", "32:29: found 'one', expected numbers such as 0-3,8"),
    (RING, "      - {kind: pairs, pairs: [[0, 1], [1, 1]]}\n", "32:39: found a link of rank 1 to itself"),
    (RING, "      - {kind: pairs, pairs: [[0, 5]]}\n", "32:31: found rank 5, expected 0 to 1"),
    (
        RING,
        "      - {kind: torus, shape: [2, 2]}\n",
        "32:30: found a torus of 2 x 2 = 4 for 2 ranks, expected the same number",
    ),
    (RING, "      - {kind: torus, shape: [1, 2]}\n", "32:9: link job/0-1 needs lane 3 of h1-gpu0, which has 2"),
    (RING, "      - {kind: pairs, pairs: [[0, 1], [0, 1]]}\n", "32:7: link job/0-1 occurs twice"),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES, ids=[case[2] for case in CASES])
def test_one_mistake_is_one_line(small: str, problems_of: ProblemsOf, old: str, new: str, expected: str) -> None:
    problems = problems_of(edited(small, old, new))
    assert len(problems) == 1, [str(problem) for problem in problems]
    assert f"rack.yaml:{expected}" in str(problems[0])


def test_lanes_of_different_devices_cannot_be_linked(small: str, problems_of: ProblemsOf) -> None:
    text = edited(
        small,
        "transponders:",
        "  - {id: other, kind: switch, driver: x, address: 'o:1', port_count: 8}\ntransponders:",
    )
    text = edited(text, "device: mesh\n    port: [1", "device: [mesh, other, mesh]\n    port: [1")
    (problem,) = problems_of(text)
    assert "rack.yaml:33:9: link job/1-0 connects h2-gpu0-b on other and h1-gpu0-a on mesh" in str(problem)


def test_readings_do_not_grow_stale_between_two_runs(small: str, problems_of: ProblemsOf) -> None:
    text = small.replace("hosts:\n", "probes:\n  lldp: {every_s: 10}\n  gpu: {every_s: 60}\nhosts:\n", 1)
    (problem,) = problems_of(text)
    assert "probes.gpu: every_s 60 and deadline_s 5 are together more than thresholds.stale_after_s 30" in str(problem)
    assert problem.mark is not None
    assert text.splitlines()[problem.mark.line - 1] == "  gpu: {every_s: 60}"
    assert not problems_of(f"{text}thresholds: {{stale_after_s: 65}}\n")


def test_a_duplex_lane_cannot_be_linked_to_one_with_two_ports(small: str, problems_of: ProblemsOf) -> None:
    (problem,) = problems_of(edited(small, "port: [1, 3, 5]", "tx: [1, 3, 5]\n    rx: [6, 7, 8]"))
    assert "connects a duplex lane to one with separate ports" in problem.message


def test_a_port_serves_one_link(small: str, problems_of: ProblemsOf) -> None:
    text = edited(small, "ranks: h[1-2]-gpu0", "ranks: h[1-3]-gpu0")
    text = edited(text, RING, "      - {kind: pairs, pairs: [[0, 2]]}\n      - {kind: ring, ranks: 0-1}\n")
    (problem,) = problems_of(text)
    assert problem.message.startswith("links job/0-2 and job/1-0 both need port 0 of mesh")


def test_an_accelerator_serves_one_job(small: str, problems_of: ProblemsOf) -> None:
    (problem,) = problems_of(small + "  - {name: other, ranks: [h2-gpu0, h3-gpu0]}\n")
    assert problem.message == "accelerator h2-gpu0 is used twice, by rank 1 of job and by rank 0 of other"


def test_all_errors_come_at_once_and_in_order(small: str, write: Callable[[str | bytes], Path]) -> None:
    text = edited(small, "model: X100", "modle: X100")
    text = edited(text, "columns: 3", "columns: three")
    text = edited(text, "eth3", "-x")
    text = edited(text, "[1, 3, 5]", "[1, 2, 3, 5]")
    text = edited(text, "name: job", "nome: job")
    with pytest.raises(InventoryError) as caught:
        load_inventory(write(text))
    first, *rest = caught.value.message.split("\n")
    assert first.endswith("rack.yaml: 4 errors")
    assert [line.split(":")[1] for line in rest] == ["8", "16", "27", "29"]
    assert caught.value.exit_code is ExitCode.USAGE


def test_what_refers_to_a_wrong_entry_is_not_wrong_too(small: str, problems_of: ProblemsOf) -> None:
    text = edited(small, "memory_gib: 80", "memory_gib: 80\n        colour: red")
    text = edited(text, "driver: smartlight", "driver: []")
    assert [problem.mark and problem.mark.line for problem in problems_of(text)] == [10, 15]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"lumctl: \xff", "1:9: found byte 0xff, expected UTF-8 text"),
        (b"", "1:1: the file is empty"),
        (b"- 1\n", "1:1: found a list, expected a mapping"),
        (b"#" * (4 * 1024 * 1024 + 1), "is larger than 4 MiB"),
    ],
)
def test_files_that_are_no_inventory(problems_of: ProblemsOf, content: bytes, message: str) -> None:
    (problem,) = problems_of(content)
    assert message in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize("name", ["absent.yaml", ".", "nul\0byte"])
def test_paths_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InventoryError, match="cannot be read"):
        load_inventory(tmp_path / name)


def test_the_whole_file_is_bounded(small: str, problems_of: ProblemsOf) -> None:
    text = edited(small, "name: h[1-3]", "name: h[0-9999]")
    text = edited(text, "ranks: h[1-2]-gpu0", "ranks: h[0-9999]-gpu0").replace(RING, RING * 200)
    messages = [problem.message for problem in problems_of(text)]
    assert "the folded names expand to more than 1000000 names and ranks in total" in messages


def test_a_fold_of_folds_is_bounded(small: str, problems_of: ProblemsOf) -> None:
    problems = problems_of(edited(small, "name: h[1-3]", "name: h[0-9999][0-9999]"))
    assert ["more than 100000 names" in problem.message for problem in problems] == [True]


def test_http_without_tls_is_written_in_the_address(small: str, problems_of: ProblemsOf) -> None:
    assert problems_of(edited(small, "mesh.example:65432", "http://mesh.example:65432")) == ()
    (problem,) = problems_of(edited(small, "mesh.example:65432", "https://mesh.example:65432"))
    assert "expected HOST:PORT" in str(problem)


def test_rings_that_no_path_joins_are_found_where_the_ranks_form_one_process_group(tmp_path: Path) -> None:
    text = example("ring4").read_text()
    apart = edited(text, RING, "      - {kind: ring, ranks: [0, 1]}\n      - {kind: ring, ranks: [2, 3]}\n")
    path = tmp_path / "apart.yaml"
    path.write_text(apart)
    with pytest.raises(InventoryError) as found:
        load_inventory(path)
    (problem,) = found.value.problems
    assert "no path of links connects ranks [0-1] and ranks [2-3] of job train" in problem.message
    assert "pairs: [[0, 2]]" in str(problem.hint)
    path.write_text(apart[: apart.index("    run:\n")])  # what runs it otherwise may join them in another way
    load_inventory(path)


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("node7.example:22", 'write address: "node7.example" and ssh: {port: 22}'),
        ("10.0.0.7:2222", 'write address: "10.0.0.7" and ssh: {port: 2222}'),
        ("{name}.lab:22", 'write address: "{name}.lab" and ssh: {port: 22}'),
        ("[fe80::7]:22", 'write address: "fe80::7" and ssh: {port: 22}'),
    ],
)
def test_the_address_of_a_host_has_no_port(small: str, problems_of: ProblemsOf, address: str, hint: str) -> None:
    (problem,) = problems_of(edited(small, "  - name: h[1-3]\n", f'  - name: h[1-3]\n    address: "{address}"\n'))
    assert (problem.message, problem.hint) == (f"found {address!r}, expected an address without a port", hint)
    assert (problem.mark.line, problem.mark.column) == (6, 14)


@pytest.mark.parametrize("address", ["10.0.0.7", "node7", "fe80::7", "2001:db8::22"])
def test_several_colons_are_an_address(small: str, problems_of: ProblemsOf, address: str) -> None:
    assert problems_of(edited(small, "  - name: h[1-3]\n", f'  - name: h[1-3]\n    address: "{address}"\n')) == ()


def test_a_mount_is_an_absolute_path(small: str, problems_of: ProblemsOf, write: Callable[[str], Path]) -> None:
    named = edited(small, "  - name: h[1-3]\n", "  - name: h[1-3]\n    mounts: [/data/, scratch]\n")
    (problem,) = problems_of(named)
    assert "6:22: found 'scratch', expected an absolute path such as /data" in str(problem)
    inventory = load_inventory(write(named.replace("scratch", "/")))
    assert inventory.hosts["h2"].mounts == ("/data", "/")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("h03-gpu9", "h03-gpu"),
        ("h3-gpu9", "h03-gpu"),
        ("h03-gpu9-a", "h03-gpu"),
        ("h03-gpu2-c", "h03-gpu2-"),
        ("h03-gpuu2", "h03-gpu2"),
        ("train-a/17-19", "train-a/17-18"),
    ],
)
def test_the_nearest_name_is_of_the_same_host_or_job(typed: str, meant: str) -> None:
    hosts = [f"h{number:02d}" for number in range(1, 97)]
    accelerators = [f"{host}-gpu{number}" for host in hosts for number in range(4)]
    lanes = [f"{accelerator}-{lane}" for accelerator in accelerators for lane in "ab"]
    circuits = [f"{job}/{rank}-{rank + 1}" for job in ("train-a", "train-b") for rank in range(20)]
    assert str(nearest(typed, [*hosts, *accelerators, *lanes, *circuits])).startswith(meant)
