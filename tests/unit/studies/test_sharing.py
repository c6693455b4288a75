"""The study of sharing: its event loop beside a second simulation, its partition, and broken models."""

# ruff: noqa: S311 - seeds repeat a case

import json
from dataclasses import replace
from math import inf
from random import Random

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.spares.policies import POLICIES
from lumctl.studies import STUDIES, client_rounds, run_study, sharing
from lumctl.studies.client_pool import OVER_SELECTION, ClientChoice, PoolClient, RoundJob, partitioned
from lumctl.studies.client_rounds import RoundsSetting, run_rounds
from lumctl.studies.engine import StudyWorkers
from lumctl.studies.trace_file import trace_source

JOBS = (RoundJob(5, 1, 2), RoundJob(10, 1, 4), RoundJob(10, 2, 4), RoundJob(15, 3, 6))


# The second simulation looks at every client in every window; nothing of it is in the first one.
PRIORITY = {
    "fifo": lambda _: 0,
    "srsf": lambda job: job["rounds"] * job["size"] - job["bound"],
    "las": lambda job: job["seconds"],
}


def serves(client, job):
    own = client["only"]
    return client["tier"] >= job["tier"] and (own is None or own == job["name"])


def assigned(policy, batch, jobs):
    """Which job gets each client of a batch."""
    found, left = {}, list(batch)
    for job in sorted(jobs, key=PRIORITY[policy]):
        for _ in range(job["size"] - job["bound"] if job["here"] and job["rounds"] else 0):
            able = [client for client in left if serves(client, job)]
            if not able:
                break
            if policy != "fifo":  # common clients before rare ones
                able.sort(key=lambda client: sum(serves(client, each) for each in jobs))
            left.remove(able[0])
            found[able[0]["number"]] = job
    return found


def back(pool, at):
    """Clients that are back wait again, in the order of their times; the jobs' results are counted."""
    due = [client for client in pool if client["since"] is None and client["until"] <= at]
    for client in sorted(due, key=lambda each: (each["until"], each["number"])):
        client["since"], served, client["for"] = client["until"], client["for"], None
        if served is not None and served[0]["try"] == served[1]:
            job = served[0]
            job["results"] += 1
            if job["results"] >= job["needs"] and job["bound"] == job["size"]:
                again(job, client["until"])
                job["rounds"] -= 1
                job["ended"] = None if job["rounds"] else client["until"]


def again(job, at):
    job.update(began=at, bound=0, results=0)
    job["try"] += 1


def give_up(pool, asking, at, binding_limit_s):
    """How many rounds take too long; clients that nobody takes go away."""
    failed = 0
    for job in asking:
        limit = binding_limit_s + (client_rounds.WORKING_LIMIT_S if job["bound"] == job["size"] else 0)
        if job["here"] and job["rounds"] and at - job["began"] > limit:
            again(job, at)
            failed += 1
    for client in pool:
        patience = client_rounds.PATIENCE_S if client["only"] is None else inf
        if client["since"] is not None and at - client["since"] > patience:
            client.update(since=None, until=at + client_rounds.AWAY_S)
    return failed


def bind(pool, asking, clients, policy, at):
    """How many clients are bound."""
    total = 0
    while True:
        wanted = [job for job in asking if job["here"] and job["rounds"] and job["bound"] < job["size"]]
        able = [each for each in pool if each["since"] is not None and any(serves(each, job) for job in wanted)]
        batch = sorted(able, key=lambda each: (each["since"], each["number"]))[: client_rounds.BATCH]
        given = assigned(policy, batch, asking)
        if not given:
            return total
        for client in pool:
            if (job := given.get(client["number"])) is not None:
                own = clients[client["number"]]
                client.update(since=None, until=at + own.work_s + own.other_s, worked=client["worked"] + own.work_s)
                client["for"] = (job, job["try"])
                job["bound"] += 1
                job["seconds"] += own.work_s + own.other_s
                total += 1


