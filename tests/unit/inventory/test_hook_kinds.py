"""Hooks of a kind that a plug-in knows: read by it, and every error with its place."""

import pytest

from lumctl.inventory.job_entries import COMMAND
from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError

AT = "ranks: h[1-2]-gpu0"


def hook(text):
    return f"{AT}\n    hook: {text}"


def test_what_is_written_is_what_the_plug_in_gets(small, write):
    text = small.replace(AT, hook("{kind: slurm, user: ann, nodes: {h1: node17}, timeout_s: 60, on_sim: true}"))
    found = load_inventory(write(text)).jobs["job"].hook
    assert (found.kind, found.timeout_s, found.on_sim, found.pause) == ("slurm", 60.0, True, ())
    assert (found.settings.user, found.settings.node_of("h1"), found.settings.node_of("h2")) == ("ann", "node17", "h2")
    found = load_inventory(write(small.replace(AT, hook("{kind: torchrun, command: [train.py]}")))).jobs["job"].hook
    assert (found.kind, found.settings.command, found.settings.port) == ("torchrun", ["train.py"], 29400)


def test_without_a_kind_it_is_programs_of_the_operator_s_own(small, write):
    for text in ("{pause: [p], resume: [r]}", "{kind: command, pause: [p], resume: [r]}"):
        found = load_inventory(write(small.replace(AT, hook(text)))).jobs["job"].hook
        assert (found.kind, found.pause, found.settings) == (COMMAND, ("p",), None)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{kind: slrum}", "31:18: kind of job control 'slrum' is not known; did you mean 'slurm'?"),
        ("{kind: lsf}", "31:18: kind of job control 'lsf' is not known; expected one of: command, slurm, torchrun"),
        ("{kind: workers}", "31:18: no hook has kind 'workers'"),
        ("{kind: 7}", "31:18: found 7, expected a text"),
        ("{kind: command, resume: [r]}", "31:11: key 'pause' is missing here"),
        ("{kind: slurm, usr: ann}", "31:25: key 'usr' is not known; did you mean 'user'?"),
        ("{kind: slurm, pause: [p]}", "31:25: key 'pause' is not known"),
        ("{kind: slurm, timeout_s: 0}", "31:36: found 0, expected a number above 0"),
        ("{kind: slurm, job: 7}", "31:30: found 7, expected a text"),
        ("{kind: slurm, nodes: {h9: n9}}", "31:33: 'h9' is not a known host"),
        (
            "{kind: slurm, nodes: {h1: n1, h2: n1}}",
            "31:41: node n1 is already host h1, expected one node for each host",
        ),
        ("{kind: slurm, job: a, id_file: b}", "31:42: found job and id_file, expected one of them"),
        ("{kind: torchrun}", "31:11: key 'command' is missing here"),
        ("{kind: torchrun, comand: [x]}", "31:28: key 'comand' is not known; did you mean 'command'?"),
        ("{kind: torchrun, command: []}", "31:37: found a list of length 0, expected at least 1"),
        ("{kind: torchrun, command: [x], port: 70000}", "31:48: found 70000, expected"),
    ],
)
def test_errors_say_where(small, write, written, says):
    with pytest.raises(InventoryError) as caught:
        load_inventory(write(small.replace(AT, hook(written))))
    (problem,) = [str(each).partition(".yaml:")[2] for each in caught.value.problems]
    assert problem.startswith(says)
