"""Extended regular expressions, held against the real grep."""

import subprocess

import pytest

from lumctl.sim.hosts.host import BadPatternError, matching

TEXT = """\
[    7.790611] NVRM: loading NVIDIA UNIX x86_64 Kernel Module
[   12.5] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.
[   13.0] mlx5_core 0000:1b:00.0 eth2: Link down
<4> \\ a [x] b
sudo: a password is required

] last | line & more ~
"""
PATTERNS = [
    "NVRM: .*(Xid|fallen off the bus)|SXid|^[^<[0-9 ]",
    "mlx5_core [[:xdigit:]:.]+ [[:alnum:]]+: Link (down|up)",
    "[[:space:]]x",
    "[]x]",
    "[^]a-z []",
    r"\[x\]",
    r"[\]",
    "[a&&b~|]",
    "[[:punct:]]$",
    "^$",
    "[0-9]{3}",
    "",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_lines_as_grep(require_program, pattern):
    real = subprocess.run(
        [require_program("grep"), "-E", pattern], input=TEXT, capture_output=True, text=True, check=False
    )
    assert matching(pattern, TEXT) == real.stdout


@pytest.mark.parametrize("pattern", ["(", "[[:nonsense:]]", "a**{"])
def test_what_is_no_pattern(pattern):
    with pytest.raises(BadPatternError):
        matching(pattern, TEXT)


def test_nothing_has_no_lines():
    assert matching("", "") == ""
