import random
import re

import pytest

from lumctl.fleet.parsers import smi_cache
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.parsers.smi_cache import SmiCache, read_smi_xml

OWN = ("healthy.xml", "h100.xml", "k80.xml")


def as_told(text, cache):
    answer = cache.read(text)
    return [(gpu.id, dict(gpu.leaves)) for gpu in answer.gpus], answer.complete


def as_parsed(text):
    log = read_smi_xml(text)
    return [(gpu.id, gpu.leaves) for gpu in log.gpus], log.complete


@pytest.fixture
def read_sections(monkeypatch):
    """How many sections were read."""
    read = []
    original = smi_cache.read_section
    monkeypatch.setattr(smi_cache, "read_section", lambda text: read.append(text) or original(text))
    return read


@pytest.mark.parametrize("name", OWN)
def test_the_short_cut_tells_what_the_parser_tells(answer, name):
    text = answer(name)
    assert as_told(text, SmiCache()) == as_parsed(text)


def test_the_short_cut_is_taken_for_captures_of_real_hardware(captures, read_sections):
    for path in captures.glob("*.xml"):
        text = path.read_text()
        read_sections.clear()
        assert as_told(text, SmiCache()) == as_parsed(text)
        assert read_sections


def test_only_what_changed_is_read_again(answer, read_sections):
    cache = SmiCache()
    before = answer("healthy.xml")
    cache.read(before)
    read_sections.clear()
    after = before.replace("<gpu_temp>51 C<", "<gpu_temp>52 C<").replace("14:00:00", "14:00:10")
    assert as_told(after, cache) == as_parsed(after)
    assert [re.match(r"<(\w+)>", section)[1] for section in read_sections] == ["temperature"]


def test_what_is_gone_is_forgotten(answer, read_sections):
    cache = SmiCache()
    cache.read(answer("healthy.xml"))
    cache.read(answer("k80.xml"))
    read_sections.clear()
    cache.read(answer("healthy.xml"))
    assert read_sections


def test_gpus_alike_share_what_they_share(answer):
    first, second = parse_nvidia_smi(answer("healthy.xml"), 1.0).gpus
    assert first.raw["max_clocks/sm_clock"] is second.raw["max_clocks/sm_clock"]
    assert len(first.raw) == len(list(first.raw)) == len(as_parsed(answer("healthy.xml"))[0][0][1])


ODD = [
    ("<product_name>NVIDIA B200<", "<product_name>a &amp; b<"),
    ("<product_name>NVIDIA B200<", "<product_name>a &quot; b<"),
    ("<product_name>NVIDIA B200<", '<product_name x="1">a<'),
    ("<product_name>NVIDIA B200<", "<product_name><![CDATA[a]]><"),
    ("<product_name>NVIDIA B200<", "<product_name>Émile<"),
    ("<product_name>NVIDIA B200<", "<product_name>a]]>b<"),
    ("<product_name>NVIDIA B200<", "<product_name>a\x07b<"),
    ("<product_name>NVIDIA B200<", "<product_name>a\rb<"),
    ("<product_brand>NVIDIA</product_brand>", "<!-- hidden -->"),
    ("<product_brand>NVIDIA</product_brand>", "<product_name>again</product_name>"),
    ("<product_brand>NVIDIA</product_brand>", "<product_brand/>"),
    ("<product_brand>NVIDIA</product_brand>", "text beside elements"),
    ("<product_brand>NVIDIA</product_brand>", "<product_brand>NVIDIA</product_brand></gpu>"),
    ("</ecc_mode>", "</ecc_errors>"),
    ("</nvidia_smi_log>", "</nvidia_smi_log>\nmore"),
    ("</nvidia_smi_log>", "<gpu>"),
    ("</nvidia_smi_log>", ""),
    ('nvsmi_device_v13.dtd"', 'x" [<!ENTITY a "b">]'),
    ("\t</gpu>\n\n", "\t</gpu>\n<stray>1</stray>\n"),
    ("\t\t", "    "),
    ("\t\t", ""),
    ("\n", " "),
    ("\n", "\r\n"),
]


@pytest.mark.parametrize(("old", "new"), ODD)
def test_what_is_not_as_usual_is_left_to_the_parser(answer, old, new):
    text = answer("healthy.xml").replace(old, new)
    assert text != answer("healthy.xml")
    cache = SmiCache()
    assert as_told(text, cache) == as_parsed(text)
    assert as_told(answer("healthy.xml"), cache) == as_parsed(answer("healthy.xml"))


def test_a_broken_document_tells_no_more_than_the_parser_lets_it(answer):
    """The short cut must not find a value that the parser would not, nor call complete what is not."""
    text = answer("healthy.xml")
    lines = text.splitlines(keepends=True)
    chance = random.Random(20)  # noqa: S311 - a seeded sample, no secret
    cache = SmiCache()
    for _ in range(600):
        broken = list(lines)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(broken))
            match chance.randrange(5):
                case 0:
                    del broken[at]
                case 1:
                    broken.insert(at, chance.choice(lines))
                case 2:
                    broken = broken[:at] or lines
                case 3:
                    line = broken[at]
                    cut = chance.randrange(len(line))
                    broken[at] = line[:cut] + chance.choice("<>/&x\x00 9\n\t") + line[cut + 1 :]
                case 4:
                    other = chance.randrange(len(broken))
                    broken[at], broken[other] = broken[other], broken[at]
        mutilated = "".join(broken)
        assert as_told(mutilated, cache) == as_parsed(mutilated)
