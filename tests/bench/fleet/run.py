"""Reading many hosts over SSH, lumctl beside its peers, against real sshd on loopback.

    python tests/bench/fleet/run.py ticks [--hosts 256] [--only lumctl,asyncssh-loop] [--rounds 8]
    python tests/bench/fleet/run.py idle | cold | light | hang | all

Each prints a table, what holds of what is promised, and writes build/bench-fleet/FIGURE.json. Ends with 1 if a promise
does not hold. Only a quiet machine gives figures worth keeping: client, sshd and hosts share its cores.
"""

import argparse
import signal
import sys
from pathlib import Path

import figure_cold
import figure_hang
import figure_idle
import figure_light
import figure_ticks
from rack import allow_many_files

FIGURES = {
    "ticks": (figure_ticks.run, 256, 8, "warm ticks, all contenders side by side"),
    "idle": (figure_idle.run, 256, 0, "what connections cost that nobody uses"),
    "cold": (figure_cold.run, 1, 0, "one host from nothing to its first answer"),
    "light": (figure_light.run, 1000, 20, "1,000 hosts beside 256, light servers"),
    "hang": (figure_hang.run, 256, 60, "5 %% of the hosts hang"),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = made.add_subparsers(dest="figure", required=True)
    for name, (_, hosts, rounds, what) in FIGURES.items():
        figure = figures.add_parser(name, help=what)
        figure.add_argument("--hosts", type=int, default=hosts)
        figure.add_argument("--rounds", type=int, default=rounds)
        figure.add_argument("--bytes", type=int, default=40960, help="length of an answer")
        figure.add_argument("--only", help="contenders, separated by commas")
        figure.add_argument("--seconds", type=float, default=30, help="how long idleness is watched")
        figure.add_argument("--times", type=int, default=60, help="how often a cold host is read")
        figure.add_argument("--json", type=Path, help="where to write the figures")
    figures.add_parser("all", help="one after the other")
    return made


def main(arguments: list[str]) -> int:
    allow_many_files()
    # Ended from outside, it still ends its server and its contenders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parser().parse_args(arguments)
    if options.figure == "all":
        # A failed promise of one does not keep the others from being measured.
        return max([main([name]) for name in FIGURES])
    return FIGURES[options.figure][0](options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
