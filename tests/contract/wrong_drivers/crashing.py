"""Drivers whose C library ends their process, past all that Python can catch."""

import ctypes

from wrong_drivers.right import RightMesh


class CrashesInC(RightMesh):
    """Reads an address that is not mapped: SIGSEGV."""

    def identify(self):
        return ctypes.string_at(0).decode()


class AbortsInC(RightMesh):
    """Calls ``abort`` of the C library."""

    def identify(self):
        ctypes.CDLL(None).abort()


class ExitsInC(RightMesh):
    """Calls ``_exit`` of the C library, with the code of success."""

    def identify(self):
        ctypes.CDLL(None)._exit(0)
