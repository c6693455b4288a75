"""Meshes that are wrong in one thing each."""

# ruff: noqa: ARG002, BLE001 - what is wrong with them

import math
import random
import sys
import time

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Alarm, Capability, PucChange, PucState, Receipt, Staged
from wrong_drivers.right import RightMesh, TimedMesh, UnclearError, ask, read, write


class Milliwatts(RightMesh):
    """Gives powers in mW."""

    def read_powers(self, ports):
        return {port: 10 ** (dbm / 10) for port, dbm in super().read_powers(ports).items()}


class Kelvin(RightMesh):
    """Gives its temperature in Kelvin."""

    def read_temperature(self):
        return super().read_temperature() + 273.15


class NoPowerIsNone(RightMesh):
    """Gives ``None`` for no light."""

    def read_powers(self, ports):
        return {port: dbm if dbm > -math.inf else None for port, dbm in super().read_powers(ports).items()}


class TextForStates(RightMesh):
    """Gives states as its device writes them."""

    def read_states(self):
        return {puc: str(state) for puc, state in super().read_states().items()}

    def compare(self, staged):
        held = self.read_states()
        return tuple(PucChange(c.puc, held[c.puc], c.after) for c in staged.changes if held[c.puc] != c.after)


class ListOfStates(RightMesh):
    """Gives its states as a list."""

    def read_states(self):
        return list(super().read_states().values())

    def stage(self, changes):
        held = RightMesh.read_states(self)
        return Staged(tuple(PucChange(puc, held[puc], after) for puc, after in sorted(changes.items())), "")

    def compare(self, staged):
        held = RightMesh.read_states(self)
        return tuple(PucChange(c.puc, held[c.puc], c.after) for c in staged.changes if held[c.puc] is not c.after)


class BeyondPucCount(RightMesh):
    """Gives states of PUCs that the mesh does not have."""

    def read_states(self):
        held = super().read_states()
        return held | {self.context.puc_count: PucState.BAR}


class PucsFromOne(RightMesh):
    """Numbers PUCs from 1, as the vendor's screen does."""

    def read_states(self):
        return {puc + 1: state for puc, state in super().read_states().items()}

    def send(self, states, timer_s=None):
        super().send({puc - 1: state for puc, state in states.items()}, timer_s)


class ValueErrorForRefused(RightMesh):
    """Raises ``ValueError`` for a PUC that does not exist."""

    def stage(self, changes):
        for puc in changes:
            if not 0 <= puc < self.context.puc_count:
                raise ValueError(puc)
        return super().stage(changes)


class OsErrorForUnreachable(RightMesh):
    """Lets the errors of its socket through."""

    def identify(self):
        self.context.way.tcp(7000, self.context.timeout_s).close()
        return super().identify()


class ParserError(RightMesh):
    """Raises ``IndexError`` at an answer that it does not understand."""

    def read_states(self):
        try:
            words = ask(self.context, "states").split()
        except UnclearError as error:
            raise DeviceUnreachableError(str(error)) from error
        return {puc: PucState(mark) for puc, mark in enumerate(words[1])}


class OneByOneButAtomic(RightMesh):
    """Declares ``ATOMIC`` and writes one PUC after the other."""

    def send(self, states, timer_s=None):
        for puc, state in sorted(states.items()):
            super().send({puc: state}, timer_s)


class HalfAndRefused(RightMesh):
    """Writes one PUC after the other, and says that nothing changed where that ended halfway."""

    capabilities = RightMesh.capabilities - {Capability.ATOMIC}

    def send(self, states, timer_s=None):
        for puc, state in sorted(states.items()):
            try:
                super().send({puc: state}, timer_s)
            except Exception as error:
                raise DeviceRefusedError(f"{self.context.device} refused the change: {error}") from error


class LostAnswerIsUnreachable(RightMesh):
    """Says that nothing was sent where an answer was lost."""

    def send(self, states, timer_s=None):
        try:
            super().send(states, timer_s)
        except Exception as error:
            raise DeviceUnreachableError(str(error)) from error


class LostAnswerIsSuccess(RightMesh):
    """Takes a lost answer for a yes."""

    def send(self, states, timer_s=None):
        try:
            ask(self.context, " ".join(["set", *(f"{puc}={state}" for puc, state in sorted(states.items()))]))
        except UnclearError:
            return


class WritesTwice(RightMesh):
    """Retries a write whose answer was lost, and says that it was refused when that fails as well."""

    def send(self, states, timer_s=None):
        line = " ".join(["set", *(f"{puc}={state}" for puc, state in sorted(states.items()))])
        for _ in range(2):
            try:
                return write(self.context, line)
            except Exception as error:
                last = error
        raise DeviceRefusedError(f"tried twice: {last}")


class CommitOnlyQueues(RightMesh):
    """Returns from ``commit`` before anything was sent; ``confirm`` or the next commit sends it."""

    queued: dict | None = None

    def commit(self, staged, *, revert_after_s=None):
        if revert_after_s is not None:
            return super().commit(staged, revert_after_s=revert_after_s)
        self.confirm(None)
        self.queued = {change.puc: change.after for change in staged.changes}
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt):
        queued, self.queued = self.queued, None
        if queued:
            self.send(queued)


class StagingWrites(RightMesh):
    """Sends a change to the device when it is staged."""

    def stage(self, changes):
        staged = super().stage(changes)
        self.send(dict(changes))
        return staged


