"""The agent: it starts workers, reports how they end and which are silent, and relays messages. It decides nothing."""

import math
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from lumctl.training import death_watch
from lumctl.training.agent.connections import CHUNK_BYTES, AgentPeer, Connections
from lumctl.training.agent.folder import LOCK, RECORDS, SOCKET, Folder
from lumctl.training.agent.logs import LOOKED_AFTER_EVERY_S, last_line, shorten_all
from lumctl.training.agent.process import belongs_to, is_stopped
from lumctl.training.agent.worker import (
    ENDED,
    FAILED,
    FLEETING,
    MOST_WAITING,
    RequestRefusedError,
    Worker,
    message_in,
    name_in,
    order_of,
    said_who,
)
from lumctl.training.agent.worker_table import WorkerTable
from lumctl.training.protocol import MOST_BYTES, Message


class DeathWatches:
    """Waits for lifelines to break, one thread each; its descriptor is readable when one has."""

    def __init__(self) -> None:
        self._found: SimpleQueue[Worker] = SimpleQueue()
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary

    def fileno(self) -> int:
        """The descriptor."""
        return self._ours.fileno()

    def watch(self, worker: Worker, path: Path) -> None:
        """Watch a worker's lifeline, which it holds already."""
        threading.Thread(
            target=self._wait, args=(worker, path), name=f"death-watch-{worker.worker}", daemon=True
        ).start()

    def found(self) -> list[Worker]:
        """The workers whose lifelines broke since the last call."""
        found = []
        try:
            self._ours.recv(4096)
            while True:
                found.append(self._found.get_nowait())
        except (BlockingIOError, Empty):
            return found

    def close(self) -> None:
        """Stop watching. Threads that still wait end with their workers, or with this process."""
        self._ours.close()
        self._theirs.close()

    def _wait(self, worker: Worker, path: Path) -> None:
        if death_watch.breaks(path):
            self._found.put(worker)
            with suppress(OSError):  # nobody asks any more
                self._theirs.send(b".")


IDLE_S = 60.0
"""How long an agent stays without a worker and without a coordinator."""


