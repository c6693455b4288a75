"""Failure rates of accelerators and hosts: given by the operator, or estimated from the history in a rack's store.

The history has each change of state for 90 days at most. An outage of a component begins when it becomes ``failed``
and ends when it is ``ok`` or ``degraded`` again: out of service (``disabled``) or ``unknown`` in between it is still
down. An accelerator that a swap removed from its job is out of service until it is returned. A host is down while it
cannot be reached.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import Store
from lumctl.store.health import KEEP_TRANSITIONS, KEEP_TRANSITIONS_S
from lumctl.time_text import age_text

LEAST_HISTORY_S = 86_400.0
"""The shortest history from which rates are estimated: minutes say nothing of days."""
CONFIDENCE = 0.95
"""The confidence of the intervals of estimated rates."""

_NUMBER = r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+\."
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*(?P<first>%?)(?:\s*-\s*(?P<high>{_NUMBER})\s*(?P<last>%?))?")
_EXAMPLES = "examples: 0.02, 2%, 0.01-0.03, 1-3%"


@dataclass(frozen=True, slots=True)
class RateRange:
    """Probabilities of being down from ``low`` to ``high``; one probability if they are equal."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{100 * self.low:g} %"
        return f"{100 * self.low:g} to {100 * self.high:g} %"


def read_rates(text: str, option: str) -> RateRange:
    """Parse a probability of being down, or a range: ``0.02``, ``2%``, ``0.01-0.03``, ``1-3%``.

    Raises:
        UsageError: it is neither, or not from 0 to below 1; the message begins with ``option``.
    """
    found = _RANGE.fullmatch(text.strip())
    if found is not None and not (found["high"] and found["first"] and not found["last"]):
        in_all = 100 if found["first"] or found["last"] else 1
        low, high = (float(end) / in_all for end in (found["low"], found["high"] or found["low"]))
        if low > high:
            raise UsageError(f"{option}: the lower end of {text!r} is above the upper one", hint=_EXAMPLES)
        if high < 1:
            return RateRange(low, high)
    raise UsageError(f"{option}: {text!r} is not a probability from 0 to below 1, or a range of them", hint=_EXAMPLES)


@dataclass(frozen=True, slots=True)
class Outage:
    """A time for which a component was down, in seconds since the epoch. ``ends`` is ``None`` if it still is."""

    begins: float
    ends: float | None


def outages(rows: Iterable[Transition], kind: str) -> dict[str, list[Outage]]:
    """The outages of each component of a kind, oldest first; ``rows`` are in order of time."""
    found: dict[str, list[Outage]] = {}
    for row in rows:
        if row.kind != kind:
            continue
        last = found.get(row.component, [])
        is_down = bool(last) and last[-1].ends is None
        if row.after is State.FAILED and not is_down:
            found.setdefault(row.component, last).append(Outage(row.at, None))
        elif row.after in {State.OK, State.DEGRADED} and is_down:
            last[-1] = Outage(last[-1].begins, row.at)
    return found


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """Failures counted over a time in service, with the 95 % interval of their rate. Rates are per second.

    ``in_service_s`` and ``down_s`` are summed over the ``components``. ``repaired`` is how many outages have ended.
    """

    components: int
    failures: int
    in_service_s: float
    down_s: float
    repaired: int
    low: float = field(init=False)
    high: float = field(init=False)

    def __post_init__(self) -> None:
        low, high = poisson_interval(self.failures)
        object.__setattr__(self, "low", low / self.in_service_s if self.in_service_s else 0.0)
        object.__setattr__(self, "high", high / self.in_service_s if self.in_service_s else math.inf)

    @property
    def rate(self) -> float:
        """The most likely rate."""
        return self.failures / self.in_service_s if self.in_service_s else 0.0

    @property
    def repair_s(self) -> float | None:
        """The mean length of an outage; ``None`` if none has ended. Outages that go on lengthen it."""
        return self.down_s / self.repaired if self.repaired and self.down_s else None


@dataclass(frozen=True)
class FailureHistory:
    """What the store of a rack tells about outages between two times (seconds since the epoch)."""

    rack: str
    since: float
    until: float
    accelerators: Mapping[str, Sequence[Outage]]
    hosts: Mapping[str, Sequence[Outage]]

    def estimate(self, kind: str, components: Collection[str]) -> RateEstimate:
        """The failures of these components; ``kind`` is ``accelerator`` or ``host``."""
        known = self.hosts if kind == "host" else self.accelerators
        failures = repaired = 0
        down_s = 0.0
        for name in components:
            for outage in known.get(name, ()):
                ends = self.until if outage.ends is None else outage.ends
                if ends <= self.since:
                    continue
                # A failure with which the history begins gives it its begin, and would count too much.
                failures += outage.begins > self.since
                repaired += outage.ends is not None
                down_s += ends - max(outage.begins, self.since)
        watched_s = (self.until - self.since) * len(components)
        return RateEstimate(len(components), failures, watched_s - down_s, down_s, repaired)


def failure_history(store: Store, rack: str) -> FailureHistory:
    """The outages in a rack's store, and the time that its history covers.

    It begins with the oldest change of state or reading that the store keeps, at most 90 days before its end, and ends
    with the newest observation.

    Raises:
        UsageError: the store has less than a day of history.
    """
    rows = store.health.transitions(limit=KEEP_TRANSITIONS)
    look = store.health.last_look()
    known = [row.at for row in rows]
    until = max([*known, *([look[0]] if look else [])], default=0.0)
    oldest = store.readings.oldest()
    since = max(min([*known, *([] if oldest is None else [oldest])], default=until), until - KEEP_TRANSITIONS_S)
    if until - since < LEAST_HISTORY_S:
        has = f"{age_text(until - since)} of history" if until > since else "no history"
        raise UsageError(
            f"the store of {rack} has {has}; to estimate failure rates, a day is needed at least",
            hint="keep lumctl watch running; until then give a rate: lumctl spare size --failure-rate 0.02",
        )
    return FailureHistory(rack, since, until, outages(rows, "accelerator"), outages(rows, "host"))


def host_rate(own: RateEstimate, whole: RateEstimate) -> float:
    """The rate of the components of one host: its own failures, drawn towards the rate of the whole class.

    The class counts as much as one failure (the mean of a gamma distribution with shape 1 and that rate, updated by the
    host's own record). So a host that has never failed is not taken for perfect, and the mean over all is kept.
    """
    return (own.failures + 1) / (own.in_service_s + 1 / whole.rate) if whole.rate else 0.0


def poisson_interval(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of the mean of a Poisson count (Garwood 1936)."""
    beyond = (1.0 - confidence) / 2
    far = count + 10.0 + NormalDist().inv_cdf(1 - beyond) * 2 * math.sqrt(count + 1.0)
    low = _mean_at(count - 1, 1.0 - beyond, far) if count else 0.0
    return low, _mean_at(count, beyond, far)


def _mean_at(count: int, probability: float, far: float) -> float:
    """The mean for which a Poisson variable is at most ``count`` with this probability; it is below ``far``."""
    low, high = 0.0, far
    for _ in range(60):
        middle = (low + high) / 2
        log_mean = math.log(middle)
        at_most = math.fsum(math.exp(k * log_mean - middle - math.lgamma(k + 1)) for k in range(count + 1))
        low, high = (middle, high) if at_most > probability else (low, middle)
    return (low + high) / 2
