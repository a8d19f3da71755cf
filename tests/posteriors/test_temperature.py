"""The temperature at which confidences are right as often as they say."""

import numpy as np
import pytest

from espnet_lenbias.posteriors.temperature import at_temperature, fit_temperature


def test_confidences_at_a_temperature():
    confidence = np.array([0.0, 0.25, 1.0])
    assert at_temperature(confidence, 2.0) == pytest.approx([0, 0.5, 1])
    assert at_temperature(confidence, 0.5) == pytest.approx([0, 0.0625, 1])


@pytest.mark.parametrize("n_right, temperature", [(5, 1.0), (10, 2.0), (1, 0.4628)])
def test_the_temperature_makes_confidences_the_share_that_is_right(
    n_right, temperature
):
    """Of twenty words of a confidence of 1/4 so many are right; ln .25 / ln .05 = .4628."""
    right = np.arange(20) < n_right
    fitted = fit_temperature(np.full(20, 0.25), right)
    assert fitted == pytest.approx(temperature, rel=1e-3)


def test_words_that_are_wrong_and_certain_do_not_end_it():
    confidence, right = np.array([1.0, 0.5, 0.5]), np.array([False, True, False])
    assert fit_temperature(confidence, right) == pytest.approx(1.0, rel=1e-3)


def test_there_have_to_be_words():
    with pytest.raises(ValueError, match="without words"):
        fit_temperature(np.zeros(0), np.zeros(0, dtype=bool))
