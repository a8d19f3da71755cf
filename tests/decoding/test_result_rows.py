"""What a result puts into the files."""

import pytest

from espnet_lenbias.decoding import result_rows


def test_rows_of_several_speakers_and_of_intermediate_ctc():
    class Hypothesis:
        score = -1.5

    first, second = (
        ("A B", ["A", "B"], [4, 5], Hypothesis()),
        (None, [], [], Hypothesis()),
    )
    assert result_rows.result_row([[first], [second]], 1, multi_speaker=True) == {
        "1best_recog/token_spk1": "A B",
        "1best_recog/token_int_spk1": "4 5",
        "1best_recog/score_spk1": "-1.5",
        "1best_recog/text_spk1": "A B",
        "1best_recog/token_spk2": "",
        "1best_recog/token_int_spk2": "",
        "1best_recog/score_spk2": "-1.5",
    }
    row = result_rows.result_row(([first], {6: ["A", "C"]}), 1, multi_speaker=False)
    assert row["1best_recog/encoder_interctc_layer6.txt"] == "A C"


def test_no_hypothesis_is_an_error():
    with pytest.raises(ValueError, match="no hypothesis; lower minlenratio"):
        result_rows.result_row([], 1, multi_speaker=False)
