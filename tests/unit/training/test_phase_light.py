"""The light of a job with phases, as its coordinator changes it: permits, requests of ranks, rest, and strangers."""

import pytest
from fake_cluster import TOKEN, FakeCluster, at_work
from fake_light import GRADIENTS, PIPELINE, permit_for

from lumctl import store
from lumctl.context.phase_log import ENTRY_EVERY_S
from lumctl.devices.errors import GatewayUnreachableError
from lumctl.errors import UnreachableError
from lumctl.store.journal import LIGHT_CHANGES, LIGHT_FAILED
from lumctl.training.coordinator import agent_reports, phase_light, requests
from lumctl.training.coordinator.state import JobEnd, JobStage
from lumctl.training.phase_evidence import PROVED_EVERY_S
from lumctl.training.phase_traffic import Traffic
from lumctl.training.protocol import phase_mac


@pytest.fixture
def cluster(tmp_path):
    """A job with phases of which one step is done."""
    return at_work(FakeCluster(tmp_path, phases=True))


def wants(cluster, rank, phase, number=1, *, generation=None, token=TOKEN, **more):
    """A rank asks for a phase."""
    name = cluster.state.group.members[rank]
    generation = cluster.state.group.generation if generation is None else generation
    message = {"say": "wants", "generation": generation, "number": number, "phase": phase}
    message |= {"mac": phase_mac(token, name, generation, number, phase)} | more
    said = {"tell": "said", "worker": name, "message": message, "at": cluster.at}
    cluster.coordinator.post(agent_reports.receive, cluster.processes[name].host, said, "")
    cluster.coordinator.turn()


@pytest.fixture
def answers(cluster, monkeypatch):
    """The answers of the coordinator to ranks."""
    found = []
    tell = cluster.told

    def told(process, message):
        if message["do"] in {"lit", "dark"}:
            found.append((process.name, message["do"], message["number"]))
        else:
            tell(process, message)

    monkeypatch.setattr(cluster, "told", told)
    return found


def test_ranks_get_the_light_that_they_ask_for_once_the_device_has_confirmed(cluster, answers):
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    assert answers == []
    cluster.light.end_change()
    assert sorted(answers) == [("h0-a#1", "lit", 1), ("h2-a#1", "lit", 1)]
    light = requests.document(cluster.state)["light"]
    assert (light["lit"], light["changes"], light["failed_changes"]) == ({"rail0": GRADIENTS}, 1, 0)
    assert light["refused"] == {}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"token": "another"}, "unproved"),
        ({"mac": None}, "unproved"),
        ({"mac": "00"}, "unproved"),
        ({"generation": 7}, "outdated"),
    ],
)
def test_what_is_not_proved_or_of_another_group_is_refused_and_counted(cluster, answers, how, reason):
    wants(cluster, 0, GRADIENTS, **how)
    wants(cluster, 2, GRADIENTS)
    cluster.settle()
    assert cluster.state.light.refused == {reason: 1}
    assert answers == []
    assert cluster.light.lit == PIPELINE


def test_a_garbled_request_is_reported_and_changes_nothing(cluster, answers):
    wants(cluster, 0, GRADIENTS, number="x" * 3)
    cluster.settle()
    assert answers == []
    assert any("malformed message" in line for line in cluster.said)


def test_an_unknown_phase_is_answered(cluster, answers):
    wants(cluster, 0, "nonsense")
    assert answers == [("h0-a#1", "dark", 1)]
    assert cluster.state.light.refused == {"unknown": 1}


def test_the_light_rests_before_a_pause_is_granted_and_a_permit_is_needed_to_go_on(cluster):
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.settle()
    assert cluster.light.lit == GRADIENTS
    granted = []
    cluster.coordinator.post(requests.receive, {"ask": "pause"}, lambda _answer: granted.append(cluster.light.lit))
    cluster.coordinator.turn()
    cluster.settle()
    assert granted == [PIPELINE]
    resumed = []
    cluster.coordinator.post(requests.receive, {"ask": "resume"}, resumed.append)
    cluster.coordinator.turn()
    cluster.settle()
    assert resumed == [{"state": "recovering"}]  # not "running": a run that waits would hold up those of the permit
    assert cluster.state.phase is JobStage.RUNNING
    cluster.does_a_step()


