"""Questions: defaults, answers that do not fit, and an input that ends."""

import shlex

import pytest

from lumctl.cli.init_answers import InitAnswers, address_in, number_in
from lumctl.cli.init_questions import as_options, ask, asked
from lumctl.errors import RefusedError, UsageError


def number(text):
    if not text.isdecimal():
        raise UsageError(f"found {text!r}", hint="a number")
    return int(text)


NOTHING = InitAnswers(None, None, None)


def one_question(*lines):
    said: list[str] = []
    answers = iter([*lines, ""])
    return (lambda: ask("GPUs", "4", number, read=lambda: next(answers), say=said.append)), said


def test_an_empty_answer_is_the_default():
    answer, said = one_question("\n")
    assert answer() == 4
    assert said == ["GPUs [4]: "]


def test_an_answer_that_does_not_fit_is_explained_and_asked_for_again():
    answer, said = one_question("many\n", " 8 \n")
    assert answer() == 8
    assert said[1] == "  found 'many'; a number\n"


def test_the_end_of_the_input_stops_the_questions():
    answer, _ = one_question("many\n")
    with pytest.raises(RefusedError, match="nothing was written"):
        answer()


def test_a_question_breaks_between_words_where_the_terminal_ends(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    question = "Shape of the meshes: 9x9 (columns x rows of hexagonal cells), square:4x4, or a FILE that describes it"
    lines = iter(["many\n", "3\n"])
    assert ask(question, "4", number, read=lambda: next(lines)) == 3
    said = capsys.readouterr().err
    assert said.endswith("]: ")
    assert said.split() == f"{question} [4]: found 'many'; a number {question} [4]: ".split()
    assert max(map(len, said.splitlines())) < 80


@pytest.mark.parametrize("text", ["0", "65", "00000000164", "1" * 5000, "-1", "", None])
def test_only_a_number_in_the_range_is_taken(text):
    assert number_in("064", "GPUs", 64) == 64
    with pytest.raises(UsageError, match=r"GPUs: found .*, expected a number from 1 to 64"):
        number_in(text, "GPUs", 64)


def walk(*answers, given=NOTHING, read_hosts=False):
    """All answers, and each prompt and remark after which one was typed."""
    said: list[str] = []
    typed = iter([f"{answer}\n" for answer in answers])

    def on_paper(question, default, check):
        return ask(question, default, check, read=lambda: next(typed), say=said.append)

    found = asked(given, on_paper, read_hosts=read_hosts)
    assert next(typed, None) is None, "more was typed than was asked"
    return found, said


def test_each_wrong_answer_is_asked_for_again_at_its_own_prompt():
    found, said = walk(
        *("node[1-6", "node1 node2", "node[1-6]"),
        *("0", "2"),
        *("/none", "hexagon:1"),
        *("3", "1", "2"),
        *("node7", "node[1-5]", "node6-gpu1"),
        *("my job", "node1", "rail1", "tune"),
        *("foo", "{host}.org", "a b", "{name}.org"),
        *("a b", "a\tb", "-l", "admin"),
    )
    assert found == InitAnswers(
        "node[1-6]", "2", "hexagon:1", "2", "node6-gpu1", "tune", "{name}.org", "admin"
    )  # nothing that was refused
    remarks = [text.strip() for text in said if text.startswith("  ")]
    assert [text.partition(";")[2] for text in remarks if "need 24 ports" in text] == [" hexagon:1 has 12; possible: 2"]
    for remark in [
        "hosts: 'node1 node2' is not a name; commas separate names: node1,node2",
        "/none: cannot be read: No such file or directory",
        "spares: 'node7' is neither a host nor an accelerator; such as node6, node6-gpu0 or none",
        "mesh 1 of 2 has 1 GPU besides spares; a ring needs two; use fewer, or none",
        "job: 'my job' is not a name: use letters, digits, -, _ and .",
        "job 'node1' would have the same name as a host; choose another name",
        "job 'rail1' would have the same name as a mesh; choose another name",
        "address: 6 hosts would share the address foo; did you mean {name}.foo?",
        "address: 6 hosts would share the address {host}.org; did you mean {name}.org?",
    ]:
        assert remark in remarks
    assert len(remarks) == 17  # one for each answer that was refused


def test_the_answers_given_back_as_options_are_the_same_answers():
    found, _ = walk("n[1-4]", "2", "7x3", "1", "n4", "", "", "")
    assert shlex.split(as_options(found)) == [
        *("--hosts", "n[1-4]", "--gpus", "2", "--mesh", "7x3", "--meshes", "1", "--spares", "n4", "--job", "train")
    ]


def test_a_range_without_brackets_is_asked_about():
    asked_about, said = walk("node1-6", "", "1", "", "", "", "", "")
    assert asked_about.hosts == "node[1-6]"
    assert said[1] == "node1-6 is one host. Enter that name again, or several hosts [node[1-6]]: "
    meant, _ = walk("node1-6", "node1-6", "4", "", "", "none", "", "", "")
    assert meant.hosts == "node1-6"


def test_defaults_are_answers_that_are_possible():
    """One host with four GPUs: two rings at most, and no spare host. 48 hosts: more ports than the usual mesh has."""
    found, said = walk("n1", "", "", "", "", "", "", "")
    assert (found.gpus, found.meshes, found.spares) == ("4", "2", "none")
    two_hosts, _ = walk("n[1-2]", "", "", "", "", "", "", "")
    assert (two_hosts.meshes, two_hosts.spares) == ("4", "none")
    many, _ = walk("n[1-48]", "", "", "", "", "", "", "")
    assert many.mesh == "12x12"
    assert not [text for text in [*said] if text.startswith("  ")]


def test_a_shape_without_ports_for_any_number_of_meshes_is_refused_at_once():
    _, said = walk("n[1-40]", "1", "9x9", "10x10", "", "", "", "")
    assert (
        "  40 accelerators on one mesh need 80 ports, one for each of their lanes; 9x9 has 76; 10x10 has enough\n"
        in said
    )


def test_names_are_checked_before_the_hosts_are_read():
    found, said = walk("n[1-3]", "7x3", "n4", "n3-gpu1", "n1", "tune", "", "", read_hosts=True)
    assert (found.gpus, found.meshes, found.spares, found.job) == (None, None, "n3-gpu1", "tune")
    assert len([text for text in said if text.startswith("  ")]) == 2


def test_options_that_allow_no_ring_are_refused_before_the_next_question():
    given = InitAnswers("n[1-3]", "1", None, spares="n[2-3]")
    with pytest.raises(UsageError, match="a ring needs two"):
        walk(given=given)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("10.0.0.1", "would share the address 10.0.0.1", "did you mean 10.0.0.[1-4]?"),
        ("10.0.0.[1-3]", "10.0.0.[1-3] are 3 addresses for 4 hosts", "one for each host"),
        ("10.0.0.{name}", "10.0.0.{name} is no address of g1", "such as 10.0.0.[1-4], one for each host"),
        ("10.0.0.[1-", "bracket without its partner", "such as 10.0.0.[1-4]"),
    ],
)
def test_addresses_that_do_not_fit_the_hosts_are_refused(text, says, hint):
    with pytest.raises(UsageError) as refused:
        address_in(text, "--address", ["g1", "g2", "g3", "g4"])
    assert says in refused.value.message
    assert refused.value.hint == hint


def test_as_many_addresses_as_hosts_are_an_answer():
    assert address_in("10.0.0.[1-4]", "--address", ["g1", "g2", "g3", "g4"]) == "10.0.0.[1-4]"
