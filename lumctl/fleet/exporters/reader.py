"""One host that is read by its exporters: which pages are fetched when, and the newest of all readings."""

import ssl
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf

from lumctl.devices.endpoints import HostEndpoint
from lumctl.devices.errors import DeviceError
from lumctl.devices.http import LostAnswerError
from lumctl.fleet.exporters.client import PageClient
from lumctl.fleet.exporters.combination import combined
from lumctl.fleet.exporters.probes import ANSWERS, answered_probes, exporter_probes
from lumctl.fleet.host_requests import Outcomes
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict, visible
from lumctl.fleet.probes import Probe
from lumctl.fleet.reader import HostReader, SharedByHosts
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.fleet.rounds import Backoff, Owed, Round
from lumctl.inventory.model import Inventory

_GRACE_S = 0.5
"""Extra time for a thread beyond a time limit, so that the limit's own error arrives first."""


@dataclass
class _Page:
    """One exporter of a host. Times are of the monotonic clock.

    ``request`` numbers its fetches. ``since`` is when the present one began: ``None`` if there is none, infinite
    while it waits for its turn. ``answers``: the host itself answered last time, even by a refusal.
    """

    client: PageClient
    backoff: Backoff = field(default_factory=Backoff)
    request: int = 0
    since: float | None = None
    began_at: float = 0.0
    hangs: bool = False
    again: bool = False
    due: float = 0.0
    answers: bool | None = None
    problem: str = ""


class ExporterReader:
    """A host and its exporters. It runs no command and opens no SSH session. Any thread may ask."""

    def __init__(
        self,
        host: str,
        clients: Sequence[PageClient],
        probes: tuple[Probe, ...],
        means: SharedByHosts,
        *,
        shell_probes: Sequence[str] = (),
    ) -> None:
        self.host = host
        self.probes = probes
        self.clients = tuple(clients)
        self._means = means
        self._shell_probes = tuple(shell_probes)
        self._lock = threading.RLock()
        self._pages = [_Page(client) for client in clients]
        self._outcomes = Outcomes(probes, means.now)
        self._gathered = Gathered()
        self._owed: list[Owed] = []

    def read_now(self, round_: Round, wanted: Collection[str] | None) -> None:
        """Fetch the pages that answer some probes, or all; the round waits for new ones."""
        numbers = self._numbers(wanted)
        with self._lock:
            owed = Owed(round_, numbers)
            for number in numbers:
                self._pages[number].backoff.asked_for()
                self._ask(number, owed)
            self._keep(owed)

    def read_due(self, round_: Round) -> None:
        """Fetch what is due. The round waits for pages that never came; one that fails is asked ever more rarely."""
        now = time.monotonic()
        with self._lock:
            due = [n for n, page in enumerate(self._pages) if page.since is None and page.due <= now]
            awaited = [n for n in due if not self._outcomes.known(n)]
            owed = Owed(round_, awaited)
            for number in due:
                self._ask(number, owed)
            self._keep(owed)

    def _numbers(self, wanted: Collection[str] | None) -> list[int]:
        if wanted is None:
            return list(range(len(self.probes)))
        kinds = {name.partition(":")[0] for name in wanted}
        return [n for n, probe in enumerate(self.probes) if probe.name in wanted or ANSWERS[probe.name] & kinds]

    def _ask(self, number: int, owed: Owed) -> None:
        page = self._pages[number]
        if page.hangs:
            # A second fetch beside one that hangs would hang as well.
            self._outcomes.note((number,), ProbeStatus.TIMED_OUT, f"{page.client.exporter.url} still does not answer")
            owed.forgive(number)
            return
        # What is under way was begun before now; the one after it counts.
        owed.require(number, page.request + 1)
        if page.since is None:
            self._start(number)
        else:
            page.again = True

    def _keep(self, owed: Owed) -> None:
        if owed:
            self._owed.append(owed)

    def _start(self, number: int) -> None:
        page = self._pages[number]
        page.request += 1
        page.since, page.again = inf, False
        page.due = time.monotonic() + self.probes[number].every_s
        request = page.request
        self._means.workers.submit(lambda: self._fetch(number, request))

    def _fetch(self, number: int, request: int) -> None:
        page, deadline_s = self._pages[number], self.probes[number].deadline_s
        text, answers, problem = "", True, ""
        with self._means.gate.passing():
            with self._lock:
                since = page.since = time.monotonic()
                began_at = page.began_at = self._means.now()
            try:
                text = page.client.fetch(deadline_s)
            except DeviceError as error:
                problem = error.message
                answers = _host_answers(error)
            except Exception as error:  # noqa: BLE001 - one page's surprise must not end the reading of the others
                problem = f"{page.client.exporter.url}: unexpected {type(error).__name__}: {error}"
        with self._lock:
            late = time.monotonic() >= since + deadline_s and not text
            if problem:
                verdict: Verdict = (ProbeStatus.TIMED_OUT if late else ProbeStatus.FAILED, problem)
            else:
                verdict = self._take(number, text, began_at)
            self._settle(number, answers=answers, problem=verdict[1])
            self._outcomes.answered(number, verdict, began_at, time.monotonic() - since)
            self._release(number, request)
            if page.again:
                self._start(number)

    def _take(self, number: int, text: str, began_at: float) -> Verdict:
        self._gathered.heard_at = self._means.now()
        try:
            status, detail = self.probes[number].take(ProbeAnswer(0, text), began_at, self._gathered)
        except Exception as error:  # noqa: BLE001 - what one exporter prints must not end the reading of the others
            status, detail = ProbeStatus.FAILED, f"unexpected {type(error).__name__}: {error}"
        return status, f"{self._pages[number].client.exporter.url}: {detail}" if detail else ""

    def _settle(self, number: int, *, answers: bool, problem: str) -> None:
        page = self._pages[number]
        page.since, page.hangs = None, False
        page.answers, page.problem = answers, problem
        if problem:
            page.backoff.failed(time.monotonic())
            page.due = max(page.due, page.backoff.until)
        else:
            page.backoff.worked()

    def _release(self, number: int, request: int | None) -> None:
        """End the wait for a page: it arrived (with this request's number), or will not arrive in time."""
        for owed in list(self._owed):
            if request is None:
                owed.forgive(number)
            else:
                owed.answered(number, request)
            if not owed:
                self._owed.remove(owed)

    def expire(self, now: float) -> float:
        """Let go what has run out of time; when the next deadline is."""
        nearest = inf
        with self._lock:
            for number, page in enumerate(self._pages):
                if page.since is None or page.hangs:
                    continue
                deadline_s = self.probes[number].deadline_s
                if now < page.since + deadline_s + _GRACE_S:
                    nearest = min(nearest, page.since + deadline_s + _GRACE_S)
                    continue
                # Some thread waits in a place without a time limit, such as a look-up of the host's name.
                page.hangs, page.answers = True, False
                page.problem = f"{page.client.exporter.url}: no answer within {deadline_s:g} s"
                verdict = (ProbeStatus.TIMED_OUT, page.problem)
                self._outcomes.answered(number, verdict, page.began_at, now - page.since)
                self._release(number, None)
        return nearest

    def snapshot(self, wanted: Collection[str] | None, since: float | None) -> HostSnapshot:
        """What is known now; with ``since`` (epoch seconds) only what was read from then on, of the probes wanted."""
        with self._lock:
            numbers = self._numbers(wanted)
            pages = self._outcomes.named([self.probes[number].name for number in numbers])
            reachable = any(self._pages[number].answers for number in numbers) or not numbers
            problems = [page.problem for page in self._pages if page.problem]
            now = self._means.now()
            shell = [name for name in self._shell_probes if wanted is None or name.partition(":")[0] in wanted]
            outcomes = {**pages, **answered_probes(pages, self._gathered, shell, now)} if pages else {}
            attempts = min((page.backoff.shown for page in self._pages), default=0)
            return HostSnapshot(
                host=self.host,
                taken_at=now if since is None else since,
                reachable=reachable,
                error=None if reachable or not problems else problems[0],
                probes=outcomes,
                booted_at=self._gathered.booted_at,
                attempts=attempts if since is None and not reachable else 0,
                **visible(self._gathered, outcomes, since),
            )


