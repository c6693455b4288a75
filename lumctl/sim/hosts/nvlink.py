"""What ``nvidia-smi nvlink`` prints on a simulated host: every link of every GPU is up and has counted no error."""

from collections.abc import Iterator, Mapping, Sequence

from lumctl.sim.world.gpus import GpuCondition

_LINKS: Mapping[str, tuple[int, str]] = {
    "V100": (6, "25.781"),
    "A100": (12, "25"),
    "A800": (8, "25"),
    "GH200": (18, "26.562"),
    "H100": (18, "26.562"),
    "H200": (18, "26.562"),
    "GB200": (18, "50"),
    "B100": (18, "50"),
    "B200": (18, "50"),
}
"""How many links a model has, and the GB/s of each. A model that is not here has none, and prints nothing."""


def nvlink_speeds(gpus: Sequence[GpuCondition]) -> str:
    """``nvidia-smi nvlink -s``."""
    return "".join(
        head + "".join(f"\t Link {link}: {speed} GB/s\n" for link in range(count))
        for head, count, speed in _linked(gpus)
    )


def nvlink_errors(gpus: Sequence[GpuCondition]) -> str:
    """``nvidia-smi nvlink -e``."""
    return "".join(head + "\n".join(map(_no_errors, range(count))) for head, count, _ in _linked(gpus))


def _no_errors(link: int) -> str:
    return "".join(f"\t Link {link}: {kind} Errors: 0\n" for kind in ("Replay", "Recovery", "CRC"))


def _linked(gpus: Sequence[GpuCondition]) -> Iterator[tuple[str, int, str]]:
    for number, condition in enumerate(gpus):
        model = condition.gpu.accelerator.model
        found = next((links for word, links in _LINKS.items() if word in model), None)
        if found:
            name = model if model.startswith("NVIDIA") else f"NVIDIA {model}"
            yield f"GPU {number}: {name} (UUID: {condition.gpu.uuid})\n", *found
