"""Which results are not to be trusted; scores worked out by hand."""

import csv
import math
from dataclasses import replace

import pytest

from espnet_lenbias.report.command import main
from espnet_lenbias.report.explanation import how_trusted, length_spread
from espnet_lenbias.report.trust import (
    doubtful_lines,
    scores_per_label,
    threshold_of,
    trust_line,
)
from espnet_lenbias.search.trace import Trace
from tests.report.made import REFERENCES, cells, system, write_lines, write_system

# Per label -0.1, -1.0 and -0.5.
FILES = {
    "texts": {"s1-u1": "the cat sat on the mat", "s1-u2": "no", "s2-u3": "a b c"},
    "original_score": {"s1-u1": -0.7, "s1-u2": -2.0, "s2-u3": -2.0},
    "labels": {"s1-u1": 7, "s1-u2": 2, "s2-u3": 4},
}


def cell(**files):
    (made,) = cells((system("explicit_length"), {**FILES, **files}))
    return made


def test_scores_per_label():
    scores = scores_per_label(cell().decoding)
    assert scores == pytest.approx({"s1-u1": -0.1, "s1-u2": -1.0, "s2-u3": -0.5})
    failed = {**FILES["original_score"], "s1-u2": math.nan}
    assert scores_per_label(cell(original_score=failed).decoding).keys() == {
        "s1-u1",
        "s2-u3",
    }


@pytest.mark.parametrize(
    "count, below", [(1, 0), (20, 0), (21, 1), (100, 4), (201, 10)]
)
def test_at_most_5_percent_of_a_set_lie_below(count, below):
    scores = [-float(n) for n in range(count)]
    assert sum(score < threshold_of(scores) for score in scores) == below


def test_a_threshold_that_is_given():
    line = trust_line(cell(), -0.4)
    assert (line.threshold, line.utterances, line.doubtful) == (-0.4, 3, 2)
    # oh yes -> no has two errors, a b c d -> a b c one, of six words
    assert line.doubtful_wer == pytest.approx(100 * 3 / 6)
    assert line.others_wer == 0.0
    assert [
        (x.utterance, x.score_per_label, x.text) for x in doubtful_lines(cell(), -0.4)
    ] == [("s1-u2", -1.0, "no"), ("s2-u3", -0.5, "a b c")]


def test_a_result_without_a_score_is_not_doubtful():
    """That of s1-u2, whose two words are wrong, is one of the others."""
    scores = {**FILES["original_score"], "s1-u2": math.nan}
    line = trust_line(cell(original_score=scores), -0.4)
    assert (line.utterances, line.doubtful) == (3, 1)
    assert line.others_wer == pytest.approx(100 * 2 / 8)


def test_the_threshold_of_the_set():
    line = trust_line(cell(), None)
    assert (line.threshold, line.doubtful) == (-1.0, 0)
    assert math.isnan(line.doubtful_wer)
    assert line.others_wer == pytest.approx(100 * 3 / 12)


def test_the_report_of_it(tmp_path):
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    labels = {"s1-u1": "1 2 3 4 5 6", "s1-u2": "1", "s2-u3": "1 2 3"}
    files = {
        "text": FILES["texts"],
        "token_int": labels,
        "score": FILES["original_score"],
        "original_score": FILES["original_score"],
    }
    config = {"search": "explicit_length", "beam_size": 4}
    config |= {"ctc_weight": 0.0, "lm_weight": 0.0}
    write_system(tmp_path / "exp", "a", config, {"dev": files})
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data")]
    assert main([*command, "--doubtful", "-0.75"]) == 0
    report = tmp_path / "exp" / "report"
    rows = [x.replace(" ", "") for x in (report / "report.md").read_text().splitlines()]
    # one of two words is deleted, the other substituted; one of ten is deleted
    assert "|dev|explicit_length|0|4|-0.75|3|1|100.0|10.0|" in rows
    with (report / "doubtful.csv").open() as f:
        (line,) = csv.DictReader(f)
    assert (line["utterance"], line["text"]) == ("s1-u2", "no")


# N = 1, 3 and 4 have .2941, .7059 * .2462 = .1738 and .5321 * .7778 = .4139; of their
# sum they are .3335, .1971 and .4694, and exp(-sum p ln p) is 2.833.
TRACE = Trace(
    "bound",
    p_end=[0.2941, 0.0, 0.2462, 0.7778],
    log_not_ended=[0.0, -0.3483, -0.3483, -0.6309],
    kept=[2] * 4,
    running=[1] * 4,
    best_final=[-1.224, -1.224, -1.224, -0.882],
)


def test_the_spread_of_the_length():
    assert length_spread(TRACE) == pytest.approx(2.833, abs=2e-3)
    certain = Trace("bound", p_end=[0.0, 1.0], log_not_ended=[0.0, 0.0], kept=[1, 1])
    assert length_spread(certain) == pytest.approx(1.0)


def test_what_a_person_is_told():
    said = how_trusted(-0.7, TRACE, -0.6)
    assert said.startswith(
        "The original score of the best is -0.70 per label, and its "
    )
    assert "spread over 2.8 positions. NOT TO BE TRUSTED: scores below -0.6" in said
    assert "NOT TO BE TRUSTED" not in how_trusted(-0.5, TRACE, -0.6)
    assert "A report of a development set" in how_trusted(-0.7, TRACE, None)
    for stopped in ("limit", "forced"):  # how long it would be nobody knows
        assert "spread" not in how_trusted(-0.7, replace(TRACE, stopped=stopped), -0.6)
    simple = Trace("ended", kept=[2], running=[0], best_final=[-1.0])
    assert "spread" not in how_trusted(-0.7, simple, -0.6)


@pytest.mark.parametrize("score", ["nan", "inf", "low"])
def test_the_threshold_is_a_finite_number(score, tmp_path, capsys):
    from espnet_lenbias.report.command import main

    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path), "--data", str(tmp_path), "--doubtful", score])
    assert stop.value.code == 2
    assert "argument --doubtful: " in capsys.readouterr().err
