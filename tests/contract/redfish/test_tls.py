"""TLS to a controller: certificates are checked, whatever way leads there, and a private authority can be named."""

import datetime as dt
import ipaddress
import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct

RESET = "/redfish/v1/Systems/a/Actions/ComputerSystem.Reset"
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


class Authority:
    """Signs certificates for controllers; ``pem`` is its own certificate."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rack authority")])
        self.pem = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))

    def pair(self, name: x509.GeneralName, *, own: bool = False) -> bytes:
        """The certificate and key of a controller; ``own``: signed by itself."""
        key = self._key if own else ec.generate_private_key(ec.SECP256R1())
        subject = self._name if own else x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "controller")])
        certificate = self._signed(subject, key, x509.SubjectAlternativeName([name]))
        return certificate + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _signed(self, subject, key, extension) -> bytes:
        now = dt.datetime.now(dt.UTC)
        public_key, issuer_key = key.public_key(), self._key.public_key()
        usage = x509.KeyUsage(True, False, False, False, False, True, False, False, False)  # noqa: FBT003
        builder = (
            x509.CertificateBuilder(self._name, subject, public_key, x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def secured(controller, authority, serve, tmp_path):
    """Serve the controller by TLS with a certificate for a name."""

    def start(name: x509.GeneralName = LOOPBACK, *, own: bool = False) -> str:
        (tmp_path / "pair.pem").write_bytes(authority.pair(name, own=own))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "pair.pem")

        def script(connection) -> None:
            with context.wrap_socket(connection, server_side=True) as spoken:
                controller(spoken)

        return serve(script)

    return start


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    """The authority's certificate is where an operator would name it."""
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


def driver_at(address, way=None) -> RedfishPower:
    return RedfishPower(DriverContext(device="bmc1", address=address, way=way or Direct(address), timeout_s=2.0))


def test_a_private_authority_is_refused_and_the_hint_says_how_to_name_it(secured, controller):
    with pytest.raises(DeviceUnreachableError, match=r"certificate is not accepted: .*; nothing was sent") as refused:
        driver_at(secured()).set_power(on=False)
    assert "$SSL_CERT_FILE" in refused.value.hint
    assert controller.asked == []


@pytest.mark.usefixtures("trusted")
def test_with_its_authority_named_it_is_read_and_switched(secured, controller):
    driver = driver_at(secured())
    assert driver.read_power().watts == 321.5
    driver.set_power(on=False, force=True)
    assert controller.orders == ["ForceOff"]


def test_a_self_signed_certificate_is_refused_until_it_is_named_itself(secured, controller, tmp_path, monkeypatch):
    """As controllers come from the factory: nobody has signed it but itself."""
    address = secured(own=True)
    with pytest.raises(DeviceUnreachableError, match="not accepted: self-signed certificate"):
        driver_at(address).read_power()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pair.pem"))
    assert driver_at(address).read_power().on is True
    assert controller.asked


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_refused(secured, controller):
    with pytest.raises(DeviceUnreachableError, match="not accepted") as refused:
        driver_at(secured(x509.DNSName("bmc2.example"))).read_power()
    assert "the certificate does not name 127.0.0.1" in refused.value.hint
    assert controller.asked == []


def test_what_does_not_speak_tls_is_told(controller, serve):
    with pytest.raises(DeviceUnreachableError, match="nothing was sent") as refused:
        driver_at(serve(lambda connection: connection.sendall(controller.whole(400)))).read_power()
    assert "may not use TLS" in refused.value.hint


def test_a_handshake_that_never_ends_ends_with_the_deadline(serve):
    with pytest.raises(DeviceUnreachableError, match="no answer in time; nothing was sent"):
        driver_at(serve(lambda connection: [connection.recv(9999), connection.recv(1)])).set_power(on=False)


@pytest.mark.usefixtures("trusted")
def test_an_answer_cut_off_under_tls_leaves_the_outcome_unknown(secured, controller):
    controller.says["POST", RESET] = lambda spoken: spoken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
    with pytest.raises(OutcomeUnknownError):
        driver_at(secured()).reset()
    assert controller.orders == ["PowerCycle"]


class OnlyAStream:
    """What a channel through a host offers: no file descriptor, only the calls of a stream."""

    def __init__(self, connected: socket.socket) -> None:
        self.settimeout, self.recv = connected.settimeout, connected.recv
        self.sendall, self.close = connected.sendall, connected.close


class Through:
    """A way that leads to the controller whatever name it goes by."""

    def __init__(self, address: str) -> None:
        self._way = Direct(address)
        self.opened = 0

    def tcp(self, default_port, timeout_s) -> OnlyAStream:
        self.opened += 1
        return OnlyAStream(self._way.tcp(default_port, timeout_s))

    def subsystem(self, *_asked):
        pytest.fail("Redfish has nothing to do with SSH")


@pytest.mark.usefixtures("trusted")
def test_the_way_leads_there_and_the_name_is_still_checked(secured):
    way = Through(secured(x509.DNSName("bmc1.example")))
    driver = driver_at("bmc1.example:443", way)
    assert driver.read_power().on is True
    assert driver.read_power().on is True
    assert way.opened == 2
    with pytest.raises(DeviceUnreachableError, match="not accepted"):
        driver_at("bmc9.example:443", way).read_power()