class ComparesMemory(RightMesh):
    """Compares with what it wrote last, and does not ask the device."""

    remembered: dict | None = None

    def compare(self, staged):
        held = self.remembered if self.remembered is not None else self.read_states()
        return tuple(PucChange(c.puc, held[c.puc], c.after) for c in staged.changes if held[c.puc] is not c.after)

    def send(self, states, timer_s=None):
        super().send(states, timer_s)
        self.remembered = (self.remembered or self.read_states()) | dict(states)


class CommitToggles(RightMesh):
    """Toggles the cells of a change, so that a second commit takes the first one back."""

    def send(self, states, timer_s=None):
        held = self.read_states()
        flip = {PucState.BAR: PucState.CROSS, PucState.CROSS: PucState.BAR}
        super().send({puc: flip[held[puc]] if held[puc] is state else state for puc, state in states.items()}, timer_s)


class RollBackDoesNothing(RightMesh):
    """Does nothing when a change is to be undone."""

    def roll_back(self, receipt):
        del receipt


class RollBackOfHalf(RightMesh):
    """Takes back what it knows and passes over the rest."""

    def roll_back(self, receipt):
        self.send({c.puc: c.before for c in receipt.staged.changes if c.before is not None})


class ConfirmDoesNothing(TimedMesh):
    """Declares a revert timer and never disarms it."""

    def confirm(self, receipt):
        del receipt


class NoTimerArmed(TimedMesh):
    """Declares a revert timer and arms none."""

    def send(self, states, timer_s=None):
        super().send(states)


class TimerIgnored(RightMesh):
    """Has no revert timer, and commits as if none had been asked for."""

    def commit(self, staged, *, revert_after_s=None):
        return super().commit(staged)


class BoolForReceipt(RightMesh):
    """Gives ``True`` where a receipt belongs."""

    def commit(self, staged, *, revert_after_s=None):
        super().commit(staged, revert_after_s=revert_after_s)
        return True


class TimeOfEachByte(RightMesh):
    """Bounds each byte of an answer, not the whole of it."""

    @property
    def byte_within_s(self):
        return self.context.timeout_s

    def _whole(self, line):
        try:
            stream = self.context.way.tcp(7000, self.context.timeout_s)
        except OSError as error:
            raise DeviceUnreachableError(str(error)) from error
        try:
            stream.settimeout(self.byte_within_s)
            stream.sendall(f"{line}\n".encode())
            answer, piece = b"", b" "
            while piece and not answer.endswith(b"\n"):
                piece = stream.recv(4096)
                answer += piece
            return answer.decode().split()
        except (OSError, ValueError) as error:
            raise DeviceUnreachableError(str(error)) from error
        finally:
            stream.close()

    def read_states(self):
        words = self._whole("states")
        if len(words) != 2 or len(words[1]) != self.context.puc_count or set(words[1]) - {"=", "x"}:
            raise DeviceUnreachableError("these are no states")
        return {puc: PucState(mark) for puc, mark in enumerate(words[1])}


class NeverTimesOut(TimeOfEachByte):
    """Waits for an answer for as long as it takes."""

    byte_within_s = None


class RetriesPastDeadline(RightMesh):
    """Tries an unanswered question five times, each for as long as a call may take."""

    def identify(self):
        for _ in range(4):
            try:
                return super().identify()
            except DeviceUnreachableError:
                continue
        return super().identify()


class Prints(RightMesh):
    """Prints what it does to stdout, with a sequence that clears a terminal."""

    def identify(self):
        print("\x1b[2JDEBUG: connected")  # noqa: T201 - that is what is wrong
        sys.stderr.write("debug\n")
        return super().identify()


class TwoLines(RightMesh):
    """Identifies itself in several lines with escape sequences."""

    def identify(self):
        return f"{super().identify()}\nfirmware \x1b[31m7\x1b[0m"


class CloseFailsTwice(RightMesh):
    """Fails when it is closed a second time."""

    is_open = True

    def close(self):
        if not self.is_open:
            raise RuntimeError("closed already")
        self.is_open = False


class ConnectsAtOnce(RightMesh):
    """Contacts the device when it is made."""

    def __init__(self, context):
        super().__init__(context)
        read(context, "size", "size")


class AnySize(RightMesh):
    """Does not look at the size of its device."""

    def identify(self):
        return f"made-up mesh of {read(self.context, 'size', 'size')[0]} PUCs"


class AlarmsAreText(RightMesh):
    """Gives its alarms as text."""

    def read_alarms(self):
        return ["fan 2 is slow"]


class AlarmsOfTheFuture(RightMesh):
    """Gives the time of an alarm in milliseconds."""

    def read_alarms(self):
        return (Alarm("fan 2 is slow", "WARNING", "fan/2", time.time() * 1000),)


class Undeclared(RightMesh):
    """Declares a reading that it does not have."""

    capabilities = RightMesh.capabilities | {Capability.READ_ALARMS}

    def read_alarms(self):
        raise NotImplementedError


class RandomStates(RightMesh):
    """Gives states of its own invention when the device cannot be asked."""

    def read_states(self):
        try:
            return super().read_states()
        except DeviceUnreachableError:
            return {puc: random.choice(list(PucState)) for puc in range(self.context.puc_count)}  # noqa: S311
