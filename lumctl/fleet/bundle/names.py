"""What a file of a capture holds: by its name, which may be any that people give such files, else by its beginning."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from lumctl.fleet.probe_plugins import probe_command

SESSION = "session"
"""Several outputs in one file, or outputs in nvidia-smi's words for people."""

_NAMES = (
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
"""``ethtool -S`` and its kin: another question."""
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
    """Whose output a file holds: the name of a probe (``gpu``, ``optics:eth2``) or :data:`SESSION`.

    ``plugin`` is the probe plug-in whose command it is the output of, if any.
    """

    probe: str
    plugin: str = ""


def content_of(name: str, beginning: str = "") -> Content | None:
    """What a file holds; ``None`` where neither its name nor its beginning tells."""
    if _NOT_OURS.fullmatch(name) or _OTHER_ETHTOOL.fullmatch(name):
        return None
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
