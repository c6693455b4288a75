"""Everything that is wrong with a runbook is said at once, each with its place."""

import re

import pytest

from lumctl.runbook.lint import lint

INTENTS = """\
schema: lumctl/runbook/v1
title: a GPU died
parameters:
  rack: {what: the rack, default: golden}
  failed: {what: the accelerator, default: g2-gpu0}
rack: ${rack}
intents:
- do: swap
  failed: ${failed}
  spare: best
- do: rollback
  run: previous
- do: ack
  component: ${failed}
  comment: the vendor is called about ${failed}
  for: 2h
- do: device-set
  component: g3-gpu0-a
  settings:
    transmit: off
"""


def told(text, inventory, **given):
    return [str(problem) for problem in lint(text, "book.yaml", inventory, given)]


def place(text, piece, offset=0):
    """Line and column of a piece of text, as problems name them."""
    at = text.index(piece) + offset
    return f"book.yaml:{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


@pytest.mark.parametrize(
    "run",
    [
        "fabric-0001",
        "swap-0002",
        "rollback-0003",
        "swap-0004",
        "set-0005",
        "ack-0006",
        "maintain-0007",
        "maintain-0008",
    ],
)
def test_nothing_is_wrong_with_what_the_program_wrote(text_of, golden_rack, run):
    assert told(text_of(run), golden_rack) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("do: program", "do: programm", "step 'programm' is not known; did you mean 'program'?"),
        ("transponder: g3-gpu0-a", "transponder: g3-gpu0-b", "did you mean 'g3-gpu0-a'?"),
        ("    enabled: true", "    enabled: perhaps", "found 'perhaps', expected true or false"),
        ("    enabled: true", "    enabeld: true", "key 'enabeld' is not known; did you mean 'enabled'?"),
        ("  required: true", "  requried: true", "key 'requried' is not known; did you mean 'required'?"),
        ("healthy: [g3-gpu0]", "healthy: [g4-gpu0]", "names accelerator 'g4-gpu0'"),
        ("healthy: [g3-gpu0]", "healthy: g3-gpu0", "expected a list of names"),
        ("    device: mesh\n", "    device: mash\n", "names device 'mash'"),
        ("rack: golden", "rack: silver", "rack 'silver' is not known"),
        ("id: '2'", "id: '1'", "id '1' occurs twice, first in line"),
        ("\nend:", "\nends:", "key 'ends' is not known; did you mean 'end'?"),
    ],
)
def test_a_problem_is_told_with_its_place_and_the_nearest_word(text_of, golden_rack, old, new, says):
    text = text_of("swap-0002")
    assert old in text
    found = told(text.replace(old, new, 1), golden_rack)
    assert any(says in line for line in found), found
    assert all(re.match(r"book\.yaml:\d+:\d+: ", line) for line in found)


def test_all_problems_come_at_once_in_the_order_of_the_file(text_of, golden_rack):
    text = text_of("swap-0002").replace("do: transmit", "do: transmitt").replace("healthy: [g3-gpu0]", "healthy: [x]")
    found = told(text, golden_rack)
    assert len(found) == text.count("do: transmitt\n") + 1
    assert found[1].startswith(place(text, "do: transmitt", 4))
    assert found == sorted(found, key=lambda line: int(line.split(":")[1]))


def test_a_step_that_writes_and_is_not_verified_is_told(text_of, golden_rack):
    text = text_of("swap-0002")
    verify = re.search(r"- id: '\d'\n  do: verify\n(?:  .*\n)+?(?=- id)", text)
    found = told(text.replace(verify[0], ""), golden_rack)
    assert any("writes mesh, but no later step verifies the light" in line for line in found), found


def test_a_step_that_writes_and_is_not_kept_is_told_where_the_device_goes_back(text_of, golden_rack, tmp_path):
    from lumctl.inventory.load import load_inventory

    path = tmp_path / "timed.yaml"
    path.write_text(golden_rack.path.read_text().replace("driver: smartlight", "driver: sim-mesh"))
    found = told(text_of("swap-0002"), load_inventory(path))
    assert len(found) == 1
    assert "writes mesh, which reverts by itself, but no later step confirms it" in found[0]


