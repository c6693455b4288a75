"""``fabric show`` on a rack where circuits lead through a switch, fibres and a mesh."""

import pytest
from forked_commands import lumctl_on_sim

from lumctl.inventory.load import example


@pytest.fixture(scope="module")
def lumctl(tmp_path_factory):
    """Run lumctl on a simulated rack of a switch and a mesh, whose states are recorded."""
    with lumctl_on_sim(example("switch-and-mesh"), tmp_path_factory.mktemp("state")) as run:
        yield run


def columns(table):
    return {line.split()[0]: line.split()[-1] for line in table.splitlines()[1:]}


def test_what_a_fibre_carries_is_shown_where_the_hint_says(lumctl):
    refused = lumctl("device", "set", "f0", "power=on")
    assert refused.returncode == 2
    assert "f0 is a fibre" in refused.stderr
    assert "fabric show -o wide" in refused.stderr
    shown = lumctl("fabric", "show", "-o", "wide")
    assert shown.returncode == 0, shown.stderr
    assert columns(shown.stdout) == {"train/0-1": "-", "train/1-2": "f1", "train/2-3": "-", "train/3-0": "f0"}


def test_a_switch_may_be_named_and_a_device_that_is_none_is_refused_before_anything_is_shown(lumctl):
    shown = lumctl("fabric", "show", "--device", "ocs")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert set(columns(shown.stdout)) == {"train/0-1", "train/1-2", "train/3-0"}
    wrong = lumctl("fabric", "show", "--device", "f0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no mesh 'f0'" in wrong.stderr
