"""The folder of a run of a study: while it runs, and its results.

run.json       the study, its settings and seeds, versions, and a digest of the code; written first
cases.jsonl    the rows of each case that was solved, one case a line, in order of completion
rows.parquet   all rows in the order of the table, if DuckDB is installed
study.json     what ``study run -o json`` prints; written last, so a run that has it is complete
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lumctl.errors import RefusedError, UsageError
from lumctl.files import put
from lumctl.studies.provenance import difference, provenance
from lumctl.studies.study import Study, StudyRow, StudySettings

SCHEMA = "lumctl/study-run/v1"
_RUN, _CASES, ROWS, _SUMMARY = "run.json", "cases.jsonl", "rows.parquet", "study.json"
_OURS = frozenset({_RUN, _CASES, ROWS, _SUMMARY})


@dataclass(slots=True)
class RunFolder:
    """A folder where a study runs; see :func:`opened`. ``solved`` are the rows of the cases that are done."""

    path: Path
    run: Mapping[str, Any]
    solved: dict[int, tuple[StudyRow, ...]] = field(default_factory=dict)
    _file: int = -1

    def keep(self, number: int, rows: Sequence[StudyRow]) -> None:
        """Write down the rows of a case.

        Raises:
            UsageError: they cannot be written; what was written before stays.
        """
        line = json.dumps({"case": number, "rows": rows}).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise _unwritable(self.path / _CASES, error, hint="make room, then continue with --resume") from error
        self.solved[number] = tuple(rows)

    def finish(self, summary: str) -> None:
        """Write the results; ``summary`` is the run's document, in JSON.

        Raises:
            UsageError: they cannot be written.
        """
        from lumctl.studies.database import is_installed, write_parquet  # noqa: PLC0415 - it uses an extra

        if is_installed():
            write_parquet(self.path / ROWS, in_order(self.solved), self.run)
        put(self.path / _SUMMARY, summary)


@contextmanager
def opened(path: Path, study: Study, settings: StudySettings, *, resume: bool) -> Iterator[RunFolder]:
    """Open the folder of a run: a new or empty one, or with ``resume`` that of a run with the same settings and code.

    Raises:
        RefusedError: it has the results of another run, or another process runs there.
        UsageError: it has other content, or cannot be written.
    """
    folder = RunFolder(path, provenance(study, settings))
    try:
        present = _entries(path)
        if resume:
            _require_same(path, folder.run)
        elif present & _OURS and not _is_unborn(path, present):
            raise RefusedError(f"{path} has a run of a study", hint="add --resume, or name another folder")
        elif present - _OURS:
            raise UsageError(f"{path} has other content than a run of a study", hint="name a new or an empty folder")
        path.mkdir(parents=True, exist_ok=True)
        folder._file = os.open(path / _CASES, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)  # noqa: SLF001
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        _claim(folder)
        if not resume:
            put(path / _RUN, json.dumps({"schema": SCHEMA, **folder.run}, indent=2) + "\n")
        folder.solved, whole = _read_cases(path / _CASES)
        os.ftruncate(folder._file, whole)  # noqa: SLF001 - a line that was cut off must not precede the next
        yield folder
    finally:
        os.close(folder._file)  # noqa: SLF001


def _entries(path: Path) -> set[str]:
    # The names of files that were being written when a process was killed do not count.
    return {each.name for each in path.iterdir() if not each.name.startswith(".")} if path.exists() else set()


def _is_unborn(path: Path, present: set[str]) -> bool:
    """Whether a run was killed here before it had written what it is made of."""
    return present == {_CASES} and not (path / _CASES).stat().st_size


def _claim(folder: RunFolder) -> None:
    try:
        # The kernel releases this lock when the process ends, however that happens.
        fcntl.flock(folder._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # noqa: SLF001
    except BlockingIOError:
        raise RefusedError(f"another process runs a study in {folder.path}") from None


def _require_same(path: Path, run: Mapping[str, Any]) -> None:
    before = read_run(path)
    if other := difference(run, before):
        raise RefusedError(f"{path} has a run with {other}", hint="run it as before, or name another folder")


def _unwritable(path: Path, error: OSError, hint: str | None = None) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror or error}", hint=hint)


def read_run(path: Path) -> dict[str, Any]:
    """What a run in a folder is made of.

    Raises:
        UsageError: the folder has no run of a study.
    """
    try:
        run = json.loads((path / _RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} has no run of a study", hint="lumctl study run NAME --out DIR makes one") from error
    if not isinstance(run, dict) or run.get("schema") != SCHEMA:
        raise UsageError(f"{path / _RUN} is not a run of a study that this version can read")
    return run


def read_results(path: Path) -> tuple[dict[str, Any], dict[str, Any], tuple[StudyRow, ...]]:
    """What a complete run is made of, its summary, and its rows in the order of the table.

    Raises:
        UsageError: the folder has no run of a study, or one that is not complete.
    """
    run = read_run(path)
    if not (path / _SUMMARY).exists():
        raise UsageError(
            f"the run in {path} is not complete", hint=f"lumctl study run {run['study']} --out {path} --resume"
        )
    try:
        summary = json.loads((path / _SUMMARY).read_text(encoding="utf-8"))
        solved, _ = _read_cases(path / _CASES)
    except (OSError, ValueError) as error:
        raise UsageError(f"the results in {path} cannot be read: {error}") from error
    return run, summary, in_order(solved)


def in_order(solved: Mapping[int, Sequence[StudyRow]]) -> tuple[StudyRow, ...]:
    """The rows of all cases in the order of the table."""
    return tuple(row for number in sorted(solved) for row in solved[number])


def _read_cases(path: Path) -> tuple[dict[int, tuple[StudyRow, ...]], int]:
    """The rows of each case, and how many bytes of the file are whole lines: a process may be killed in the last."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    try:
        lines = [json.loads(line) for line in content[:whole].splitlines()]
        return {each["case"]: tuple(each["rows"]) for each in lines}, whole
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is damaged: {error}") from error


