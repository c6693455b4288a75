"""The committed manual: what the commands say now, in a form that groff accepts, installed where man looks."""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from lumctl.cli.manual import fixed_text
from lumctl.cli.manual.pages import REFERENCES, pages, with_reference, write
from lumctl.cli.manual.roff import bold_code, escape
from lumctl.cli.nouns import NOUNS
from lumctl.devices.protocols import PROTOCOLS
from lumctl.errors import ExitCode

ROOT = Path(__file__).parents[3]
MAN = ROOT / "man"


@pytest.fixture(scope="module")
def made():
    return pages()


def test_the_committed_pages_are_what_the_commands_say(made):
    committed = {path.name: path.read_text() for path in MAN.glob("*.1")}
    assert committed.keys() == made.keys(), "run: make man"
    for name, text in made.items():
        assert committed[name] == text, f"{name} has drifted; run: make man"


def test_what_the_reference_lists_under_http_can_be_imported_from_there():
    listed = [
        name
        for module, names in REFERENCES["lumctl-driver.7"].items()
        if module.startswith("lumctl.devices.http.")
        for name in names
    ]
    assert set(listed) <= set(importlib.import_module("lumctl.devices.http").__all__)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_reference_of_a_page_is_what_the_source_says(name):
    text = (MAN / name).read_text()
    assert with_reference(name, text) == text, f"{name} has drifted; run: make man"


@pytest.mark.parametrize(("kind", "protocol"), PROTOCOLS.items())
def test_every_call_of_every_kind_of_driver_has_its_signature_in_the_manual(kind, protocol):
    """Apart from how the reference is made: by what Python itself says of the Protocols."""
    page = (MAN / "lumctl-driver.7").read_text().replace("\\-", "-").replace("\\(dq", '"')
    for name in dir(protocol):
        if not name.startswith("_") and callable(getattr(protocol, name)):
            signature = inspect.signature(getattr(protocol, name))
            words = ", ".join(part for part in signature.parameters if part != "self")
            heads = re.findall(rf"^\\fB{name}\((.*)\) -> .+\\fR$", page, re.MULTILINE)
            shown = [", ".join(re.findall(r"(?:^|, )(?:\*, )?(\w+)(?=:)", head)) for head in heads]
            assert words in shown, f"{kind}: {name}"


def test_there_is_a_page_for_every_noun(made):
    assert made.keys() == {"lumctl.1", *(f"lumctl-{noun}.1" for noun in NOUNS)}


def test_every_page_says_how_it_ends_and_where_to_read_on(made):
    for name, text in made.items():
        found = re.findall(r"^\.SH (.+)$", text, re.MULTILINE)
        assert found[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        assert found[-4:] == ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"], name


def test_the_exit_codes_of_the_manual_are_those_of_the_program():
    assert [int(code) for code, _ in fixed_text.EXIT_STATUS] == [code.value for code in ExitCode]


def test_pages_by_hand_are_referred_to():
    by_hand = {f"{path.stem}({path.suffix[1:]})" for path in MAN.iterdir() if path.suffix != ".1"}
    assert by_hand == set(fixed_text.BY_HAND)


def test_every_page_is_installed_in_the_folder_of_its_section():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    installed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert installed == {f"man/{path.name}": f"share/man/man{path.suffix[1:]}/{path.name}" for path in MAN.iterdir()}


@pytest.mark.skipif(
    shutil.which("groff") is None and not os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS"), reason="groff is not here"
)
def test_groff_has_nothing_to_complain_about():
    for path in sorted(MAN.iterdir()):
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tutf8", "-k", path],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert done.stderr == b"", path.name


def test_writing_removes_pages_whose_command_is_gone(tmp_path, made):
    (tmp_path / "lumctl-gone.1").write_text("old")
    (tmp_path / "lumctl-inventory.5").write_text("by hand")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*made, "lumctl-inventory.5"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("--yes", r"\-\-yes"),
        (".lumctl", r"\&.lumctl"),
        ("'tis", r"\&'tis"),
        ("a\\b", r"a\eb"),
        ("1 µs", r"1 \[u00B5]s"),
    ],
)
def test_text_cannot_become_a_request(text, wanted):
    assert escape(text) == wanted


def test_code_is_bold():
    assert bold_code("run ``lumctl  top`` or\n`x-y`.") == r"run \fBlumctl top\fR or \fBx\-y\fR."
