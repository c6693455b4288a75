"""Drivers that would take the program down with them: they raise anything, hang, print, and end their process."""

import os
import sys

from lumctl.devices.types import PowerReading
from wrong_drivers.marks import hang
from wrong_drivers.right import RightMesh, RightPower, RightSwitch, RightTransponder


class DividesByZero(RightMesh):
    """Raises ``ZeroDivisionError`` when it is read."""

    def identify(self):
        return str(1 // 0)

    def read_states(self):
        return {0: 1 // 0}


class DividesByZeroSwitch(RightSwitch):
    """Raises ``ZeroDivisionError`` when it is read."""

    def identify(self):
        return str(1 // 0)

    def read_circuits(self):
        return {0: 1 // 0}


class DividesByZeroTransponder(RightTransponder):
    """Raises ``ZeroDivisionError`` when it is read."""

    def read_optics(self):
        return 1 // 0

    def neighbours(self):
        return 1 // 0


class RecursesForEver(RightMesh):
    """Calls itself for ever."""

    def identify(self):
        return self.identify()

    def read_states(self):
        return self.read_states()


class Exits(RightMesh):
    """Calls ``sys.exit``."""

    def identify(self):
        sys.exit(3)

    def read_states(self):
        sys.exit(3)


class Interrupts(RightMesh):
    """Raises ``KeyboardInterrupt``."""

    def identify(self):
        raise KeyboardInterrupt

    def read_states(self):
        raise KeyboardInterrupt


class EndsTheProcess(RightMesh):
    """Ends its process at once."""

    def identify(self):
        os._exit(9)

    def read_states(self):
        os._exit(9)


class Hangs(RightMesh):
    """Never comes back from a reading."""

    def identify(self):
        hang()

    def read_states(self):
        hang()


class HangsTransponder(RightTransponder):
    """Never comes back from a reading."""

    def read_optics(self):
        hang()

    def neighbours(self):
        hang()


class _Asked:
    """What its class has, and an instance would have to ask the device for."""

    def __get__(self, driver, _driver_class):
        return RightMesh.capabilities if driver is None else hang()


class HangsAtCapabilities(RightMesh):
    """Never comes back when it is asked what it can do."""

    capabilities = _Asked()


class HangsAtStage(RightMesh):
    """Never comes back from ``stage``."""

    def stage(self, _changes):
        hang()


class HangsAtCommit(RightMesh):
    """Never comes back from ``commit``."""

    def commit(self, _staged, **_timer):
        hang()


class HangsAtClose(RightSwitch):
    """Never comes back from ``close``."""

    def close(self):
        hang()


class MeshHangsAtClose(RightMesh):
    """Never comes back from ``close``."""

    def close(self):
        hang()


class FailsAtClose(RightMesh):
    """Raises when it is closed."""

    def close(self):
        raise RuntimeError("cannot be closed")


class FailsAtOpening(RightMesh):
    """Raises when it is made."""

    def __init__(self, context):
        raise RuntimeError(f"cannot be made for {context.device}")


class HangsAtOpening(RightMesh):
    """Never comes back from being made."""

    def __init__(self, context):
        super().__init__(context)
        hang()


class ClearsTheScreen(RightMesh):
    """Prints to stdout and stderr, to their file descriptors as well, with sequences that clear a terminal."""

    def identify(self):
        self.shout()
        return "\x1b[2J\x1b[1;31mmade-up mesh\x07\nsecond line"

    def read_states(self):
        self.shout()
        return super().read_states()

    def shout(self):
        print("\x1b[2Jhello {")  # noqa: T201 - that is what is wrong
        print("hello", file=sys.stderr)  # noqa: T201
        os.write(1, b"\x1b[2Jhello {\n")
        os.write(2, b"hello\n")


class GivesNone(RightMesh):
    """Gives ``None`` for whatever is read."""

    def identify(self):
        return None

    def read_states(self):
        return None

    def read_powers(self, ports):
        del ports

    def read_temperature(self):
        return None

    def read_alarms(self):
        return None


class GivesObjects(RightSwitch):
    """Gives objects whose text cannot be had."""

    def identify(self):
        return Unprintable()

    def read_circuits(self):
        return Unprintable()

    def read_temperature(self):
        return Unprintable()


class GivesText(RightPower):
    """Gives text where a reading belongs."""

    def read_power(self):
        return "on"


class GivesNotANumber(RightPower):
    """Gives watts that are not a number."""

    def read_power(self):
        return PowerReading(self.context.now(), on=True, watts=float("nan"))


class ErrorWithoutText(RightMesh):
    """Raises an error whose text cannot be had."""

    def identify(self):
        raise UnprintableError

    def read_states(self):
        raise UnprintableError


class ForgetsCapabilities(RightMesh):
    """Fails when it is asked what it can do."""

    @property
    def capabilities(self):
        raise RuntimeError("not known")


class EndlessStates(RightMesh):
    """Gives states without an end."""

    def read_states(self):
        return iter(int, 1)


class Unprintable:
    """Something that fails when it is printed or compared."""

    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__
    __iter__ = __repr__
    __eq__ = __repr__
    __hash__ = object.__hash__


class UnprintableError(Exception):
    """An error that fails when it is printed."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__