def compared(a: Path, b: Path) -> dict[str, Any]:
    """The document of ``study compare``: two complete runs, claim by claim, in what else they differ; rows too.

    Raises:
        UsageError: a folder has no complete run, or they are of different studies.
    """
    (run_a, summary_a, rows_a), (run_b, summary_b, rows_b) = read_results(a), read_results(b)
    if run_a["study"] != run_b["study"]:
        raise UsageError(f"{a} has a run of study {run_a['study']}, but {b} one of {run_b['study']}")
    only_a, only_b = _only(rows_a, rows_b), _only(rows_b, rows_a)
    claims = list(_claims(summary_a["claims"], summary_b["claims"]))
    return {
        "study": run_a["study"],
        "a": str(a),
        "b": str(b),
        "same": not (only_a or only_b) and all(each["same"] for each in claims),
        "settings": [*_unequal(run_a["settings"], run_b["settings"])],
        "inputs": [*_unequal(run_a.get("inputs", {}), run_b.get("inputs", {}))],
        "versions": [*_unequal(*({**run["versions"], "code": run["code"]} for run in (run_a, run_b)))],
        "rows": {"a": len(rows_a), "b": len(rows_b), "only_a": only_a, "only_b": only_b},
        "claims": claims,
    }


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in {**a, **b}:
        if a.get(name) != b.get(name):
            yield {"name": name, "a": a.get(name), "b": b.get(name)}


def _only(rows: Sequence[StudyRow], other: Sequence[StudyRow]) -> int:
    """How many rows the other table lacks, wherever they are."""
    mine, theirs = (Counter(json.dumps(row, sort_keys=True) for row in each) for each in (rows, other))
    return (mine - theirs).total()


_FOUND = ("measured", "interval", "reading", "verdict")


def _claims(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    of_a, of_b = ({each["id"]: each for each in claims} for claims in (a, b))
    for claim in {**of_a, **of_b}:
        one, two = ({name: each.get(claim, {}).get(name) for name in _FOUND} for each in (of_a, of_b))
        known = {**of_b.get(claim, {}), **of_a.get(claim, {})}
        published = {name: known[name] for name in ("published", "unit")}
        yield {"id": claim, **published, "a": one, "b": two, "same": one == two}
