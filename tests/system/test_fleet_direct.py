"""Answers that come straight from the tools, through OpenSSH's sshd and this system's shell."""

import os
import random

import paramiko
import pytest

from lumctl.devices.endpoints import Endpoints
from lumctl.fleet import conversation
from lumctl.fleet.conversation import DirectCommand
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.load import example, load_inventory

pytestmark = pytest.mark.usefixtures("ssh_client")

SIZE = 40_000


def text_of(answer, _at, _gathered):
    return (ProbeStatus.OK if answer.status == 0 else ProbeStatus.FAILED), answer.text


@pytest.fixture
def folder(tmp_path):
    """What the host's tools read."""
    for name in ("gpu", "nvlink", "optics"):
        (tmp_path / name).write_text(f"{name} as ever\n")
    return tmp_path


@pytest.fixture
def straight(monkeypatch):
    """What came straight from tools: the numbers of the probes."""
    found = []

    class Watched(DirectCommand):
        def feed(self, data, *, last):
            for frame in super().feed(data, last=last):
                found.append(frame.probe)
                yield frame

    monkeypatch.setattr(conversation, "DirectCommand", Watched)
    return found


@pytest.fixture
def fleet(serve_ssh, folder, straight):  # noqa: ARG001
    paramiko.ECDSAKey.generate().write_private_key_file(str(folder / "key"))
    endpoint = serve_ssh(folder / "key", 'exec sh -c "$SSH_ORIGINAL_COMMAND"')
    probes = tuple(
        Probe(name, lane, f"run cat {folder / name}", 20.0, 0.0, text_of, lambda *_: None)
        for name, lane in (("gpu", "nvidia"), ("nvlink", "nvidia"), ("optics", "optics"))
    )
    inventory = load_inventory(example("prototype"))
    with Fleet(inventory, Endpoints("rack", {"s0": endpoint}, {}), probes_of=lambda _: probes) as fleet:
        yield fleet


class Host:
    """The host, whose readings have to be what its tools print at that moment."""

    def __init__(self, fleet, folder, straight):
        self.fleet, self.folder, self.straight = fleet, folder, straight
        self.random = random.Random(5)  # noqa: S311

    def change(self, *names):
        for name in names:
            # The second half is the same each time, and so are the ends of the lines.
            text = self.random.randbytes(SIZE // 4).hex() + "\n" + name * (SIZE // 2 // len(name))
            (self.folder / name).write_text(f"{text}\n\n")

    def read(self, *names):
        """Read everything, and see that it is right; which of these came straight from their tools."""
        before = len(self.straight)
        host = self.fleet.collect().hosts["s0"]
        assert host.error is None
        for name in ("gpu", "nvlink", "optics"):
            outcome = host.probes[name]
            assert (outcome.status, outcome.detail) == (
                ProbeStatus.OK,
                (self.folder / name).read_text().rstrip("\n"),
            )
        return [number in self.straight[before:] for number in names]


def test_what_changes_comes_straight_from_its_tool_and_everything_is_right(fleet, folder, straight):
    host = Host(fleet, folder, straight)
    gpu, nvlink, optics = range(3)

    def read_changed(*names):
        host.change(*names)
        return host.read(gpu, nvlink, optics)

    for _ in range(3):
        assert read_changed("gpu") == [False, False, False]
    for _ in range(5):
        assert read_changed("gpu") == [True, False, False]
    # It stops changing, which is found out by the second answer alike.
    assert host.read(gpu) == [True]
    for _ in range(3):
        assert host.read(gpu) == [False]
    # And begins again, and so does the rest of its lane, and another lane, which has to leave it the way.
    for _ in range(3):
        assert read_changed("gpu", "nvlink", "optics") == [False, False, False]
    for _ in range(4):
        assert read_changed("gpu", "nvlink", "optics") == [True, True, False]
    for name in ("gpu", "nvlink"):
        (folder / name).write_text("")
    assert host.read(gpu, nvlink, optics) == [True, True, False]
    assert len({*straight}) == 2


def test_large_answers_straight_from_tools(fleet, folder, straight):
    """More than the connection takes unread, and more than once in a row."""
    host = Host(fleet, folder, straight)
    for turn in range(7):
        for name in ("gpu", "nvlink"):
            (folder / name).write_bytes(os.urandom(1_500_000).hex().encode() + b"\n")
        assert host.read(0, 1, 2) == [turn >= 3, turn >= 3, False]
