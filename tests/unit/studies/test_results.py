"""The folder of a run, and what is made of it: queries, comparisons, figures."""

import errno
import json
import os
import sys
from contextlib import contextmanager

import pytest
from drawn_study import STUDY

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import STUDIES, folder, provenance
from lumctl.studies.folder import read_results


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """The drawn study among those of the program."""
    monkeypatch.setitem(STUDIES, "drawn", STUDY)
    monkeypatch.delenv("DRAWN_DEATHS", raising=False)


@pytest.fixture
def kept(tmp_path, capsys):
    """The folder of a complete run."""
    assert study("run", "drawn", "--out", tmp_path / "kept", "-o", "name") == ExitCode.DONE
    capsys.readouterr()
    return tmp_path / "kept"


def study(*words):
    return run(["study", *map(str, words)])


def error(capsys):
    """The one line of an error."""
    shown = capsys.readouterr()
    assert shown.out == ""
    line, *hints = shown.err.splitlines()
    assert all(each.startswith("  hint: ") for each in hints)
    return line.removeprefix("lumctl: ")


@contextmanager
def without(monkeypatch, *modules):
    """Modules that are not installed."""
    with monkeypatch.context() as patch:
        for module in modules:
            patch.setitem(sys.modules, module, None)
        yield


def test_the_summary_is_the_document_and_says_where_it_comes_from(kept, capsys):
    assert study("run", "drawn", "-o", "json") == ExitCode.DONE
    printed = capsys.readouterr().out
    assert (kept / "study.json").read_text(encoding="utf-8") == printed
    document = json.loads(printed)
    assert document["schema"] == "lumctl/study/v1"
    assert document["seeds"] == list(range(8))
    assert document["code"] == provenance.code_digest()
    assert {"lumctl", "python"} <= document["versions"].keys()
    assert read_results(kept)[2][0]["beyond"] == float("inf")  # which JSON lacks, and so is null in the summary


def test_the_digest_is_of_the_code_that_studies_use(tmp_path, monkeypatch):
    package = tmp_path / "lumctl"
    for place in ("studies/a.py", "cli/b.py", "studies/__pycache__/a.pyc"):
        (package / place).parent.mkdir(parents=True, exist_ok=True)
        (package / place).write_text("1")
    monkeypatch.setattr(provenance.lumctl, "__file__", str(package / "__init__.py"))
    before = provenance.code_digest.__wrapped__()
    (package / "cli" / "b.py").write_text("2")
    (package / "studies" / "__pycache__" / "a.pyc").write_text("2")
    assert provenance.code_digest.__wrapped__() == before
    (package / "studies" / "a.py").write_text("2")
    assert provenance.code_digest.__wrapped__() != before


def test_a_folder_with_a_run_or_with_other_content_is_left_alone(kept, tmp_path, capsys):
    assert study("run", "drawn", "--out", kept) == ExitCode.REFUSED
    assert error(capsys) == f"{kept} has a run of a study"
    (tmp_path / "cases.txt").touch()
    assert study("run", "drawn", "--out", tmp_path) == ExitCode.USAGE
    assert error(capsys) == f"{tmp_path} has other content than a run of a study"
    assert study("run", "drawn", "--resume") == ExitCode.USAGE
    assert error(capsys) == "--resume needs --out DIR"
    assert study("run", "drawn", "--resume", "--out", tmp_path / "new") == ExitCode.USAGE
    assert error(capsys) == f"{tmp_path / 'new'} has no run of a study"


def test_wrong_settings_leave_no_folder(tmp_path, capsys):
    assert study("run", "rails", "--set", "gpus=100", "--out", tmp_path / "new") == ExitCode.USAGE
    assert not (tmp_path / "new").exists()
    assert error(capsys).startswith("gpus is 100")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drawn", "--seeds", "9"], "a run with seeds=8, not seeds=9"),
        (["spares"], "a run with study drawn, not spares"),
    ],
)
def test_resume_with_other_settings_is_refused(words, said, kept, capsys):
    assert study("run", *words, "--out", kept, "--resume") == ExitCode.REFUSED
    assert error(capsys) == f"{kept} has {said}"


