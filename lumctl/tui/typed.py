"""A yes that a person has typed; one key alone is none."""

NO_YES = "That was not a yes; nothing was done."


def typed_yes(text: str) -> tuple[bool, str]:
    """Whether a line begins with y or yes, and the comment behind it."""
    word, _, comment = text.strip().partition(" ")
    return word.lower() in {"y", "yes"}, comment.strip()
