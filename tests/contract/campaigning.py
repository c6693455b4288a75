"""What takes too long for every run of the tests."""

import os

import pytest

campaign = pytest.mark.skipif("LUMCTL_CAMPAIGN" not in os.environ, reason="long: with LUMCTL_CAMPAIGN=1 only")
