"""The library in a training script, with real processes: what dies is replaced, and not a bit of the result changes."""

import json
import signal
import socket
import time
from contextlib import closing
from itertools import count

import pytest
from job_desk import Desk, Nursery

from lumctl.training.torch.checkpoints import STOPS, Checkpoints, read

STEPS = 8
LOST_AT = 4
SOON_S = 2.0


@pytest.fixture(scope="module")
def nursery():
    with closing(Nursery()) as nursery:
        yield nursery


@pytest.fixture
def desk(nursery):
    with closing(Desk(nursery)) as desk:
        yield desk


@pytest.fixture(scope="module")
def unfailed(nursery):
    """What ranks have in the end when nothing fails, by layout."""
    outcomes = {}
    for layout in ("replicated", "unique"):
        with closing(Desk(nursery)) as desk:
            crew = ready(desk, "a", "b", "c", layout=layout)
            desk.joined(crew, 1)
            outcomes[layout] = [worker.outcome() for worker in crew]
    return outcomes


def ready(desk, *names, **options):
    workers = desk.start(*names, steps=STEPS, **options)
    desk.until(*workers, say="ready")
    return workers


def fault(what, at="before", step=LOST_AT, ranks=(1,), **more):
    return {"what": what, "at": at, "step": step, "ranks": list(ranks), **more}


def begun(desk, **options):
    """Three ranks, and a fourth worker that waits."""
    crew = desk.start("a", "b", "c", steps=STEPS, **options)
    (spare,) = desk.start("spare", steps=STEPS, **{**options, "fault": None})
    desk.until(*crew, spare, say="ready")
    desk.joined(crew, 1)
    return crew, spare


def recover(desk, crew, generation=2):
    """As a coordinator does where all hold the same state: the most that is done is right."""
    held = {worker.name: worker.all("held") for worker in crew}
    done = {name: said[-1]["done"] if said else 0 for name, said in held.items()}
    best = max(crew, key=lambda worker: done[worker.name])
    for rank, worker in enumerate(crew):
        if done[worker.name] != done[best.name]:
            desk.load(worker, best, done[best.name], rank, len(crew))
    desk.joined(crew, generation, done[best.name])
    return done[best.name]


def equal_in_the_end(crew, unfailed):
    outcomes = [worker.outcome() for worker in crew]
    assert [each["trained"] for each in outcomes] == [each["trained"] for each in unfailed]
    assert {each["scheduled"] for each in outcomes} == {STEPS}
    return outcomes


def test_a_rank_that_is_killed_within_a_step_is_replaced_and_the_step_done_again(desk, unfailed):
    (a, b, c), spare = begun(desk, fault=fault("kill"))
    assert b.ended() == -signal.SIGKILL
    broken = desk.until(a, c, say="broken")
    assert {(each["generation"], each["done"]) for each in broken} == {(1, LOST_AT)}
    desk.hold([a, c], 2)
    assert recover(desk, [a, spare, c]) == LOST_AT
    outcomes = equal_in_the_end([a, spare, c], unfailed["replicated"])
    assert outcomes[0]["seen"] == [*range(LOST_AT + 1), *range(LOST_AT, STEPS)]
    # Running means and the count of batches, which the interrupted pass has changed:
    assert [outcomes[i]["buffers"] for i in (0, 2)] == [unfailed["replicated"][i]["buffers"] for i in (0, 2)]
    assert [each["done"] for each in a.all("stepped")] == list(range(1, STEPS + 1))
    assert all("loss" in each for each in a.all("stepped"))


def test_a_rank_that_hangs_does_not_keep_the_others_from_parking(desk, unfailed):
    (a, b, c), spare = begun(desk, fault=fault("stop"))
    desk.until(a, c, say="stepped", done=LOST_AT)
    desk.until(a, c, say="beat", done=LOST_AT)
    asked = time.time()
    held = desk.hold([a, c], 2)
    assert max(each["heard_at"] for each in held) - asked < SOON_S
    assert not a.all("broken")
    b.kill()
    recover(desk, [a, spare, c])
    equal_in_the_end([a, spare, c], unfailed["replicated"])


