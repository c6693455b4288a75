"""YAML with positions."""

from typing import Any

import pytest

from lumctl.inventory.positions import MarkedDict, MarkedList, read_yaml
from lumctl.inventory.problems import InventoryError, Mark, Problems


def read(text: str) -> Any:
    problems = Problems("f.yaml")
    value = read_yaml(text, problems)
    if problems:
        raise problems.error()
    return value


def complaint(text: str) -> str:
    with pytest.raises(InventoryError) as caught:
        read(text)
    return caught.value.message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("~", None),
        ("null", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("no", "no"),
        ("0000:17:00.0", "0000:17:00.0"),
        ("2026-11-21", "2026-11-21"),
        ("h[01-04]", "h[01-04]"),
    ],
)
def test_plain_values_follow_yaml_1_2(written: str, value: object) -> None:
    found = read(f"key: {written}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_every_key_and_value_knows_its_place() -> None:
    document = read("a: 1\nb:\n  - x\n  -   {c: 2}\n")
    assert isinstance(document, MarkedDict)
    assert document.key_marks["b"] == Mark(2, 1)
    assert document.value_marks["a"] == Mark(1, 4)
    items = document["b"]
    assert isinstance(items, MarkedList)
    assert items.item_marks == [Mark(3, 5), Mark(4, 7)]
    assert items[1].value_marks["c"] == Mark(4, 11)


def test_an_alias_is_the_value_it_stands_for() -> None:
    assert read("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml:1:1: the file is empty"),
        ("# nothing\n", "f.yaml:1:1: the file is empty"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key 'a' occurs twice, first in line 1"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2:2: not valid YAML"),
        ("a: [h[01-02]]", "a folded name needs quotes"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document"),
        ("a: &x [*x]\n", "f.yaml:1:8: alias *x"),
        ("a: *x\n", "f.yaml:1:4: alias *x"),
        ("a: !!python/object/apply:os.system [true]\n", "f.yaml:1:4: tag"),
        ("a: !!binary aGk=\n", "f.yaml:1:4: tag"),
        ("[1]: 2\n", "f.yaml:1:1: found a list as a key"),
        ("a: \x07\n", "f.yaml:1:4: a character that YAML does not allow"),
        ('a: "x\\0y"\n', "f.yaml:1:4: found a text with a line break or a control character"),
        ("a: " + "x" * 2000, "f.yaml:1:4: found a text of 2000 characters"),
        ("[" * 100_000, "f.yaml:1:33: nested more than 32 levels deep"),
        ("\n".join(f"{' ' * depth}a:" for depth in range(200)), "nested more than 32 levels deep"),
    ],
)
def test_one_line_says_where_and_what(text: str, message: str) -> None:
    found = complaint(text)
    assert message in found
    assert "\n" not in found


def test_aliases_of_aliases_are_counted_as_often_as_they_are_used() -> None:
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "more than 500000 values" in complaint("\n".join(lines))
