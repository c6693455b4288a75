from collections import Counter

import pytest
import torch

from lumctl.errors import UsageError
from lumctl.training.example.data import MOST_BYTES, Windows, own_text

TEXT = bytes(range(1, 201))


def windows(*, text=TEXT, context=8, sequences=12, seed=1):
    return Windows(text, context=context, sequences=sequences, seed=seed)


def rows(batch):
    return [bytes(row.tolist()) for row in batch]


def test_the_text_is_there_and_bounded():
    text = own_text()
    assert b"import" in text
    assert 200_000 < len(text) <= MOST_BYTES
    assert own_text(most=1000) == text[:1000]


def test_a_batch_follows_from_seed_step_rank_and_world():
    assert torch.equal(windows().batch(3, 1, 4), windows().batch(3, 1, 4))
    for other in (windows(seed=2).batch(3, 1, 4), windows().batch(4, 1, 4), windows().batch(3, 2, 4)):
        assert not torch.equal(windows().batch(3, 1, 4), other)


def test_a_sequence_is_a_piece_of_the_text_with_one_token_more():
    batch = windows().batch(0)
    assert batch.shape == (12, 9)
    assert all(row in TEXT for row in rows(batch))


@pytest.mark.parametrize("world", [1, 2, 3, 4, 5, 8, 12])
def test_ranks_share_a_step_whatever_their_number(world):
    shares = [rows(windows().batch(1, rank, world)) for rank in range(world)]
    together = [row for share in shares for row in share]
    assert sorted(together) == sorted(rows(windows().batch(1)))
    assert len(set(together)) == 12
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_an_epoch_has_every_token_as_a_target_once_but_for_the_last_window():
    ours = windows()
    count = len(ours.starts)
    assert count == 25  # 199 targets in eights
    starts = [start for step in range(3) for start in ours.share(step, 0, 1)]
    assert sorted(starts[:count]) == ours.starts
    targets = Counter(start + 1 + index for start in starts[:count] for index in range(8))
    assert set(targets) == set(range(1, 200))
    assert [target for target, times in targets.items() if times > 1] == [192]


def test_the_next_epoch_begins_in_the_middle_of_a_step_and_has_another_order():
    ours = windows()
    starts = [start for step in range(25) for start in ours.share(step, 0, 1)]
    epochs = [starts[at : at + 25] for at in range(0, 300, 25)]
    assert all(sorted(epoch) == ours.starts for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_a_text_too_short_and_ranks_too_many_are_refused():
    with pytest.raises(UsageError, match="8 bytes is shorter than one sequence of 9"):
        windows(text=TEXT[:8])
    with pytest.raises(UsageError, match="13 ranks cannot divide 12 sequences"):
        windows().batch(0, 0, 13)
    assert windows(text=TEXT[:9]).starts == [0]
