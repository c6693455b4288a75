"""What is told of the end of a log: one line of it, bounded, and nothing that moves a terminal."""

import os

import pytest

from lumctl.training.agent.worker_table import last_line, size
from lumctl.training.protocol import LONGEST_SHOWN, printable_line


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (b"", ""),
        (b"one\ntwo\n", "two"),
        (b"Traceback:\nModuleNotFoundError: No module named 'x'\n\n \n", "ModuleNotFoundError: No module named 'x'"),
        (b"\x1b[31mred\x1b[0m \x07and\tblue\r\n", "red and blue"),
        (b"\x1b]0;title\x07 \x9b2J \xff\n", "]0;title  \N{REPLACEMENT CHARACTER}2J \N{REPLACEMENT CHARACTER}"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}b\N{LINE SEPARATOR}c".encode(), "c"),
    ],
)
def test_the_last_line_that_says_anything(tmp_path, printed, told):
    log = tmp_path / "a#1.log"
    log.write_bytes(printed)
    assert last_line(log) == " ".join(told.split())


def test_it_is_bounded_and_of_this_worker_only(tmp_path):
    log = tmp_path / "a#1.log"
    log.write_text("of a run before\n")
    before = size(log)
    assert last_line(log, before) == ""
    with log.open("a") as file:
        file.write("x" * 1_000_000)
    assert last_line(log, before) == "x" * LONGEST_SHOWN + "..."
    log.write_text("begun again\n")  # it was too long
    assert last_line(log, 2_000_000) == "begun again"


def test_what_is_no_log_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert [last_line(tmp_path / name) for name in ("none", "pipe", "link", ".")] == [""] * 4
    assert size(tmp_path / "none") == 0


def test_a_line_of_another_process_is_shown_as_one_line():
    assert printable_line("a\nb\x00\x1b[2J c\u202e") == "a b[2J c"
    assert len(printable_line("y" * 10_000)) == LONGEST_SHOWN + 3
