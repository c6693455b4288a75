"""Times at which ranks enter and leave the collectives of a job, drawn: who is slow, and how much, is known."""

from math import exp, log, sqrt
from random import Random

from lumctl.collectives.arrivals import ArrivalStep

STEP_S, COLLECTIVE_S = 0.1, 0.01


def drawn_steps(seed, *, ranks, steps, slow=None, slow_s=0.0, gap_s=0.005, clocks_s=None):
    """Each rank computes for STEP_S and some time of a log-normal distribution with the mean ``gap_s`` and half of that
    as its deviation, and ``slow_s`` more if it is the slow one. All then leave a collective at nearly the same time. A
    rank's times are by its own clock."""
    draw = Random(seed)  # noqa: S311 - the same in every run
    clocks = clocks_s or [0.0] * ranks
    found, left = [], [0.0] * ranks
    for step in range(steps):
        took = [STEP_S + log_normal(draw, gap_s, gap_s / 2) + slow_s * (rank == slow) for rank in range(ranks)]
        entered = [at + more for at, more in zip(left, took, strict=True)]
        end = max(entered) + COLLECTIVE_S
        left = [end + draw.uniform(0.0, 0.1) * COLLECTIVE_S for _ in range(ranks)]
        found.append(ArrivalStep(step, by(clocks, entered), by(clocks, left)))
    return found


def log_normal(draw, mean, deviation):
    spread = log(1 + (deviation / mean) ** 2)
    return exp(draw.gauss(log(mean) - spread / 2, sqrt(spread)))


def by(clocks, times):
    return tuple(at + clock for at, clock in zip(times, clocks, strict=True))
