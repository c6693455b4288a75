"""Every field of nvidia-smi that means a fault, in each format and generation of the driver: the GPU is never ok."""

import pytest

from lumctl.cli.main import run

HEAD = """<?xml version="1.0" ?>
<nvidia_smi_log><timestamp>Sat Nov 21 07:24:18 2026</timestamp><attached_gpus>1</attached_gpus>"""
WELL = {
    "product_name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "minor_number": "0",
    "gpu_recovery_action": "None",
    "fb_memory_usage/used": "100 MiB",
    "temperature/gpu_temp": "40 C",
    "ecc_mode/current_ecc": "Enabled",
}
ECC_OF = {
    # Up to Pascal and Volta; Turing and later; since 535.
    "418": ("ecc_errors/{}/double_bit/device_memory", "ecc_errors/{}/double_bit/total"),
    "470": ("ecc_errors/{}/sram_uncorrectable", "ecc_errors/{}/dram_uncorrectable"),
    "580": (
        "ecc_errors/{}/sram_uncorrectable_parity",
        "ecc_errors/{}/sram_uncorrectable_secded",
        "ecc_errors/{}/dram_uncorrectable",
    ),
}
FLAGS = {
    "418": {"retired_pages/pending_blacklist": "Yes", "retired_pages/pending_retirement": "Yes"},
    "470": {"remapped_rows/remapped_row_pending": "Yes", "remapped_rows/remapped_row_failure": "Yes"},
    "550": {
        "gpu_reset_status/reset_required": "Yes",
        "gpu_reset_status/drain_and_reset_recommended": "Yes",
        "remapped_rows/row_remapper_histogram/row_remapper_histogram_none": "2 bank(s)",
        "fabric/state": "In Progress",
        "fabric/status": "Unknown Failure",
    },
    "580": {
        "gpu_recovery_action": "Drain and Reset",
        "ecc_errors/aggregate/sram_threshold_exceeded": "Yes",
        "ecc_errors/channel_repair_pending": "Yes",
        "ecc_errors/tpc_repair_pending": "Yes",
        "ecc_errors/unrepairable_memory": "Yes",
        "fabric/state": "Not Started",
        "fabric/health/summary": "Unhealthy",
        "fabric/health/bandwidth": "Degraded",
        "fabric/health/route_recovery_in_progress": "True",
        "fabric/health/route_unhealthy": "True",
        "fabric/health/access_timeout_recovery": "True",
        "fabric/health/incorrect_configuration": "Insufficient NVLinks",
    },
}
FAULTS = [
    *((driver, path, value) for driver, flags in FLAGS.items() for path, value in flags.items()),
    *(
        (driver, path.format(period), "1")
        for driver, paths in ECC_OF.items()
        for path in paths
        for period in ("volatile", "aggregate")
        # The sum is what the old schema is judged by.
        if not (driver == "418" and path.endswith("device_memory"))
    ),
    ("418", "retired_pages/double_bit_retirement/retired_count", "63"),
    ("470", "remapped_rows/remapped_row_unc", "512"),
    ("470", "temperature/gpu_temp", "120 C"),
]
ROWS = {
    "product_name": "Product Name",
    "gpu_recovery_action": "GPU Recovery Action",
    "uuid": "GPU UUID",
    "minor_number": "Minor Number",
    "fb_memory_usage": "FB Memory Usage",
    "gpu_temp": "GPU Current Temp",
    "ecc_mode": "ECC Mode",
    "current_ecc": "Current",
    "ecc_errors": "ECC Errors",
    "sram_uncorrectable": "SRAM Uncorrectable",
    "dram_uncorrectable": "DRAM Uncorrectable",
    "sram_uncorrectable_parity": "SRAM Uncorrectable Parity",
    "sram_uncorrectable_secded": "SRAM Uncorrectable SEC-DED",
    "sram_threshold_exceeded": "SRAM Threshold Exceeded",
    "tpc_repair_pending": "TPC Repair Pending",
    "remapped_row_unc": "Uncorrectable Error",
    "remapped_row_pending": "Pending",
    "remapped_row_failure": "Remapping Failure Occurred",
    "row_remapper_histogram": "Bank Remap Availability Histogram",
    "row_remapper_histogram_none": "None",
    "pending_blacklist": "Pending Page Blacklist",
    "pending_retirement": "Pending",
    "gpu_reset_status": "GPU Reset Status",
    "route_recovery_in_progress": "Route Recovery in progress",
    "double_bit_retirement/retired_count": "Double Bit ECC",
}
"""How nvidia-smi -q writes an element of nvidia-smi -q -x, where that is not its name with capitals."""


def tree(leaves):
    """Leaves by path as a tree."""
    found = {}
    for path, leaf in leaves.items():
        *above, name = path.split("/")
        here = found
        for part in above:
            here = here.setdefault(part, {})
        here[name] = leaf
    return found


def as_xml(leaves):
    def elements(branch):
        return "".join(
            f"<{name}>{elements(leaf) if isinstance(leaf, dict) else leaf}</{name}>\n" for name, leaf in branch.items()
        )

    return f'{HEAD}\n<gpu id="00000000:9B:00.0">\n{elements(tree(leaves))}</gpu></nvidia_smi_log>\n'


def as_text(leaves):
    def rows(branch, depth):
        for name, leaf in branch.items():
            if isinstance(leaf, dict) and set(leaf) == {"retired_count"}:
                yield f"{' ' * depth}{ROWS[f'{name}/retired_count']} : {leaf['retired_count']}"
            elif isinstance(leaf, dict):
                yield f"{' ' * depth}{ROWS.get(name, name.replace('_', ' ').title())}"
                yield from rows(leaf, depth + 4)
            else:
                yield f"{' ' * depth}{ROWS.get(name, name.replace('_', ' ').title())} : {leaf}"

    head = "==============NVSMI LOG==============\n\nTimestamp : Sat Nov 21 07:24:18 2026\nAttached GPUs : 1\n"
    return f"{head}GPU 00000000:9B:00.0\n" + "\n".join([*rows(tree(leaves), 4), "    Processes : None", ""])


FORMATS = {"nvidia-smi.xml": as_xml, "nvidia-smi-q.txt": as_text}


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """The exit status of ``check`` for one answer, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)

    def command(name, text):
        folder = tmp_path / "capture" / "h1"
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
        return run(["check", "--from-capture", str(folder.parent)]), capsys.readouterr().out

    return command


def answer(driver, **changed):
    """The answer of a well GPU with the schema of a driver, and some leaves in their places."""
    ecc = {
        path.format(period): "0" for path in ECC_OF.get(driver, ECC_OF["580"]) for period in ("volatile", "aggregate")
    }
    fabric = {"fabric/state": "Completed", "fabric/status": "Success"} if driver in {"550", "580"} else {}
    return {**WELL, **ecc, **fabric, **changed}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("driver", ["418", "470", "550", "580"])
def test_a_gpu_without_a_fault_is_ok(check, driver, name):
    code, said = check(name, FORMATS[name](answer(driver)))
    assert (code, said.split(" - ")[0]) == (0, "LUMCTL OK")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("driver", "path", "value"), FAULTS, ids=lambda part: part.rpartition("/")[2].replace(" ", "-")
)
def test_a_field_that_means_a_fault_is_never_ok(check, driver, path, value, name):
    code, said = check(name, FORMATS[name](answer(driver, **{path: value})))
    assert code in {1, 2}, said
    assert "gpu0" in said
