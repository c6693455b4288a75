"""The pictures that people see before the program: those of the README are current, that of the status is whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lumctl.cli.main import run
from lumctl.cli.output import Output
from lumctl.cli.status import draw_status, status_svg
from lumctl.cli.views import status_document
from lumctl.errors import ExitCode, UsageError

HERE = Path(__file__).parent


def test_the_pictures_of_the_readme_are_current(tmp_path):
    path = {**os.environ, "PYTHONPATH": str(HERE.parent / "contract")}
    subprocess.run([sys.executable, HERE / "picture.py", tmp_path], env=path, check=True, timeout=60)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert [file.name for file in drawn] == sorted(file.name for file in HERE.glob("*.svg"))
    for file in drawn:
        same = file.read_bytes() == (HERE / file.name).read_bytes()
        assert same, f"{file.name} does not show the dashboard as it is: make pictures"


def words(svg):
    return re.sub(r"<[^>]*>", " ", svg).replace("&#160;", " ")


def test_the_status_as_a_picture_holds_its_tables(kit):
    svg = status_svg(Output(), status_document(kit.observation()))
    for word in ("target: sim", "accelerators", "✖ failed", "r1-h2-g1", "llm/5", "replace it by a spare"):
        assert word in words(svg)
    assert "url(" not in svg.replace("url(#", "")
    assert "@font-face" not in svg


def test_and_is_ascii_where_that_was_asked_for(kit):
    svg = status_svg(Output(ascii_only=True), status_document(kit.observation()))
    assert "X failed" in words(svg)
    assert svg.isascii()


def test_it_is_written_beside_and_renamed(kit, tmp_path, monkeypatch):
    file = tmp_path / "status.svg"
    draw_status(Output(), status_document(kit.observation()), file)
    before = file.read_text(encoding="utf-8")
    assert before.startswith("<svg")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(UsageError, match="cannot write"):
        draw_status(Output(), status_document(kit.observation(failed=None)), file)
    assert file.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_picture_of_what_never_ends_is_refused(capsys):
    assert run(["status", "-i", "inventories/prototype.yaml", "--watch", "--svg", "x.svg"]) == ExitCode.USAGE
    assert "a picture shows one reading" in capsys.readouterr().err
