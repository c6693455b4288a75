"""Drivers that answer, and hold up the end of their process: by threads, exit handlers, children and finalizers.

They are asked in processes of their own only: a test's process would not end either.
"""

import atexit
import multiprocessing
import os
import signal
import threading

from wrong_drivers.marks import mark
from wrong_drivers.right import RightMesh


class Marking(RightMesh):
    """Tells the test that it was asked."""

    def identify(self):
        mark()
        return super().identify()


class LeavesAThread(Marking):
    """Starts a thread that is no daemon and never ends."""

    def identify(self):
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        return super().identify()


class LeavesAnExitHandler(Marking):
    """Registers an exit handler that never comes back."""

    def identify(self):
        atexit.register(threading.Event().wait)
        return super().identify()


class LeavesAChild(Marking):
    """Forks a child that continues with all that it inherits."""

    def identify(self):
        if os.fork() == 0:
            signal.pause()
        return super().identify()


class LeavesAWorker(Marking):
    """Starts a process of multiprocessing that is no daemon and never ends."""

    def identify(self):
        multiprocessing.get_context("fork").Process(target=signal.pause).start()
        return super().identify()


class Finalizer:
    """Never comes back from being freed."""

    def __del__(self):
        threading.Event().wait()


class HangsWhenFreed(Marking):
    """Holds what never comes back from being freed."""

    def __init__(self, context):
        super().__init__(context)
        self.session = Finalizer()


class HangsAtFinalization(Marking):
    """Leaves what never comes back from being freed in its class, which is freed as the interpreter ends."""

    def identify(self):
        type(self).left = Finalizer()
        return super().identify()
