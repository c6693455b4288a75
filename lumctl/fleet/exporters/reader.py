"""One host that is read through its exporters: when each page is fetched, and the newest of all readings."""

import ssl
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf

from lumctl.devices.endpoints import HostEndpoint
from lumctl.devices.errors import DeviceError, DeviceRefusedError
from lumctl.devices.http import HttpClient, LostAnswerError, login_headers
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct
from lumctl.fleet.exporters.combination import combined
from lumctl.fleet.exporters.probes import ANSWERS, answered_probes, exporter_probes
from lumctl.fleet.host_requests import Outcomes
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict, visible
from lumctl.fleet.probes import Probe
from lumctl.fleet.reader import GRACE_S, HostReader, SharedByHosts
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.fleet.rounds import Backoff, Owed, Round
from lumctl.inventory.exporters import Exporter
from lumctl.inventory.model import Inventory

MOST_PAGE_BYTES = 8 * 1024 * 1024
"""Size limit of a page. A node_exporter of a host with hundreds of processors prints less than one MiB."""
_ACCEPT = {"dcgm": "text/plain;version=0.0.4", "gpud": "application/json"}


class PageClient:
    """One exporter over HTTP, whose certificate is checked. Threads fetch one at a time."""

    def __init__(self, exporter: Exporter, *, timeout_s: float) -> None:
        self.exporter = exporter
        # The client uses TLS for an address without a scheme.
        address = exporter.origin.removeprefix("https://")
        self._login = Login(exporter.user or "", exporter.secret_file, exporter.secret_variable)
        self._http = HttpClient(
            DriverContext(exporter.program, address, Direct(address), self._login, timeout_s=timeout_s),
            ca_file=exporter.ca_file,
            most_bytes=MOST_PAGE_BYTES,
        )

    def fetch(self, most_s: float) -> str:
        """The whole page: one GET with a deadline and a size limit.

        Raises:
            DeviceError: no connection, no whole answer in time, an HTTP error, or no secret for the login.
        """
        accept = _ACCEPT.get(self.exporter.kind, _ACCEPT["dcgm"])
        with self._http.call(most_s):
            answer = self._http.get(self.exporter.path, headers={**login_headers(self._login), "Accept": accept})
        if "content-length" not in answer.headers and "chunked" not in answer.headers.get("transfer-encoding", ""):
            # Without a length or chunks, a broken connection looks like the end of the page.
            raise DeviceRefusedError(
                f"{self.exporter.program} at {self.exporter.url} does not mark the end of its page"
            )
        return answer.body.decode("utf-8", "replace")


@dataclass
class _Page:
    """One exporter of a host. Times are of the monotonic clock.

    ``request`` numbers its fetches. ``since`` is when the present fetch began: ``None`` if none is in progress,
    infinite while it waits for its turn. ``answers`` is true if the host itself answered last time, even by a refusal.
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
    """A host and its exporters. It runs no command and opens no SSH session. Any thread may call it."""

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
        """Fetch the pages that replace the wanted probes (``None``: all pages). The round waits for new pages."""
        numbers = self._numbers(wanted)
        with self._lock:
            owed = Owed(round_, numbers)
            for number in numbers:
                self._pages[number].backoff.asked_for()
                self._ask(number, owed)
            self._keep(owed)

    def read_due(self, round_: Round) -> None:
        """Fetch the pages that are due. The round waits for pages that never came; failed ones are tried less often."""
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
            # A second fetch would hang as the first one does.
            self._outcomes.note((number,), ProbeStatus.TIMED_OUT, f"{page.client.exporter.url} still does not answer")
            owed.forgive(number)
            return
        # A fetch that is under way began before now; the one after it counts.
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
        # Its time begins when the gate lets it pass; until then it waits for others.
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
                # A host whose exporter refuses is reachable: only its page has failed.
                answers = _host_answers(error)
            except Exception as error:  # noqa: BLE001 - an error with one page must not end the reading of the others
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
        """End the wait for a page: it arrived (``request`` is its number), or it will not arrive in time."""
        for owed in list(self._owed):
            if request is None:
                owed.forgive(number)
            else:
                owed.answered(number, request)
            if not owed:
                self._owed.remove(owed)

    def expire(self, now: float) -> float:
        """Abandon the pages that have run out of time; return when the next deadline is."""
        nearest = inf
        with self._lock:
            for number, page in enumerate(self._pages):
                if page.since is None or page.hangs:
                    continue
                deadline_s = self.probes[number].deadline_s
                if now < page.since + deadline_s + GRACE_S:
                    nearest = min(nearest, page.since + deadline_s + GRACE_S)
                    continue
                # The fetching thread waits in a call without a time limit, such as a look-up of the host's name.
                page.hangs, page.answers = True, False
                page.problem = f"{page.client.exporter.url}: no answer within {deadline_s:g} s"
                verdict = (ProbeStatus.TIMED_OUT, page.problem)
                self._outcomes.answered(number, verdict, page.began_at, now - page.since)
                self._release(number, None)
        return nearest

    def snapshot(self, wanted: Collection[str] | None, since: float | None) -> HostSnapshot:
        """The readings of the wanted probes; with ``since`` (epoch seconds) only readings from then on."""
        with self._lock:
            numbers = self._numbers(wanted)
            pages = self._outcomes.named([self.probes[number].name for number in numbers])
            # If none of its pages was asked for, nothing shows that the host is not reachable.
            reachable = any(self._pages[number].answers for number in numbers) or not numbers
            problems = [page.problem for page in self._pages if page.problem]
            now = self._means.now()
            shell = [name for name in self._shell_probes if wanted is None or name.partition(":")[0] in wanted]
            outcomes = {**pages, **answered_probes(pages, self._gathered, shell, now)} if pages else {}
            # The host is reached as well as its best exporter.
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

    Only a connection that failed without being refused counts as no answer. Later failures are the exporter's.
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
    """The reader of a host of an inventory. ``shell_probes`` are the probes that its shell would run."""
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
    """A host that is read both over SSH and through its exporters."""

    def __init__(self, shell: HostReader, pages: ExporterReader) -> None:
        self.host = shell.host
        self.probes = (*shell.probes, *pages.probes)
        self.clients = pages.clients
        self._shell = shell
        self._pages = pages

    def read_now(self, round_: Round, wanted: Collection[str] | None) -> None:
        """Read both."""
        self._shell.read_now(round_, wanted)
        self._pages.read_now(round_, wanted)

    def read_due(self, round_: Round) -> None:
        """Read from both the probes that are due."""
        self._shell.read_due(round_)
        self._pages.read_due(round_)

    def expire(self, now: float) -> float:
        """Abandon requests that have run out of time; return the earlier of both next deadlines."""
        return min(self._shell.expire(now), self._pages.expire(now))

    def snapshot(self, wanted: Collection[str] | None, since: float | None) -> HostSnapshot:
        """The readings of both, combined."""
        return combined(self._shell.snapshot(wanted, since), self._pages.snapshot(wanted, since))
