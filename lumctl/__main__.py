"""The console script; ``python -m lumctl`` runs it too."""

import sys


def main() -> None:
    """Run one command; values for a shell's completion are printed without loading the commands."""
    if sys.argv[1:2] == ["__complete"]:
        from lumctl.cli.completion import complete  # noqa: PLC0415 - as the docstring says

        complete(sys.argv[2:])
        return
    from lumctl.cli.main import main as run  # noqa: PLC0415 - as the docstring says

    run()


if __name__ == "__main__":
    main()
