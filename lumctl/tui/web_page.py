"""Additions to the dashboard's web page: it takes the focus, and on a phone has smaller text and a row of keys.

A key of that row is sent to the terminal as typed text, so that no on-screen keyboard covers the page.
"""

import json
from collections.abc import Mapping

NARROW_PX, NARROW_FONT_SIZE = 700, 12
"""Pages narrower than ``NARROW_PX`` use this font size, which gives about 50 columns on a phone."""

PHONE_KEYS: Mapping[str, str] = {
    "esc": "\x1b",
    "p": "p",
    "enter": "\r",
    "←": "\x1b[D",
    "↑": "\x1b[A",
    "↓": "\x1b[B",
    "→": "\x1b[C",
    "m": "m",
    "S": "S",
    "1": "1",
    "5": "5",
    "tab": "\t",
    "?": "?",
}
"""The keys in the row for phones, each with the characters that a terminal sends for it."""

_STYLE = """
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<style>
  #keys { display: none; }
  @media (pointer: coarse) {
    body { overflow: hidden; }
    .textual-terminal { height: calc(100dvh - 52px) !important; touch-action: manipulation; }
    #keys { display: flex; position: fixed; bottom: 0; width: 100vw; height: 52px; overflow-x: auto; z-index: 5; }
    #keys button {
      flex: 1 0 44px; min-width: 44px; height: 52px; margin: 0; padding: 0; border: 1px solid #1f2831;
      background: #161c22; color: #dde4ec; font: 16px monospace; touch-action: manipulation;
    }
  }
</style>
"""

# A press of a key must not take the focus from the terminal, hence ``preventDefault``.
# The script sends a synthetic key before the text: xterm.js drops text that follows a key that it already handled.
_SCRIPT = """
<script>
  addEventListener("DOMContentLoaded", () => {
    const touch = matchMedia("(pointer: coarse)").matches, terminal = document.getElementById("terminal");
    if (innerWidth < %(narrow)d && !location.search.includes("fontsize")) terminal.dataset.fontSize = %(size)d;
    const bar = document.createElement("div");
    bar.id = "keys";
    for (const [name, text] of Object.entries(%(keys)s)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        const area = document.querySelector(".xterm-helper-textarea");
        if (!area) return;
        area.dispatchEvent(new KeyboardEvent("keydown", { key: "Shift", keyCode: 16 }));
        area.dispatchEvent(new InputEvent("input", { data: text, inputType: "insertText" }));
      });
      bar.append(button);
    }
    document.body.append(bar);
    if (!touch) addEventListener("load", () => document.querySelector(".xterm-helper-textarea")?.focus());
  });
</script>
"""


def head() -> str:
    """The style and the script for the end of the page's head."""
    # ``</script>`` within a string would end the script.
    keys = json.dumps(dict(PHONE_KEYS)).replace("</", "<\\/")
    return _STYLE + _SCRIPT % {"narrow": NARROW_PX, "size": NARROW_FONT_SIZE, "keys": keys}


def with_head(page: str) -> str:
    """The page with :func:`head` inserted."""
    return page.replace("</head>", f"{head()}</head>")
