"""What a file of a capture holds, by the names that people give such files and by their beginnings."""

import pytest

from lumctl.fleet.bundle.capture import FILES, file_of
from lumctl.fleet.bundle.files import SESSION, content_of


@pytest.mark.parametrize(
    ("name", "probe"),
    [
        ("nvidia-smi.xml", "gpu"),
        ("nvidia-smi-q-x.xml", "gpu"),
        ("NVIDIA_SMI.XML", "gpu"),
        ("nvlink.txt", "nvlink"),
        ("nvidia-smi-nvlink-s.txt", "nvlink"),
        ("nvlink-e.txt", "nvlink:errors"),
        ("nvlink-traffic.txt", "nvlink:traffic"),
        ("nvidia-smi-session.txt", SESSION),
        ("kernel.log", "kernel"),
        ("kern.log.1", "kernel"),
        ("dmesg.log", "kernel"),
        ("dmesg.txt", "kernel"),
        ("dmesg-T.txt", "kernel"),
        ("journalctl-k.log", "kernel"),
        ("infiniband.tsv", "infiniband"),
        ("sys-class-infiniband.tsv", "infiniband"),
        ("net.tsv", "net"),
        ("sys-class-net.txt", "net"),
        ("lldp.json", "lldp"),
        ("lldpctl-f.json", "lldp"),
        ("ethtool-eth2.txt", "optics:eth2"),
        ("ethtool-m-eth2.txt", "optics:eth2"),
        ("ethtool_m_enp1s0f0np0.json", "optics:enp1s0f0np0"),
        ("ethtool-mlx5.txt", "optics:mlx5"),
        ("ethtool-m.txt", "optics:module"),
    ],
)
def test_names(name, probe):
    assert content_of(name).probe == probe


@pytest.mark.parametrize(
    "name", ["README.md", "ethtool-S-eth2.txt", "ethtool-i-eth2.txt", "kernel.log.gz", "notes.txt", "netplan.yaml", ""]
)
def test_names_of_other_things(name):
    assert content_of(name) is None


@pytest.mark.parametrize(
    ("beginning", "probe"),
    [
        ('<?xml version="1.0" ?>\n<nvidia_smi_log>', "gpu"),
        ("\n==============NVSMI LOG==============\n", SESSION),
        ("GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26 GB/s\n", "nvlink"),
        ("mlx5_0/ports/1/state\t4: ACTIVE\n", "infiniband"),
        ("/sys/class/net/eth0/operstate:up\n", "net"),
        ("[   12.345678] NVRM: loading\n", "kernel"),
        ("\tIdentifier            : 0x11 (QSFP28)\n", "optics:thing"),
    ],
)
def test_beginnings_tell_where_names_do_not(beginning, probe):
    assert content_of("thing.txt", beginning).probe == probe
    assert content_of("thing.txt", "nothing of the kind") is None


def test_the_name_wins_so_that_damage_is_seen():
    assert content_of("kernel.log", "<nvidia_smi_log>").probe == "kernel"


@pytest.mark.parametrize("probe", [*FILES, "optics:eth2", "optics:eth0:1", "optics:enp1s0f0np0", "optics:a/../b"])
def test_a_probes_own_file_is_recognised_and_stays_in_its_folder(probe):
    name = file_of(probe)
    assert "/" not in name
    assert content_of(name).probe == probe


def test_an_interface_out_of_a_hostile_name_can_be_printed():
    assert content_of("ethtool-a%0A\udcffb.txt").probe == "optics:a??b"