def test_resume_with_another_version_or_other_code_is_refused(kept, capsys, monkeypatch):
    monkeypatch.setattr("lumctl.__version__", "99")
    assert study("run", "drawn", "--out", kept, "--resume") == ExitCode.REFUSED
    assert "a run with lumctl " in error(capsys)
    monkeypatch.undo()
    monkeypatch.setitem(STUDIES, "drawn", STUDY)
    monkeypatch.setattr(provenance, "code_digest", lambda: "other")
    assert study("run", "drawn", "--out", kept, "--resume") == ExitCode.REFUSED
    assert error(capsys) == f"{kept} has a run with other code of lumctl"


def test_a_line_that_was_cut_off_is_solved_again(kept, capsys):
    whole = read_results(kept)
    cases = (kept / "cases.jsonl").read_bytes()
    (kept / "cases.jsonl").write_bytes(cases[:-20])
    (kept / "study.json").unlink()
    assert study("sql", kept, "from rows") == ExitCode.USAGE
    assert error(capsys) in {f"the run in {kept} is not complete", "study sql needs DuckDB"}
    assert study("compare", kept, kept) == ExitCode.USAGE
    assert error(capsys) == f"the run in {kept} is not complete"
    assert study("run", "drawn", "--out", kept, "--resume", "-o", "name") == ExitCode.DONE
    assert read_results(kept) == whole
    assert (kept / "cases.jsonl").read_bytes() == cases


def test_a_run_that_was_killed_before_it_began_does_not_block_its_folder(tmp_path):
    (tmp_path / "cases.jsonl").touch()
    assert study("run", "drawn", "--out", tmp_path, "-o", "name") == ExitCode.DONE


def test_two_processes_do_not_share_a_folder(tmp_path, capsys):
    with folder.opened(tmp_path / "run", STUDY, STUDY.settings(), resume=False):
        assert study("run", "drawn", "--out", tmp_path / "run", "--resume") == ExitCode.REFUSED
    assert error(capsys) == f"another process runs a study in {tmp_path / 'run'}"


def test_a_folder_that_cannot_be_made_is_one_line(capsys):
    assert study("run", "drawn", "--out", "/proc/lumctl/run") == ExitCode.USAGE
    assert error(capsys) == "/proc/lumctl/run cannot be written: No such file or directory"


