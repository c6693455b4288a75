"""The agent: it starts workers, reports which are silent and how they end, and relays messages. It decides nothing."""

import math
import socket
import time
from collections.abc import Callable
from functools import partial

from lumctl.training.agent.connections import CHUNK_BYTES, AgentPeer, Connections
from lumctl.training.agent.death_watch import DeathWatches
from lumctl.training.agent.folder import LOCK, RECORDS, SOCKET, Folder
from lumctl.training.agent.process import belongs_to, is_stopped
from lumctl.training.agent.worker import (
    BEAT,
    ENDED,
    FAILED,
    FLEETING,
    MOST_WAITING,
    STEPPED,
    RequestRefusedError,
    Worker,
    message_in,
    name_in,
    order_of,
    orders_in,
    said_who,
)
from lumctl.training.agent.worker_table import LOOKED_AFTER_EVERY_S, WorkerTable, last_line, shorten_all
from lumctl.training.protocol import MOST_BYTES, Message

IDLE_S = 60.0
"""How long an agent runs on without workers and without a coordinator."""
STEPS_WITHIN_S = 0.05
"""How long a reported step waits for those of the other workers."""


class Agent:
    """Serves one folder until a coordinator ends it, or it has no worker and no coordinator for ``idle_s`` seconds.

    ``clock`` gives time.monotonic(), ``wall`` time.time(), in seconds.
    """

    def __init__(
        self,
        folder: Folder,
        listener: socket.socket,
        workers: dict[str, Worker],
        *,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        is_stopped: Callable[[int], bool] = is_stopped,
    ) -> None:
        self._is_stopped = is_stopped
        self._folder, self._idle_s, self._clock, self._wall = folder, idle_s, clock, wall
        self._table = WorkerTable(folder, workers, wall)
        self._peers = Connections(listener, take=self._take, gone=self._gone, broken=self._broken)
        self._dying = DeathWatches()
        self._peers.watch(self._dying, self._report_dying)
        self._coordinator: AgentPeer | None = None
        self._worker_of: dict[AgentPeer, Worker] = {}
        self._steps: dict[str, Message] = {}
        """The ``stepped`` messages that the coordinator gets together."""
        self._steps_due = math.inf
        self._stepping: object = None
        """The group of the newest step."""
        self._idle_from = math.inf
        self._logs_at = clock() + LOOKED_AFTER_EVERY_S
        self._quit = False
        for worker in workers.values():
            self._watch(worker)
        self._note_idle()

    def run(self) -> None:
        """Serve until the agent ends; then another agent may serve the folder."""
        while not self._quit and self._clock() < self._idle_from + self._idle_s:
            self.turn()
        # The lock goes last: a process that finds no lock makes its own files, so ours must be gone by then.
        self._folder.remove(SOCKET, *([RECORDS] if self._quit else []), LOCK)
        self._peers.close()
        self._dying.close()

    def turn(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        living = self._table.living
        logs_at = self._logs_at if living else math.inf
        due = min([self._idle_from + self._idle_s, logs_at, *(each.look_at for each in living)])
        wakes = min(due, self._steps_due)
        self._peers.turn(None if wakes == math.inf else max(0.0, wakes - self._clock()))
        if self._clock() >= self._steps_due:
            self._report_steps()
        if (late_s := self._clock() - due) >= 0:
            # If this process was stopped, messages may wait in the sockets: read them before judging a worker silent.
            self._peers.turn(0.0)
            self._report_silent(late_s)
        if self._clock() >= logs_at:
            shorten_all(self._folder, self._table.living, self._wall())
            self._logs_at = self._clock() + LOOKED_AFTER_EVERY_S
        self._write_records()
        self._note_idle()

    def _note_idle(self) -> None:
        if self._coordinator is not None or self._table.living:
            self._idle_from = math.inf
        elif self._idle_from == math.inf:
            self._idle_from = self._clock()

    def _report_silent(self, late_s: float) -> None:
        now = self._clock()
        for worker in self._table.living:
            if now < worker.look_at:
                continue
            quiet_s, stopped = now - worker.heard_at, worker.pid is not None and self._is_stopped(worker.pid)
            if worker.falls_silent(now, runs=not stopped, late_s=late_s):
                told = {"worker": worker.worker, "for_s": round(quiet_s, 3), "stopped": stopped}
                self._report({"tell": "silent", **told})

    # Peers

    def _take(self, peer: AgentPeer, message: Message) -> None:
        if peer is self._coordinator:
            self._answer(peer, message)
        elif (worker := self._worker_of.get(peer)) is not None:
            self._handle(worker, message)
        elif message.get("say") == "hello":
            self._introduce(peer, message)
        elif isinstance(message.get("ask"), str):
            self._introduce_coordinator(peer, message)
        else:
            self._broken(peer, "its first line is neither a hello nor a request")

    def _gone(self, peer: AgentPeer) -> None:
        if peer is self._coordinator:
            self._coordinator = None
        worker = self._worker_of.pop(peer, None)
        if worker is not None and worker.peer is peer:
            worker.peer = None

    def _broken(self, peer: AgentPeer, why: str) -> None:
        if peer not in self._worker_of and peer is not self._coordinator:  # workers understand only orders
            self._peers.send(peer, _hung_up_on(peer, why))
        self._hang_up(peer, why)

    def _hang_up(self, peer: AgentPeer, why: str) -> None:
        self._report(_hung_up_on(peer, why))
        self._peers.drop(peer)

    def _report(self, message: Message) -> None:
        self._report_steps()  # no message overtakes an earlier one
        if self._coordinator is not None:
            self._peers.send(self._coordinator, message)

    def _gather(self, worker: Worker, message: Message) -> None:
        """Keep a step until all workers of its group have reported theirs, but not for long.

        The first step of a group is reported at once: it ends a recovery.
        """
        if message.get("generation") != self._stepping:
            self._stepping = message.get("generation")
            self._report(self._said(worker, message))
            return
        if worker.worker in self._steps:
            self._report_steps()
        if not self._steps:
            self._steps_due = self._clock() + STEPS_WITHIN_S
        self._steps[worker.worker] = message
        if not any(each.lacks_step(message) for each in self._table.living):
            self._report_steps()

    def _report_steps(self) -> None:
        steps, self._steps, self._steps_due = self._steps, {}, math.inf
        if len(steps) == 1:
            ((name, message),) = steps.items()
            self._report({"tell": "said", "worker": name, "message": message, "at": self._wall()})
        elif steps:
            self._report({"tell": "said", "messages": steps, "at": self._wall()})

    # Workers

    def _introduce(self, peer: AgentPeer, message: Message) -> None:
        name = message.get("worker")
        worker = self._table.workers.get(name) if isinstance(name, str) else None
        # Any process of this user can connect; only the worker's own may speak for it.
        if worker is None or worker.process is None or not belongs_to(peer.pid, worker.process.pid):
            self._hang_up(peer, f"{str(name)[:100]} is not a process of one of our workers")
            return
        if worker.peer is not None:
            self._peers.drop(worker.peer)
        self._peers.introduced(peer)
        self._worker_of[peer], worker.peer, peer.name = worker, peer, f"worker {worker.worker}"
        self._handle(worker, message)
        if message.get("death_watch") is True and not worker.guarded:
            worker.guarded = True
            self._dying.watch(worker, self._folder.death_watch(worker.worker))
        while worker.waiting and self._peers.send(peer, worker.waiting[0]):
            del worker.waiting[0]

    def _handle(self, worker: Worker, message: Message) -> None:
        if worker.said(message, self._clock()):
            self._report({"tell": "heard", "worker": worker.worker})
        if message["say"] == STEPPED:
            self._gather(worker, message)
        elif message["say"] != BEAT:  # whether a worker is silent is judged here
            self._report(self._said(worker, message))
        self._table.changed |= message["say"] not in FLEETING

    def _said(self, worker: Worker, message: Message) -> Message:
        return {"tell": "said", "worker": worker.worker, "message": message, "at": self._wall()}

    def _watch(self, worker: Worker) -> None:
        if worker.process is not None:
            self._peers.watch(worker.process, partial(self._ended, worker))

    def _report_dying(self) -> None:
        for worker in self._dying.found():
            # Its report that it has ended may still be unread.
            self._read_all(worker)
            if worker.process is not None and ENDED not in worker.last:
                worker.process.kill()  # a worker that executed another program lives, but counts as dead
                if worker.got_ready:  # otherwise only its end is reported, with the reason
                    self._report({"tell": "dying", "worker": worker.worker, "at": self._wall()})

    def _read_all(self, worker: Worker) -> None:
        for _ in range(MOST_BYTES // CHUNK_BYTES):
            if worker.peer is None or not self._peers.read(worker.peer):
                break

    def _ended(self, worker: Worker) -> None:
        # Read its last messages first, even if it has not introduced itself yet.
        self._peers.accept()
        self._peers.read_strangers()
        self._read_all(worker)
        if worker.process is not None:
            self._peers.unwatch(worker.process)
            self._table.end(worker)
        shorten_all(self._folder, [worker], self._wall())
        self._report_end(worker)
        if worker.peer is not None:
            self._peers.drop(worker.peer)

    def _report_end(self, worker: Worker) -> None:
        end: Message = {"code": worker.code, "signal": worker.signal, "at": worker.at}
        by_itself = worker.code not in {0, None} and FAILED not in worker.last
        if (by_itself or not worker.got_ready) and worker.prints_from is not None:
            end["printed"] = last_line(self._folder.log(worker.worker), worker.prints_from)
        self._report({"tell": "exited", "worker": worker.worker, **end})

    # The coordinator

    def _introduce_coordinator(self, peer: AgentPeer, message: Message) -> None:
        peer.set_name(said_who(message))
        if (former := self._coordinator) is not None:
            again = peer.is_again(former)  # its former line is cut, but we have not noticed that yet
            takes = again or message["ask"] == "take"
            leaves, stays = (former, peer) if takes else (peer, former)
            if not again:
                self._peers.send(leaves, {"tell": "taken", "by": stays.name})
            self._peers.drop(leaves)
            if not takes:
                return
        self._peers.introduced(peer)
        self._coordinator = peer
        self._steps.clear()  # the list has them
        self._report(self._table.document())
        self._answer(peer, message)

    def _answer(self, peer: AgentPeer, message: Message) -> None:
        try:
            match message.get("ask"):
                case "who" | "take":
                    peer.set_name(said_who(message))
                case "list":
                    self._report(self._table.document())
                case "start":
                    self._start(message)
                case "kill":
                    process = self._table.alive(name_in(message, "worker")).process
                    if process is not None:
                        process.kill()
                case "tell" if "orders" in message:
                    self._relay_all(orders_in(message))
                case "tell":
                    self._relay(name_in(message, "worker"), message_in(message))
                case "quit":
                    self._end_if_alone()
                case other:
                    raise RequestRefusedError(f"unknown request {str(other)[:100]!r}")  # noqa: TRY301
        except RequestRefusedError as error:
            self._refuse(message, error)

    def _refuse(self, message: Message, error: RequestRefusedError) -> None:
        about = {key: message[key] for key in ("ask", "worker") if isinstance(message.get(key), str)}
        self._report({"tell": "refused", "why": str(error), **about})

    def _start(self, message: Message) -> None:
        worker = self._table.start(order_of(message), self._clock())
        if worker.alive:
            self._watch(worker)
            return
        for said in worker.last.values():
            self._report({"tell": "said", "worker": worker.worker, "message": said, "at": worker.at})
        self._report_end(worker)

    def _relay_all(self, orders: dict[str, Message]) -> None:
        for name, told in orders.items():
            try:
                self._relay(name, told)
            except RequestRefusedError as error:
                self._refuse({"ask": "tell", "worker": name}, error)

    def _relay(self, name: str, told: Message) -> None:
        worker = self._table.alive(name)
        if worker.peer is not None and self._peers.send(worker.peer, told):
            return
        if len(worker.waiting) >= MOST_WAITING:
            raise RequestRefusedError(
                f"worker {worker.worker} does not read its messages, and {MOST_WAITING} messages wait for it"
            )
        worker.waiting.append(told)  # sent once it introduces itself, for the first time or again

    def _end_if_alone(self) -> None:
        living = [each.worker for each in self._table.living]
        if living:
            raise RequestRefusedError(f"the agent does not end while workers are running: {', '.join(living)}")
        self._quit = True

    def _write_records(self) -> None:
        if (why := self._table.try_to_write()) is not None:
            self._report({"tell": "refused", "why": why})


def _hung_up_on(peer: AgentPeer, why: str) -> Message:
    return {"tell": "refused", "why": f"the agent closed the connection to {peer.name}: {why}"}
