"""``lumctl top --web``: the dashboard in a browser on this machine; each page is a dashboard of its own, read-only."""

import os
import shlex
import sys

from lumctl.cli.invocation import Invocation
from lumctl.errors import ExitCode, UsageError

LOOPBACK = "127.0.0.1"


def serve(cx: Invocation, theme: str | None, interval_s: float, port: int) -> int:
    """Serve until Ctrl-C or a request to stop.

    Raises:
        UsageError: the extra that serves is not installed, or the port is taken.
    """
    try:
        from lumctl.tui.web import Door, listen
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {
            "aiohttp",
            "aiohttp_jinja2",
            "jinja2",
            "textual_serve",
        }:
            raise
        raise UsageError("--web needs textual-serve", hint="pip install 'lumctl[web]'") from error
    from lumctl.tui.look.themes import theme_name

    path = str(cx.inventory.path.resolve())  # one that is not there is told of before anything is served
    try:
        socket = listen(LOOPBACK, port)
    except OSError as error:
        hint = "name another one with --port, or 0 for any that is free"
        raise UsageError(f"port {port} cannot be listened on: {error.strerror}", hint=hint) from error
    command = [sys.executable, "-P", "-m", "lumctl", "-i", path, "--target", str(cx.target), *_ascii(cx)]
    # A browser has all colours, whatever the terminal in which it was started has.
    chosen = theme_name(theme, {**os.environ, "TEXTUAL_COLOR_SYSTEM": "truecolor"})
    command += ["top", "--read-only", "--theme", chosen, "--interval", f"{interval_s:g}"]
    door = Door(shlex.join(command), socket)
    if cx.out.quiet:
        cx.out.text(door.address)  # it holds a secret: nobody could guess it
    cx.out.narrate(f"lumctl top, read-only, target {cx.target}: {door.address} (Ctrl-C ends it)")
    door.open()
    return ExitCode.DONE


def _ascii(cx: Invocation) -> list[str]:
    return ["--ascii"] if cx.out.ascii_only else []
