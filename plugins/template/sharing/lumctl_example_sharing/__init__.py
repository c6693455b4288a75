"""A sharing policy of Example & Co.: small demands first, so that as many jobs as possible continue."""

from lumctl.spares import Answer, SharingQuestion, serve, tightest_first


def smallest_first(asked: SharingQuestion) -> Answer:
    """The demand for the fewest spares first, of equal ones the oldest; common parts before rare ones."""
    order = sorted(asked.demands, key=lambda demand: (demand.size, demand.asked_at))
    # serve() gives each demand all of its spares or none, and no spare twice.
    return serve(order, asked.spares, tightest_first(asked))