def test_on_a_full_disk_what_is_done_stays(tmp_path, capsys, monkeypatch):
    honest, written = os.write, []

    def full(file, content):
        written.append(content)
        if len(written) > 3:
            honest(file, content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return honest(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(folder.os, "write", full)
        assert study("run", "drawn", "--out", tmp_path / "run") == ExitCode.USAGE
    assert error(capsys) == f"{tmp_path / 'run' / 'cases.jsonl'} cannot be written: No space left on device"
    assert study("run", "drawn", "--out", tmp_path / "run", "--resume", "-o", "name") == ExitCode.DONE
    assert len(read_results(tmp_path / "run")[2]) == 16


def test_without_the_extra_studies_run_and_the_rest_says_what_is_missing(tmp_path, capsys, monkeypatch):
    with without(monkeypatch, "duckdb", "matplotlib", "distributed", "dask_jobqueue"):
        assert study("run", "drawn", "--out", tmp_path / "run", "-o", "name") == ExitCode.DONE
        assert study("compare", tmp_path / "run", tmp_path / "run", "-o", "name") == ExitCode.DONE
        capsys.readouterr()
        assert study("sql", tmp_path / "run", "from rows") == ExitCode.USAGE
        assert error(capsys) == "study sql needs DuckDB"
        assert study("figure", "drawn", "--svg", tmp_path / "a.svg") == ExitCode.USAGE
        assert error(capsys) == "study figure needs matplotlib"
        assert study("run", "drawn", "--executor", "dask") == ExitCode.USAGE
        assert error(capsys) == "--executor dask needs Dask"
        assert study("run", "drawn", "--executor", "slurm") == ExitCode.USAGE
        assert error(capsys) == "--executor slurm needs dask-jobqueue"
    assert not (tmp_path / "run" / "rows.parquet").exists()
    assert not (tmp_path / "a.svg").exists()


def test_an_inventory_gives_the_size_of_the_rack(capsys):
    assert study("run", "spares", "-i", "inventories/prototype.yaml", "-o", "json") == ExitCode.DONE
    mine = json.loads(capsys.readouterr().out)["settings"]["accelerators"]
    assert study("run", "spares", "-i", "inventories/prototype.yaml", "--set", "accelerators=9", "-o", "json") == 0
    assert (len(mine), json.loads(capsys.readouterr().out)["settings"]["accelerators"]) == (1, [9])
    assert study("run", "drawn", "-i", "inventories/prototype.yaml") == ExitCode.USAGE
    assert error(capsys).startswith("study drawn uses nothing of an inventory; these take -i: ")


def test_two_runs_side_by_side(kept, tmp_path, capsys):
    assert study("run", "drawn", "--seeds", "9", "--out", tmp_path / "nine", "-o", "name") == ExitCode.DONE
    capsys.readouterr()
    assert study("compare", kept, tmp_path / "nine", "-o", "json") == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lumctl/study-comparison/v1"
    assert document["settings"] == [{"name": "seeds", "a": [8], "b": [9]}]
    assert document["rows"] == {"a": 16, "b": 18, "only_a": 0, "only_b": 2}
    assert (document["same"], document["versions"]) == (False, [])
    assert [each["same"] for each in document["claims"]] == [False]
    assert study("compare", kept, kept, "-o", "json") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["same"] is True
    assert study("compare", kept, tmp_path / "nine") == ExitCode.DONE
    assert "seeds: A 8, B 9\nrows: 16 and 18, of which only A has 0, and only B 2" in capsys.readouterr().out
    assert study("run", "rails", "--out", tmp_path / "rails", "-o", "name") == ExitCode.DONE
    capsys.readouterr()
    assert study("compare", kept, tmp_path / "rails") == ExitCode.USAGE
    assert "has a run of study drawn, but" in error(capsys)


@pytest.fixture
def duckdb(require_extra):
    require_extra("studies", "duckdb")


@pytest.mark.usefixtures("duckdb")
@pytest.mark.parametrize("parquet", [True, False])
def test_a_query_finds_rows_claims_and_settings(parquet, kept, capsys):
    if not parquet:
        (kept / "rows.parquet").unlink()
    query = (
        "select count(*), max(seed), typeof(any_value(seed)), typeof(any_value(word)), typeof(any_value(number)), "
        "max(beyond) = 'inf'::double, (select value from settings where name = 'seeds'), "
        "(select published from claims) from rows"
    )
    assert study("sql", kept, query, "-o", "json") == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == [[16, 7, "BIGINT", "VARCHAR", "DOUBLE", True, 8, 0.5]]
    assert study("sql", kept, "select word from rows order by number limit 1", "-o", "name") == ExitCode.DONE
    assert capsys.readouterr().out == min(row["word"] for row in read_results(kept)[2]) + "\n"


@pytest.mark.usefixtures("duckdb")
def test_parquet_says_what_the_run_is_made_of(kept):
    import duckdb

    with duckdb.connect() as database:
        found = database.execute("select value from parquet_kv_metadata(?)", [str(kept / "rows.parquet")]).fetchall()
    assert json.loads(found[0][0]) == {key: value for key, value in read_results(kept)[0].items() if key != "schema"}


@pytest.mark.usefixtures("duckdb")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("from read_csv('/etc/passwd')", "file system operations are disabled"),
        ("from read_text('{secret}')", "file system operations are disabled"),
        ("from '{secret}'", "file system operations are disabled"),
        ("from read_csv('.tmp/secret.csv')", "file system operations are disabled"),
        ("from glob('/etc/*')", "file system operations are disabled"),
        ("from 'http://127.0.0.1:{port}/rows.parquet'", "file system operations are disabled"),
        ("from secret_numbers", "does not exist"),  # a variable of this program
        ("select * from query('copy rows to ''{out}''')", "query failed"),
        ("copy rows to '{out}'", "a query is one SELECT"),
        ("copy (select 1) to '/dev/stdout'", "a query is one SELECT"),
        ("export database '{out}'", "a query is one SELECT"),
        ("attach '{out}'", "a query is one SELECT"),
        ("install httpfs", "a query is one SELECT"),
        ("load httpfs", "a query is one SELECT"),
        ("set enable_external_access = true", "a query is one SELECT"),
        ("drop table rows", "a query is one SELECT"),
        ("select 1; drop table rows", "a query is one SELECT"),
        ("", "a query is one SELECT"),
        ("select nothing from rows", "the query failed: Binder Error"),
        ("selec", "the query failed: Parser Error"),
    ],
)
def test_a_query_writes_nothing_and_reads_nothing_else(query, said, kept, tmp_path, capsys, monkeypatch):
    import socket

    from lumctl.studies import database

    monkeypatch.setattr(database, "secret_numbers", pytest.importorskip("numpy").arange(3), raising=False)
    monkeypatch.chdir(tmp_path)
    for secret in (tmp_path / "secret.csv", tmp_path / ".tmp" / "secret.csv"):
        secret.parent.mkdir(exist_ok=True)
        secret.write_text("a,b\n1,2\n")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        names = {"secret": tmp_path / "secret.csv", "out": tmp_path / "out", "port": server.getsockname()[1]}
        assert study("sql", kept, query.format(**names)) == ExitCode.USAGE
        with pytest.raises(BlockingIOError):
            server.accept()  # nobody has connected
    assert said in error(capsys)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


