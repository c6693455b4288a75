"""Who is told what: one message for each case, no news twice, also by the next daemon."""

from dataclasses import replace

import pytest

from lumctl.daemon.notifications.ledger import AGAIN_AFTER_S, NotificationFile, NotificationLedger
from lumctl.daemon.notifications.message import MOST_MEMBERS, CaseOccasion, document_of, text_of
from lumctl.health.states import Incident, State

GPU = "s1-gpu0"


@pytest.fixture
def notes(tmp_path):
    return NotificationFile(tmp_path / "watch.json")


@pytest.fixture
def ledger(notes):
    return NotificationLedger(notes)


def occasions(notifications):
    return [(n.occasion.value, n.case.component, n.before.value, n.after.value) for n in notifications]


def test_a_fault_is_told_once_and_so_is_its_end(ledger, seen):
    assert ledger.review(seen.look()) == []
    seen.find(GPU)
    assert occasions(ledger.review(seen.look())) == [("opened", GPU, "ok", "failed")]
    seen.now += 60
    assert ledger.review(seen.look()) == []
    seen.heal()
    assert occasions(ledger.review(seen.look())) == [("resolved", GPU, "failed", "ok")]
    assert ledger.review(seen.look()) == []


def test_an_incident_is_one_message_however_many_it_touches(ledger, seen):
    host, *members = "s1", "s1", GPU, *(lane for lane in seen.inventory.transponders if lane.startswith("s1"))
    seen.group(host, *members)
    (told,) = ledger.review(seen.look())
    assert (told.case.component, told.rack) == ("s1", "prototype")
    document = document_of(told)
    assert document["schema"] == "lumctl/notification/v1"
    assert document["members"] == list(members)
    assert document["text"] == "prototype (sim): failed: s1 is down"
    assert {f["component"] for f in document["findings"]} == set(members)
    assert document["advice"] == "look at it"
    seen.heal()
    (over,) = ledger.review(seen.look())
    assert text_of(over) == "prototype (sim): resolved: s1 is down"
    assert over.opened_at == told.opened_at


def test_worse_is_news_and_better_is_not(ledger, seen):
    seen.find(GPU, State.DEGRADED, "gpu.ecc")
    assert occasions(ledger.review(seen.look())) == [("opened", GPU, "ok", "degraded")]
    seen.find(GPU, State.FAILED, "gpu.lost")
    assert occasions(ledger.review(seen.look())) == [("worsened", GPU, "degraded", "failed")]
    seen.heal()
    seen.find(GPU, State.DEGRADED, "gpu.ecc")
    assert ledger.review(seen.look()) == []


def test_what_is_known_or_in_maintenance_is_not_told(ledger, seen):
    seen.find(GPU, acknowledged="by ops: waiting for the part")
    seen.find("s2-gpu0")
    seen.states["s2-gpu0"] = State.DISABLED
    assert ledger.review(seen.look()) == []
    seen.findings.pop(GPU)
    seen.find(GPU)
    assert occasions(ledger.review(seen.look())) == [("opened", GPU, "ok", "failed")]


def test_an_incident_is_told_if_one_of_its_members_is_nobodys_business_yet(ledger, seen):
    seen.group("s1", "s1", GPU)
    seen.states["s1"] = State.DISABLED
    assert len(ledger.review(seen.look())) == 1


def test_what_may_be_nothing_is_not_told_yet(ledger, seen):
    seen.group("s1", "s1", state=State.UNKNOWN)
    seen.incidents[0] = replace(seen.incidents[0], rule="host.missed")
    seen.find("s2", State.UNKNOWN, "host.missed")
    assert ledger.review(seen.look()) == []


def test_what_passes_before_it_has_settled_is_not_told(notes, seen):
    ledger = NotificationLedger(notes, settle_s=5)
    seen.find(GPU)
    assert ledger.review(seen.look()) == []
    seen.now += 4.9
    assert ledger.review(seen.look()) == []
    seen.heal()
    assert ledger.review(seen.look()) == []
    seen.find(GPU)
    assert ledger.review(seen.look()) == []
    seen.now += 5
    assert occasions(ledger.review(seen.look())) == [("opened", GPU, "ok", "failed")]
    seen.heal()
    assert occasions(ledger.review(seen.look())) == [("resolved", GPU, "failed", "ok")]


def test_a_fault_that_becomes_an_incident_is_the_same_case(ledger, seen):
    seen.find(GPU)
    (told,) = ledger.review(seen.look())
    incident = Incident(f"accelerator:{GPU}", GPU, "gpu.lost", State.FAILED, seen.now, (GPU, "x"), "gone")
    seen.incidents.append(incident)
    seen.findings[GPU] = [replace(seen.findings[GPU][0], incident=incident.id)]
    assert told.case.key == incident.id
    assert ledger.review(seen.look()) == []


def test_a_note_that_weighs_nothing_is_not_told(ledger, seen):
    seen.find(GPU, State.OK, "gpu.note")
    assert ledger.review(seen.look()) == []


def test_what_cannot_be_read_any_more_is_not_well(ledger, seen):
    seen.find(GPU)
    ledger.review(seen.look())
    seen.heal()
    seen.states[GPU] = State.UNKNOWN
    assert ledger.review(seen.look()) == []
    seen.heal()
    assert occasions(ledger.review(seen.look())) == [("resolved", GPU, "failed", "ok")]


