"""Reads and edits of the simulator's NETCONF server, by ncclient."""

import pytest
from ncclient.operations import RPCError

NS = "urn:example:shop"
Q = f"{{{NS}}}"


def test_state_is_shown_beside_the_configuration_and_not_in_it(client):
    shown = client.get(("subtree", f'<things xmlns="{NS}"/>')).data
    assert [each.findtext(f"{Q}stock") for each in shown.iter(f"{Q}thing")] == ["7", "7"]
    assert client.get_config("running").data.find(f".//{Q}stock") is None


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("<thing><name>pen</name></thing>", "pen 1 7"),
        ("<thing><price/></thing>", "pen 1,book 20"),
        ("<thing><name>pen</name><stock/></thing>", "pen 7"),
        ("<thing><name>nothing</name></thing>", ""),
        ("<thing><name>book</name><price/></thing><thing><name>pen</name><stock/></thing>", "pen 7,book 20"),
    ],
    ids=["an entry", "a leaf and its key", "a leaf of an entry", "no entry", "two entries"],
)
def test_subtree_filters(client, chosen, expected):
    data = client.get(("subtree", f'<things xmlns="{NS}">{chosen}</things>')).data
    found = [" ".join(leaf.text for leaf in thing) for thing in data.iter(f"{Q}thing")]
    assert ",".join(found) == expected


def test_a_candidate_is_edited_discarded_committed(shop, client, priced, prices):
    client.edit_config(priced("pen", 3), target="candidate")
    assert (prices(client)["pen"], prices(client, "candidate")["pen"]) == ("1", "3")
    client.discard_changes()
    assert prices(client, "candidate")["pen"] == "1"
    client.edit_config(priced("pen", 4), target="candidate")
    client.validate("candidate")
    client.commit()
    assert shop.shop.sold == {"pen": "4", "book": "20"}


@pytest.mark.parametrize(
    ("config", "left"),
    [
        (("ink", 5), {"pen": "1", "book": "20", "ink": "5"}),
        (("ink", 5, "create"), {"pen": "1", "book": "20", "ink": "5"}),
        (("pen", None, "delete"), {"book": "20"}),
        (("pen", None, "remove"), {"book": "20"}),
        (("ink", None, "remove"), {"pen": "1", "book": "20"}),
        (("pen", 9, "replace"), {"pen": "9", "book": "20"}),
    ],
    ids=["merge", "create", "delete", "remove", "remove nothing", "replace"],
)
def test_operations_of_an_edit(shop, client, config, left, priced):
    client.edit_config(priced(*config), target="candidate")
    client.commit()
    assert shop.shop.sold == left


def test_the_default_operation_is_followed(shop, client, priced):
    client.edit_config(priced("ink", 5), target="candidate", default_operation="replace")
    client.commit()
    assert shop.shop.sold == {"ink": "5"}
    with pytest.raises(RPCError, match="the data to change does not exist"):
        client.edit_config(priced("pen", 5), target="candidate", default_operation="none")


@pytest.mark.parametrize(
    ("config", "tag", "path"),
    [
        (("pen", 1, "create"), "data-exists", "/things/thing[name='pen']"),
        (("ink", None, "delete"), "data-missing", "/things/thing[name='ink']"),
        (("ink", None, "burn"), "bad-attribute", "/things/thing[name='ink']"),
        ((None, 3), "missing-element", None),
    ],
)
def test_an_edit_that_fails_says_where_and_leaves_nothing(client, config, tag, path, priced, prices):
    with pytest.raises(RPCError) as refused:
        client.edit_config(priced(*config), target="candidate")
    assert refused.value.tag == tag
    assert path is None or refused.value.path.strip() == path
    assert prices(client, "candidate") == {"pen": "1", "book": "20"}


def test_what_the_device_does_not_take_is_not_committed(shop, client, priced):
    client.edit_config(priced("pen", 101), target="candidate")
    for ask in (lambda: client.validate("candidate"), client.commit):
        with pytest.raises(RPCError) as refused:
            ask()
        assert (refused.value.tag, refused.value.path.strip()) == ("invalid-value", "/things/thing[name='pen']/price")
    assert shop.shop.sold["pen"] == "1"


def test_running_is_written_only_where_there_is_no_candidate(client, served, tmp_path, priced):
    with pytest.raises(RPCError, match="cannot be written directly"):
        client.edit_config(priced("pen", 3), target="running")
    plain = served(candidate=False)
    other = plain.connect(tmp_path)
    other.edit_config(priced("pen", 3), target="running")
    assert plain.shop.sold["pen"] == "3"
    with pytest.raises(RPCError, match="too dear"):
        other.edit_config(priced("pen", 300), target="running")
    assert plain.shop.sold["pen"] == "3"