@pytest.mark.usefixtures("duckdb")
@pytest.mark.parametrize(
    "statement",
    [
        *("copy rows to '{out}'", "attach '{out}'", "install httpfs", "load httpfs", "export database '{out}'"),
        *("set enable_external_access = true", "set temp_directory = '{out}'", "reset lock_configuration"),
        "set allowed_directories = ['/']",
    ],
)
def test_the_database_itself_has_given_up_what_no_query_needs(statement, tmp_path):
    """Also if a statement that is no SELECT were taken for one."""
    import duckdb

    from lumctl.studies import database

    with database._connection() as connection:
        connection.execute("create table rows as select 1")
        database._restrict(connection)
        with pytest.raises(duckdb.Error):
            connection.execute(statement.format(out=tmp_path / "out"))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def matplotlib(require_extra):
    require_extra("studies", "matplotlib")


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_equal_results_give_equal_figures(kind, kept, tmp_path, monkeypatch, capsys):
    files = [tmp_path / f"{number}.{kind}" for number in range(3)]
    assert study("figure", "drawn", f"--{kind}", files[0]) == ExitCode.DONE
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "lines.linewidth", 9.0)  # a user's own style
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert study("figure", "drawn", f"--{kind}", files[1], "--from", kept) == ExitCode.DONE
    assert files[0].read_bytes() == files[1].read_bytes()
    assert study("figure", "drawn", f"--{kind}", files[2], "--seeds", "9") == ExitCode.DONE
    assert files[0].read_bytes() != files[2].read_bytes()
    assert mpl.rcParams["lines.linewidth"] == 9.0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("name", ["bandwidth", "collectives", "rail-steps", "recovery", "spares"])
def test_a_figure_has_each_claim(name, tmp_path, recwarn):
    assert study("figure", name, "--quick", "--svg", tmp_path / "a.svg") == ExitCode.DONE
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {claim.id}: " in drawn for claim in STUDIES[name].claims)
    assert not recwarn.list


@pytest.mark.usefixtures("matplotlib")
def test_an_axis_may_have_words(tmp_path):
    assert study("figure", "recovery", "--svg", tmp_path / "a.svg") == ExitCode.DONE
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(
        f"<!-- {words} -->" in drawn
        for words in ("model loaded", "Morphlux, fabric_s=0.001", "time since the failure (s)")
    )


@pytest.mark.usefixtures("matplotlib")
def test_a_figure_without_a_file_or_of_another_study_is_one_line(kept, tmp_path, capsys):
    assert study("figure", "drawn") == ExitCode.USAGE
    assert error(capsys) == "there is no file to write"
    assert study("figure", "rails", "--from", kept, "--svg", tmp_path / "a.svg") == ExitCode.USAGE
    assert error(capsys) == f"{kept} has a run of study drawn, not rails"
    assert study("figure", "drawn", "--from", kept, "--quick", "--svg", tmp_path / "a.svg") == ExitCode.USAGE
    assert error(capsys) == "--from draws results that are there; it excludes the options of a run"
    assert study("figure", "drawn", "--svg", "/proc/lumctl.svg") == ExitCode.USAGE
    assert error(capsys).startswith("/proc/lumctl.svg cannot be written: ")