def test_a_precondition_that_cannot_hold_is_told(text_of, golden_rack):
    text = text_of("swap-0002")
    cell, before = re.search(r"\[\[(\d+), ([x'=]+), ", text).groups()
    other = "x" if before != "x" else "'='"
    changed = text.replace(f"[[{cell}, {before}, ", f"[[{cell}, {other}, ", 1)
    found = told(changed, golden_rack)
    assert any(f"expects cell {cell} of mesh to be" in line and "but at that step it is" in line for line in found), (
        found
    )


SWITCH = "  - {id: ocs, kind: switch, driver: polatis-scpi, address: 'ocs.golden.example:5025', port_count: 32}\n"


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("[[0, '17'], [2, '-']]", None),
        ("[[0, 17]]", None),
        ("[[0, '18']]", "the steps do not leave port 0 of ocs as `end` states"),
        ("[[2, '19']]", "the steps do not leave ports 0, 2 of ocs as `end` states"),
    ],
)
def test_joins_to_which_the_steps_do_not_lead_are_told(text_of, golden_rack, tmp_path, end, says):
    from lumctl.inventory.load import load_inventory

    path = tmp_path / "switched.yaml"
    path.write_text(golden_rack.path.read_text().replace("devices:\n", f"devices:\n{SWITCH}"))
    text = text_of("swap-0002").replace("  crosses:\n", "  joins:\n    ocs: [[0, '17'], [2, '-']]\n  crosses:\n")
    before, _, after = text.rpartition("ocs: [[0, '17'], [2, '-']]")
    text = f"{before}ocs: {end}{after}"
    found = [line.partition(";")[0] for line in told(text, load_inventory(path))]
    assert found == ([] if says is None else [f"{place(text, f'ocs: {end}', 5)}: {says}"])


def test_intents_are_checked_with_the_values_of_their_parameters(golden_rack):
    assert told(INTENTS, golden_rack) == []
    found = told(INTENTS, golden_rack, failed="g2-gpu", rack="gold")
    assert [line.partition(": ")[2] for line in found] == [
        "rack 'gold' is not known; did you mean 'golden'?",
        "accelerator 'g2-gpu' is not known; did you mean 'g2-gpu0'?",
        "component 'g2-gpu' is not known; did you mean 'g2-gpu0'?",
    ]
    assert found[1].startswith(place(INTENTS, "failed: ${failed}", 8))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("do: swap", "do: swop", "intent 'swop' is not known; did you mean 'swap'?"),
        ("  failed: ${failed}\n", "", "a swap step needs 'failed'"),
        ("for: 2h", "for: soon", "'soon' is not a valid duration"),
        ("transmit: off", "transmitt: off", "setting 'transmitt' is not known; did you mean 'transmit'?"),
        ("component: g3-gpu0-a", "component: g3-gpu0-x", "no device or part of a device called 'g3-gpu0-x'"),
        ("failed: ${failed}", "failed: ${faild}", "parameter 'faild' is not known; did you mean 'failed'?"),
        ("spare: best", "spares: best", "key 'spares' is not known; did you mean 'spare'?"),
        ("  rack: {what", "  extra: {what: x, default: y}\n  rack: {what", "parameter 'extra' is not used"),
        ("schema: lumctl/runbook/v1", "schema: lumctl/plan/v1", "this is not a runbook"),
        ("comment: the vendor", "comment: [the vendor", "not valid YAML"),
        ("- do: swap", "- do: rollback\n  run: previous\n- do: swap", "no step comes before it"),
    ],
)
def test_what_is_wrong_with_intents_is_told(golden_rack, old, new, says):
    assert old in INTENTS
    found = told(INTENTS.replace(old, new, 1), golden_rack)
    assert any(says in line for line in found), found
    assert all(re.match(r"book\.yaml:\d+:\d+: ", line) for line in found)
