"""What a search is made with: numbers, the end label, the pre-beam."""

import pytest

from espnet_lenbias.espnet_compat import LengthBonus
from tests.search.kinds import both
from tests.toys import BatchPartialScorer, RandomScorer, build, encoder_output


@both
def test_numbers_that_are_text(kind):
    """As in a config, which is read so everywhere else."""

    def made(beam_size, weight, eos, ratio, maxlenratio):
        search = kind(
            {"decoder": RandomScorer(0, 3)},
            {"decoder": weight},
            beam_size,
            vocab_size=3,
            sos=eos,
            eos=eos,
            pre_beam_ratio=ratio,
            normalize_length="false",
        )
        found = search(encoder_output(0, 5), maxlenratio=maxlenratio)
        return [(hyp.yseq.tolist(), float(hyp.score)) for hyp in found]

    assert made("2", "5e-1", "2", "1.5", "-4") == made(2, 0.5, 2, 1.5, -4)


@both
@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"beam_size": "0"}, "beam_size must be a whole number of 1 or more, not '0'"),
        ({"beam_size": 2.5}, "beam_size must be a whole number of 1 or more, not 2.5"),
        ({"weights": {"decoder": "x"}}, "weights: decoder must be a number, not 'x'"),
        (
            {"weights": {"decoder": 1e-320}},
            r"weights: decoder has 9.99989e-321: set it to 0",
        ),
        (
            {"weights": {"decoder": -1e39}},
            r"weights: decoder has -1e\+39, which is ",
        ),
        ({"eos": "end"}, "eos must be a whole number, not 'end'"),
    ],
)
def test_numbers_that_are_none(kind, wrong, message):
    options = {"weights": {"decoder": 1.0}, "beam_size": 2, "eos": 2, **wrong}
    with pytest.raises(ValueError, match=message):
        kind({"decoder": RandomScorer(0, 3)}, vocab_size=3, sos=2, **options)


@both
@pytest.mark.parametrize("eos", [-1, 4, 70])
def test_the_end_label_is_one_of_the_labels(kind, eos):
    with pytest.raises(ValueError, match=f"eos must be .* 0 to 3, not {eos}"):
        kind({"decoder": RandomScorer(0, 4)}, {"decoder": 1.0}, 2, 4, sos=3, eos=eos)


@both
@pytest.mark.parametrize("penalty", [0.0, 0.001])
def test_a_pre_beam_of_all_scorers_where_there_is_none_but_partial_ones(penalty, kind):
    """As ESPnet's translators have it with `ctc_weight: 1.0`."""
    scorers = {"ctc": BatchPartialScorer(0, 6), "length_bonus": LengthBonus(6)}
    weights = {"ctc": 1.0, "length_bonus": penalty}
    found = [
        build(kind, scorers, weights, 1, 6, nbest=1, pre_beam_score_key=key)(
            encoder_output(0, 5)
        )
        for key in ("full", None)
    ]
    assert found[0][0].yseq.tolist() == found[1][0].yseq.tolist()


@both
@pytest.mark.parametrize("ratio", [-1.0, 0.2])
def test_a_pre_beam_of_no_label(kind, ratio):
    scorers = {"decoder": RandomScorer(0, 9), "ctc": BatchPartialScorer(1, 9)}
    options = {"pre_beam_score_key": "decoder", "pre_beam_ratio": ratio}
    with pytest.raises(ValueError, match=f"pre_beam_ratio is {ratio}, .* one or more"):
        build(kind, scorers, dict.fromkeys(scorers, 0.5), 3, 9, **options)