def test_the_most_that_is_done_is_right_where_only_some_did_the_step(desk, unfailed):
    lost = [fault("wait", at="averaged", ranks=[1], peer=2), fault("kill", at="averaged", ranks=[2])]
    workers = [
        *desk.start("a", "spare", steps=STEPS),
        *(desk.start(name, steps=STEPS, fault=each)[0] for name, each in zip("bc", lost, strict=True)),
    ]
    a, spare, b, c = workers
    desk.until(*workers, say="ready")
    desk.joined([a, b, c], 1)
    desk.until(b, say="broken")
    desk.until(a, say="stepped", done=LOST_AT + 1)
    held = {worker.name: said["done"] for worker, said in zip((a, b), desk.hold([a, b], 2), strict=True)}
    assert held == {"a": LOST_AT + 1, "b": LOST_AT}
    recover(desk, [a, b, spare])
    equal_in_the_end([a, b, spare], unfailed["replicated"])


def test_a_step_that_breaks_after_the_optimiser_counts(desk, unfailed):
    (a, b, c), spare = begun(desk, fault=fault("kill", at="after"))
    b.ended()
    desk.until(a, c, say="broken")
    assert {each["done"] for each in desk.hold([a, c], 2)} == {LOST_AT + 1}
    recover(desk, [a, spare, c])
    outcomes = equal_in_the_end([a, spare, c], unfailed["replicated"])
    assert outcomes[0]["seen"].count(LOST_AT) == 1


def test_two_failures_one_after_the_other_and_a_spare_that_dies(desk, unfailed):
    (a, b, c), spare = begun(desk, fault=fault("kill"))
    (again,) = ready(desk, "again", fault=fault("kill", at="averaged", step=LOST_AT + 2))
    (last,) = ready(desk, "last")
    b.ended()
    desk.hold([a, c], 2)
    spare.kill()
    desk.until(a, c, say="held")
    desk.hold([a, c], 3)
    recover(desk, [a, again, c], 3)
    again.ended()
    desk.until(a, c, say="broken", generation=3)
    desk.hold([a, c], 4)
    recover(desk, [a, last, c], 4)
    equal_in_the_end([a, last, c], unfailed["replicated"])


def test_a_hold_wakes_who_waits_for_a_group_that_nobody_forms(desk, unfailed):
    a, b, c = crew = ready(desk, "a", "b", "c")
    (hung,) = ready(desk, "hung", fault={"what": "silent", "rank": 2})
    generations = count(1)
    for missing in (None, hung):  # one that never comes; one that tells where it is, and then hangs
        ranks = [a, b, missing or c]
        generation = next(generations)
        store = a.last("ready")["store"]
        for rank, worker in enumerate(ranks):
            if worker is not c:
                worker.tell("join", generation=generation, rank=rank, world=3, store=store, done=0, placement=[])
        for each in (a, b):
            desk.until(each, say="beat", times=len(each.all("beat")) + 4)  # meanwhile they are at it, and wait
        asked = time.time()
        held = desk.hold([a, b, c], next(generations))
        assert max(each["heard_at"] for each in held) - asked < SOON_S
        assert not a.all("joined")
    desk.joined(crew, next(generations))
    equal_in_the_end(crew, unfailed["replicated"])


def test_a_state_that_no_other_rank_has_comes_back_from_who_kept_a_copy(desk, unfailed):
    (a, b, c), spare = begun(desk, layout="unique", fault=fault("kill"))
    b.ended()
    desk.until(a, c, say="broken")
    held = dict(zip("ac", desk.hold([a, c], 2), strict=True))
    # The bytes of the last step's state were on their way: survivors go back by what they have kept themselves.
    assert held["c"]["keeps"]["of"] == {"1": [LOST_AT - 3, LOST_AT - 2, LOST_AT - 1]}
    assert held["a"]["keeps"]["own"] == [LOST_AT - 2, LOST_AT - 1, LOST_AT]
    done = LOST_AT - 1
    crew = [a, spare, c]
    for rank, (worker, source) in enumerate(zip(crew, (None, c, None), strict=True)):
        desk.load(worker, source, done, rank, 3)
    desk.joined(crew, 2, done)
    outcomes = equal_in_the_end(crew, unfailed["unique"])
    assert [each["buffers"] for each in outcomes] == [each["buffers"] for each in unfailed["unique"]]