def test_after_a_stall_each_phase_is_proved_again(cluster):
    cluster.mute |= cluster.processes.keys()
    cluster.at += cluster.run.stall_s + 1
    cluster.coordinator.post(lambda _state: None)
    cluster.coordinator.turn()
    assert cluster.state.light.again


def test_a_failed_change_is_told_to_those_who_wait(cluster, answers):
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    permit, rail, _, number = cluster.light.changes.pop()
    phase_light.failed(cluster.state, permit, rail, number, "rail0 does not answer")
    assert sorted(answers) == [("h0-a#1", "dark", 1), ("h2-a#1", "dark", 1)]
    assert cluster.said[-1] == "rail0: the light did not change: rail0 does not answer"
    assert cluster.state.light.again


def test_a_job_whose_phases_cannot_be_lit_at_its_start_ends_with_the_reason(tmp_path):
    cluster = FakeCluster(tmp_path, phases=True)
    refusal = RuntimeError("no light")

    def refused(again):
        del again
        cluster.later("healer", lambda: phase_light.not_permitted(cluster.state, refusal_of(refusal)))

    object.__setattr__(cluster.state.light.effects, "obtain", refused)
    for host in cluster.state.hosts():
        cluster.open(host)
    cluster.settle()
    assert cluster.state.end is JobEnd.NO_LIGHT
    assert "its light cannot change between phases: no light" in requests.document(cluster.state)["why"]


def refusal_of(error):
    from lumctl.errors import RefusedError

    return RefusedError(str(error))


@pytest.mark.parametrize("error", [store.LeaseHeldError, GatewayUnreachableError, UnreachableError])
def test_what_passes_is_waited_for_and_ends_no_job(tmp_path, error):
    cluster = FakeCluster(tmp_path, phases=True)
    obtain, refusals = cluster.light.effects().obtain, [error("a swap is under way")] * 10

    def refused(again):
        if refusals:
            cluster.later("healer", lambda: phase_light.not_permitted(cluster.state, refusals.pop()))
        else:
            obtain(again)

    object.__setattr__(cluster.state.light.effects, "obtain", refused)
    for host in cluster.state.hosts():
        cluster.open(host)
    cluster.settle()
    assert "a swap is under way; it is tried again" in cluster.said[-1]
    assert "a swap is under way" in requests.document(cluster.state)["why"]
    for _ in range(10):
        cluster.wait(phase_light.RETRY_S)
    assert cluster.state.phase is JobStage.RUNNING
    assert sum("a swap is under way" in line for line in cluster.said) == 1


def test_a_pause_waits_until_the_light_is_at_rest(cluster):
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.settle()
    rest, failures = cluster.state.light.effects.rest, [GatewayUnreachableError("rail0: nobody answers")] * 2

    def failing():
        if failures:
            cluster.later("healer", lambda: phase_light.rested(cluster.state, failures.pop()))
        else:
            rest()

    object.__setattr__(cluster.state.light.effects, "rest", failing)
    granted = []
    cluster.coordinator.post(requests.receive, {"ask": "pause"}, lambda _answer: granted.append(cluster.light.lit))
    cluster.coordinator.turn()
    cluster.settle()
    assert granted == []
    for _ in range(3):
        cluster.wait(phase_light.RETRY_S)
    assert granted == [PIPELINE]


def test_a_permit_that_was_sought_before_the_ranks_left_their_group_is_not_used(cluster):
    old = cluster.state.light.permit
    cluster.kill("h1-a#1")
    while not cluster.state.light.is_sought:
        assert cluster.turn()
    cluster.state.light.hold()
    phase_light.permitted(cluster.state, old)
    assert cluster.state.light.permit is None


def test_the_first_permit_of_a_lumctl_is_a_new_one(cluster):
    assert cluster.light.proved == 1
    cluster.restart_lumctl()
    cluster.come_to_rest()
    assert cluster.light.proved == 2


