"""What a control of torchrun's jobs says of where a job runs, and what it does with one that runs elsewhere."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from lumctl_torchrun.control import Torchrun, TorchrunHookEntry
from lumctl_torchrun.minder import Minder

from lumctl.errors import RefusedError, UnreachableError
from lumctl.jobs.control import Facts, Rank
from lumctl.jobs.testing import JobContract, JobUnderTest, bench_context, ranks
from lumctl.programs import Ended

HERE, ELSEWHERE = ranks("h1", "h2"), ranks("h1", "h3")
SWAP = Facts("swap-0001", ["h2-gpu0"], ["h3-gpu0"])
THERE = {"h1": {"0": "h1-gpu0"}, "h2": {"1": "h2-gpu0"}}


class Hosts:
    """Hosts with what a minder would find on each: the ranks that run there."""

    def __init__(self, at=THERE) -> None:
        self.at = {host: dict(found) for host, found in at.items()}
        self.silent: set[str] = set()
        self.fails: set[str] = set()
        self.acts: list[tuple[str, str]] = []

    def run(self, argv, **_):
        order = json.loads(argv[-1])
        host = order["name"].partition("@")[2]
        self.acts.append((order["act"], host))
        if host in self.silent:
            return Ended(255, late=False, said="no route to host")
        return Ended(0, late=False, said=json.dumps(getattr(self, order["act"])(host, order)))

    def status(self, host, _order):
        return {"running": host in self.at, "ranks": self.at.get(host, {})}

    def start(self, host, order):
        if host in self.fails:
            return {"running": False, "error": "no such script"}
        node = next(int(word.partition("=")[2]) for word in order["argv"] if word.startswith("--node-rank="))
        self.at[host] = {str(node): order["environment"]["LUMCTL_ACCELERATORS"]}
        return {"running": True}

    def up(self, host, _order):
        return {**self.status(host, {}), "workers": len(self.at.get(host, {}))}

    def term(self, host, _order):
        return {"running": self.at.pop(host, None) is not None}

    def gone(self, host, _order):
        return {"running": host in self.at}


@pytest.fixture
def hosts():
    return Hosts()


def control(hosts, *, on=("at", "{host}"), placement=HERE) -> Torchrun:
    settings = TorchrunHookEntry.model_validate({"kind": "torchrun", "command": ["train.py"], "on": list(on)})
    return Torchrun(replace(bench_context(settings, placement), run=hosts.run))


class TestTorchrun(JobContract):
    @pytest.fixture
    def job(self, hosts):
        dead = Hosts()
        dead.silent = set(THERE)
        made = control(hosts)
        return JobUnderTest(
            control=made,
            settings=made._settings,
            placement=HERE,
            truth=lambda: "running" if hosts.at else "stopped",
            hosts=lambda: list(hosts.at),
            elsewhere=ELSEWHERE,
            facts=SWAP,
            silent=control(dead),
            context=made._context,
        )


def test_it_says_where_the_ranks_run_that_it_started(hosts):
    torchrun = control(hosts)
    torchrun.pause(SWAP, HERE)
    assert torchrun.resume(SWAP, ELSEWHERE)["ranks"] == "h1-gpu0,h3-gpu0"
    again = torchrun.resume(SWAP, ELSEWHERE)
    assert again == {"was": "running", "is": "running", "ranks": "h1-gpu0,h3-gpu0"}


def test_of_one_that_somebody_else_started_it_knows_the_hosts_of_its_ranks(hosts):
    hosts.at = {"h1": {"0": None}, "h2": {"1": None}}
    assert control(hosts).resume(SWAP, HERE)["ranks"] == "h1,h2"


def test_it_claims_no_ranks_while_one_is_not_known(hosts):
    hosts.at = {"h1": {"0": None}, "h2": {}}  # one is restarting
    assert control(hosts).resume(SWAP, HERE) == {"was": "running", "is": "running"}


def test_where_all_hosts_are_this_machine_it_claims_none_that_it_did_not_start(hosts):
    hosts.at = {host: {"0": None, "1": None} for host in ("h1", "h2", "h3")}
    made = control(hosts, on=())
    assert made.resume(SWAP, HERE) == {"was": "running", "is": "running"}


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        (THERE, ELSEWHERE),
        ({"h2": {"0": "h2-gpu0"}}, ranks("h3")),
        ({"h1": {"1": None}, "h2": {"0": None}}, HERE),
        ({"h1": {"0": "h1-gpu0"}, "h2": {"1": "h2-gpu0"}}, (HERE[0], Rank(1, "h2-gpu1", "h2", 1))),
        ({"h1": {"0": "h1-gpu0", "2": "h1-gpu1"}, "h2": {"1": "h2-gpu0"}}, HERE),
    ],
    ids=["its-old-host-too", "its-old-host-only", "other-order", "other-accelerator", "too-many-ranks"],
)
def test_one_that_runs_elsewhere_is_ended_there_and_started_where_it_is_placed(hosts, at, wanted):
    hosts.at = {host: dict(found) for host, found in at.items()}
    told = control(hosts).resume(SWAP, wanted)
    assert hosts.at == {rank.host: {str(rank.rank): rank.accelerator} for rank in wanted}
    assert told["ranks"] == ",".join(rank.accelerator for rank in wanted)
    assert (told["was"], told["is"]) == ("running", "running")
    assert "it did not run where it was placed" in told["said"]


def test_a_failed_host_that_is_silent_does_not_hold_up_a_resume(hosts):
    torchrun = control(hosts)
    torchrun.pause(SWAP, HERE)
    hosts.silent = {"h2"}
    assert "h2 could not be reached" in torchrun.resume(SWAP, ELSEWHERE)["said"]


def test_after_it_was_ended_nothing_says_that_it_is_as_it_was(hosts):
    hosts.fails = {"h3"}
    with pytest.raises(UnreachableError, match=r"was ended on h1, h2; then: .* did not start on h3: no such script"):
        control(hosts).resume(SWAP, ELSEWHERE)
    with pytest.raises(RefusedError, match="did not start on h3"):
        control(hosts).resume(SWAP, ELSEWHERE)  # now nothing of it ran before


def test_a_minder_finds_the_ranks_of_workers_and_the_accelerators_that_lumctl_gave_them(tmp_path):
    """As torchrun starts them: each has its rank in its environment."""
    told = {"TORCHELASTIC_RUN_ID": "minded", "RANK": "5", "LOCAL_RANK": "1"}
    ours = told | {"RANK": "4", "LOCAL_RANK": "0", "LUMCTL_ACCELERATORS": "h2-gpu0,h2-gpu1", "LUMCTL_TORCHRUN": "a@h2"}
    command = [sys.executable, "-IS", "-c", "input()"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | told) as theirs,
        subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | ours) as mine,
    ):
        found = Minder(tmp_path, "a@h2", "minded").status()
        assert found == {"running": True, "ranks": {"4": "h2-gpu0", "5": None}}
        for process in (theirs, mine):
            process.communicate(b"\n")
