import base64
import subprocess

import pytest

from lumctl.fleet.ssh.host_keys import HostKey, HostKeyError, KnownHosts, KnownHostsCache

KEY, OTHER = HostKey("ssh-ed25519", b"one key"), HostKey("ssh-ed25519", b"another key")


def line(names, key, marker=""):
    return f"{marker}{names} {key.kind} {base64.b64encode(key.blob).decode()} a comment\n"


def hosts(tmp_path, text):
    path = tmp_path / "known_hosts"
    path.write_text(text)
    return KnownHosts([path])


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ("h1,10.0.0.1", "10.0.0.1"),
        ("H1.Example", "h1.example"),
        ("[10.0.0.1]:2222", "[10.0.0.1]:2222"),
        ("*.rack,!h9.rack", "h1.rack"),
        ("[10.0.0.?]:2222", "[10.0.0.7]:2222"),
    ],
)
def test_a_known_key_is_accepted(tmp_path, names, name):
    hosts(tmp_path, line(names, KEY)).check(name, "h1", KEY)


def test_hashed_names_as_ssh_keygen_writes_them(tmp_path, require_program):
    path = tmp_path / "known_hosts"
    path.write_text(line("[10.0.0.1]:2222", KEY))
    # ssh-keygen wants a real key, so it makes one.
    subprocess.run([require_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "k"], check=True)
    kind, blob, *_ = (tmp_path / "k.pub").read_text().split()
    path.write_text(f"[10.0.0.1]:2222 {kind} {blob}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", path], check=True, capture_output=True)
    assert "10.0.0.1" not in path.read_text()
    real = HostKey(kind, base64.b64decode(blob))
    KnownHosts([path]).check("[10.0.0.1]:2222", "h1", real)
    told = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "k.pub"], check=True, capture_output=True, text=True)
    assert real.fingerprint in told.stdout


@pytest.mark.parametrize("name", ["h9.rack", "10.0.0.1", "[h1.rack]:2222"])
def test_an_unknown_key_is_refused_with_its_fingerprint(tmp_path, name):
    with pytest.raises(HostKeyError, match="unknown") as refused:
        hosts(tmp_path, line("*.rack,!h9.rack", OTHER) + line("[10.0.0.1]:2222", KEY)).check(name, "h1", KEY)
    assert KEY.fingerprint in refused.value.message
    assert "lumctl inventory trust" in refused.value.hint


def test_a_changed_key_is_refused_with_both_fingerprints_and_the_line(tmp_path):
    with pytest.raises(HostKeyError, match="CHANGED") as refused:
        hosts(tmp_path, "# a comment\n" + line("h1", OTHER)).check("h1", "h1", KEY)
    assert KEY.fingerprint in refused.value.message
    assert OTHER.fingerprint in refused.value.message
    assert f"{tmp_path}/known_hosts:2" in refused.value.message


def test_a_revoked_key_is_refused_even_where_it_is_also_known(tmp_path):
    with pytest.raises(HostKeyError, match="revoked"):
        hosts(tmp_path, line("h1", KEY) + line("*", KEY, marker="@revoked ")).check("h1", "h1", KEY)


def test_an_authority_vouches_for_certificates_and_not_for_a_plain_key(tmp_path):
    with pytest.raises(HostKeyError, match="unknown"):
        hosts(tmp_path, line("*", KEY, marker="@cert-authority ")).check("h1", "h1", KEY)


def test_lines_that_make_no_sense_are_passed_over(tmp_path):
    junk = "h1\nh1 ssh-ed25519\nh1 ssh-ed25519 !!!\n|1|x|y ssh-ed25519 AAAA\n|1| ssh-rsa AAAA\n@odd h1 ssh-rsa AAAA\n\n"
    hosts(tmp_path, junk + line("h1", KEY)).check("h1", "h1", KEY)


def test_a_key_enrolled_meanwhile_is_seen(tmp_path):
    path = tmp_path / "known_hosts"
    cache = KnownHostsCache()
    assert cache.of((path,)).keys_of("h1") == []
    path.write_text(line("h1", KEY))
    assert [known.key for known in cache.of((path,)).keys_of("h1")] == [KEY]
    assert cache.of((path,)) is cache.of((path,))
