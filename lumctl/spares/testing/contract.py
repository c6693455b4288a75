"""What lumctl relies on in a sharing policy, tested with random questions."""

import time
from collections.abc import Iterator
from random import Random

import pytest

from lumctl.spares.decision import ANSWERS_WITHIN_S
from lumctl.spares.sharing import Demand, FreeSpare, InvalidAnswer, SharingPolicy, SharingQuestion, check_answer

_QUESTIONS = 300
_CLASSES = ("common", "rare")


def questions(count: int = _QUESTIONS, seed: int = 0) -> Iterator[SharingQuestion]:
    """Random questions about two classes; the first has neither demands nor spares."""
    rng = Random(seed)  # noqa: S311 - a seed repeats the questions
    yield SharingQuestion(0.0, (), {})
    for number in range(1, count):
        spares = {
            f"{name}-{at}": FreeSpare(f"{name}-{at}", name, replaces)
            for replaces, name in enumerate(_CLASSES, 1)
            for at in range(rng.randrange(7))
        }
        at = 1_800_000_000.0 + rng.uniform(0, 1e6)
        demands = tuple(
            _demand(rng, f"demand-{n:04}", at - rng.uniform(0, 1e5), spares) for n in range(rng.randrange(9))
        )
        yield SharingQuestion(at, tuple(sorted(demands, key=lambda demand: demand.asked_at)), spares, seed=number)


def _demand(rng: Random, name: str, asked_at: float, spares: dict[str, FreeSpare]) -> Demand:
    classes = _CLASSES[rng.randrange(2) :]
    able = [spare for spare, each in spares.items() if each.accelerator_class in classes]
    rng.shuffle(able)
    size = rng.randint(1, 8)
    known = rng.random() < 0.5  # noqa: PLR2004 - every other one
    return Demand(
        id=name,
        job=f"job-{rng.randrange(3)}",
        asked_at=asked_at,
        usable=(tuple(able),) * size,
        able=(frozenset(classes),) * size,
        weight=rng.choice((0.5, 1.0, 4.0)),
        remaining_s=rng.uniform(0, 1e6) if known else None,
        attained_s=rng.uniform(0, 1e6) if known else None,
    )


class SharingContract:
    """The contract of a sharing policy. Override :meth:`policy`."""

    @pytest.fixture
    def policy(self) -> SharingPolicy:
        """The policy to test."""
        raise NotImplementedError

    def test_its_answers_can_be_followed(self, policy: SharingPolicy) -> None:
        """Each spare goes to one demand, to an accelerator that it can replace; demands are served whole."""
        for asked in questions():
            found = check_answer(asked, policy(asked))
            assert not isinstance(found, InvalidAnswer), f"{found.text}; it was asked {asked}"

    def test_it_serves_somebody_if_it_can(self, policy: SharingPolicy) -> None:
        """A policy that lets everybody wait although a spare is free would leave jobs down for nothing."""
        for asked in questions():
            alone = [each for each in asked.demands if each.size == 1 and each.usable[0]]
            assert policy(asked) or not alone, f"nobody was served of {asked}"

    def test_the_same_question_has_the_same_answer(self, policy: SharingPolicy) -> None:
        """What an operator is told by ``spare queue`` is what the next plan does: chance is ``seed`` alone."""
        for asked in questions():
            assert dict(policy(asked)) == dict(policy(asked))

    def test_it_answers_in_time(self, policy: SharingPolicy) -> None:
        """Lumctl waits for an answer for 0.1 s; the fastest of three attempts counts, on a busy machine too."""
        asked = max(questions(), key=lambda each: len(each.demands) * len(each.spares))
        took = []
        for _ in range(3):
            began = time.perf_counter()
            policy(asked)
            took.append(time.perf_counter() - began)
        assert min(took) < ANSWERS_WITHIN_S
