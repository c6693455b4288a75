"""A worker with nothing but Python in it: it beats, does what it is told, and comes back when its agent is gone.

It does ``say`` {message: ...} and ``exit`` {code}.
"""

import json
import os
import select
import socket
import sys

NAME, BEAT_S = os.environ["LUMCTL_JOB_WORKER"], float(os.environ["LUMCTL_JOB_BEAT_S"])


def connected() -> socket.socket:
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(os.environ["LUMCTL_JOB_SOCKET"])
        except OSError:
            line.close()
            select.select([], [], [], 0.02)
        else:
            return line


def say(line: socket.socket, **message) -> None:
    line.sendall(json.dumps(message).encode() + b"\n")


def obey(line: socket.socket, told: dict) -> None:
    match told["do"]:
        case "say":
            say(line, **told["message"])
        case "exit":
            say(line, say="ended", done=7)
            sys.exit(told["code"])


def serve(line: socket.socket) -> None:
    say(line, say="hello", worker=NAME, pid=os.getpid())
    say(line, say="ready", done=0)
    received = b""
    while True:
        if not select.select([line], [], [], BEAT_S)[0]:
            say(line, say="beat", done=0)
            continue
        chunk = line.recv(65536)
        if not chunk:
            return
        *lines, received = (received + chunk).split(b"\n")
        for each in lines:
            obey(line, json.loads(each))


while True:
    with connected() as agent:
        try:
            serve(agent)
        except OSError:
            continue
