"""What a simulated shell reads out of the text of the loop's program."""

import pytest

from lumctl.sim.hosts.shell import Kind, ProbeRow, Program, is_shell, read_program, split_program

TEXT = """\
LC_ALL=C; export LC_ALL
run() { out=$("$@" 2>&1 </dev/null); rc=$?; }
ask() {
case $1 in
0) files /sys/class/net/*/operstate '/sys/class/net/eth 2/speed' ;;
1) run sudo -n nvidia-smi -q -x ;;
  12) grow 'NVRM|^[^<[0-9 ];;' dmesg ;;
*) rc=127 ;;
esac
}
case $id in
1|12) echo "$n $id" >&4 ;;
*) ask "$id"; tell "$n" "$id" ;;
esac
"""


def test_the_table_and_the_lanes_are_read():
    assert read_program(TEXT) == Program(
        rows={
            "0": ProbeRow(Kind.FILES, ("/sys/class/net/*/operstate", "/sys/class/net/eth 2/speed")),
            "1": ProbeRow(Kind.RUN, ("sudo", "-n", "nvidia-smi", "-q", "-x")),
            "12": ProbeRow(Kind.GROW, ("NVRM|^[^<[0-9 ];;", "dmesg")),
        },
        lanes={"1": "4", "12": "4"},
    )


def test_a_row_whose_quotes_do_not_close_is_none():
    assert read_program("0) run cat 'x ;;\n1) run cat x ;;\n").rows == {"1": ProbeRow(Kind.RUN, ("cat", "x"))}


@pytest.mark.parametrize("command", ["sh", "exec sh", "exec /bin/sh", "sh -s"])
def test_what_asks_for_a_shell(command):
    assert is_shell(command)


@pytest.mark.parametrize("command", ["", "exec", "sh -c 'main; exit'", "shutdown", "dmesg", "sh '"])
def test_what_asks_for_something_else(command):
    assert not is_shell(command)


def test_a_program_ends_with_its_last_line():
    assert split_program(b"a\nmain; exit; b\nmain; exi") is None
    assert split_program(b"a\nmain; exit") is None
    assert split_program(b"a\nmain; exit\n1 0\n2") == (b"a\nmain; exit", b"1 0\n2")


def test_a_program_without_an_end_is_given_up():
    with pytest.raises(ValueError, match="no end"):
        split_program(b"x\n" * 200_000)