def simulate(jobs, clients, policy, rounds, order, owners, binding_limit_s):
    """When each job ends, how long each client works, how many were bound, and how many rounds failed.

    ``order`` are the numbers of the jobs as they ask, ``owners`` the only job of each client, if there is one.
    """
    asking = [
        {"name": each, "tier": jobs[each].tier, "needs": jobs[each].needs, "rounds": jobs[each].rounds or rounds}
        | {"submit": jobs[each].submit_s, "here": False, "try": 0}
        | {"size": int(jobs[each].needs * OVER_SELECTION), "seconds": 0.0, "ended": None}
        | {"began": 0.0, "bound": 0, "results": 0}
        for each in order
    ]
    divided = any(only is not None for only in owners)
    pool = [
        {"number": number, "tier": each.tier, "only": only, "until": 0.0, "since": None, "for": None, "worked": 0.0}
        for number, (each, only) in enumerate(zip(clients, owners, strict=True))
        if each.tier and not (divided and only is None)
    ]
    total, failed, at = 0, 0, 0.0
    limit_s = asking[-1]["submit"] + max(job["rounds"] for job in asking) * client_rounds.LIMIT_S_PER_ROUND
    while any(job["rounds"] for job in asking) and at < limit_s:
        for job in asking:
            if not job["here"] and job["submit"] <= at:
                job.update(here=True, began=job["submit"])
        back(pool, at)
        failed += give_up(pool, asking, at, binding_limit_s)
        total += bind(pool, asking, clients, policy, at)
        at += client_rounds.WINDOW_S
    ended = {job["name"]: job["ended"] for job in asking}
    worked = {client["number"]: client["worked"] for client in pool}
    return [ended[n] for n in range(len(jobs))], [worked.get(n, 0.0) for n in range(len(clients))], total, failed


def pool(count, seed):
    rng = Random(seed)
    return [PoolClient(rng.randrange(4), rng.choice((20.0, 50.0, 130.0)), 12.0) for _ in range(count)]


def claims(*given):
    """The claims by id, and the rows, of a short run with some settings."""
    found = run_study(sharing.STUDY, sharing.STUDY.settings(given, quick=True))
    return {each.claim.id: each for each in found.claims}, found.rows


def changed():
    return {each for each, result in claims()[0].items() if result.has_changed}


@pytest.mark.parametrize("policy", ["fifo", "srsf", "las"])
@pytest.mark.parametrize("choice", [ClientChoice.SHARED, ClientChoice.PARTITION, ClientChoice.SHARE])
@pytest.mark.parametrize(("count", "limit_s"), [(40, 1e6), (40, 100.0), (90, 100.0)])
def test_a_second_simulation_agrees(policy, choice, count, limit_s):
    for seed in range(2):
        clients = pool(count, seed)
        rng = Random(seed)
        order = rng.sample(range(len(JOBS)), len(JOBS))
        owners = partitioned(JOBS, clients, choice, rng) if choice is not ClientChoice.SHARED else [None] * count
        ended, worked, bound, failed = simulate(JOBS, clients, policy, 3, order, owners, limit_s)
        found = run_rounds(JOBS, clients, RoundsSetting(POLICIES[policy], 3, seed, choice, limit_s))
        assert list(found.completed_s) == ended
        assert list(found.worked_s) == worked
        assert (found.bound, found.failed_rounds) == (bound, failed)


@pytest.mark.parametrize("policy", ["fifo", "srsf", "las"])
def test_a_second_simulation_agrees_on_jobs_that_come_later(policy):
    for seed in range(4):
        rng = Random(seed)
        jobs = [replace(rng.choice(JOBS), submit_s=400.0 * rng.random(), rounds=rng.randint(1, 5)) for _ in range(6)]
        clients = pool(50, seed)
        order = sorted(range(len(jobs)), key=lambda each: jobs[each].submit_s)
        ended, worked, bound, failed = simulate(jobs, clients, policy, 0, order, [None] * 50, 100.0)
        found = run_rounds(jobs, clients, RoundsSetting(POLICIES[policy], 0, seed))
        assert (list(found.completed_s), list(found.worked_s)) == (ended, worked)
        assert (found.bound, found.failed_rounds) == (bound, failed)
        took = [(end or found.ended_s) - job.submit_s for end, job in zip(ended, jobs, strict=True)]
        assert found.mean_completion_s == pytest.approx(sum(took) / len(took))


def test_jobs_of_one_tier_get_clients_of_it_and_of_higher_ones():
    clients = [PoolClient(tier, 20.0) for tier in (0, 1, 2, 3)]
    found = run_rounds([RoundJob(2, 2, 0)], clients, RoundsSetting(POLICIES["fifo"], 1, 0))
    assert (found.completed_s, found.worked_s) == ((20.0,), (0.0, 0.0, 20.0, 20.0))


