"""The URL of a rack's store: what cannot be one is found where it is written, and no message repeats a secret."""

import pytest

from lumctl.errors import LumctlError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.store_urls import complaints, is_url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user@host/database",
        "postgres://user@host:5432/database?sslmode=require",
        "postgresql+psycopg://lumctl@/racks?host=/run/postgresql",
        "postgresql://user@[2001:db8::1]:5432/database",
        "postgresql://user@host/database?passfile=/etc/lumctl/pgpass",
        "sqlite:////var/lib/lumctl/rack.db",
    ],
)
def test_what_a_store_can_be_at(url):
    assert is_url(url)
    assert list(complaints(url)) == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://me@db/racks", "begins with mysql://, expected a folder, postgresql:// or sqlite://"),
        ("postgress://me@db/racks", "did you mean postgres://"),
        ("postgresql+asyncpg://me@db/racks", "begins with postgresql+asyncpg://"),
        ("postgresql:/me@db/racks", "without :// after its first word"),
        ("postgresql://me@db:port/racks", "an invalid port, expected a number up to 65535"),
        ("postgresql://me@db:65536/racks", "an invalid port"),
        ("postgresql://me@db/racks/r1", "more than one name after the host"),
        ("postgresql://me@db/racks?sslmode", "an option that has no value"),
        ("postgresql://me@db/my racks", "a blank in it"),
        ("sqlite://", "without a file: it would be invisible to other processes"),
        ("sqlite://host/file", "with a host, expected sqlite:///FILE"),
    ],
)
def test_what_it_cannot_be_at(url, says):
    assert is_url(url)
    ((found, hint),) = complaints(url)
    assert says in f"{found}; {hint}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db/racks",
        "postgresql:///racks?user=me&password=hunter2",
        "postgresql:///racks?sslpassword=hunter2",
        "postgresql://me:hunter2/racks",
        "mysql://me:hunter2@db/racks",
    ],
)
def test_a_secret_is_refused_and_never_repeated(url):
    told = list(complaints(url))
    assert told
    assert "hunter2" not in str(told)


def test_a_folder_is_no_url():
    assert not is_url("/var/lib/lumctl/r1")
    assert not is_url("state: of r1")


def test_it_is_told_where_it_stands_and_all_of_it(tmp_path):
    file = tmp_path / "rack.yaml"
    text = example("prototype").read_text()
    rack = "  prototype:\n"
    file.write_text(text.replace(rack, f"{rack}    store: 'mysql://me:hunter2@db/racks'\n", 1))
    with pytest.raises(LumctlError) as refused:
        load_inventory(file)
    line = text[: text.index(rack)].count("\n") + 2
    told = str(refused.value)
    assert told.count(f":{line}:12: found a database URL") == 2
    assert "with a password in it" in told
    assert "begins with mysql://" in told
