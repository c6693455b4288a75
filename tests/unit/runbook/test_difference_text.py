"""A difference is told by what is not the same, and of how many."""

from lumctl.runbook.diff import Unlike, counted
from lumctl.runbook.difference_text import outcomes_apart, ranks_apart, some


def test_of_a_large_job_only_the_ranks_that_moved_are_told():
    before = [f"h{n}" for n in range(64)]
    after = [*before[:9], "spare", *before[10:]]
    assert ranks_apart(before, after) == ("rank 9 on h9 (of 64 ranks)", "rank 9 on spare (of 64 ranks)")
    assert ranks_apart(tuple(before), after)[1] == "rank 9 on spare (of 64 ranks)"
    said, _ = ranks_apart(before, before[::-1])
    assert said == "rank 0 on h0, rank 1 on h1, rank 2 on h2 and 61 more (of 64 ranks)"


def test_a_job_that_is_nowhere_or_has_fewer_ranks_is_told_so():
    assert ranks_apart(["a", "b"], []) == ("2 ranks on a, b", "nowhere")
    assert ranks_apart(["a", "b", "c"], ["a", "b"]) == ("rank 2 on c (of 3 ranks)", "2 ranks")


def test_of_outcomes_only_the_parts_that_differ_are_told():
    assert outcomes_apart({"done": True, "kept": 1}, {"done": True, "kept": 2}) == ("kept: 1", "kept: 2")
    one, other = outcomes_apart({"names": ["a", "b", "c"]}, {"names": ["a", "b"]})
    assert (one, other) == ("names: c (of 3)", "names: none except the 2 of both")
    assert outcomes_apart({"done": True, "proofs": ["p"] * 99}, {"failed": "no light"}) == ("done", "failed: no light")
    assert outcomes_apart(None, {"done": True}) == ("not reached", "done: True")


def test_of_many_names_a_few_are_told_and_never_one_more_for_one():
    assert some(["a", "b", "c", "d"]) == "a, b, c, d"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_differences_are_counted_for_each_part_and_device():
    found = [
        Unlike("about", "title", "x", "y"),
        Unlike("cells", "m2/1", "to bar", None, "m2"),
        Unlike("cells", "m1/1", None, "to bar", "m1"),
        Unlike("cells", "m2/3", "to bar", "to cross", "m2"),
    ]
    assert [(c.part, c.where, c.unlike, c.only_a, c.only_b) for c in counted(found)] == [
        ("about", "", 1, 0, 0),
        ("cells", "m1", 0, 0, 1),
        ("cells", "m2", 1, 1, 0),
    ]
