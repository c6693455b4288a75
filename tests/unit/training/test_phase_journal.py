"""The thread that writes what a job does with its light into the journal."""

from lumctl.store import StoreError, store_at
from lumctl.store.journal import LIGHT_CHANGES
from lumctl.training.phase_journal import PhaseJournal


class Broken:
    """A store whose journal cannot be written ``times`` times."""

    def __init__(self, times):
        self.times, self.kept, self.journal = times, [], self

    def remark(self, kind, data, *, at, who):
        if self.times:
            self.times -= 1
            raise StoreError("the disk is full")
        self.kept.append((kind, data, at, who))


def test_entries_are_in_the_journal_in_order_when_it_is_closed(tmp_path):
    store = store_at(f"sqlite:///{tmp_path}/lumctl.db", files=tmp_path, rack="r1")
    journal = PhaseJournal(store, "me", lambda _line: None, now=lambda: 7.0)
    for number in range(3):
        journal.write(LIGHT_CHANGES, {"job": "train", "changes": number})
    journal.close()
    found = store.journal.remarks(LIGHT_CHANGES)
    assert [(each.at, each.data["changes"], each.data["who"]) for each in found] == [(7.0, at, "me") for at in range(3)]
    assert store.journal.latest(10) == ()


def test_an_error_is_said_once_and_later_entries_are_written():
    store, said = Broken(2), []
    journal = PhaseJournal(store, "me", said.append, now=lambda: 7.0)
    for number in range(3):
        journal.write(LIGHT_CHANGES, {"changes": number})
    journal.close()
    assert said == ["the changes of light are not in the journal: the disk is full"]
    assert [data["changes"] for _, data, *_ in store.kept] == [2]


def test_a_job_that_writes_nothing_has_no_thread():
    journal = PhaseJournal(Broken(0), "me", print)
    journal.close()
    assert journal._thread is None