def test_parts_for_tiers_give_their_clients_to_the_oldest_job_of_the_tier():
    jobs = [RoundJob(2, 1, 0, 0.0, 1), RoundJob(2, 1, 0, 1.0, 1), RoundJob(2, 2, 0, 0.0, 1)]
    parts = [RoundJob(0, 1, 2), RoundJob(0, 2, 2)]
    setting = RoundsSetting(POLICIES["fifo"], 0, 0, ClientChoice.QUOTA, 1e6, parts=parts)
    found = run_rounds(jobs, [PoolClient(2, 30.0), PoolClient(2, 40.0), *[PoolClient(1, 50.0)] * 2], setting)
    # The part of tier 2 has the first two clients; the jobs of tier 1 have the others one after the other.
    assert found.completed_s == (50.0, 101.0, 40.0)


TRACE = "submit,duration,accelerators\n0,100,4\n5,1300,0\n9,1300,900\n30,1250,20\n40,7000,8\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return path


def rows_of_trace(path, *given, workers=1):
    study = sharing.STUDY.with_trace(path, None)
    return run_study(study, study.settings(["clients=400", *given], quick=True), workers=StudyWorkers(workers)).rows


def test_the_jobs_of_a_trace_need_its_accelerators_and_a_round_for_each_part_of_its_duration(trace):
    source, inputs = trace_source(trace, None)
    jobs, too_large = sharing.trace_jobs(source, 10, {"clients": 400, "round_s": 600.0, "seed": 1})
    assert [(job.needs, job.submit_s, job.rounds) for job in jobs] == [(4, 0, 1), (20, 30, 2), (8, 40, 12)]
    assert too_large == 1
    parts = sharing.tier_parts(jobs, [PoolClient(1, 1.0)] * 140 + [PoolClient(0, 1.0)])
    assert sum(part.quota for part in parts) == 140
    assert {part.tier: part.quota for part in parts} == {
        tier: sum(job.needs * job.rounds for job in jobs if job.tier == tier) for tier in {job.tier for job in jobs}
    }
    rows = rows_of_trace(trace)
    assert [row["way"] for row in rows] == list(sharing.WAYS)
    assert {(row["trace"], row["jobs"], row["jobs_ended"], row["too_large"]) for row in rows} == {
        (inputs["trace"], 3, 3, 1)
    }
    assert rows_of_trace(trace, workers=2) == rows


def test_if_all_jobs_of_a_trace_came_at_once_its_rows_would_be_others(trace, monkeypatch):
    rows, honest = rows_of_trace(trace), sharing.trace_jobs
    monkeypatch.setattr(
        sharing, "trace_jobs", lambda *given: ([replace(each, submit_s=0.0) for each in honest(*given)[0]], 1)
    )
    assert rows_of_trace(trace) != rows


