import contextlib
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumctl.devices.netconf.messages import MessageError, capabilities_of, parse, reads_as_xml

LAUGHS = b'<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><a>&c;</a>'


@pytest.mark.parametrize(
    "before",
    [b"", b"\xef\xbb\xbf", b"<?xml version='1.0'?>\n", b" \n<!-- <a> --> <?pi <b> ?>", b"<!--" + b"-" * 9 + b"x-->\t"],
)
def test_a_document_type_is_refused_before_it_is_read(before):
    with pytest.raises(MessageError, match="document type"):
        parse(before + LAUGHS)


@pytest.mark.parametrize(
    "encoded",
    [LAUGHS.decode().encode("utf-16"), b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE a+AD4-<a/>'],
)
def test_no_encoding_hides_it(encoded):
    with pytest.raises(MessageError):
        parse(encoded)


def test_words_that_look_like_one_are_no_document_type():
    assert parse(b"<a><![CDATA[<!DOCTYPE html>]]></a>").text == "<!DOCTYPE html>"
    assert parse("<?xml version='1.0' encoding='latin-1'?><a>é</a>".encode()).text == "é"
    with pytest.raises(MessageError, match="well-formed"):
        parse(b"<a>&undefined;</a>")


def test_deep_nesting_is_refused():
    assert parse(b"<a>" * 150 + b"</a>" * 150).tag == "a"
    with pytest.raises(MessageError, match="deep"):
        parse(b"<a>" * 100_000 + b"</a>" * 100_000)


def test_a_prolog_that_never_ends_is_walked_over_once():
    started = time.monotonic()
    for hostile in (b"<!--" * 300_000, b" " * 1_000_000 + b"x", b"<?" * 500_000, b"<!-- -->" * 100_000):
        with pytest.raises(MessageError):
            parse(hostile)
    assert time.monotonic() - started < 5


@given(st.binary())
@example(b"")
@example(b"\xff")
@example(b"<a\x00/>")
def test_any_bytes_are_a_tree_or_an_error(data):
    with contextlib.suppress(MessageError):
        assert parse(data).tag


@given(st.text())
@example("</f><f>")
@example("</config>")
@example("<a>]]>]]></a>")
@example("<!-- ]]>]]> -->")
@example("<?xml version='1.0'?><a/>")
@example("\ud800")
def test_a_fragment_stays_where_it_is_put(fragment):
    if reads_as_xml(fragment):
        assert len(parse(f"<outer><inner>{fragment}</inner></outer>".encode())) == 1
        assert "]]>]]>" not in fragment


def test_a_hello_without_a_version_that_we_speak():
    ns = "urn:ietf:params:xml:ns:netconf:base:1.0"
    with pytest.raises(MessageError, match="no version"):
        capabilities_of(parse(f'<hello xmlns="{ns}"><capabilities/></hello>'.encode()))
    with pytest.raises(MessageError, match="does not begin"):
        capabilities_of(parse(b"<hello/>"))
