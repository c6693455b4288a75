"""The contract of sharing policies as a test suite: subclass ``SharingContract`` and override its fixture ``policy``.

The template for ``sharing`` shows it; see lumctl-inventory(5), Sharing of spares.
"""

import pytest

pytest.register_assert_rewrite("lumctl.spares.testing.contract")

from lumctl.spares.testing.contract import SharingContract, questions  # noqa: E402 - after its asserts were registered

__all__ = ["SharingContract", "questions"]
