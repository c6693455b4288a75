"""Transcripts: several commands with their outputs in one file, and ``nvidia-smi -q`` without ``-x``.

A support case often comes as one long text. It is split at its commands. nvidia-smi's text output is converted into the
XML that nvidia-smi prints for programs, so one parser reads both.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

_COMMAND = re.compile(
    r"^(?:# |[\w.-]+@[\w.-]+[:~ ][^\n$#]{0,80})?[$#] (?:sudo (?:-n )?)?"
    r"(?P<tool>nvidia-smi|dmesg|ethtool|lldpctl)(?: (?P<arguments>[^\n]{0,200}))?$",
    re.MULTILINE,
)
_COMMANDS = {
    "nvidia-smi -q": "gpu",
    "nvidia-smi -q -x": "gpu",
    "nvidia-smi -x -q": "gpu",
    "nvidia-smi nvlink -s": "nvlink",
    "nvidia-smi nvlink --status": "nvlink",
    "nvidia-smi nvlink -e": "nvlink:errors",
    "nvidia-smi nvlink --errorcounters": "nvlink:errors",
    "nvidia-smi nvlink -gt d": "nvlink:traffic",
    "nvidia-smi nvlink --getthroughput d": "nvlink:traffic",
    "lldpctl -f json": "lldp",
}
_WITH_INTERFACE = 2
"""Number of ethtool's arguments: the option and the interface."""
_ANY_COMMAND = re.compile(r"^(?:# |[\w.-]+@[\w.-]+[:~ ][^\n$#]{0,80})?[$#] \S", re.MULTILINE)
_RULER = re.compile(r"^#{20,}\s*$", re.MULTILINE)
_ROW = re.compile(r"(?P<indent> *)(?P<key>[^:\n]{1,60}?)\s*(?: : ?(?P<value>.*))?$")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_ATTACHED = re.compile(r"^Attached GPUs\s+: ([0-9]{1,4})\s*$", re.MULTILINE)
_LAST_ROWS = re.compile(r" +(?:Compute )?Processes\b")
"""A row at or near the end of a GPU in every driver's output: if it is there, the GPU was not cut off."""
_TIMESTAMP = re.compile(r"^Timestamp\s+: (.{1,60})$", re.MULTILINE)
_NO_WORD = re.compile(r"[^a-z0-9]+")

_NAMES = {
    "gpu uuid": "uuid",
    "bus id": "pci_bus_id",
    "gpu link info": "pci_gpu_link_info",
    "pcie generation": "pcie_gen",
    "link width": "link_widths",
    "pci_gpu_link_info/pcie_gen/max": "max_link_gen",
    "pci_gpu_link_info/pcie_gen/current": "current_link_gen",
    "pci_gpu_link_info/link_widths/max": "max_link_width",
    "pci_gpu_link_info/link_widths/current": "current_link_width",
    "replays since reset": "replay_counter",
    "replay number rollovers": "replay_rollover_counter",
    "tx throughput": "tx_util",
    "rx throughput": "rx_util",
    "clocks throttle reasons": "clocks_throttle_reasons",
    "utilization/gpu": "gpu_util",
    "utilization/memory": "memory_util",
    "remapped_rows/correctable error": "remapped_row_corr",
    "remapped_rows/uncorrectable error": "remapped_row_unc",
    "remapped_rows/pending": "remapped_row_pending",
    "remapped_rows/remapping failure occurred": "remapped_row_failure",
    "bank remap availability histogram": "row_remapper_histogram",
    "remapped_rows/row_remapper_histogram/none": "row_remapper_histogram_none",
    "retired_pages/pending page blacklist": "pending_blacklist",
    "retired_pages/pending": "pending_retirement",
    "gpu current temp": "gpu_temp",
    "gpu t.limit temp": "gpu_temp_tlimit",
    "gpu slowdown temp": "gpu_temp_slow_threshold",
    "gpu slowdown t.limit temp": "gpu_temp_slow_tlimit_threshold",
    "gpu max operating temp": "gpu_temp_max_gpu_threshold",
    "gpu max operating t.limit temp": "gpu_temp_max_gpu_tlimit_threshold",
    "memory current temp": "memory_temp",
    "memory max operating temp": "gpu_temp_max_mem_threshold",
    "instantaneous power draw": "instant_power_draw",
    "ecc_errors/volatile/single bit": "single_bit",
    "ecc_errors/volatile/double bit": "double_bit",
    "ecc_mode/current": "current_ecc",
    "ecc_mode/pending": "pending_ecc",
    "applications_clocks/graphics": "graphics_clock",
    "clocks/sm": "sm_clock",
    "max_clocks/sm": "sm_clock",
}
"""The XML's names of rows that it names differently, by the row's name or by its place and name."""
_COUNTS = {
    "retired_pages/single bit ecc": "multiple_single_bit_retirement",
    "retired_pages/double bit ecc": "double_bit_retirement",
}
"""Rows that become an element with a ``retired_count`` in it, and the element's name."""
_REASONS = re.compile(r"clocks_(throttle|event)_reasons")


