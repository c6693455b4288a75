"""Runs commands of lumctl as processes of their own, without paying for the same imports at every start.

Most of what a command costs is importing modules. One process per test session imports them once and forks for every
command; the child has the arguments, environment, folder and streams of a command that a shell starts, and ends like
one. Where Python's own settings matter, and where the system cannot wait for a process by a descriptor, a command is
started the usual way.
"""

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Self

_FORKS = hasattr(os, "pidfd_open") and hasattr(socket, "SOCK_SEQPACKET")
_LARGEST = 1 << 17
_LEFT_OUT = ("lumctl.training.", "lumctl.tui.", "lumctl.fabric.research.", "lumctl.slices.exact.")
"""Modules that few commands import, and that need packages which are large or not installed."""

_server: "CommandServer | None" = None


@contextmanager
def lumctl_on_sim(inventory: Path, state: Path) -> Iterator[Callable[..., "subprocess.CompletedProcess[str]"]]:
    """Run commands on a simulator of an inventory, which ends with the block; ``state`` is the folder of its store."""
    with TemporaryDirectory(prefix="lumctl-") as short:  # not pytest's own: the path of a socket is short
        environment = {
            **os.environ,
            "LUMCTL_STATE": str(state),
            "XDG_RUNTIME_DIR": short,
            "LUMCTL_INVENTORY": str(inventory),
            "LUMCTL_TARGET": "sim",
        }

        def run(*words: str) -> "subprocess.CompletedProcess[str]":
            return run_lumctl(*words, env=environment, timeout=120)

        up = run("sim", "up", "--detach")
        assert up.returncode == 0, up.stderr
        yield run
        assert run("sim", "down").returncode == 0


def run_lumctl(
    *words: str,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    input: str = "",  # noqa: A002 - as subprocess.run calls it
    stderr: int = subprocess.PIPE,
    timeout: float | None = 60,
) -> "subprocess.CompletedProcess[str]":
    """Run ``lumctl WORDS``; its output is captured, and nothing is raised for its exit code.

    Raises:
        subprocess.TimeoutExpired: it ran longer than ``timeout`` seconds, and was killed.
    """
    if not _FORKS or _sets_up_python(env):
        return subprocess.run(
            [sys.executable, "-m", "lumctl", *words],
            env=dict(env),
            cwd=cwd,
            input=input,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=timeout,
            check=False,
        )
    global _server  # noqa: PLW0603 - a session has one
    if _server is None or _server.of != os.getpid():
        _server = CommandServer()
    return _server.run(words, env, Path(cwd or Path.cwd()), input, stderr, timeout)


def _sets_up_python(env: Mapping[str, str]) -> bool:
    """Whether these variables change how the interpreter starts; ``PYTHONPATH`` alone only adds folders.

    Output is captured whole, so it does not matter whether it is buffered.
    """
    known = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    folders = env.get("PYTHONPATH", "").split(os.pathsep)
    return any(name.startswith(("PYTHON", "LC_")) for name in env if name not in known) or any(
        (Path(folder) / "sitecustomize.py").exists() for folder in folders if folder
    )


class CommandServer:
    """The process that forks for each command, as its caller sees it."""

    def __init__(self) -> None:
        self.of = os.getpid()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            )
        atexit.register(self._requests.close)

    def run(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        given: str,
        stderr: int,
        timeout: float | None,
    ) -> "subprocess.CompletedProcess[str]":
        """Have a command run, and wait for its end and for the end of its output."""
        command = ["lumctl", *words]
        with Streams(given, shared=stderr == subprocess.STDOUT) as streams:
            request = json.dumps([list(words), dict(env), str(cwd)]).encode("utf-8", "surrogateescape")
            socket.send_fds(self._requests, [request], streams.theirs)
            streams.begin()
            code = streams.wait(command, timeout)
            return subprocess.CompletedProcess(command, code, streams.text(1), streams.text(2))


