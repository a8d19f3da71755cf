"""Options that the scorers of a model cannot do: told when it is built."""

import pytest

from espnet_lenbias import OptionError, use_search
from espnet_lenbias.inference import asr

NO_DECODER = [
    (
        "explicit_length",
        {"label_smoothing": 0.1},
        "label_smoothing corrects the scores",
    ),
    (
        "simple",
        {"label_smoothing": 0.1},
        "label_smoothing corrects the scores of a dec",
    ),
    ("simple", {"coverage": {"weight": 1.0}}, "coverage needs the attention of a deco"),
]


@pytest.mark.parametrize("search, conf, message", NO_DECODER)
def test_with_ctc_alone(search, conf, message, model_of):
    files = model_of("asr").files
    with pytest.raises(ValueError, match=f"search_conf: {message}"):
        asr.Speech2Text(**files, ctc_weight=1.0, search=search, search_conf=conf)
    model = asr.Speech2Text(**files, ctc_weight=1.0)
    before = model.beam_search
    with pytest.raises(ValueError, match=f"search_conf: {message}"):
        use_search(model, search, **conf)
    assert model.beam_search is before


def test_a_beam_larger_than_espnets_search_takes(model_of, waves):
    files = model_of("asr").files
    options = {"ctc_weight": 0.0, "lm_weight": 0.0, "maxlenratio": -2}
    n_vocab = asr.Speech2Text(**files, **options).beam_search.n_vocab
    assert asr.Speech2Text(**files, **options, beam_size=n_vocab)(waves["utt1"])
    message = (
        f"beam_size is {n_vocab + 1}: .* labels, {n_vocab}: set a smaller beam_size"
    )
    with pytest.raises(OptionError, match=message):
        asr.Speech2Text(**files, **options, beam_size=n_vocab + 1)
    options |= {"beam_size": n_vocab + 1, "search": "explicit_length"}
    model = asr.Speech2Text(**files, **options)
    assert model(waves["utt1"])
    with pytest.raises(OptionError, match=message):
        use_search(model, "espnet")