def _host_answers(error: DeviceError) -> bool:
    """Whether the host itself answers.

    Only a connection that failed without being refused counts against the host. Later failures belong to the
    exporter.
    """
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(each, LostAnswerError | ConnectionRefusedError | ssl.SSLError) for each in chain):
        return True
    return not any(isinstance(each, OSError) for each in chain)


def exporter_reader(
    inventory: Inventory, endpoint: HostEndpoint, means: SharedByHosts, shell_probes: Sequence[str]
) -> ExporterReader:
    """The reader of a host of an inventory. ``shell_probes`` are what its shell would be asked."""
    probes = exporter_probes(
        {exporter.kind: exporter.url for exporter in endpoint.exporters},
        interfaces=[lane.interface for lane in inventory.transponders.values() if lane.host == endpoint.host],
        mounts=inventory.hosts[endpoint.host].mounts,
        times=inventory.probes,
    )
    clients = [
        PageClient(exporter, timeout_s=probe.deadline_s)
        for exporter, probe in zip(endpoint.exporters, probes, strict=True)
    ]
    return ExporterReader(endpoint.host, clients, probes, means, shell_probes=shell_probes)


class CombinedReader:
    """A host that is read over SSH and by its exporters at once."""

    def __init__(self, shell: HostReader, pages: ExporterReader) -> None:
        self.host = shell.host
        self.probes = (*shell.probes, *pages.probes)
        self.clients = pages.clients
        self._shell = shell
        self._pages = pages

    def read_now(self, round_: Round, wanted: Collection[str] | None) -> None:
        """Ask both."""
        self._shell.read_now(round_, wanted)
        self._pages.read_now(round_, wanted)

    def read_due(self, round_: Round) -> None:
        """Ask both for what is due."""
        self._shell.read_due(round_)
        self._pages.read_due(round_)

    def expire(self, now: float) -> float:
        """Let go what has run out of time; when the next deadline of either is."""
        return min(self._shell.expire(now), self._pages.expire(now))

    def snapshot(self, wanted: Collection[str] | None, since: float | None) -> HostSnapshot:
        """What both know."""
        return combined(self._shell.snapshot(wanted, since), self._pages.snapshot(wanted, since))
