"""The results of a run as a database: rows to Parquet, and queries that can read nothing else and write nothing."""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.errors import UsageError
from lumctl.studies.folder import ROWS, read_results
from lumctl.studies.study import StudyRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SAFE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    # Queries could otherwise read a folder .tmp here, even without access to files.
    "temp_directory": "",
}
_CLAIM_COLUMNS = (
    *("id", "source", "words", "unit", "published", "measured"),
    *("low", "high", "reading", "verdict", "recorded"),
)


def is_installed() -> bool:
    """Whether DuckDB is installed."""
    return find_spec("duckdb") is not None


def write_parquet(path: Path, rows: Sequence[StudyRow], run: Mapping[str, Any]) -> None:
    """Write rows to a Parquet file, with what the run is made of in its metadata under the key ``lumctl``.

    Raises:
        UsageError: it cannot be written.
    """
    import duckdb  # noqa: PLC0415 - an extra

    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    said = _quoted(json.dumps(run))
    with closing(_connection()) as database:
        _load_rows(database, rows)
        try:
            database.execute(f"COPY rows TO {_quoted(str(beside))} (FORMAT parquet, KV_METADATA {{lumctl: {said}}})")
            beside.replace(path)
        except (OSError, duckdb.Error) as error:
            raise UsageError(f"{path} cannot be written: {str(error).splitlines()[0]}") from error
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def query(folder: Path, text: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The columns and the rows that a query finds in the tables ``rows``, ``claims`` and ``settings`` of a run.

    The tables are copies in memory. Before the query, the database gives up files, the network and extensions, and
    locks that setting; it takes one SELECT.

    Raises:
        UsageError: DuckDB is not installed, the folder has no complete run, or the query fails.
    """
    if not is_installed():
        raise UsageError("study sql needs DuckDB", hint="pip install 'lumctl[studies]'")
    import duckdb  # noqa: PLC0415 - an extra

    run, summary, rows = read_results(folder)
    with closing(_connection()) as database:
        try:
            _load_results(database, folder, run, summary, rows)
        except duckdb.Error as error:
            raise UsageError(f"the results in {folder} cannot be read: {str(error).splitlines()[0]}") from error
        _restrict(database)
        try:
            statements = database.extract_statements(text)
            if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
                raise UsageError("a query is one SELECT; its tables are rows, claims and settings")
            found = database.execute(statements[0])
            return tuple(each[0] for each in found.description or ()), found.fetchall()
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {' '.join(str(error).split())}") from error


def _connection() -> "DuckDBPyConnection":
    import duckdb  # noqa: PLC0415 - an extra

    return duckdb.connect(":memory:", config=dict(_SAFE))


def _restrict(database: "DuckDBPyConnection") -> None:
    """Give up files, the network and extensions, for good."""
    database.execute("SET enable_external_access = false; SET lock_configuration = true")


def _load_results(
    database: "DuckDBPyConnection", folder: Path, run: Any, summary: Any, rows: Sequence[StudyRow]
) -> None:
    if (folder / ROWS).exists():
        database.execute(f"CREATE TABLE rows AS FROM read_parquet({_quoted(str(folder / ROWS))})")
    else:  # DuckDB was not there when the study was run
        _load_rows(database, rows)
    claims = [
        {**each, **dict(zip(("low", "high"), each["interval"] or (None, None), strict=True))}
        for each in summary["claims"]
    ]
    _load(database, "claims", _CLAIM_COLUMNS, claims)
    settings = [{"name": name, "value": value} for name, values in run["settings"].items() for value in values]
    _load(database, "settings", ("name", "value"), settings)


def _load_rows(database: "DuckDBPyConnection", rows: Sequence[StudyRow]) -> None:
    _load(database, "rows", list(rows[0]) if rows else ["row"], rows)  # a table needs a column


def _load(database: "DuckDBPyConnection", name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Make a table. A column has whole numbers, numbers or texts; whole columns are much faster to pass than rows."""
    values = [_alike([row[column] for row in rows]) for column in columns]
    names = [_quoted(column, '"') for column in columns]
    parts = (f"unnest(?::{_type(each)}[]) AS {name}" for name, each in zip(names, values, strict=True))
    database.execute(f"CREATE TABLE {name} AS SELECT {', '.join(parts)}", values)


def _alike(values: Sequence[Any]) -> list[Any]:
    if not any(isinstance(value, str) for value in values):
        return list(values)
    return [value if value is None else str(value) for value in values]


def _type(values: Sequence[Any]) -> str:
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        return "VARCHAR"
    return "BIGINT" if present and all(isinstance(value, int) for value in present) else "DOUBLE"


def _quoted(text: str, mark: str = "'") -> str:
    return mark + text.replace(mark, mark * 2) + mark
