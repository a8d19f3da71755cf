"""The probabilities of the length model (eqs. 3 to 5) by hand."""

import math

import pytest
import torch

from espnet_lenbias.search import length_model
from tests.toys import logs

INF = math.inf


def row(*probabilities, dtype=torch.float32):
    return torch.tensor([logs(*probabilities)], dtype=dtype)


def mask(*flags):
    return torch.tensor([flags], dtype=torch.bool)


def log_p_end(q, kept, ended):
    return length_model.log_p_end(q, ended, length_model.log_mass(q, kept))


def test_mass_is_over_what_is_kept():
    q = torch.tensor([logs(0.5, 0.25, 0.125), logs(0.1, 0.2, 0.3)])
    kept = torch.tensor([[True, True, False], [True, True, True]])
    mass = length_model.log_mass(q, kept)
    assert mass.tolist() == pytest.approx(logs(0.75, 0.6), abs=1e-6)


def test_mass_of_nothing_is_zero():
    assert length_model.log_mass(row(0.5, 0.5), mask(False, False)).tolist() == [-INF]


def test_mass_of_impossible_hypotheses_is_zero():
    assert length_model.log_mass(row(0.0, 0.0), mask(True, True)).tolist() == [-INF]


def test_what_is_not_kept_may_hold_anything():
    q = torch.tensor([[math.log(0.5), math.nan, INF]])
    mass = length_model.log_mass(q, mask(True, False, False))
    assert mass.item() == pytest.approx(math.log(0.5))


def test_mass_far_below_the_smallest_float():
    q = torch.tensor([[-2000.0, -2000.0]])
    mass = length_model.log_mass(q, mask(True, True))
    assert mass.item() == pytest.approx(-2000.0 + math.log(2), abs=1e-3)


def test_ending_probability_is_a_share_of_the_kept_mass():
    # Kept .42, .12, .06 and of these .42 ends: .42 / .60 = .7. The fourth is not kept.
    q = row(0.42, 0.12, 0.06, 0.4)
    kept, ended = mask(True, True, True, False), mask(True, False, False, False)
    log_p = log_p_end(q, kept, ended)
    assert log_p.item() == pytest.approx(math.log(0.7), abs=1e-6)


def test_ending_probability_zero_and_one_are_exact():
    q, kept = row(0.42, 0.12), mask(True, True)
    assert log_p_end(q, kept, mask(False, False)).item() == -INF
    assert log_p_end(q, kept, mask(True, True)).item() == 0.0


def test_ending_probability_near_zero_and_one():
    # log(1e-12) = -27.631021, of what ends and of what does not
    q, both = row(1e-12, 1 - 1e-12), mask(True, True)
    log_p = log_p_end(q, both, mask(True, False))
    assert log_p.item() == pytest.approx(-27.631021, rel=1e-6)
    log_p = log_p_end(q, both, mask(False, True))
    assert length_model.log1mexp(log_p).item() == pytest.approx(-27.631021, abs=1e-3)


def test_log1mexp_by_hand():
    x = torch.tensor(logs(0.25, 0.5, 0.9))
    expected = logs(0.75, 0.5, 0.1)
    assert length_model.log1mexp(x).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log1mexp_is_exact_at_both_ends(dtype):
    # log(1 - exp(-1e-12)) = log(1e-12), log(1 - 1e-12) = -1e-12, log 1 = 0, log 0 = -inf
    x = torch.tensor([-1e-12, math.log(1e-12), -INF, 0.0], dtype=dtype)
    near_one, near_zero, zero, one = length_model.log1mexp(x).tolist()
    assert near_one == pytest.approx(-27.631021, rel=1e-6)
    assert near_zero == pytest.approx(-1e-12, rel=1e-5)
    assert zero == 0.0
    assert one == -INF


def test_final_score_by_hand():
    # .42 of .60 at this position, reached with probability .7: .42 / .60 * .7 = .49
    final = length_model.final_score(
        row(0.42, 0.12), torch.tensor(logs(0.6)), torch.tensor(logs(0.7))
    )
    assert final.shape == (1, 2)
    assert final[0].tolist() == pytest.approx(logs(0.49, 0.14), abs=1e-6)


def test_final_scores_of_two_utterances_keep_apart():
    q = torch.tensor([logs(0.2, 0.1), logs(0.2, 0.1)])
    final = length_model.final_score(
        q, torch.tensor(logs(0.4, 0.8)), torch.tensor(logs(1.0, 0.5))
    )
    assert final.tolist() == [
        pytest.approx(logs(0.5, 0.25), abs=1e-6),
        pytest.approx(logs(0.125, 0.0625), abs=1e-6),
    ]


def test_final_score_where_no_mass_is_left_is_not_nan():
    q = row(0.0, 0.0)
    final = length_model.final_score(
        q, length_model.log_mass(q, mask(True, True)), torch.tensor([0.0])
    )
    assert not final.isnan().any()


def test_posterior_is_shared_out_over_positions():
    """With nothing pruned, eq. 4 gives back the probability that the model gave."""
    first = row(0.6, 0.1, 0.3)  # the third ends
    kept = mask(True, True, True)
    log_p = log_p_end(first, kept, mask(False, False, True))
    log_not_ended = length_model.log1mexp(log_p)  # log .7
    second = row(0.42, 0.18, 0.02, 0.08)  # .6 and .1, each split in two
    final = length_model.final_score(
        second, length_model.log_mass(second, mask(*[True] * 4)), log_not_ended
    )
    assert final[0].tolist() == pytest.approx(second[0].tolist(), abs=1e-6)
