"""A component that is not read keeps the time of its last reading."""

from dataclasses import replace

from lumctl.context.health_memory import LastRead
from lumctl.health.states import State

SILENT, WELL = "h03-gpu2", "h01-gpu0"


def silent(report, name=SILENT):
    health = replace(report.accelerators[name], state=State.UNKNOWN, read_at=None)
    return replace(report, accelerators={**report.accelerators, name: health})


def test_a_component_that_is_not_read_keeps_the_time_of_its_last_reading(rack):
    last = LastRead()
    report = rack.report()
    read_at = report.accelerators[SILENT].read_at
    assert last.recall(report) == report
    assert last.recall(silent(report)).accelerators[SILENT].read_at == read_at
    assert last.recall(silent(report)).accelerators[WELL].read_at == read_at


def test_what_was_never_read_has_no_time(rack):
    assert LastRead().recall(silent(rack.report())).accelerators[SILENT].read_at is None
