"""What tests of every folder share."""

import faulthandler
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from postgres import Postgres

REPOSITORY = Path(__file__).resolve().parents[1]
CAPTURES = Path(os.environ.get("LUMCTL_CAPTURES", REPOSITORY.parent / "shared" / "captures"))

# Whoever starts the tests in the background may have them ignore these, and every command would then ignore them too.
for _signal in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL)

# A loaded machine is slow, and slow is not wrong: pytest's own time-out watches for what hangs.
settings.register_profile("lumctl", deadline=None)
settings.load_profile("lumctl")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m timed``, leave out files without such tests: to import all of them takes a minute."""
    if config.option.markexpr != "timed" or collection_path.is_dir():
        return None
    return None if any(map(_marks_timed, (collection_path, collection_path.with_name("conftest.py")))) else True


@cache
def _marks_timed(path: Path) -> bool:
    return path.exists() and "mark.timed" in path.read_text()


HANGS_AFTER_S = 10_000.0 if "LUMCTL_CAMPAIGN" in os.environ else 1200.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """End the process of a test that hangs where pytest's own time-out cannot interrupt it, such as in a lock.

    The tests after it run in another process.
    """
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def captures():
    """Outputs of real hardware, which are not part of the project: tests read them where they are at hand."""
    if not CAPTURES.is_dir():
        pytest.skip("the captures of real hardware are not at hand")
    return CAPTURES


@pytest.fixture(scope="session")
def require_program() -> Callable[[str], str]:
    """The path of a program of the system; without it a test is skipped, or fails where all parts must be there."""

    def require(name: str) -> str:
        places = [
            os.environ.get("PATH", ""),
            "/usr/sbin",
            "/sbin",
            *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))),
        ]
        found = shutil.which(name, path=":".join(places))
        if found is None and os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS") == "1":
            pytest.fail(f"{name} is not installed, and LUMCTL_REQUIRE_SYSTEM_PARTS=1 asks for it")
        if found is None:
            pytest.skip(f"{name} is not installed")
        return found

    return require


@pytest.fixture(scope="session")
def require_extra() -> Callable[[str, str], None]:
    """Skip a test for which a module of an extra is missing; where all parts must be there, it fails."""

    def require(extra: str, module: str) -> None:
        if find_spec(module) is not None:
            return
        if os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS") == "1":
            pytest.fail(f"{module} is not installed, and LUMCTL_REQUIRE_SYSTEM_PARTS=1 asks for it")
        pytest.skip(f"{module} is not installed: pip install 'lumctl[{extra}]'")

    return require


@pytest.fixture(scope="session")
def postgres(require_program) -> Iterator[Postgres]:
    """A PostgreSQL of this session's own; ``postgres.fresh()`` is the URL of a new database."""
    pytest.importorskip("psycopg")
    server = Postgres(require_program)
    yield server
    server.close()