def test_training_goes_on_without_an_agent_and_tells_the_next_one_who_it_is(desk):
    crew = desk.start("a", "b", steps=None, pace_s=0.01)
    a, b = crew
    desk.until(*crew, say="ready")
    desk.joined(crew, 1)
    desk.until(a, b, say="stepped", done=3)
    desk.hang_up()
    desk.listen()
    desk.until(a, b, say="hello", times=2)
    desk.until(a, b, say="joined", times=2)
    for worker in crew:
        again = [each["say"] for each in worker.said if each["say"] in {"hello", "ready", "joined"}]
        assert again == ["hello", "ready", "joined"] * 2
        assert worker.last("hello")["pid"] == worker.pid
    so_far = max(len(worker.all("stepped")) for worker in crew)
    desk.until(a, b, say="stepped", times=so_far + 3)
    assert not a.all("broken")


def test_stopped_or_terminated_it_ends_with_a_checkpoint_and_goes_on_from_there(desk, unfailed):
    crew = ready(desk, "a", "b", "c", pace_s=0.02, checkpoint=str(desk.folder / "kept"), every=3)
    desk.joined(crew, 1)
    desk.until(crew[0], say="saved", done=3)
    done = max(each["done"] for each in desk.hold(crew, 2))
    for worker in crew:
        worker.tell("stop", done=done, also=[])
    desk.until(*crew, say="ended")
    assert [worker.ended() for worker in crew] == [0, 0, 0]
    saved = max(worker.last("saved")["done"] for worker in crew if worker.all("saved"))
    assert saved == done
    again = ready(desk, "d", "e", "f", checkpoint=str(desk.folder / "kept"))
    assert {worker.last("ready")["done"] for worker in again} == {saved}
    desk.joined(again, 1, saved)
    equal_in_the_end(again, unfailed["replicated"])


def stopped(desk, crew, generation):
    """As `job stop` does it: all hold, write the newest step that all have, and end."""
    held = desk.hold(crew, generation)
    whole = set.intersection(*({*each["keeps"]["own"], each["done"]} for each in held))
    done = max(whole) if crew[0].last("ready")["layout"] == "unique" else max(each["done"] for each in held)
    for worker in crew:
        worker.tell("stop", done=done, also=[])
    desk.until(*crew, say="ended")
    assert [worker.ended() for worker in crew] == [0] * len(crew)
    return done


def left(desk):
    return {str(path.relative_to(desk.folder)) for path in desk.folder.rglob("step-*.pt")}


def on_hosts(desk, names, hosts, **options):
    crew = [
        desk.start(name, host=host, **{"steps": STEPS, **options})[0] for name, host in zip(names, hosts, strict=True)
    ]
    desk.until(*crew, say="ready")
    return crew


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_where_the_script_names_no_folder_the_next_run_goes_on_where_the_job_was_stopped(desk, unfailed, layout):
    crew = on_hosts(desk, "abc", "xyz", layout=layout, pace_s=0.02)
    desk.joined(crew, 1)
    desk.until(crew[0], say="stepped", done=3)
    done = stopped(desk, crew, 2)
    assert all(worker.last("saved")["done"] == done for worker in crew if worker.all("saved"))
    hosts = "xyz"
    if layout == "replicated":  # one rank finds it where it is; the others' hosts have never seen it, or have another
        hosts = "uyv"
        _, tree = read(Checkpoints(desk.folder / "y" / STOPS).path(done, None))
        for each in tree["model"].values():
            each.zero_()
        Checkpoints(desk.folder / "v" / STOPS).save(tree, done, None)
        Checkpoints(desk.folder / "u" / STOPS).save(tree, done - 1, None)
    again = on_hosts(desk, "def", hosts, layout=layout, spare_seed=5)
    assert {each["done"] for each in desk.joined(again, 1)} == {done}
    assert all(each["seen"] == list(range(done, STEPS)) for each in equal_in_the_end(again, unfailed[layout]))
    # All steps are done: what is begun on these hosts now begins again.
    assert not {name for name in left(desk) if name[0] in hosts}
    again = on_hosts(desk, "ghi", hosts, layout=layout)
    assert {each["done"] for each in desk.joined(again, 1)} == {0}
    equal_in_the_end(again, unfailed[layout])


