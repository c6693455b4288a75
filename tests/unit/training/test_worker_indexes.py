"""What the coordinator looks up instead of searching all workers is what a search would find."""

import math

from hypothesis import given
from hypothesis import strategies as st
from searched_workers import require_searched

from lumctl.training.coordinator.workers import JobWorker, JobWorkers

NAMES = [f"h{host}-{accelerator}#{number}" for host in range(2) for accelerator in "ab" for number in (1, 2)]
VALUES = {
    "alive": st.booleans(),
    "ready": st.booleans(),
    "ended": st.booleans(),
    "silent": st.booleans(),
    "busy": st.booleans(),
    "dying": st.booleans(),
    "leave_by": st.sampled_from([math.inf, 5.0]),
    "rank": st.none() | st.integers(0, 3),
    "seat": st.none() | st.integers(0, 3),
}
changes = st.sampled_from(NAMES).flatmap(
    lambda name: st.sampled_from([*VALUES]).flatmap(
        lambda attribute: st.tuples(st.just(name), st.just(attribute), VALUES[attribute])
    )
)


@given(st.lists(changes | st.sampled_from(NAMES), max_size=60))
def test_indexes_are_what_a_search_finds_whatever_changes(drawn):
    workers = JobWorkers()
    for each in drawn:
        if isinstance(each, tuple):
            name, attribute, value = each
            if (worker := workers.get(name)) is not None:
                setattr(worker, attribute, value)
        elif (worker := workers.get(each)) is not None:
            workers.remove(worker)
        else:
            workers.add(JobWorker(each, each.partition("#")[0], each[:2]))
        require_searched(workers)
