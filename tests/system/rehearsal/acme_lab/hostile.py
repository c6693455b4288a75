"""Drivers that can read their device, and fail when they are to change it."""
# ruff: noqa: ARG002

import threading

from acme_lab.driver import AcmeMesh
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Receipt


class Refuses(AcmeMesh):
    """Its device says no to every change."""

    def commit(self, staged, *, revert_after_s=None):
        raise DeviceRefusedError("ask the owner first")


class Raises(AcmeMesh):
    """Breaks while it writes."""

    def commit(self, staged, *, revert_after_s=None):
        return {}["receipt"]


class Hangs(AcmeMesh):
    """Never comes back from a change."""

    def commit(self, staged, *, revert_after_s=None):
        threading.Event().wait()


class Lies(AcmeMesh):
    """Says that it has changed the device, and has not."""

    def commit(self, staged, *, revert_after_s=None):
        return Receipt(staged, revert_armed=False)


class WrongAnswer(AcmeMesh):
    """Answers a change with a text."""

    def commit(self, staged, *, revert_after_s=None):
        super().commit(staged, revert_after_s=revert_after_s)
        return "done"


class Deaf(AcmeMesh):
    """Speaks another protocol than its twin."""

    def _ask(self, do, content=None):
        raise DeviceUnreachableError(f"{self.context.device}: [ssl: wrong_version_number]; nothing was sent")
