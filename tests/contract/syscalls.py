"""Reads a trace of system calls: which journal entries were synced to disk, and what was sent to devices, in order."""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

TRACED = "trace=write,sendto,sendmsg,pwrite64,fsync,fdatasync"
OPTIONS = ("-f", "--seccomp-bpf", "-y", "-s", "65536", "-e", TRACED)
_SYNCS, _SENDS = frozenset({"fsync", "fdatasync"}), frozenset({"write", "sendto", "sendmsg"})
_LINE = re.compile(
    r"(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>(?P<rest>.*)|(?P<call>\w+)\((?P<words>.*))", re.DOTALL
)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FILE = re.compile(r"\d+<([^>]*)>")
_CELL = re.compile(r"\(\d+, '.'\)")


@dataclass(frozen=True)
class Call:
    """One system call, which took effect some time between its lines ``began`` and ``ended`` in the trace."""

    name: str
    file: str
    text: str
    began: int
    ended: int


@dataclass(frozen=True)
class Sent:
    """What was sent to a device: its words, and the line of the trace at which that began."""

    words: object
    at: int


@dataclass
class Trace:
    """What a trace shows of one journal and of the devices."""

    calls: list[Call]
    durable_at: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, lines: Iterable[str], seals: Iterable[str]) -> "Trace":
        """``seals`` are the hashes of the entries; each is durable at the line where the sync after its write ended."""
        trace = cls(sorted(_calls(lines), key=lambda call: call.began))
        log = [call for call in trace.calls if call.file.endswith("-wal")]
        syncs = [call for call in log if call.name in _SYNCS]
        for seal in seals:
            written = min((call.ended for call in log if call.name == "pwrite64" and seal in call.text), default=None)
            if written is not None:
                ends = [sync.ended for sync in syncs if sync.began > written]
                if ends:
                    trace.durable_at[seal] = min(ends)
        return trace

    def sent(self) -> list[Sent]:
        """What was sent to meshes (their cells, as pairs) and to the simulator (requests about devices)."""
        found = []
        for call in self.calls:
            if call.name in _SENDS and "socket:" in call.file:
                if call.text.startswith("[") and _CELL.search(call.text):
                    found.append(Sent(tuple(ast.literal_eval(call.text)), call.began))
                elif call.text.startswith("{"):
                    found.append(Sent(json.loads(call.text), call.began))
        return found


def too_early(trace: Trace, wanted: Mapping[str, str], steps: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """The steps (of ``steps``: what each sends) that were seen to write, and those whose intent was not synced by then.

    ``wanted`` gives for each step the hash of its intent.
    """
    seen, early = [], []
    for sent in trace.sent():
        for step, words in steps.items():
            if _means(sent.words, words):
                seen.append(step)
                if trace.durable_at.get(wanted[step], sent.at) >= sent.at:
                    early.append(step)
    return seen, early


def _means(sent: object, words: object) -> bool:
    if isinstance(sent, dict) and isinstance(words, dict):
        return words.items() <= sent.items()
    return sent == words


def _calls(lines: Iterable[str]) -> Iterator[Call]:
    begun: dict[tuple[str, str], tuple[str, int]] = {}
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        pid = found["pid"]
        if found["resumed"]:
            words, began = begun.pop((pid, found["resumed"]), ("", number))
            yield _call(found["resumed"], words + (found["rest"] or ""), began, number)
        elif "<unfinished ...>" in line:
            begun[pid, found["call"]] = (found["words"], number)
        else:
            yield _call(found["call"], found["words"], number, number)


def _call(name: str, words: str, began: int, ended: int) -> Call:
    file, text = _FILE.match(words), _TEXT.search(words)
    plain = text[1].encode("latin-1").decode("unicode_escape") if text else ""
    return Call(name, file[1] if file else "", plain, began, ended)
