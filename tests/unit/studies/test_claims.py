"""The verdict on a claim, by its value under each reading."""

import pytest

from lumctl.studies.claim import (
    Claim,
    ClaimVerdict,
    ReadingValue,
    exact_value,
    found_value,
    range_value,
    verdict_of,
)

BOTH = {"all": "of all", "some": "of some"}


def claim(readings):
    return Claim("spares.few", "arXiv 1", "spares", 10.0, "spares", 0.5, readings)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([exact_value(10.4), exact_value(9.5)], ClaimVerdict.REPRODUCED),
        ([exact_value(10.4), exact_value(3.0)], ClaimVerdict.SOME_READINGS),
        ([range_value([4.0, 20.0, 5.0]), found_value(10.0)], ClaimVerdict.REPRODUCED),
        ([exact_value(9.4), exact_value(10.6)], ClaimVerdict.BOUNDED_AWAY),
        ([found_value(8.0, most=9.0), found_value(12.0, least=11.0)], ClaimVerdict.BOUNDED_AWAY),
        ([found_value(8.0, most=11.0), exact_value(9.0)], ClaimVerdict.NOT_REPRODUCED),
        ([found_value(12.0), exact_value(9.0)], ClaimVerdict.NOT_REPRODUCED),
        ([range_value([7.0, 9.0]), exact_value(9.0)], ClaimVerdict.NOT_REPRODUCED),
        ([range_value([7.0, 9.0], whole=True), exact_value(9.0)], ClaimVerdict.BOUNDED_AWAY),
    ],
)
def test_the_verdict(values, verdict):
    assert verdict_of(claim(BOTH), dict(zip(BOTH, values, strict=True))) is verdict


def test_without_a_value_under_each_reading_there_is_no_verdict():
    assert verdict_of(claim(BOTH), {"all": exact_value(10.0)}) is None
    assert verdict_of(claim({}), {}) is None


def test_a_value_of_no_reading_is_an_error_of_the_study():
    with pytest.raises(ValueError, match=r"claim spares\.few has no reading most"):
        verdict_of(claim(BOTH), {"most": exact_value(10.0)})


def test_a_claim_that_lacks_a_model_is_not_tested():
    lacking = Claim("a", "b", "c", 1.0, "s", 0.1, missing="a model")
    assert verdict_of(lacking, {}) is ClaimVerdict.NOT_TESTABLE


def test_a_range_stands_for_its_middle():
    assert range_value([1.0, 9.0, 2.0]) == ReadingValue(5.0, 1.0, 9.0)
