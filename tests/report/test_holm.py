import pytest

from espnet_lenbias.report.holm import holm, holm_by_set


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        # 4 x 0.005, 3 x 0.01, 2 x 0.03, then 0.04, which may not fall below that
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.02, 0.02], [0.04, 0.04]),
        ([0.6, 0.7, 0.1], [1.0, 1.0, 0.3]),  # 2 x 0.6 is no probability
    ],
)
def test_by_hand(p_values, corrected):
    assert holm(p_values) == pytest.approx(corrected)


def test_a_family_is_the_tests_of_a_set():
    found = holm_by_set(["a", "b", "a"], [0.04, 0.04, 0.01])
    assert found == pytest.approx([0.04, 0.04, 0.02])
