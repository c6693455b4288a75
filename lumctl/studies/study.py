"""A study: a question, its parameters, the claims that it tests, and the program that answers it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory
from lumctl.studies.claim import Claim, ReadingValue

StudySettings = Mapping[str, tuple[float, ...]]
"""The values of each parameter, each once; one that takes a single value has a tuple of one."""
StudyRow = Mapping[str, float | str]
"""A row of a study's table; the names of columns have the units."""
StudyCase = tuple[float | str, ...]
"""What one part of a study's work is given: values of its parameters, and a seed where it draws at random."""
ClaimValues = Mapping[str, Mapping[str, ReadingValue]]
"""By the ids of claims, and the names of their readings: the values that these settings give."""


@dataclass(frozen=True, slots=True)
class StudyParameter:
    """What may be changed. ``quick`` are the values of a short run, ``low`` and ``high`` the limits of each value."""

    name: str
    help: str
    default: tuple[float, ...]
    low: float
    high: float
    quick: tuple[float, ...] = ()
    whole: bool = False
    several: bool = True

    def read(self, text: str) -> tuple[float, ...]:
        """The values that a text gives, separated by commas.

        Raises:
            UsageError: it is none, or one is outside the limits.
        """
        words = text.split(",")
        if len(words) > 1 and not self.several:
            raise UsageError(f"{self.name} takes one value, but was given {len(words)}")
        return tuple(dict.fromkeys(self._value(word.strip()) for word in words))

    def _value(self, word: str) -> float:
        try:
            value = int(word) if self.whole else float(word)
        except ValueError:
            kind = "a whole number" if self.whole else "a number"
            raise UsageError(f"{self.name} is {word!r}, expected {kind}") from None
        if not self.low <= value <= self.high:  # also refuses NaN
            raise UsageError(f"{self.name} is {word}, expected {self.low:g} to {self.high:g}")
        return value


@dataclass(frozen=True, slots=True)
class StudyPlot:
    """A picture of a study's table: the columns ``y``, which share a unit, over the column ``x``.

    Each combination of the columns ``by`` has a line of its own. Of rows that are alike in all these, such as those of
    several seeds, a line has the mean and the whole range. If ``x`` has words, its marks are not joined. The
    labels have the units.
    """

    x: str
    y: tuple[str, ...]
    x_label: str
    y_label: str
    by: tuple[str, ...] = ()
    log_x: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """One study.

    ``cases`` says in which cases some settings result, in the order of the table; it raises a UsageError if they make
    no table. ``solve``, a function of a module, gives the rows of one case, all with the same columns. It uses nothing
    but the case, so another process may run it. ``values`` finds the values of the claims in the table. ``plots`` show
    the table; the claims have a picture without them. ``of_inventory`` gives the values of the parameters that an
    inventory says. ``of_trace`` gives the same study of a trace, with the YAML file of its columns; ``of_measured`` the
    same with what files say that was measured. ``inputs`` says what else than settings its rows depend on, such as the
    checksum of a file.
    """

    name: str
    question: str
    parameters: tuple[StudyParameter, ...]
    claims: tuple[Claim, ...]
    cases: Callable[[StudySettings], Iterable[StudyCase]] = field(repr=False)
    solve: Callable[..., Iterable[StudyRow]] = field(repr=False)
    values: Callable[[StudySettings, Sequence[StudyRow]], ClaimValues] = field(repr=False)
    plots: tuple[StudyPlot, ...] = ()
    of_inventory: Callable[["Inventory"], StudySettings] | None = field(default=None, repr=False)
    of_trace: Callable[[Path, Path | None], "Study"] | None = field(default=None, repr=False)
    of_measured: Callable[[Sequence[Path]], "Study"] | None = field(default=None, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def with_trace(self, trace: Path | None, columns: Path | None) -> "Study":
        """This study of the jobs in a trace; ``columns`` is the YAML file that names its columns.

        Raises:
            UsageError: the study takes no trace, or a file cannot be read or is not valid.
        """
        if trace is None:
            if columns is not None:
                raise UsageError("--trace-map needs --trace FILE")
            return self
        if self.of_trace is None:
            hint = "leave --trace out, or run the study trace or sharing"
            raise UsageError(f"study {self.name} takes no trace", hint=hint)
        return self.of_trace(trace, columns)

    def with_measured(self, files: Sequence[Path]) -> "Study":
        """This study with what files say that was measured.

        Raises:
            UsageError: the study takes no measurements, or a file cannot be read or is not valid.
        """
        if not files:
            return self
        if self.of_measured is None:
            hint = "leave --measured out, or run the study recovery"
            raise UsageError(f"study {self.name} takes no measurements", hint=hint)
        return self.of_measured(files)

    def inventory_settings(self, inventory: "Inventory") -> list[str]:
        """What :meth:`settings` is given for the rack of an inventory.

        Raises:
            UsageError: the study uses nothing of an inventory, or this one has no rack that the study is of.
        """
        if self.of_inventory is None:
            from lumctl.studies import STUDIES  # noqa: PLC0415 - it has this study

            those = ", ".join(name for name, each in STUDIES.items() if each.of_inventory)
            raise UsageError(f"study {self.name} uses nothing of an inventory; these take -i: {those}")
        found = self.of_inventory(inventory)
        return [f"{name}={','.join(map(str, values))}" for name, values in found.items()]

    def settings(self, given: Iterable[str] = (), *, quick: bool = False) -> StudySettings:
        """The settings of a run; ``given`` are texts ``name=value[,value...]``.

        Raises:
            UsageError: a text has another form, a name is unknown, or a value is not allowed.
        """
        known = {each.name: each for each in self.parameters}
        found = {each.name: each.quick if quick and each.quick else each.default for each in self.parameters}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f"--set {text}: expected NAME=VALUE")
            if name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near!r}?" if near else f"its parameters: {', '.join(known) or 'none'}"
                raise UsageError(f"study {self.name} has no parameter {name!r}", hint=hint)
            found[name] = known[name].read(value)
        return found
