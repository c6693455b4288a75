"""Times, sizes and bandwidths, read and written."""

import pytest

from lumctl.errors import UsageError
from lumctl.quantity_text import bytes_text, read_bandwidth, read_bytes, read_time_s, seconds_text


@pytest.mark.parametrize(("text", "seconds"), [("7ms", 7e-3), ("250 us", 250e-6), ("0.5s", 0.5), ("0s", 0.0)])
def test_times(text, seconds):
    assert read_time_s(text, "--gap") == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("256MiB", 2**28), ("1GB", 1e9), ("2.5 kb", 2500)])
def test_sizes(text, size):
    assert read_bytes(text, "--bytes") == size


def test_bandwidths():
    assert read_bandwidth("300GB/s", "--bandwidth") == 3e11


@pytest.mark.parametrize("text", ["", "7", "7 days", "-7ms", "nan", "inf s", "1e999s", "7ms/s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UsageError, match=r"--gap: .* is not a time"):
        read_time_s(text, "--gap")


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1GB/s", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match=r"--bytes: .* is not a size above 0"):
        read_bytes(text, "--bytes")
    with pytest.raises(UsageError, match="is not a bandwidth"):
        read_bandwidth("1GB", "--bandwidth")


def test_texts_have_a_fitting_unit():
    assert [seconds_text(each) for each in (0.0, 3e-9, 2.5e-6, 0.007, 0.1178, 12.0)] == [
        "0 s",
        "3.0 ns",
        "2.5 us",
        "7.0 ms",
        "118 ms",
        "12 s",
    ]
    assert [bytes_text(each) for each in (12, 4096, 2e8, 3e11)] == ["12 B", "4.1 kB", "200 MB", "300 GB"]