def test_maintenance_on_a_known_fault_says_nothing_until_it_is_over(ledger, seen):
    seen.find(GPU)
    ledger.review(seen.look())
    seen.states[GPU] = State.DISABLED
    assert ledger.review(seen.look()) == []
    seen.heal()
    assert [n.occasion for n in ledger.review(seen.look())] == [CaseOccasion.RESOLVED]


def test_reminders_come_at_their_interval(notes, seen):
    ledger = NotificationLedger(notes, remind_after_s=3600)
    seen.find(GPU)
    first = ledger.review(seen.look())
    seen.now += 3599
    assert ledger.review(seen.look()) == []
    seen.now += 1
    second = ledger.review(seen.look())
    assert occasions(second) == [("reminder", GPU, "failed", "failed")]
    assert text_of(second[0]).startswith("prototype (sim): still failed: ")
    seen.now += 3599
    assert ledger.review(seen.look()) == []
    seen.now += 1
    assert len({first[0].id, second[0].id, ledger.review(seen.look())[0].id}) == 3


def test_the_next_daemon_tells_nothing_twice(ledger, notes, seen, tmp_path):
    seen.find(GPU)
    seen.find("s2-gpu0")
    first, undelivered = ledger.review(seen.look())
    ledger.delivered(first)
    assert notes.save() is True
    after = NotificationLedger(NotificationFile(tmp_path / "watch.json"))
    (again,) = after.review(seen.look())
    assert again.case == undelivered.case
    assert again.id == undelivered.id
    seen.heal()
    assert {n.case.component for n in after.review(seen.look())} == {GPU, "s2-gpu0"}


def test_an_end_that_was_not_delivered_is_told_by_the_next_daemon(ledger, notes, seen, tmp_path):
    seen.find(GPU)
    (opened,) = ledger.review(seen.look())
    ledger.delivered(opened)
    seen.heal()
    (over,) = ledger.review(seen.look())
    notes.save()
    (again,) = NotificationLedger(NotificationFile(tmp_path / "watch.json")).review(seen.look())
    assert again.occasion is CaseOccasion.RESOLVED
    assert (again.case.key, again.id) == (over.case.key, over.id)
    ledger.delivered(over)
    notes.save()
    assert NotificationLedger(NotificationFile(tmp_path / "watch.json")).review(seen.look()) == []


@pytest.mark.parametrize(
    "left",
    ["", "nonsense", "[]", '{"schema": "other", "told": {"x": 1}}', '{"schema": "lumctl/daemon-notes/v1", "told": [1]}',
     '{"schema": "lumctl/daemon-notes/v1", "told": {"x": 1, "y": {}, "z": {"key": "z"}}}'],
)  # fmt: skip
def test_notes_that_make_no_sense_are_passed_over(tmp_path, seen, left):
    (tmp_path / "watch.json").write_text(left)
    ledger = NotificationLedger(NotificationFile(tmp_path / "watch.json"))
    seen.find(GPU)
    assert len(ledger.review(seen.look())) == 1


def test_notes_without_room_are_kept_and_written_later(notes, tmp_path, monkeypatch):
    assert notes.save() is False
    notes.note({"a": {}})
    with monkeypatch.context() as patch:

        def full(_):
            raise OSError(28, "No space left on device")

        patch.setattr("lumctl.files.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            notes.save()
    assert list(tmp_path.iterdir()) == []
    assert notes.save() is True
    assert notes.save() is False
    assert NotificationFile(tmp_path / "watch.json").told == {"a": {}}


def test_a_huge_incident_is_a_bounded_message(ledger, seen):
    seen.group("s1", *(f"x{n}" for n in range(5000)))
    (told,) = ledger.review(seen.look())
    document = document_of(told)
    assert (len(document["members"]), document["member_count"]) == (MOST_MEMBERS, 5000)


def test_what_receivers_could_not_be_told_is_told_anew_while_it_is_so(ledger, seen):
    seen.find(GPU)
    (opened,) = ledger.review(seen.look())
    ledger.undelivered(opened)
    assert ledger.review(seen.look()) == []
    seen.now += AGAIN_AFTER_S - 1
    assert ledger.review(seen.look()) == []
    seen.now += 1
    (again,) = ledger.review(seen.look())
    assert occasions([again]) == [("opened", GPU, "ok", "failed")]
    ledger.delivered(again)
    seen.now += 2 * AGAIN_AFTER_S
    assert ledger.review(seen.look()) == []


def test_and_so_is_its_end(ledger, seen):
    seen.find(GPU)
    (opened,) = ledger.review(seen.look())
    ledger.delivered(opened)
    seen.heal()
    (over,) = ledger.review(seen.look())
    ledger.undelivered(over)
    ledger.review(seen.look())
    seen.now += AGAIN_AFTER_S
    (again,) = ledger.review(seen.look())
    assert again.id == over.id


def test_a_clock_that_is_set_back_keeps_nothing_untold(notes, seen):
    ledger = NotificationLedger(notes, settle_s=5.0)
    seen.find(GPU)
    assert ledger.review(seen.look()) == []
    seen.now -= 7200
    assert ledger.review(seen.look()) == []
    seen.now += 5
    assert occasions(ledger.review(seen.look())) == [("opened", GPU, "ok", "failed")]


def test_notes_are_nobody_elses(notes, tmp_path):
    notes.note({})
    assert notes.save()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
