"""The options of ``lumctl inventory init``: everything that is wrong with them is reported at once."""

import re
from pathlib import Path

import pytest

from lumctl.cli.fabric_mesh import mesh_named
from lumctl.cli.init_answers import InitAnswers
from lumctl.cli.init_questions import asked
from lumctl.cli.main import run
from lumctl.errors import UsageError
from lumctl.inventory.load import load_inventory

NOTHING = "found 'x', expected a number from 1 to 64"


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)

    def lines(*words: str) -> list[str]:
        assert run(["inventory", "init", *words]) == 2
        assert not list(tmp_path.iterdir())
        return capsys.readouterr().err.splitlines()

    return lines


@pytest.mark.parametrize(("target", "options"), [((), ""), (("--target", "sim"), "--target rack ")])
def test_each_command_for_the_rack_names_the_inventory_and_never_the_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    rack = ("--hosts", "h[1-3]", "--gpus", "1", "--mesh", "7x3", "--limit", "0.1")
    assert run(["inventory", "init", "own rack.yaml", *rack, *target]) == 0
    words = f"{options}-i 'own rack.yaml'"
    assert capsys.readouterr().err.splitlines()[-4:] == [
        "then, on the rack:",
        f"    lumctl inventory trust {words}",
        f"    lumctl status {words}",
        f"    lumctl fabric apply {words}",
    ]


def test_every_wrong_option_gets_a_line_that_names_it(refused) -> None:
    wrong = {
        "--hosts": "h[01-",
        "--gpus": "x",
        "--mesh": "9y9",
        "--job": "my job",
        "--address": "a b",
        "--user": "-l",
        "--rack": "r 1",
        "--driver": "smartlite",
        "--mesh-address": "q q",
        "--interfaces": "eth[",
        "--model": "",
    }
    first, *lines = refused("-", *(f"{option}={value}" for option, value in wrong.items()))
    assert first == f"lumctl: {len(wrong)} errors in the options"
    assert {line.partition(":")[0] for line in lines} == set(wrong)
    assert f"--gpus: {NOTHING}" in lines


def test_options_that_do_not_fit_each_other_are_reported_together(refused) -> None:
    words = ("--hosts", "h[1-9]", "--gpus", "2", "--mesh", "1x1", "--meshes", "1", "--job", "mesh", "--address", "foo")
    _, *lines = refused("-", *words, "--interfaces", "eth2")
    for part in ("--address: 9 hosts would share", "--interfaces: found 1, expected 4", "need 36 ports", "job 'mesh'"):
        assert [part in line for line in lines].count(True) == 1
    assert len(lines) == 4


def test_a_spare_is_checked_although_the_number_of_meshes_is_wrong(refused) -> None:
    _, meshes, spares = refused(
        "-", "--hosts", "h[1-3]", "--gpus", "2", "--mesh", "7x3", "--meshes", "3", "--spares", "h9"
    )
    assert meshes == "--meshes: found '3', expected a number from 1 to 2"
    assert spares.startswith("--spares: 'h9' is neither a host nor an accelerator")


def test_what_is_missing_is_reported_beside_what_is_wrong(refused) -> None:
    _, mesh, missing = refused("--mesh", "9y9", "--gpus", "4")
    assert mesh.startswith("--mesh: '9y9' is not a mesh shape; did you mean '9x9'?")
    assert missing.startswith("--hosts is missing")


@pytest.mark.parametrize(
    ("rack", "limit", "hint"),
    [
        (("--hosts", "h[1-38]", "--mesh", "9x9"), "0.1", "a --limit longer than 0.1 s, or --mesh 10x9 or fewer hosts"),
        (("--hosts", "h[1-4]", "--mesh", "1x1"), "60", "--mesh 2x2 or fewer hosts"),
    ],
)
def test_more_time_is_proposed_only_if_time_was_short(refused, rack: tuple[str, ...], limit: str, hint: str) -> None:
    error, help_ = refused("-", *rack, "--gpus", "1", "--spares", "none", "--limit", limit)
    assert "no routable layout" in error
    assert help_ == f"  hint: {hint}"


def test_of_several_files_one_is_to_be_given(refused) -> None:
    rack = ("--hosts", "h[1-3]", "--gpus", "1", "--mesh", "7x3")
    only_one = "  hint: only one file can be written: give one path"
    assert refused("a.yaml", "b.yaml", *rack)[1:] == [only_one]
    assert refused("swan", "teal", *rack)[1:] == [f"{only_one}; if these are hosts: --hosts 'h[1-3],swan,teal'"]


def test_for_a_switch_the_installed_example_is_named(refused) -> None:
    rack = ("--hosts", "h[1-3]", "--gpus", "1", "--mesh", "7x3")
    _, hint = refused(*rack, "--driver", "polatis-scpi")
    path = Path(hint.split()[-1])
    assert path.is_absolute()
    assert any(device.kind == "switch" for device in load_inventory(path).devices.values())


@pytest.mark.parametrize("address", ["foo-{id}", "{id}:0", "{id}:x", "{name}:1"])
def test_a_mesh_address_without_a_port_names_its_option(refused, address: str) -> None:
    rack = ("--hosts", "h[1-3]", "--gpus", "1", "--mesh", "7x3", "--mesh-address", address)
    assert refused(*rack) == [
        f"lumctl: --mesh-address: found {address!r}, expected HOST:PORT",
        "  hint: such as {id}:65432",
    ]


def test_all_unknown_spares_are_named_also_if_the_number_of_gpus_is_wrong(refused) -> None:
    rack = ("--hosts", "h[1-3]", "--mesh", "7x3", "--spares", "h3,node7,h2-gpu99")
    unknown = "--spares: 'node7', 'h2-gpu99' are neither hosts nor accelerators"
    assert refused(*rack, "--gpus", "2") == [f"lumctl: {unknown}", "  hint: such as h3, h3-gpu0 or none"]
    _, gpus, spares = refused(*rack, "--gpus", "x")
    assert gpus == f"--gpus: {NOTHING}"
    assert spares.startswith(unknown)


def test_control_characters_of_an_option_are_escaped_in_each_line(refused) -> None:
    assert "\x1b" not in "".join(refused("--hosts", "a\x1b[1m", "--gpus", "x", "--mesh", "\x1b[2m.yaml"))


@pytest.mark.parametrize("mesh", ["9y9", "999x999", "hexagon:0", "nothing.yaml", "./nothing"])
def test_a_wrong_mesh_alone_names_its_option(refused, mesh: str) -> None:
    assert refused("--hosts", "h[1-3]", "--gpus", "1", "--mesh", mesh)[0].startswith("lumctl: --mesh: ")


def test_the_question_for_the_mesh_names_each_form_that_is_accepted() -> None:
    questions: list[str] = []

    def answer(question: str, default: str, check) -> str:
        questions.append(question)
        return check(default)

    asked(InitAnswers("h[1-4]", "1", None), answer, read_hosts=False)
    (question,) = [each for each in questions if "mesh" in each]
    shapes = re.findall(r"(?:[a-z]+:)?[0-9]+(?:x[0-9]+)?", question)
    assert [mesh_named(shape).name for shape in shapes] == ["9x9", "hexagon:3", "square:4x4"]
    assert "FILE" in question
    # What no form fits is refused with the same forms as examples.
    with pytest.raises(UsageError) as refusal:
        mesh_named("round")
    assert all(shape in str(refusal.value.hint) for shape in shapes)