def outputs(text: str) -> dict[str, str]:
    """The outputs in a transcript, by probe. If a command was run twice, its later output counts."""
    found: dict[str, str] = {}
    # Any command ends the output before it, also one that is not known here.
    starts = [*(match.start() for match in _ANY_COMMAND.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        command = _COMMAND.match(text, start, end)
        if command is None or (told := _probe(command["tool"], (command["arguments"] or "").split())) is None:
            continue
        output = _RULER.sub("", text[command.end() : end]).strip("\n")
        found[told] = as_xml(output) if told == "gpu" and "<nvidia_smi_log" not in output else output
    # Without a prompt, the text may be a single output of nvidia-smi.
    if not found and "NVSMI LOG" in text:
        found["gpu"] = as_xml(text)
    return found


def _probe(tool: str, arguments: list[str]) -> str | None:
    if tool == "ethtool" and arguments[:1] in (["-m"], ["--module-info"]) and len(arguments) == _WITH_INTERFACE:
        return f"optics:{arguments[1]}"
    if tool == "dmesg":
        return "kernel"
    return _COMMANDS.get(" ".join([tool, *arguments]))


def as_xml(text: str) -> str:
    """``nvidia-smi -q`` as the XML of ``nvidia-smi -q -x``. A cut output stays cut: its end tag is missing.

    Other lines, such as complaints about a GPU without a handle, come before the XML, as in the real output.
    """
    start = text.find("NVSMI LOG")
    if start < 0:
        return text
    lines = text[start:].splitlines()[1:]
    begins = [at for at, line in enumerate(lines) if _GPU.match(line)]
    gpus = [lines[a:b] for a, b in pairwise([*begins, len(lines)])]
    attached = _ATTACHED.search(text)
    parts = [text[:start].rstrip("="), '\n<?xml version="1.0" ?>\n<nvidia_smi_log>\n']
    if stated := _TIMESTAMP.search(text):
        parts.append(f"<timestamp>{_clean(stated[1])}</timestamp>\n")
    addresses = [heading.split()[1] for heading, *_ in gpus]
    for address, (_, *rows) in zip(addresses, gpus, strict=True):
        # A GPU is listed twice if a file holds two answers or a heading is damaged: which rows are valid is unknown.
        elements = _elements(rows) if addresses.count(address) == 1 else ()
        parts += [f"<gpu id={quoteattr(address)}>\n", *elements, "</gpu>\n"]
    whole = all(any(_LAST_ROWS.match(row) for row in gpu) for gpu in gpus)
    if whole and attached and int(attached[1]) == len(gpus):
        parts.append(f"<attached_gpus>{len(gpus)}</attached_gpus>\n</nvidia_smi_log>\n")
    return "".join(parts)


def _elements(rows: list[str]) -> Iterator[str]:
    """Rows as elements: a row belongs to the last row above it that is indented less.

    A row that has a value and also holds other rows becomes two elements: one with its value, one with those rows.
    """
    parsed = [found for row in rows if row.strip() and (found := _ROW.match(row)) and found["indent"]]
    above: list[tuple[int, str]] = []
    for at, row in enumerate(parsed):
        following = parsed[at + 1] if at + 1 < len(parsed) else None
        indent = len(row["indent"])
        while above and above[-1][0] >= indent:
            yield f"</{above.pop()[1]}>"
        place = "/".join(name for _, name in above)
        value, key = row["value"], row["key"].strip().lower()
        holds_more = following is not None and len(following["indent"]) > indent
        name = _name(place, key)
        if value is None or (holds_more and not _REASONS.fullmatch(place)):
            if value:
                yield f"<{name}>{_clean(value)}</{name}>"
            above.append((indent, name))
            yield f"<{name}>"
        elif count := _COUNTS.get(f"{place}/{key}"):
            yield f"<{count}><retired_count>{_clean(value)}</retired_count></{count}>"
        else:
            yield f"<{name}>{_clean(value)}</{name}>"
    while above:
        yield f"</{above.pop()[1]}>"


def _name(place: str, key: str) -> str:
    """The element's name: the XML's own word if it differs, otherwise the row's name written as XML names are."""
    if reasons := _REASONS.fullmatch(place):
        return f"clocks_{reasons[1]}_reason_{_slug(key)}"
    tail = place.rpartition("pci/")[2]
    return _NAMES.get(f"{tail}/{key}") or _NAMES.get(key) or _slug(key)


def _slug(key: str) -> str:
    word = _NO_WORD.sub("_", key).strip("_")
    return word if word[:1].isalpha() else f"row_{word}"


def _clean(value: str) -> str:
    """A value escaped for XML, without unprintable characters."""
    return escape("".join(character for character in value.strip() if character.isprintable()))
