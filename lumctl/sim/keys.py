"""Ephemeral ed25519 keys in OpenSSH's format: one per simulated host and one for its client."""

import io

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def new_private_key() -> str:
    """The text of a new private key file."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def loaded(private_key: str) -> paramiko.PKey:
    """A key from the text of its file."""
    return paramiko.Ed25519Key(file_obj=io.StringIO(private_key))


def known_host(address: str, port: int, key: paramiko.PKey) -> str:
    """The line of a ``known_hosts`` file for a server."""
    return f"[{address}]:{port} {key.get_name()} {key.get_base64()}\n"
