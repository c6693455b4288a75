"""Commands in hints act on what the command acted on that gave them."""

from lumctl.cli.verbs import completed


def test_each_command_names_the_inventory_and_the_target_that_were_given_as_options() -> None:
    hint = "lumctl swap resume swap-0003 or lumctl swap abort swap-0003"
    given = {"inventory": "my rack.yaml", "target": "sim"}
    aimed = "-i 'my rack.yaml' --target sim"
    assert completed(hint, given) == f"lumctl {aimed} swap resume swap-0003 or lumctl {aimed} swap abort swap-0003"


def test_what_a_command_names_itself_stays() -> None:
    hint = "start it: lumctl sim up -i other.yaml; then: lumctl status --target rack"
    given = {"inventory": "rack.yaml", "target": "sim"}
    assert completed(hint, given) == (
        "start it: lumctl --target sim sim up -i other.yaml; then: lumctl -i rack.yaml status --target rack"
    )


def test_without_options_and_without_commands_nothing_changes() -> None:
    assert completed("lumctl swap list", {"inventory": None, "target": None}) == "lumctl swap list"
    for words in ("see lumctl-job(7)", "use the newer lumctl that wrote it", "did you mean swap-0002?"):
        assert completed(words, {"inventory": "rack.yaml", "target": "sim"}) == words
