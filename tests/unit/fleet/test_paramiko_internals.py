"""paramiko's private names stand in one file, and lumctl does without them where they are missing."""

import ast
from pathlib import Path

import paramiko
import pytest

from lumctl.fleet.ssh import connect, paramiko_internals
from lumctl.fleet.ssh.connect import Connector, plain_reason
from lumctl.fleet.ssh.fast_client import FastClient
from lumctl.fleet.ssh.plain_client import PlainClient

ROOT = Path(__file__).parents[3]
HOME = ROOT / "lumctl/fleet/ssh/paramiko_internals.py"
PRODUCT = [path for folder in ("lumctl", "plugins") for path in (ROOT / folder).rglob("*.py") if path != HOME]
UNDOCUMENTED = {"clear_to_send", "packetizer", "packetizer_class", "status_event", "eof_received", "read_all"}
"""Names without an underscore that paramiko's documentation does not have; the simulator's server may read them."""
PUBLIC_MODULES = {"paramiko", "paramiko.common", "paramiko.pkey", "paramiko.ssh_exception"}
MADE_TO_BE_SUBCLASSED = {"ServerInterface", "SubsystemHandler"}
SOCKET_METHODS = {"recv", "send", "settimeout"}


def private_uses(source: str, *, is_client: bool):
    """Yield the line and the words of each private use of paramiko."""
    talks = is_client or "paramiko" in source
    for node in ast.walk(ast.parse(source)):
        words = []
        if isinstance(node, ast.ClassDef):
            words = [*stand_in_uses(node), *(subclass_uses(node) if talks else ())]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            words = [f"from {module}"] if module.startswith("paramiko") and module not in PUBLIC_MODULES else []
        elif isinstance(node, ast.Attribute) and talks:
            words = attribute_uses(node, is_client=is_client)
        yield from ((node.lineno, each) for each in words)


def stand_in_uses(node: ast.ClassDef):
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    if methods >= SOCKET_METHODS and "_closed" in names:
        yield f"class {node.name} offers _closed to paramiko"


def subclass_uses(node: ast.ClassDef):
    for base in map(ast.unparse, node.bases):
        if base.startswith("paramiko.") and base.removeprefix("paramiko.") not in MADE_TO_BE_SUBCLASSED:
            yield f"class {node.name} replaces parts of {base}"


def attribute_uses(node: ast.Attribute, *, is_client: bool):
    owner = ast.unparse(node.value)
    private = node.attr.startswith("_") and not node.attr.endswith("__") and owner not in {"self", "cls", "super()"}
    private = private and node.attr != "_replace"  # of a named tuple
    if private or (is_client and node.attr in UNDOCUMENTED):
        yield f"{owner}.{node.attr}"
    if isinstance(node.ctx, ast.Store) and owner.startswith("paramiko."):
        yield f"{owner}.{node.attr} ="


def test_no_other_file_uses_a_private_name_of_paramiko():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in PRODUCT
        for line, words in private_uses(path.read_text(), is_client=path.is_relative_to(ROOT / "lumctl/fleet"))
    ]
    assert found == [], "move these to lumctl/fleet/ssh/paramiko_internals.py, with a reason"


@pytest.mark.parametrize(
    "use",
    [
        "import paramiko\ntransport._send_message(b'')",
        "import paramiko\ntransport.packetizer.close()",
        "import paramiko\nchannel.status_event.wait(1)",
        "from paramiko.packet import Packetizer",
        "import paramiko\nclass Mine(paramiko.Transport): pass",
        "import paramiko\nparamiko.Transport.run = None",
        "class S:\n def recv(self): self._closed = 1\n def send(self): 0\n def settimeout(self): 0",
    ],
)
def test_each_kind_of_private_use_is_found(use):
    assert list(private_uses(use, is_client=True))


def test_the_file_itself_is_full_of_them():
    assert list(private_uses(HOME.read_text(), is_client=True))


def test_the_installed_paramiko_has_each_of_them_and_each_has_its_reason():
    paramiko_internals.missing.cache_clear()
    assert paramiko_internals.missing() == ()
    for internal in paramiko_internals.INTERNAL_NAMES:
        assert all((internal.use, internal.reason, internal.breakage)), internal.name


@pytest.fixture
def changed_paramiko(monkeypatch):
    """paramiko without one of the names."""
    monkeypatch.delenv("LUMCTL_PLAIN_SSH", raising=False)
    paramiko_internals.missing.cache_clear()
    yield lambda: monkeypatch.delattr(paramiko.packet.Packetizer, "read_all")
    monkeypatch.undo()
    paramiko_internals.missing.cache_clear()


def client_of(connector):
    return type(connector._client)


def test_without_one_of_them_hosts_are_read_over_the_public_api(changed_paramiko):
    assert client_of(Connector(timeout_s=1.0)) is FastClient
    paramiko_internals.missing.cache_clear()
    changed_paramiko()
    assert plain_reason() == f"paramiko {paramiko.__version__} lacks Packetizer.read_all"
    assert client_of(Connector(timeout_s=1.0)) is PlainClient


@pytest.mark.parametrize(("value", "client"), [("1", PlainClient), ("0", FastClient), ("", FastClient)])
def test_a_variable_chooses_the_client(monkeypatch, value, client):
    monkeypatch.setenv(connect.PLAIN_VARIABLE, value)
    assert client_of(Connector(timeout_s=1.0)) is client
