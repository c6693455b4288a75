"""Text in the form that groff's man macros need: escaped, with ``code`` in bold."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import dedent

CODE = re.compile(r"``?([^`]+)``?")

Lines = list[str]


def page(name: str, summary: str, source: str, body: Lines, see_also: Sequence[str], *, part: int = 1) -> str:
    """A whole page of one part of the manual. It has no date, because the page would then differ from day to day."""
    lines = [
        f'.TH {escape(name.upper())} {part} "" "{escape(source)}" "lumctl manual"',
        *section("name", [f"{escape(name)} \\- {bold_code(summary)}"]),
        *body,
        *section("see also", [" ,\n".join(_reference(each) for each in see_also)]),
    ]
    return "\n".join(lines) + "\n"


def section(title: str, lines: Lines) -> Lines:
    """A section with its heading."""
    return [f".SH {title.upper()}", *lines]


def subsection(title: str, lines: Lines) -> Lines:
    """A part of a section with its heading."""
    return [f'.SS "{escape(title)}"', *lines]


def entries(pairs: Iterable[tuple[str, str]]) -> Lines:
    """A list of terms, each with its indented text."""
    return [line for term, text in pairs for line in (".TP", rf"\fB{escape(term)}\fR", bold_code(text) or r"\&")]


def prose(text: str) -> Lines:
    """The paragraphs of a docstring, each joined to one line."""
    return list(_separated(re.split(r"\n\s*\n", text.strip())))


def with_examples(text: str) -> Lines:
    """Paragraphs of indented text; deeper indented lines are printed unchanged."""
    lines: Lines = []
    for part in re.split(r"\n\n(?! {4})", dedent(text).strip()):
        before, example, shown = f"\n{part}".partition("\n\n    ")
        lines += [*([".PP"] if lines else []), bold_code(before)]
        if example:
            lines += [".PP", ".nf", *(escape(line.removeprefix("    ")) or r"\&" for line in shown.split("\n")), ".fi"]
    return lines


def _separated(paragraphs: Iterable[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield bold_code(paragraph)


def bold_code(text: str) -> str:
    """One line of text in which ``code`` is bold."""
    pieces = CODE.split(" ".join(text.split()))
    line = "".join(rf"\fB{_plain(piece)}\fR" if i % 2 else _plain(piece) for i, piece in enumerate(pieces))
    return _guarded(line)


def escape(text: str) -> str:
    """Text that groff prints unchanged, in any encoding of the terminal."""
    return _guarded(_plain(text))


def _plain(text: str) -> str:
    # The backslash first, because the others add some. groff prints a plain - as a hyphen, which a shell does not take
    # for an option when it is copied.
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in text)


def _guarded(line: str) -> str:
    """Protect a line that begins with a control character, which groff would read as a request."""
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _reference(text: str) -> str:
    """``name(section)`` in the typeface that manuals use."""
    name, _, number = text.rstrip(")").partition("(")
    return f".BR {escape(name)} ({number})"