def test_where_parts_are_not_all_there_no_job_begins_anew_and_they_stay(desk):
    crew = on_hosts(desk, "abc", "xyz", layout="unique", pace_s=0.02)
    desk.joined(crew, 1)
    desk.until(crew[0], say="stepped", done=3)
    done = stopped(desk, crew, 2)
    before = left(desk)
    again = on_hosts(desk, "def", "xyv", layout="unique")
    desk.join(again, 1)
    for said in desk.until(*again, say="failed"):
        assert f"of all ranks (rank 0: {done}; rank 1: {done}; rank 2: none)" in said["error"]
        assert "on all hosts to start from the beginning" in said["error"]
    assert [each.ended() for each in again] == [1, 1, 1]
    assert left(desk) == before


def test_what_a_stop_has_left_and_does_not_fit_is_refused_with_what_to_do(desk):
    crew = on_hosts(desk, "ab", "xy", pace_s=0.02)
    desk.joined(crew, 1)
    desk.until(crew[0], say="stepped", done=3)
    stopped(desk, crew, 2)
    before = left(desk)
    again = on_hosts(desk, "cd", "xy", width=60)
    desk.join(again, 1)
    # Whoever is first; the other may only find it gone.
    (said, first), *_ = desk.until_any(again, say="failed")
    assert "does not fit this script" in said["error"]
    assert "size mismatch" in said["error"]
    assert (
        f"remove the checkpoints in {desk.folder / 'x' / 'checkpoints'} on all hosts to start from the beginning"
        in said["error"]
    )
    assert first.ended() == 1
    assert left(desk) == before


def test_a_script_that_wants_no_checkpoint_leaves_none(desk):
    crew = on_hosts(desk, "ab", "xy", checkpoint=False, pace_s=0.02)
    desk.joined(crew, 1)
    desk.until(crew[0], say="stepped", done=2)
    stopped(desk, crew, 2)
    assert not left(desk)


def test_a_script_that_fails_by_itself_says_so_and_ends(desk):
    a, b = ready(desk, "a", "b", fault=fault("error", ranks=[1]))
    desk.joined([a, b], 1)
    assert "bad sample" in desk.until(b, say="failed")[0]["error"]
    assert b.ended() == 1
    desk.until(a, say="broken")
    a.kill(signal.SIGTERM)
    desk.until(a, say="ended", done=LOST_AT)
    assert a.ended() == 0


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_under_torchrun_the_same_script_trains_and_goes_on_from_its_checkpoint(nursery, tmp_path, unfailed, layout):
    options = {"layout": layout, "checkpoint": str(tmp_path / "kept"), "every": 3}
    for steps in (5, STEPS):  # the second time it is started again
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        pids = []
        for rank in range(3):
            environment = {"RANK": f"{rank}", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
            files = {"log": str(tmp_path / f"{rank}.log"), "result": str(tmp_path / f"{rank}.json")}
            pids.append(nursery.ask({"environment": environment, "options": {**options, **files, "steps": steps}}))
        assert [nursery.ask({"wait": pid}) for pid in pids] == [0, 0, 0], (tmp_path / "0.log").read_text()
    outcomes = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    assert [each["seen"] for each in outcomes] == [[5, 6, 7]] * 3
    assert [each["trained"] for each in outcomes] == [each["trained"] for each in unfailed[layout]]
