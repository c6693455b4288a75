from pathlib import Path

import pytest

ANSWERS = Path(__file__).parent / "answers"


@pytest.fixture(scope="session")
def answer():
    """What a host printed, by file name."""
    return lambda name: (ANSWERS / name).read_text()