def test_a_new_lumctl_lets_the_light_rest_and_forms_a_new_group(cluster):
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.settle()
    generation = cluster.state.group.generation
    cluster.restart_lumctl()
    cluster.come_to_rest()
    assert cluster.light.lit == PIPELINE
    assert cluster.state.phase is JobStage.RUNNING
    assert cluster.state.group.generation > generation
    cluster.does_a_step()


def uses(cluster, *ranks, phase=GRADIENTS):
    """Ranks ask for a phase and get it."""
    for rank in ranks:
        wants(cluster, rank, phase)
    cluster.settle()


def proofs(cluster):
    return requests.document(cluster.state)["light"]["proofs"]


def test_light_that_is_used_for_long_is_proved_beside_the_traffic(cluster, answers):
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.light.end_change()
    assert len(answers) == 2
    assert cluster.light.proofs == []
    cluster.wait(PROVED_EVERY_S)
    assert [phase for _, _, phase in cluster.light.proofs] == [GRADIENTS]
    wants(cluster, 0, PIPELINE, 2)
    wants(cluster, 2, PIPELINE, 2)
    wants(cluster, 1, PIPELINE)
    assert cluster.light.changes == []
    cluster.light.end_proof()
    assert [phase for *_, phase, _ in cluster.light.changes] == [PIPELINE]
    assert proofs(cluster)["by_proof"] == 1


def is_wrong(cluster):
    """A phase that ranks use is shown to have wrong light."""
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.light.end_change()
    cluster.wait(PROVED_EVERY_S)
    cluster.light.held = False
    cluster.light.end_proof(wrong="t2 hears t9 instead of t0")
    cluster.come_to_rest()
    assert any("the light of phase gradients is wrong: t2 hears t9 instead of t0" in line for line in cluster.said)
    assert proofs(cluster)["failed"] == 1


def test_wrong_light_takes_training_back_to_the_last_proven_step(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, phases=True, layout="unique"))
    cluster.does_a_step()
    cluster.state.light.evidence.proven = 1
    is_wrong(cluster)
    assert cluster.light.proved == 2
    assert cluster.state.phase is JobStage.RUNNING
    assert cluster.state.group.resume_point.done == 1
    assert proofs(cluster)["proven_steps"] == 1
    cluster.does_a_step()


def test_wrong_light_ends_a_job_that_has_no_state_of_a_proven_step(cluster):
    assert cluster.state.light.evidence.proven == 0
    is_wrong(cluster)
    assert cluster.state.end is JobEnd.STATE_LOST


def test_wrong_light_costs_no_step_that_is_proven(cluster):
    done = cluster.state.workers[cluster.state.group.members[0]].done
    cluster.state.light.evidence.proven = done
    is_wrong(cluster)
    assert cluster.state.group.resume_point.done == done
    cluster.does_a_step()


def test_a_proof_that_is_not_possible_is_said_once_and_tried_again_ever_later(cluster):
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.light.end_change()
    cluster.wait(PROVED_EVERY_S)
    for times in range(3):
        cluster.light.end_proof(unknown="no answer from h1")
        cluster.wait(0.9 * PROVED_EVERY_S * 2**times)
        assert cluster.light.proofs == []
        cluster.wait(0.1 * PROVED_EVERY_S * 2**times)
    assert sum("no answer from h1" in line for line in cluster.said) == 1
    assert cluster.state.phase is JobStage.RUNNING
    assert proofs(cluster)["by_proof"] == 0


def test_no_later_state_or_checkpoint_is_used_if_a_rank_dies_before_the_next_group_is_formed(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, phases=True, layout="unique"))
    cluster.does_a_step()
    cluster.state.light.evidence.proven = 1
    cluster.state.workers["h0-a#1"].saved[0, 2] = "later.pt"
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.light.end_change()
    cluster.wait(PROVED_EVERY_S)
    cluster.light.held = False
    cluster.light.end_proof(wrong="t2 hears t9 instead of t0")
    assert cluster.state.workers["h0-a#1"].saved == {}
    while not cluster.state.group.join_sent:
        assert cluster.turn()
    assert cluster.state.most_steps == 1
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    assert cluster.state.group.resume_point.done == 1
    assert cluster.state.most_steps is None


