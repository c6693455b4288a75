import struct
import sys
from xml.etree import ElementTree as ET

import pytest

from lumctl.errors import UsageError
from lumctl.training.picture import About, require_place, save, this_machine

ABOUT = About("a machine", "today")


def test_svg_by_its_name(recovered, tmp_path):
    path = tmp_path / "recovery.svg"
    save(path, recovered(), ABOUT, title="a title")
    assert ET.parse(path).getroot().tag.endswith("svg")  # noqa: S314 - our own
    assert "a title" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["recovery.png", "RECOVERY.PNG"])
def test_png_by_its_name(recovered, tmp_path, name):
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    path = tmp_path / name
    save(path, recovered(), ABOUT)
    drawn = path.read_bytes()
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n"
    save(tmp_path / "r.svg", recovered(), ABOUT)
    root = ET.parse(tmp_path / "r.svg").getroot()  # noqa: S314 - our own
    for size, side in zip(struct.unpack(">II", drawn[16:24]), ("width", "height"), strict=True):
        assert size == pytest.approx(2 * float(root.get(side)), abs=1)


@pytest.mark.parametrize(("name", "found"), [("a.pdf", ".pdf"), ("a", "a file without a suffix"), ("a.svg.gz", ".gz")])
def test_other_names_are_refused_before_anything_is_written(recovered, tmp_path, name, found):
    with pytest.raises(UsageError, match=f"cannot be written as {found}") as refused:
        save(tmp_path / name, recovered(), ABOUT)
    assert refused.value.hint == "use one of these suffixes: .svg, .png"
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError):
        require_place(tmp_path / name)


def test_a_picture_that_cannot_be_made_leaves_the_old_one(recovered, tmp_path, monkeypatch):
    path = tmp_path / "recovery.png"
    path.write_text("old")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UsageError, match="needs the package Pillow"):
        save(path, recovered(), ABOUT)
    assert path.read_text() == "old"


def test_a_place_that_takes_no_file_is_said(recovered, tmp_path):
    with pytest.raises(UsageError, match=r"missing/r.svg cannot be written: No such file"):
        save(tmp_path / "missing" / "r.svg", recovered(), ABOUT)
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(UsageError, match=r"taken.svg cannot be written: Is a directory"):
        save(tmp_path / "taken.svg", recovered(), ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.svg"]


def test_the_machine_is_named_by_cores_and_model(tmp_path):
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nmodel name\t: A  Fast   Model @ 2GHz\n\nmodel name\t: another\n")
    assert " of A Fast Model @ 2GHz, " in this_machine(told)
    assert this_machine(tmp_path / "missing").split()[1] in {"core", "cores"}


def test_a_folder_that_is_not_there_is_said_before_anything_is_measured(tmp_path):
    require_place(tmp_path / "picture.svg")
    with pytest.raises(UsageError, match="folder"):
        require_place(tmp_path / "none" / "picture.svg")