class Agent:
    """Serves one folder until it is told to end, or is needed no more.

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
        self._roster = WorkerTable(folder, workers, wall)
        self._peers = Connections(listener, take=self._take, gone=self._gone, broken=self._broken)
        self._dying = DeathWatches()
        self._peers.watch(self._dying, self._see_dying)
        self._coordinator: AgentPeer | None = None
        self._idle_from = math.inf
        self._logs_at = clock() + LOOKED_AFTER_EVERY_S
        self._quit = False
        for worker in workers.values():
            self._watch(worker)
        self._mark_idle()

    def run(self) -> None:
        """Serve to the end; then the folder is free for another agent."""
        while not self._quit and self._clock() < self._idle_from + self._idle_s:
            self.turn()
        # In this order: whoever finds the lock gone finds nothing of ours either, and may make its own.
        self._folder.remove(SOCKET, *([RECORDS] if self._quit else []), LOCK)
        self._peers.close()
        self._dying.close()

    def turn(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        living = self._roster.living
        logs_at = self._logs_at if living else math.inf
        due = min([self._idle_from + self._idle_s, logs_at, *(each.look_at for each in living)])
        self._peers.turn(None if due == math.inf else max(0.0, due - self._clock()))
        if (late_s := self._clock() - due) >= 0:
            # If we were stopped, the loop may have come back without looking: what is in the sockets comes first.
            self._peers.turn(0.0)
            self._judge(late_s)
        if self._clock() >= logs_at:
            shorten_all(self._folder, self._roster.living, self._wall())
            self._logs_at = self._clock() + LOOKED_AFTER_EVERY_S
        self._write()
        self._mark_idle()

    def _mark_idle(self) -> None:
        if self._coordinator is not None or self._roster.living:
            self._idle_from = math.inf
        elif self._idle_from == math.inf:
            self._idle_from = self._clock()

    def _judge(self, late_s: float) -> None:
        now = self._clock()
        for worker in self._roster.living:
            if now < worker.look_at:
                continue
            quiet_s, stopped = now - worker.heard_at, worker.pid is not None and self._is_stopped(worker.pid)
            if worker.falls_silent(now, runs=not stopped, late_s=late_s):
                told = {"worker": worker.worker, "for_s": round(quiet_s, 3), "stopped": stopped}
                self._tell({"tell": "silent", **told})

    # Peers

    def _take(self, peer: AgentPeer, message: Message) -> None:
        if peer is self._coordinator:
            self._asked(peer, message)
        elif peer.worker is not None:
            self._said(peer.worker, message)
        elif message.get("say") == "hello":
            self._greet(peer, message)
        elif isinstance(message.get("ask"), str):
            self._admit(peer, message)
        else:
            self._broken(peer, "its first line is neither a hello nor an ask")

    def _gone(self, peer: AgentPeer) -> None:
        if peer is self._coordinator:
            self._coordinator = None
        if peer.worker is not None and peer.worker.peer is peer:
            peer.worker.peer = None

    def _broken(self, peer: AgentPeer, why: str) -> None:
        if peer.worker is None and peer is not self._coordinator:  # a worker listens for what to do, and nothing else
            self._peers.send(peer, _hung_up_on(peer, why))
        self._hang_up(peer, why)

    def _hang_up(self, peer: AgentPeer, why: str) -> None:
        self._tell(_hung_up_on(peer, why))
        self._peers.drop(peer)

    def _tell(self, message: Message) -> None:
        if self._coordinator is not None:
            self._peers.send(self._coordinator, message)

    # Workers

    def _greet(self, peer: AgentPeer, message: Message) -> None:
        name = message.get("worker")
        worker = self._roster.workers.get(name) if isinstance(name, str) else None
        if worker is None or worker.process is None or not belongs_to(peer.pid, worker.process.pid):
            self._hang_up(peer, f"it is no process of a worker {str(name)[:100]} of ours")
            return
        if worker.peer is not None:
            self._peers.drop(worker.peer)
        self._peers.introduced(peer)
        peer.worker, worker.peer, peer.name = worker, peer, f"worker {worker.worker}"
        self._said(worker, message)
        if message.get("death_watch") is True and not worker.guarded:
            worker.guarded = True
            self._dying.watch(worker, self._folder.death_watch(worker.worker))
        while worker.waiting and self._peers.send(peer, worker.waiting[0]):
            del worker.waiting[0]

    def _said(self, worker: Worker, message: Message) -> None:
        if worker.said(message, self._clock()):
            self._tell({"tell": "heard", "worker": worker.worker})
        self._tell({"tell": "said", "worker": worker.worker, "message": message, "at": self._wall()})
        self._roster.changed |= message["say"] not in FLEETING

    def _watch(self, worker: Worker) -> None:
        if worker.process is not None:
            self._peers.watch(worker.process, partial(self._ended, worker))

    def _see_dying(self) -> None:
        for worker in self._dying.found():
            self._hear_out(worker)
            if worker.process is not None and ENDED not in worker.last:
                worker.process.kill()  # it may have become another program, which is as good as dead
                if worker.got_ready:  # of others it counts why, which their end tells
                    self._tell({"tell": "dying", "worker": worker.worker, "at": self._wall()})

    def _hear_out(self, worker: Worker) -> None:
        for _ in range(MOST_BYTES // CHUNK_BYTES):
            if worker.peer is None or not self._peers.hear(worker.peer):
                break

    def _ended(self, worker: Worker) -> None:
        # Its last words first, even if it has not been let in yet.
        self._peers.accept()
        self._peers.hear_strangers()
        self._hear_out(worker)
        if worker.process is not None:
            self._peers.unwatch(worker.process)
            self._roster.end(worker)
        shorten_all(self._folder, [worker], self._wall())
        self._tell_end(worker)
        if worker.peer is not None:
            self._peers.drop(worker.peer)

    def _tell_end(self, worker: Worker) -> None:
        end: Message = {"code": worker.code, "signal": worker.signal, "at": worker.at}
        by_itself = worker.code not in {0, None} and FAILED not in worker.last
        if (by_itself or not worker.got_ready) and worker.prints_from is not None:
            end["printed"] = last_line(self._folder.log(worker.worker), worker.prints_from)
        self._tell({"tell": "exited", "worker": worker.worker, **end})

    # The coordinator

    def _admit(self, peer: AgentPeer, message: Message) -> None:
        peer.calls_itself(said_who(message))
        if (former := self._coordinator) is not None:
            again = peer.is_again(former)  # its own line of before is cut, which nobody has told us yet
            takes = again or message["ask"] == "take"
            leaves, stays = (former, peer) if takes else (peer, former)
            if not again:
                self._peers.send(leaves, {"tell": "taken", "by": stays.name})
            self._peers.drop(leaves)
            if not takes:
                return
        self._peers.introduced(peer)
        self._coordinator = peer
        self._tell(self._roster.told())
        self._asked(peer, message)

    def _asked(self, peer: AgentPeer, message: Message) -> None:
        try:
            match message.get("ask"):
                case "who" | "take":
                    peer.calls_itself(said_who(message))
                case "list":
                    self._tell(self._roster.told())
                case "start":
                    self._start(message)
                case "kill":
                    process = self._roster.alive(name_in(message, "worker")).process
                    if process is not None:
                        process.kill()
                case "tell":
                    self._pass_on(message)
                case "quit":
                    self._end_if_alone()
                case other:
                    raise RequestRefusedError(f"nothing is known of asking {str(other)[:100]!r}")  # noqa: TRY301
        except RequestRefusedError as error:
            about = {key: message[key] for key in ("ask", "worker") if isinstance(message.get(key), str)}
            self._tell({"tell": "refused", "why": str(error), **about})

    def _start(self, message: Message) -> None:
        worker = self._roster.start(order_of(message), self._clock())
        if worker.alive:
            self._watch(worker)
            return
        for said in worker.last.values():
            self._tell({"tell": "said", "worker": worker.worker, "message": said, "at": worker.at})
        self._tell_end(worker)

    def _pass_on(self, message: Message) -> None:
        worker, told = self._roster.alive(name_in(message, "worker")), message_in(message)
        if worker.peer is not None and self._peers.send(worker.peer, told):
            return
        if len(worker.waiting) >= MOST_WAITING:
            raise RequestRefusedError(
                f"worker {worker.worker} does not listen, and {MOST_WAITING} messages wait for it"
            )
        worker.waiting.append(told)  # until it says hello, for the first time or again

    def _end_if_alone(self) -> None:
        living = [each.worker for each in self._roster.living]
        if living:
            raise RequestRefusedError(f"the agent does not end while workers live: {', '.join(living)}")
        self._quit = True

    def _write(self) -> None:
        if (why := self._roster.try_to_write()) is not None:
            self._tell({"tell": "refused", "why": why})


def _hung_up_on(peer: AgentPeer, why: str) -> Message:
    return {"tell": "refused", "why": f"{peer.name} was hung up on: {why}"}