class Streams:
    """Pipes to the standard streams of a command, and one by which its PID and its exit code are told."""

    def __init__(self, given: str, *, shared: bool) -> None:
        stdin, self._stdin = os.pipe()
        self._stdout, stdout = os.pipe()
        self._stderr, stderr = (-1, stdout) if shared else os.pipe()
        self._news, news = os.pipe()
        self.theirs = [stdin, stdout, stderr, news]
        self._given = given.encode()
        self._read: dict[int, bytearray] = {
            self._stdout: bytearray(),
            self._stderr: bytearray(),
            self._news: bytearray(),
        }
        self._open = {self._stdin, *(each for each in self._read if each >= 0)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in {*self._open, *self.theirs}:
            os.close(each)

    def begin(self) -> None:
        """Keep only this side's ends: the command has the others by now."""
        for each in set(self.theirs):
            os.close(each)
        self.theirs = []
        # A command reads what it is given before it prints much, and a pipe holds 64 KiB.
        if self._given:
            os.write(self._stdin, self._given)
        self._close(self._stdin)

    def wait(self, command: Sequence[str], timeout: float | None) -> int:
        """The exit code of the command, negative for a signal, once all its output is read."""
        until = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for each in self._open:
                selector.register(each, selectors.EVENT_READ)
            while self._open:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    self._kill()
                    raise subprocess.TimeoutExpired(command, timeout or 0, self.text(1), self.text(2))
                for key, _ in selector.select(left):
                    if more := os.read(key.fd, 1 << 16):
                        self._read[key.fd] += more
                    else:
                        selector.unregister(key.fd)
                        self._close(key.fd)
        told = self._read[self._news].split()
        assert len(told) == 2, "the process that runs commands has died"
        return int(told[1])

    def text(self, stream: int) -> str | None:
        """What was printed; ``None`` for an error stream that is the same as the output."""
        number = self._stdout if stream == 1 else self._stderr
        return None if number < 0 else self._read[number].decode().replace("\r\n", "\n")

    def _kill(self) -> None:
        if told := self._read[self._news].split():
            os.kill(int(told[0]), signal.SIGKILL)

    def _close(self, number: int) -> None:
        self._open.remove(number)
        os.close(number)


def serve(requests: socket.socket) -> None:
    """Fork for each request until nobody can send one; a forked child returns from here as the command's process."""
    import_modules()
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not requests:
                    selector.unregister(key.fileobj)
                    key.data()
                    continue
                request, passed, _, _ = socket.recv_fds(requests, _LARGEST, 4)
                if not request:
                    return
                words, env, cwd = json.loads(request.decode("utf-8", "surrogateescape"))
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    requests.detach()  # its descriptor is closed below, and its number is free for the command
                    become(words, env, cwd, passed)
                    return
                *streams, news = passed
                for each in streams:
                    os.close(each)
                os.write(news, b"%d " % pid)
                pidfd = os.pidfd_open(pid)
                selector.register(pidfd, selectors.EVENT_READ, ended(pid, pidfd, news))


def ended(pid: int, pidfd: int, news: int) -> Callable[[], None]:
    """What is to do once a command has ended: tell its exit code."""

    def tell() -> None:
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):  # its caller has given up
            os.write(news, b"%d" % os.waitstatus_to_exitcode(status))
        os.close(news)
        os.close(pidfd)

    return tell


def become(words: list[str], env: dict[str, str], cwd: str, streams: list[int]) -> None:
    """Make this process the one that a shell would have started."""
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    package = import_module("lumctl")
    sys.argv = [str(Path(package.__path__[0]) / "__main__.py"), *words]
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    commands.append(words)


commands: list[list[str]] = []
"""What a forked child is to run: one command."""


def import_modules() -> None:
    """Import what commands import, all but what is rarely needed and large."""
    del sys.path[0]  # the folder of this file: no module of it is meant
    package = import_module("lumctl")
    for module in walk_packages(package.__path__, "lumctl."):
        if not f"{module.name}.".startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            import_module(module.name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    if commands:
        from lumctl.__main__ import main

        main()