def test_a_group_that_begins_after_steps_without_evidence_leaves_them_provisional(cluster):
    cluster.does_a_step()
    assert proofs(cluster)["proven_steps"] == 0
    cluster.state.light.again = False
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    assert cluster.state.group.resume_point.done == 2
    found = proofs(cluster)
    assert (found["proven_steps"], found["provisional_steps"]) == (0, 1)


def test_phases_that_are_proved_again_prove_the_steps_before(cluster):
    cluster.does_a_step()
    cluster.kill("h1-a#1")
    while not cluster.state.group.members or cluster.state.phase is JobStage.RUNNING:
        assert cluster.turn()
    cluster.state.light.again = True
    cluster.come_to_rest()
    assert proofs(cluster)["proven_steps"] == cluster.state.group.resume_point.done


def test_a_proof_of_a_former_permit_changes_nothing(cluster):
    cluster.light.held = True
    wants(cluster, 0, GRADIENTS)
    wants(cluster, 2, GRADIENTS)
    cluster.light.end_change()
    cluster.wait(PROVED_EVERY_S)
    (_, rail, phase), generation = cluster.light.proofs.pop(), cluster.state.group.generation
    cluster.light.proofs.append((permit_for(4), rail, phase))
    cluster.light.end_proof(wrong="t2 hears t9 instead of t0")
    cluster.settle()
    assert cluster.state.group.generation == generation


def test_what_changed_and_was_shown_is_written_into_the_journal_and_each_failure_at_once(cluster):
    cluster.light.entries.clear()
    uses(cluster, 0, 2)
    cluster.wait(ENTRY_EVERY_S)
    (kind, entry), *_ = cluster.light.entries
    assert (kind, entry["changes"], entry["plan"]) == (LIGHT_CHANGES, 1, "plan-1")
    assert set(entry["shown"]) == {PIPELINE, GRADIENTS}
    cluster.light.held = True
    wants(cluster, 0, PIPELINE, 2)
    wants(cluster, 1, PIPELINE, 2)
    wants(cluster, 2, PIPELINE, 2)
    permit, rail, _, number = cluster.light.changes.pop()
    phase_light.failed(cluster.state, permit, rail, number, "rail0 refuses")
    assert cluster.light.entries[-1] == (
        LIGHT_FAILED,
        {"plan": "plan-1", "devices": ["rail0"], "phase": PIPELINE, "why": "rail0 refuses"},
    )


def test_a_job_that_changes_nothing_writes_no_entries(cluster):
    cluster.wait(ENTRY_EVERY_S)
    before = len(cluster.light.entries)
    for _ in range(5):
        cluster.wait(ENTRY_EVERY_S)
    assert len(cluster.light.entries) == before


@pytest.mark.parametrize(
    ("most_steps", "end", "words"),
    [
        (None, JobEnd.DONE, "all 1 steps are done, but the light of the steps after 0 was not shown to be right"),
        (0, JobEnd.NO_LIGHT, "all 1 steps are done, but the light of the steps after 0 was wrong"),
    ],
)
def test_a_job_whose_last_steps_are_not_proven_says_so_at_its_end(cluster, most_steps, end, words):
    light = cluster.state.light
    for rank in range(4):
        light.evidence.stepped(rank, 1, [Traffic(-1, None)], cluster.at)
    light.most_steps = most_steps
    for process in [cluster.processes[name] for name in cluster.group()]:
        cluster.lose_line(process.host)
        process.last["ended"], process.code = {"say": "ended", "done": 1}, 0
        del cluster.processes[process.name]
        cluster.dead.append(process)
    cluster.settle()
    assert (cluster.state.phase, cluster.state.end, cluster.state.why_ended) == (JobStage.ENDED, end, words)


def test_nothing_is_shown_any_more_when_the_ranks_leave_their_group(cluster):
    cluster.wait(ENTRY_EVERY_S)
    assert cluster.light.entries[-1][1]["shown"]
    cluster.kill("h1-a#1")
    while cluster.state.light.control is not None:
        assert cluster.turn()
    kind, entry = cluster.light.entries[-1]
    assert (kind, entry["shown"]) == (LIGHT_CHANGES, {})