def test_a_run_of_a_trace_has_no_claims_and_is_drawn(trace, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--quick", "--set", "clients=1000,1400,1800,2400", "--set", "jobs=1", "--out", str(out)]
    assert run(["study", "run", "sharing", "--trace", str(trace), *words]) == ExitCode.DONE
    assert run(["study", "figure", "sharing", "--from", str(out), "--svg", str(tmp_path / "a.svg")]) == ExitCode.DONE
    assert json.loads((out / "study.json").read_text())["claims"] == []
    capsys.readouterr()


def test_a_trace_without_accelerators_is_refused(trace, capsys):
    trace.write_text(TRACE.splitlines()[0] + "\n1,2,0\n")
    assert run(["study", "run", "sharing", "--trace", str(trace)]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("lumctl: no job of the trace has accelerators\n")


@pytest.mark.parametrize("choice", [each for each in ClientChoice if each is not ClientChoice.SHARED])
def test_where_each_client_has_one_job_no_policy_is_asked(choice):
    asked = []

    def policy(question):
        asked.append(question)
        return {}

    assert run_rounds(JOBS, pool(60, 1), RoundsSetting(policy, 3, 1, choice, 1e6)).bound
    assert not asked


@pytest.mark.parametrize("policy", ["fifo", "srsf", "las"])
def test_a_policy_that_compares_no_queues_answers_the_same_without_them(policy):
    answers = [
        run_rounds(JOBS, pool(60, 1), RoundsSetting(POLICIES[policy], 3, 1, queue=queue)) for queue in (False, True)
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("way", sharing.WAYS)
def test_without_failed_rounds_every_round_binds_what_it_selects(way):
    here = sharing.WAYS[way]
    setting = RoundsSetting(POLICIES[here.policy], 3, 7, here.choice, 1e6, here.queue)
    found = run_rounds(JOBS, pool(60, 3), setting)
    assert None not in found.completed_s
    assert found.failed_rounds == 0
    assert found.bound == 3 * (6 + 12 + 12 + 18)
    assert 0 < found.utilisation < found.utilisation_of_used < 1
    assert found == run_rounds(JOBS, pool(60, 3), setting)


def test_one_round_of_one_job_takes_as_long_as_the_last_result_that_it_needs():
    clients = [PoolClient(1, work_s, 10.0) for work_s in (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)]
    found = run_rounds([RoundJob(5, 1, 6)], clients, RoundsSetting(POLICIES["fifo"], 2, 0))
    # The first round ends at 60. The second binds at 60 the clients that are back since 50 and 60, and the first, which
    # went away at 33 for 20 s; at 63 and 72 those that went away at 42 and 51, and the last. Their results: 80 to 142.
    assert found.completed_s == (120.0,)
    assert found.bound == 12
    assert sum(found.worked_s) == 2 * 210.0


def test_a_job_without_enough_clients_never_ends():
    found = run_rounds([RoundJob(5, 1, 5)], [PoolClient(1, 90.0)], RoundsSetting(POLICIES["fifo"], 1, 0))
    assert found.completed_s == (None,)
    assert found.failed_rounds == 9  # each is given up in the window after 100 s: 102, 204 ...
    assert found.mean_completion_s == found.ended_s >= 1000.0


def test_the_partition_gives_rare_clients_to_the_last_job_first():
    clients = [PoolClient(3, 1.0)] * 16 + [PoolClient(0, 1.0), PoolClient(1, 1.0)]
    owners = partitioned(JOBS, clients, ClientChoice.PARTITION, Random(0))
    assert owners[:16] == [3] * 6 + [2] * 4 + [1] * 4 + [0] * 2
    assert owners[16] is None
    assert owners[17] in {0, 1}


def test_the_pool_has_the_published_shares():
    clients = sharing.clients_of(100_000, 37.934, 0.0, 1)
    tiers = [sum(each.tier >= tier for each in clients) / len(clients) for tier in (1, 2, 3)]
    assert tiers == pytest.approx([0.745, 0.493, 0.379], abs=0.005)
    best = sharing.clients_of(10_000, 60.0, 0.0, 1)
    assert sum(each.tier == 3 for each in best) / len(best) == pytest.approx(0.6, abs=0.015)
    assert sum(each.tier == 0 for each in best) / len(best) == pytest.approx(0.255, abs=0.015)


def test_without_every_pool_size_no_claim_is_judged():
    found, rows = claims("clients=1000", "rounds=1")
    assert {each.verdict for each in found.values()} == {None}
    assert [row["way"] for row in rows] == list(sharing.WAYS)


def test_a_run_that_does_not_end_has_no_ratio(monkeypatch):
    monkeypatch.setattr(client_rounds, "LIMIT_S_PER_ROUND", 30.0)
    found, rows = claims("rounds=1")
    assert all(row["jobs_ended"] < len(sharing.JOBS) for row in rows)
    assert {each.verdict for each in found.values()} == {None}


def test_under_the_time_limit_of_the_repository_the_static_partition_of_a_small_pool_never_ends():
    _, rows = claims("clients=1000", "rounds=1", "binding_limit_s=100")
    ended = {row["way"]: row["jobs_ended"] for row in rows}
    assert ended["static"] < len(sharing.JOBS)
    assert ended["scarce"] == len(sharing.JOBS)


def test_if_every_client_served_every_job_the_verdicts_would_be_others(monkeypatch):
    honest = sharing.clients_of
    monkeypatch.setattr(sharing, "clients_of", lambda *given: [replace(each, tier=3) for each in honest(*given)])
    assert changed() == {"sharing.completion"}


def test_the_ratio_of_a_way_to_itself_is_one(monkeypatch):
    monkeypatch.setattr(sharing, "WAYS", dict.fromkeys(sharing.WAYS, sharing.WAYS["fifo"]))
    found, _ = claims("rounds=1")
    for each in found.values():
        assert {value.high for value in each.values.values()} == {1.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("clients=10", "clients is 10, expected 100 to 10000"),
        ("best_percent=80", "best_percent is 80, expected 1 to 74"),
        ("rounds=4,5", "rounds takes one value, but was given 2"),
        ("transfer_s=-1", "transfer_s is -1, expected 0 to 1000"),
        ("client=1000", "study sharing has no parameter 'client'"),
    ],
)
def test_wrong_input_is_one_line(given, said, capsys):
    assert run(["study", "run", "sharing", "--set", given]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0] == f"lumctl: {said}"


def test_the_study_asks_the_policies_of_the_rack():
    assert {way.policy for way in sharing.WAYS.values()} <= POLICIES.keys()
    assert STUDIES["sharing"] is sharing.STUDY
