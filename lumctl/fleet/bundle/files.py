"""Reading the folders of a capture from an untrusted source: links are not followed, and reads are bounded.

Names become ids and file texts become readings, so both are bounded. All refused names and files are reported.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from lumctl.errors import UsageError
from lumctl.fleet.bundle.capture import ABOUT_CAPTURE, ABOUT_HOST
from lumctl.fleet.probe_plugins import probe_command

SESSION = "session"
"""A transcript: several outputs in one file, or nvidia-smi's text output."""

# The first name that fits decides: nvlink-errors.txt also fits the plain nvlink.
_NAMES = (
    ("nvlink:traffic", r".*nvlink.*(?:traffic|throughput|-gt\b).*"),
    ("nvlink:errors", r".*nvlink.*(?:error|-e\b).*"),
    ("nvlink", r".*nvlink.*"),
    (SESSION, r".*session.*\.(?:txt|log)"),
    ("gpu", r"nvidia[-_.]?smi.*\.xml"),
    ("counters", r"(?:port[-_])?counters\b.*"),
    ("infiniband", r".*infiniband.*|ib(?:stat|ports?)?\.(?:tsv|txt)"),
    ("kernel", r"(?:kern(?:el)?|dmesg|journal(?:ctl)?|messages|syslog)\b.*|dmesg[-_].*"),
    ("net", r"(?:sys-class-)?net(?:dev)?\.(?:tsv|txt)|sys-class-net\b.*"),
    ("mounts", r"(?:proc[-_])?(?:self[-_])?mounts?\.(?:txt|log)"),
    ("disks", r"(?:df|disks?)\.(?:txt|log)"),
    ("clock", r"(?:date|clock)\.(?:txt|log)"),
    ("fabric_log", r"fabric[-_]?log\.txt"),
    ("crashes", r"(?:crashes|pstore)\.(?:txt|log)"),
    ("services", r"(?:services|systemctl(?:[-_.]show)?)\.(?:txt|log)"),
    ("capacity", r"(?:capacity|meminfo)\.(?:tsv|txt)"),
    ("adapters", r"adapters\.(?:tsv|txt)"),
    ("lldp", r"lldp.*\.json|lldpctl.*"),
    ("dcgm", r"dcgm(?:[-_]exporter)?\.(?:prom|txt)"),
    ("node", r"node(?:[-_]exporter)?\.(?:prom|txt)"),
    ("amd", r"(?:amd|device[-_]metrics)(?:[-_]exporter)?\.(?:prom|txt)"),
    ("gpud", r"gpud\.(?:prom|txt|json)"),
)
_BY_NAME = tuple((content, re.compile(name, re.IGNORECASE | re.DOTALL)) for content, name in _NAMES)
_MODULE = re.compile(
    r"ethtool(?:[-_.]m(?=[-_.]))?(?:[-_.]+(?P<interface>.+?))?\.(?:txt|json|log|out)", re.IGNORECASE | re.DOTALL
)
_OTHER_ETHTOOL = re.compile(r"ethtool[-_.](?!m[-_.])[a-z][-_.].*", re.IGNORECASE | re.DOTALL)
"""Outputs of ethtool other than ``-m``, such as ``ethtool -S``: they do not describe a module."""
_NOT_OURS = re.compile(r".*\.(?:md|gz|xz|zst|bz2|zip|tar|tgz|png|pdf|html?)", re.IGNORECASE | re.DOTALL)
_BEGINNINGS = (
    ("gpu", re.compile(r"<nvidia_smi_log")),
    (SESSION, re.compile(r"=NVSMI LOG=|^# \$ nvidia-smi", re.MULTILINE)),
    ("nvlink", re.compile(r"^GPU [0-9]+: .*\n\s+Link [0-9]+: ", re.MULTILINE)),
    ("infiniband", re.compile(r"^\S+/ports/[0-9]+/(?:state|phys_state|rate|counters/\w+)[:\t]", re.MULTILINE)),
    ("net", re.compile(r"^\S+/(?:operstate|carrier_changes)[:\t]", re.MULTILINE)),
    ("kernel", re.compile(r"NVRM: |^\[\s*[0-9]+\.[0-9]{6}\] |^<[0-9]+>\[", re.MULTILINE)),
    ("optics:", re.compile(r"^\s*Identifier\s+: 0x[0-9a-f]{2} \(", re.MULTILINE | re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: the output of a probe (``gpu``, ``optics:eth2``) or a transcript (:data:`SESSION`).

    ``plugin`` is the probe plug-in whose command printed the output; empty if none did.
    """

    probe: str
    plugin: str = ""


def content_of(name: str, beginning: str = "") -> Content | None:
    """The kind of a file; ``None`` if neither its name nor its beginning shows it."""
    if _NOT_OURS.fullmatch(name) or _OTHER_ETHTOOL.fullmatch(name):
        return None
    # The name comes before the text, so that a damaged file is reported and not taken for another.
    if module := _MODULE.fullmatch(name):
        return Content(f"optics:{_printable(unquote(module['interface'] or '')) or 'module'}")
    by_name = next((content for content, pattern in _BY_NAME if pattern.fullmatch(name)), None)
    if by_name is not None:
        return Content(by_name)
    if (of_plugin := probe_command(name)) is not None:
        return Content(*of_plugin)
    by_text = next((content for content, pattern in _BEGINNINGS if pattern.search(beginning)), None)
    if by_text == "optics:":
        return Content(f"optics:{_printable(name.rpartition('.')[0] or name)}")
    return Content(by_text) if by_text else None


def _printable(name: str) -> str:
    """A name fit for an id."""
    return "".join(character if character.isprintable() else "?" for character in name)


MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_HOST_BYTES = 256 * 1024 * 1024
MAX_FILES = 2048
MAX_HOSTS = 4096
_CHUNK = 1024 * 1024
_HEAD = 4096
_WHAT_TO_DO = "make one with lumctl fleet capture, or put the output of each host into {folder}/HOST/"


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """One file whose kind is known by its name or its beginning. ``modified`` is its modification time."""

    name: str
    content: Content
    text: str
    modified: float


@dataclass(frozen=True, slots=True)
class HostFolder:
    """One host's files. ``refused`` are the files that were not read, with the reason."""

    id: str
    files: tuple[CapturedFile, ...]
    manifest: str | None
    refused: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CaptureFolder:
    """A whole capture. Its hosts are read one by one, because together they may be large."""

    path: Path
    name: str
    about: str | None
    hosts: tuple[str, ...]
    alone: bool

    def folders(self) -> Iterator[HostFolder]:
        """Read each host's folder in turn."""
        with _opened(self.path) as top:
            if self.alone:
                alike = self.name in map(shown, self.hosts)
                # A folder in it has its name: two hosts may not have one id.
                yield _read_host(top, f"{self.name}/." if alike else self.name)
            for name in self.hosts:
                yield _read_below(top, name)


def open_capture(path: Path) -> CaptureFolder:
    """Open a folder that contains either folders of hosts or the files of one host.

    Raises:
        UsageError: the folder cannot be read, or it is empty.
    """
    with _opened(path) as top:
        names = _names(top)
        folders = [name for name in names if _is_folder(top, name)]
        alone = any(content_of(name) is not None for name in names if name not in folders)
        if alone:
            # Beside a host's own files, a folder without known files is not another host.
            folders = [name for name in folders if _holds_something(top, name)]
        about = _text(top, ABOUT_CAPTURE) if ABOUT_CAPTURE in names else None
    if not folders and not alone:
        what_to_do = _WHAT_TO_DO.format(folder=path)
        raise UsageError(f"{shown(str(path))} contains no captured host: {what_to_do}")
    if len(folders) > MAX_HOSTS:
        raise UsageError(f"{shown(str(path))} contains {len(folders)} folders, more than any rack has hosts")
    return CaptureFolder(path, shown(path.resolve().name) or "host", about, tuple(folders), alone)


def shown(name: str) -> str:
    """A name fit for an id and for a terminal: unprintable characters are quoted, as in ``%0A``."""
    return "".join(
        character if character.isprintable() and character != "%" else quote(os.fsencode(character), safe="")
        for character in name
    )


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what_to_do = _WHAT_TO_DO.format(folder="DIR")
        raise UsageError(f"cannot read a capture at {shown(str(path))} ({reason}): {what_to_do}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _names(folder: int) -> list[str]:
    """The names in a folder without hidden ones, which are unfinished captures or foreign files."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _is_folder(top: int, name: str) -> bool:
    """Whether a name is a folder or a link to one. Such a link counts so that it is reported; it is not followed."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=top).st_mode)
    except OSError:
        return False


def _holds_something(top: int, name: str) -> bool:
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except OSError:
        return False
    try:
        return any(content_of(entry) is not None or entry == ABOUT_HOST for entry in _names(folder))
    finally:
        os.close(folder)


def _read_below(top: int, name: str) -> HostFolder:
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except OSError as error:
        # Linux reports ENOTDIR for a link that is not followed.
        followed = error.errno not in {errno.ELOOP, errno.ENOTDIR}
        reason = f"cannot be opened: {error.strerror}" if followed else "is a link, and links are not followed"
        return HostFolder(shown(name), (), None, ((shown(name), reason),))
    try:
        return _read_host(folder, shown(name))
    finally:
        os.close(folder)


def _read_host(folder: int, host: str) -> HostFolder:
    files: list[CapturedFile] = []
    refused: list[tuple[str, str]] = []
    names = _names(folder)
    if len(names) > MAX_FILES:
        refused.append(
            (f"{len(names) - MAX_FILES} files", f"beyond the first {MAX_FILES}, which are the only ones read")
        )
    budget = MAX_HOST_BYTES
    for name in names[:MAX_FILES]:
        content = content_of(name)
        if name in {ABOUT_HOST, ABOUT_CAPTURE} or _is_folder(folder, name):
            continue
        try:
            text, modified = _read(folder, name, min(MAX_FILE_BYTES, budget))
        except OSError as error:
            # Links and sockets with unrelated names are not worth a report.
            if content is not None:
                refused.append((shown(name), error.strerror or "cannot be read"))
            continue
        content = content or content_of(name, text[:_HEAD])
        if content is not None:
            budget -= len(text)
            files.append(CapturedFile(shown(name), content, text, modified))
    manifest = _text(folder, ABOUT_HOST) if ABOUT_HOST in names else None
    return HostFolder(host, tuple(files), manifest, tuple(refused))


def _text(folder: int, name: str) -> str | None:
    try:
        return _read(folder, name, MAX_FILE_BYTES)[0]
    except OSError:
        return None


def _read(folder: int, name: str, limit: int) -> tuple[str, float]:
    """The text of a regular file, and when it was written. Other files are refused: a FIFO or device could block.

    Raises:
        OSError: the file cannot be read, or must not be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "is a link, and links are not followed") from None
        raise
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        if about.st_size > limit:
            raise OSError(errno.EFBIG, f"is larger than {limit // 2**20} MiB")
        parts: list[bytes] = []
        size = 0
        while part := os.read(descriptor, _CHUNK):
            size += len(part)
            # The file may grow while it is read.
            if size > limit:
                raise OSError(errno.EFBIG, f"is larger than {limit // 2**20} MiB")
            parts.append(part)
        # Some editors put a byte order mark in front.
        return b"".join(parts).decode("utf-8", "replace").removeprefix("\ufeff"), about.st_mtime
    finally:
        os.close(descriptor)
