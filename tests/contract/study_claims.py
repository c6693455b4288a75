"""What a study says of its claims with some settings."""

from lumctl.studies import run_study


def claims_of(study, *given, quick=False):
    """By the ids of its claims: what a study finds with some settings."""
    return {each.claim.id: each for each in run_study(study, study.settings(given, quick=quick)).claims}


def changed(study, *given, quick=False):
    """The claims whose verdict is not the recorded one, for example under a model that a test has broken."""
    return {name for name, each in claims_of(study, *given, quick=quick).items() if each.has_changed}
