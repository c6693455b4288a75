"""Ways over lit hops."""

from collections import Counter

from lumctl.sim.lanes.ways import Ways


def test_the_fewest_hops_and_none_where_no_light_leads(hops):
    ways = Ways(hops("ab", "bc", "cd", "db"))
    assert ways.shortest("a0", "b0", {}) == ("a>b",)
    assert ways.shortest("a0", "d0", {}) == ("a>b", "b>c", "c>d")
    assert ways.shortest("d0", "c0", {}) == ("d>b", "b>c")
    assert ways.shortest("b0", "a0", {}) is None, "light has a direction"


def test_in_a_ring_the_short_side_is_taken(hops):
    ring = Ways(hops("ab", "ba", "bc", "cb", "cd", "dc", "da", "ad"))
    assert ring.shortest("a0", "d0", {}) == ("a>d",)
    assert len(ring.shortest("a0", "c0", {})) == 2


def test_of_equal_ways_the_one_that_carries_less(hops):
    ways = Ways(hops("ab1", "ab2", "bd", "ac", "cd"))
    assert ways.shortest("a0", "b0", {"a1>b1": 1}) == ("a2>b2",)
    assert ways.shortest("a0", "b0", {"a2>b2": 1}) == ("a1>b1",)
    assert ways.shortest("a0", "d0", {"a>c": 3}) in {("a1>b1", "b>d"), ("a2>b2", "b>d")}
    assert ways.shortest("a0", "d0", Counter(["a1>b1", "a2>b2"])) == ("a>c", "c>d")
    assert ways.shortest("a0", "b0", {"a1>b1": 9, "a2>b2": 9}) is not None, "a longer way is never taken for it"
