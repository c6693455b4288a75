"""Kinds of job control are found by their entry points, and what they raise becomes what the engine knows."""

import json
from dataclasses import replace

import pytest

from lumctl.cli import main
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.inventory.job_run import JobHook
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.problems import InventoryError
from lumctl.jobs import HookFailedError, HookRefusedError, Hooks, require_hooks
from lumctl.jobs.control import Facts, load
from lumctl.store import store_at

KIND = """
from lumctl.inventory.job_entries import JobKindEntry

class Kind:
    api_version = {api}
    entry = JobKindEntry
    raises = None
    def __init__(self, context): self.context = context
    def _do(self, *told):
        if self.raises is not None:
            raise self.raises
        return {{"was": "running", "is": "paused", "told": repr(told)}}
    def status(self): return self._do() and "running"
    def pause(self, facts, placement): return self._do(facts.run, placement[0].accelerator, placement[1].host)
    {resume}
    @classmethod
    def programs(cls, settings): return {{"acts": ["no-such-program-of-acme"]}}
    @classmethod
    def words(cls, settings): return "acme"
"""
RESUMES = "def resume(self, facts, placement): return self._do()"


@pytest.fixture(autouse=True)
def _kinds_anew():
    """A process asks packages once for what they offer; here they offer something else each time."""
    load.cache_clear()
    yield
    load.cache_clear()


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Put a package with a kind of job control on the path."""

    def put(*, api=1, resume=RESUMES, text=None):
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "acme_jobs.py").write_text(text or KIND.format(api=api, resume=resume))
        metadata = tmp_path / "acme-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[lumctl.jobs]\nacme = acme_jobs:Kind\n")

    yield put
    import sys

    sys.modules.pop("acme_jobs", None)


@pytest.fixture
def hooks(offer, tmp_path):
    offer()
    inventory = load_inventory(example("prototype"))
    job = replace(inventory.jobs["finetune"], hook=JobHook(kind="acme"))
    inventory = replace(inventory, jobs={**inventory.jobs, "finetune": job})
    with Context(inventory, "rack", store=lambda _rack: store_at(str(tmp_path / "store"))) as context:
        yield Hooks(context, "finetune", Facts("swap-0007", ["s1-gpu0"], ["s3-gpu0"]))


def test_it_is_told_of_the_run_and_where_the_job_is(hooks):
    assert hooks.pause()["told"] == "('swap-0007', 's0-gpu0', 's1')"
    assert hooks.status() == "running"


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        (RefusedError("it is busy", hint="wait"), HookRefusedError),
        (UnreachableError("it is gone", hint="wait"), HookFailedError),
        (LumctlError("it is gone", hint="wait"), HookFailedError),
    ],
)
def test_what_it_raises_says_what_became_of_the_job(hooks, raised, becomes):
    load("acme").raises = raised
    for act in (hooks.pause, hooks.resume):
        with pytest.raises(becomes) as error:
            act()
        assert (type(error.value), error.value.message, error.value.hint) == (becomes, raised.message, "wait")
    with pytest.raises(HookFailedError, match=f"the state of job finetune is unknown: {raised.message}"):
        hooks.status()


@pytest.mark.parametrize("only_asks", [False, True])
def test_a_program_that_has_ended_is_not_ended_again_after_a_later_error(hooks, monkeypatch, only_asks):
    """Its process id may be another process's by then."""
    ended = []
    monkeypatch.setattr("os.killpg", lambda group, _signal: ended.append(group))
    hooks = Hooks(hooks._context, "finetune", only_asks=only_asks)

    def ask(kind):
        assert kind.context.run(["true"], act="status", timeout_s=30.0).code == 0
        raise UnreachableError("it is gone")

    monkeypatch.setattr(load("acme"), "status", ask)
    with pytest.raises(HookFailedError, match="it is gone"):
        hooks.status()
    assert ended == []


def test_its_programs_must_be_there_before_anything_is_touched(hooks):
    with pytest.raises(
        RefusedError, match="the acme hook of job finetune cannot be run: no-such-program-of-acme is not"
    ):
        require_hooks(hooks._context, ["finetune"])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"api": 2}, "was written for job control API version 2; lumctl has version 1"),
        (
            {"text": KIND.format(api=1, resume=RESUMES).replace("api_version = 1", "")},
            "does not state its job control API version: acme_jobs.Kind has no api_version of its own",
        ),
        ({"resume": ""}, "lacks resume"),
        ({"text": "Kind = 7"}, "is not a class"),
        ({"text": "import no_such_library"}, "does not import: ModuleNotFoundError"),
    ],
)
def test_one_that_is_none_is_told_of_by_name(offer, capsys, settings, says):
    offer(**settings)
    with pytest.raises(UsageError, match=f"kind of job control 'acme' of acme 1.0 {says}"):
        load("acme")
    assert main.run(["plugin", "list", "--check"]) == 0
    assert says in capsys.readouterr().err
    assert main.run(["plugin", "doctor", "acme"]) == 4


@pytest.mark.parametrize(
    ("api", "entry", "says"),
    [
        (0, "JobKindEntry", "was written for job control API version 0; lumctl has version 1"),
        (2, "{'pause': 'a list'}", "was written for job control API version 2; lumctl has version 1"),
        (1, "{'pause': 'a list'}", "does not state what it needs"),
    ],
)
def test_its_version_is_checked_before_its_entry_is_read(offer, tmp_path, api, entry, says):
    """What another version calls its entry may be anything, and may mean something else."""
    offer(text=KIND.format(api=api, resume=RESUMES).replace("entry = JobKindEntry", f"entry = {entry}"))
    path = tmp_path / "rack.yaml"
    hook = "ranks: s[0-2]-gpu0\n    hook: {kind: acme}"
    path.write_text(example("prototype").read_text().replace("ranks: s[0-2]-gpu0", hook))
    with pytest.raises(InventoryError) as error:
        load_inventory(path)
    assert f"kind of job control 'acme' of acme 1.0 {says}" in str(error.value.problems[0])


def test_one_that_is_not_installed_has_a_near_one():
    with pytest.raises(UsageError, match="no kind of job control 'slrum' is installed") as error:
        load("slrum")
    assert str(error.value.hint).startswith("did you mean slurm?")


def test_they_are_listed_and_looked_into(capsys):
    assert main.run(["plugin", "list", "-o", "json", "--check"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["jobs"]}
    assert {name: rows[name]["state"] for name in ("command", "slurm", "torchrun")} == dict.fromkeys(
        ("command", "slurm", "torchrun"), "ok"
    )
    assert main.run(["plugin", "doctor", "torchrun"]) == 0


def test_a_job_shows_how_it_is_controlled(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "rack.yaml"
    hook = "ranks: s[0-2]-gpu0\n    hook: {kind: slurm, job: train, nodes: {s0: n0}}"
    path.write_text(example("prototype").read_text().replace("ranks: s[0-2]-gpu0", hook))
    assert main.run(["-i", str(path), "job", "show", "finetune"]) == 0
    assert "paused and resumed by Slurm (train) (30 s each)" in capsys.readouterr().out
    assert main.run(["-i", str(path), "job", "show", "finetune", "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["hook"]
    assert (shown["kind"], shown["job"], shown["nodes"], shown["pause"]) == ("slurm", "train", {"s0": "n0"}, None)
