"""What a session remembers of earlier looks."""

from dataclasses import replace

from lumctl.tui.memory import Memory

LOST, WELL = "r1-h2-g1", "r1-h1-g0"


def sinces(observation):
    return [finding.since for finding in observation.report.accelerators[LOST].findings]


def with_findings(seen, *sinces):
    health = seen.report.accelerators[LOST]
    findings = tuple(replace(health.findings[0], since=since) for since in sinces)
    return replace(seen, report=replace(seen.report, accelerators={LOST: replace(health, findings=findings)}))


def test_a_component_that_is_not_read_keeps_the_time_of_its_last_reading(kit):
    memory = Memory()
    memory.recall(kit.observation(at=100))
    later = memory.recall(kit.unreachable(kit.observation(at=160))).report
    assert later.accelerators[WELL].read_at == 100
    assert later.accelerators[LOST].read_at is None
    assert memory.recall(kit.observation(at=170)).report.accelerators[WELL].read_at == 170


def test_a_finding_stands_since_it_was_first_seen(kit):
    memory, seen = Memory(), kit.observation()
    assert sinces(memory.recall(with_findings(seen, 100))) == [100]
    assert sinces(memory.recall(with_findings(seen, 102))) == [100]
    assert sinces(memory.recall(with_findings(seen, 104, 103))) == [100, 103]
    assert sinces(memory.recall(with_findings(seen, 106, 106))) == [100, 103]


def test_a_finding_that_was_gone_begins_anew(kit):
    memory, seen = Memory(), kit.observation()
    memory.recall(with_findings(seen, 100))
    memory.recall(with_findings(seen))
    assert sinces(memory.recall(with_findings(seen, 104))) == [104]


def test_a_look_that_could_not_see_takes_no_finding_back(kit):
    memory, seen = Memory(), kit.observation()
    memory.recall(with_findings(seen, 100))
    memory.recall(kit.unreachable(seen))
    assert sinces(memory.recall(with_findings(seen, 104))) == [100]
