"""The verdict on a claim, by its value under each reading."""

import pytest

from lumctl.studies.claim import Claim, ClaimReading, Verdict, exactly, over, verdict_of

CLAIM = Claim("spares.few", "arXiv 1", "spares", 10.0, "spares", 0.5)


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ([exactly("all", 10.4)], Verdict.REPRODUCED),
        ([exactly("all", 10.4), exactly("some", 9.5)], Verdict.REPRODUCED),
        ([exactly("all", 10.4), exactly("some", 3.0)], Verdict.SOME_READINGS),
        ([over("any size", [4.0, 20.0, 5.0])], Verdict.REPRODUCED),
        ([exactly("all", 9.4)], Verdict.BOUNDED_AWAY),
        ([exactly("all", 10.6)], Verdict.BOUNDED_AWAY),
        ([exactly("of 100", 8.0, most=9.0)], Verdict.BOUNDED_AWAY),
        ([exactly("of 100", 8.0, most=11.0)], Verdict.NOT_REPRODUCED),
        ([exactly("all", 9.0), ClaimReading("drawn", 8.0, 7.0, 9.0)], Verdict.NOT_REPRODUCED),
        ([], Verdict.NOT_TESTABLE),
    ],
)
def test_the_verdict(readings, verdict):
    assert verdict_of(CLAIM, readings) is verdict


def test_a_claim_that_lacks_a_model_is_not_tested_whatever_is_measured():
    lacking = Claim("a", "b", "c", 1.0, "s", 0.1, missing="a model")
    assert verdict_of(lacking, [exactly("all", 1.0)]) is Verdict.NOT_TESTABLE


def test_a_range_stands_for_its_median():
    assert over("any", [1.0, 9.0, 2.0]) == ClaimReading("any", 2.0, 1.0, 9.0)
