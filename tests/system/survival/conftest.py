"""A rack that two jobs share, and engines on it that end where a test wants them to."""

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("crash_assertions", "crash_fixture")

from crash_fixture import CrashRack, crash_rack_of  # noqa: E402 - its assertions are to be told in full

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))


@pytest.fixture(scope="package")
def crash_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashRack]:
    with crash_rack_of(tmp_path_factory.mktemp("crash_rack")) as made:
        yield made


@pytest.fixture(scope="session")
def campaign() -> bool:
    """Whether all is run of which CI runs a sample."""
    return CAMPAIGN


@pytest.fixture(scope="session")
def sample() -> Callable[[list, int], list]:
    """All of a list in a campaign; otherwise ``few`` of it, the same ones every time."""

    def chosen(whole: list, few: int) -> list:
        if CAMPAIGN or few >= len(whole):
            return list(whole)
        return random.Random(len(whole)).sample(whole, few)  # noqa: S311 - no secret

    return chosen


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print the account of a campaign."""

    def told(line: str) -> None:
        with capsys.disabled() if CAMPAIGN else contextlib.nullcontext():
            print(f"\n{line}")  # noqa: T201

    return told


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(1800 if CAMPAIGN else 300))
