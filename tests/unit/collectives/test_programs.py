"""Programs of MSCCL and MSCCL++: ours and foreign ones executed, broken ones found, wrong files refused."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.collectives import direct, first_fault, halving_doubling, ring, schedule_files, stragglar
from lumctl.collectives.documents import schedule_json
from lumctl.collectives.machine import CollectiveProgram, run_program
from lumctl.collectives.msccl import msccl_lines
from lumctl.collectives.mscclpp import mscclpp_lines
from lumctl.collectives.schedule_files import read_file
from lumctl.errors import UsageError

FORMATS = (msccl_lines, mscclpp_lines)


def text_of(lines, schedule):
    return "\n".join(lines(schedule))


def run(text, straggler=None):
    return run_program(read_file(text.encode()), straggler)


@pytest.mark.parametrize("lines", FORMATS)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 11, 16, 24])
def test_a_schedule_executes_in_its_rounds(lines, ranks):
    schedule = stragglar(ranks, ranks // 2)
    done = run(text_of(lines, schedule), schedule.straggler)
    assert done.fault is None
    assert (len(done.before), len(done.after)) == (ranks - 2, len(schedule.rounds))


@pytest.mark.parametrize("lines", FORMATS)
@pytest.mark.parametrize("schedule", [ring(5), direct(6), halving_doubling(8)], ids=lambda each: each.algorithm)
def test_the_usual_algorithms_execute_too(lines, schedule):
    done = run(text_of(lines, schedule))
    assert done.fault is None
    assert done.before == ()
    assert done.after == schedule.chunks_per_round


@pytest.mark.parametrize("lines", FORMATS)
def test_a_program_says_that_no_gpu_has_run_it(lines):
    assert "lumctl-stragglar-4-straggler-3 (not run on GPUs)" in text_of(lines, stragglar(4, 3))


def test_every_dependency_of_a_program_is_needed_or_implied():
    """Without its dependencies, a step of MSCCL may use a chunk too early, and the machine finds it."""
    text = text_of(msccl_lines, stragglar(8, 7))
    found = 0
    for match in re.finditer(r'depid="\d+" deps="\d+"', text):
        fault = run(text[: match.start()] + 'depid="-1" deps="-1"' + text[match.end() :]).fault
        found += fault is not None
        if fault is not None:
            assert fault.message in {
                "uses what another thread may still change",
                "changes what another thread may still use",
            }
    assert found > 20


def test_a_dropped_step_is_found():
    text = text_of(msccl_lines, ring(3))
    without = [line for line in text.splitlines() if '<step s="3"' not in line]
    assert str(run("\n".join(without)).fault) == "round 2, rank 0, chunk 1: lacks the contribution of rank 1 at the end"
    receives = re.sub(r'(<gpu id="1".*?<step s="0" type=)"rrc"', r'\1"nop"', text, count=1, flags=re.DOTALL)
    assert "a message that it never receives" in str(run(receives).fault)


def test_a_deadlock_is_found_with_its_place():
    crossed = """<algo name="x" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1">
      <gpu id="0"><tb id="0" send="1" recv="1" chan="0"><step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i"
        dstoff="0" cnt="1" depid="-1" deps="-1"/></tb></gpu>
      <gpu id="1"><tb id="0" send="0" recv="0" chan="0"><step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i"
        dstoff="0" cnt="1" depid="-1" deps="-1"/></tb></gpu></algo>"""
    fault = run(crossed).fault
    assert str(fault) == "round 0, rank 0, chunk 0 (gpu 0, tb 0, step 0): waits forever: deadlock"


def step(number, kind, source, target, count=1):
    (source_buffer, source_at), (target_buffer, target_at) = source, target
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{source_buffer}" srcoff="{source_at}" dstbuf="{target_buffer}" '
        f'dstoff="{target_at}" cnt="{count}" depid="-1" deps="-1" hasdep="0"/>'
    )


def foreign(*blocks):
    gpus = "".join(f'<gpu id="{at}">{block}</gpu>' for at, block in enumerate(blocks))
    head = f'<algo name="a foreign one" nchunksperloop="1" ngpus="{len(blocks)}" coll="allreduce" inplace="0">'
    return f"{head}{gpus}</algo>"


def chain(kinds):
    """Out of place, along a line of three GPUs and back: the sum is made on the last one."""
    there, back = kinds
    return foreign(
        f'<tb id="0" send="1" recv="1" chan="0">{step(0, "s", "i0", "o0")}{step(1, "r", "i0", "o0")}</tb>',
        f'<tb id="0" send="2" recv="0" chan="0">{step(0, there, "i0", "o0")}</tb>'
        f'<tb id="1" send="0" recv="2" chan="0">{step(0, back, "i0", "o0")}</tb>',
        f'<tb id="0" send="1" recv="1" chan="0">{step(0, "rrc", "i0", "o0")}{step(1, "s", "o0", "o0")}</tb>',
    )


def test_foreign_programs_out_of_place_execute():
    assert run(chain(("rrs", "rcs"))).fault is None
    assert run(chain(("rrcs", "rcs"))).fault is None
    fault = run(chain(("rcs", "rcs"))).fault
    assert str(fault) == "round 3, rank 0, chunk 0: lacks the contribution of rank 1 at the end"


def plan_of(*operations):
    """A plan of MSCCL++ for two GPUs with one chunk; both do the same with the other."""
    gpus = [
        {
            "id": rank,
            "input_chunks": 1,
            "output_chunks": 1,
            "scratch_chunks": 1,
            "threadblocks": [
                {
                    "id": 0,
                    "ops": list(operations),
                    "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                    "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
                }
            ],
            "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
            "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
        }
        for rank in range(2)
    ]
    return json.dumps(
        {"name": "foreign", "collective": "allreduce", "protocol": "Simple", "inplace": True, "gpus": gpus}
    )


OWN, SCRATCH, REMOTE = (
    {"type": "i", "index": 0, "size": 1},
    {"type": "s", "index": 0, "size": 1},
    {"buffer_id": 0, "index": 0, "size": 1},
)
COPY = {"name": "copy", "src_buff": [OWN], "dst_buff": [SCRATCH]}
SIGNAL = {"name": "signal", "channel_ids": [0], "channel_type": "memory"}
WAIT = {"name": "wait", "channel_ids": [0], "channel_type": "memory"}
READ = {"name": "rre", "src_buff": [OWN, REMOTE], "dst_buff": [OWN], "channel_type": "memory"}


def test_a_foreign_plan_that_reads_from_its_peer_executes():
    assert run(plan_of(COPY, SIGNAL, WAIT, READ)).fault is None
    with_signal = {
        "name": "pwsf",
        "src_buff": [OWN],
        "dst_buff": [REMOTE],
        "channel_ids": [0],
        "channel_type": "memory",
    }
    add = {"name": "re", "src_buff": [OWN, SCRATCH], "dst_buff": [OWN]}
    assert run(plan_of(with_signal, {"name": "nop"}, WAIT, add)).fault is None


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ((COPY, READ), "uses what another thread may still change"),
        ((SIGNAL, WAIT, READ), "uses what it does not hold yet"),
        ((COPY, WAIT, READ), "waits forever: deadlock"),
        ((COPY, SIGNAL, WAIT, READ, READ), "adds the contribution of rank"),
        ((COPY, SIGNAL, WAIT), "lacks the contribution of rank 1 at the end"),
    ],
)
def test_a_wrong_plan_is_found(operations, said):
    assert said in str(run(plan_of(*operations)).fault)


BOMB = b"""<?xml version="1.0"?><!DOCTYPE algo [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><algo name="&b;"/>"""
GOOD = "\n".join(msccl_lines(ring(2)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b"\xff\xfe\x00", "neither XML nor JSON: not UTF-8 text"),
        (b"{", "line 1, column 2: not JSON"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b"7", "found 7, expected a schedule ('rounds') or an execution plan of MSCCL++ ('gpus')"),
        (b'{"a": 1}', "found an object with 'a', expected a schedule"),
        (b'{"ranks": ' + b"9" * 5000 + b', "rounds": []}', "not JSON that can be read"),
        (b"<algo", "line 1: not well-formed XML: unclosed token"),
        (GOOD[:-20].encode(), "line 17: not well-formed XML"),
        (BOMB, "line 1: found a document type, which is refused"),
        (b"<rss/>", "line 1: found <rss>, expected <algo>"),
        (GOOD.replace('ngpus="2"', 'ngpus="3"').encode(), "line 2: expected one <gpu> for each id from 0 to 2"),
        (GOOD.replace('ngpus="2"', "").encode(), "line 2: <algo> has no attribute 'ngpus'"),
        (GOOD.replace("allreduce", "allgather").encode(), "line 2: coll: found 'allgather', expected 'allreduce'"),
        (GOOD.replace('"rrc"', '"xyz"').encode(), "line 6: type: found 'xyz', expected one of nop"),
        (GOOD.replace('cnt="1"', 'cnt="1e9"').encode(), "line 5: cnt: found '1e9', expected a whole number from 1"),
        (GOOD.replace('depid="-1"', 'depid="7"').encode(), "line 5: depid: this <gpu> has no tb 7"),
        (GOOD.replace('srcbuf="i"', 'srcbuf="q"').encode(), "line 5: srcbuf: found 'q', expected i, o or s"),
        (GOOD.replace('recv="1"', 'recv="-1"').encode(), "line 6: 'rrc' has no peer in this <tb>"),
        (GOOD.replace('s="1"', 's="5"').encode(), "line 6: s: found 5, expected 1"),
        (b'{"gpus": []}', "collective is missing"),
        (b'{"gpus": [], "collective": "allreduce"}', "gpus: found 0, expected 1 to 1024"),
        (plan_of({"name": "ppkt"}).encode(), "gpus[0].threadblocks[0].ops[0].name: operation 'ppkt' is not supported"),
        (plan_of({**SIGNAL, "channel_ids": [4]}).encode(), "gpus[0].threadblocks[0].ops[0].channel_ids[0]: found 4"),
        (
            plan_of({**COPY, "src_buff": [{**REMOTE, "buffer_id": 3}]}).encode(),
            "gpus[0].threadblocks[0].ops[0].src_buff[0].buffer_id: found 3",
        ),
        (plan_of({**COPY, "dst_buff": []}).encode(), "gpus[0].threadblocks[0].ops[0]: 'copy' has one target"),
        (plan_of({"name": {}}).encode(), "gpus[0].threadblocks[0].ops[0].name: operation {} is not supported"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(content, said):
    with pytest.raises(UsageError) as refused:
        run_program(read_file(content))
    assert refused.value.message.startswith(said), refused.value.message


def test_a_file_that_is_too_large_is_refused():
    assert schedule_files.MOST_BYTES < 100_000_000
    with pytest.raises(UsageError, match="larger than 80 MB"):
        read_file(b" " * (schedule_files.MOST_BYTES + 1))


def test_a_program_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("lumctl.collectives.machine.MOST_INSTRUCTIONS", 10)
    with pytest.raises(UsageError, match="a program with 24 uses of chunks is not checked"):
        run(text_of(msccl_lines, ring(3)))


CONTENTS = (
    "\n".join(schedule_json(stragglar(4, 2))),
    text_of(msccl_lines, stragglar(4, 2)),
    text_of(mscclpp_lines, stragglar(3, 2)),
)


def judged(content):
    """The refusal of a file; ``None`` if it is read, whatever the judgement."""
    try:
        found = read_file(content)
        if isinstance(found, CollectiveProgram):
            run_program(found, 0)
        else:
            first_fault(found)
    except UsageError as refused:
        return refused.message
    return None


@given(st.sampled_from(CONTENTS), st.data())
@settings(deadline=None, max_examples=150)
def test_a_damaged_file_is_refused_or_judged_and_never_more(content, data):
    damaged = bytearray(content.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        until = data.draw(st.integers(at, min(at + 40, len(damaged))))
        damaged[at:until] = data.draw(
            st.sampled_from([b"", b"0", b"7", b"-1", b"null", b'"', b"{", b"9999", b"<", b"\x00"])
        )
        if not damaged:
            return
    assert "\n" not in (judged(bytes(damaged)) or "")
