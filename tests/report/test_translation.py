"""Reports of translations, on folders written by hand."""

import csv
import json

import pytest
from sacrebleu.metrics import BLEU, CHRF

from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.report.command import main
from espnet_lenbias.report.ran import translated
from espnet_lenbias.report.sclite import bleu_line
from espnet_lenbias.report.translation import (
    paired_bleu_lines,
    translation_line,
    translations,
)
from tests.report.made import REFERENCES, cells, system, write_lines

SHORT = {**REFERENCES, "s1-u1": "the cat sat on"}
OTHER = {**REFERENCES, "s1-u1": "a cat sat on a mat", "s1-u2": "oh no"}


def score(metric, texts):
    keys = sorted(REFERENCES)
    references = [[REFERENCES[key] for key in keys]]
    return metric.corpus_score([texts[key] for key in keys], references).score


def write_run(folder, texts, options, **more):
    """Write what a run leaves: its journal and the texts."""
    folder.mkdir(parents=True)
    run = {"search": "simple", "ctc_weight": "0.0", "lm_weight": "0.0", **options}
    row = {"1best_recog/text": "x"}
    lines = [run, ["s1-u1", row, ""]]
    (folder / JOURNAL).write_text("".join(json.dumps(x) + "\n" for x in lines))
    for name, values in {"text": texts, **more}.items():
        write_lines(folder / "1best_recog" / name, values)


@pytest.fixture
def exp(tmp_path):
    """Write two rows of the text translator's."""
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    of_mt = {"mt_train_config": "None", "mt_model_file": "None"}
    simple = {**of_mt, "beam_size": "4"}
    write_run(tmp_path / "exp" / "simple_4" / "dev", SHORT, simple)
    proposed = {**simple, "search": "explicit_length"}
    write_run(tmp_path / "exp" / "proposed_4" / "dev", OTHER, proposed)
    return tmp_path / "exp"


def report(exp, *options):
    return main([str(exp), "--data", str(exp.parent / "data"), *options])


def read_csv(path):
    with path.open() as f:
        return list(csv.DictReader(f))


def test_what_a_translation_tool_has_made_is_scored_with_bleu(exp, capsys):
    assert report(exp) == 0
    simple, proposed = read_csv(exp / "report" / "translation.csv")
    for line, texts in ((simple, SHORT), (proposed, OTHER)):
        assert float(line["bleu"]) == pytest.approx(score(BLEU(), texts))
        assert float(line["chrf"]) == pytest.approx(score(CHRF(), texts))
        for name in ("bleu", "chrf", "length_ratio"):
            value, low, high = (
                float(line[f"{name}{x}"]) for x in ("", "_low", "_high")
            )
            assert low <= value <= high
    assert float(simple["length_ratio"]) == pytest.approx(10 / 12)
    (paired,) = read_csv(exp / "report" / "paired_bleu.csv")
    difference = score(BLEU(), OTHER) - score(BLEU(), SHORT)
    assert float(paired["difference"]) == pytest.approx(difference)
    assert paired["other"] == "simple"

    text = (exp / "report" / "report.md").read_text()
    assert text.index("## Translation: BLEU") < text.index("## Table 1: word error ra")
    assert "tok:13a" in text
    assert "![BLEU, dev](dev_BLEU.png)" in text
    assert (exp / "report" / "dev_BLEU.png").read_bytes().startswith(b"\x89PNG")
    shown = f"{score(BLEU(), SHORT):.1f}"
    assert f" {shown} " in text and f" {shown} " in capsys.readouterr().out
    results = (exp / "report" / "RESULTS.md").read_text()
    assert "### BLEU\n\n|dataset|score|verbose_score|\n" in results
    assert "|simple_4/dev|" in results


def test_the_metric_is_a_choice(exp, capsys):
    with pytest.raises(SystemExit) as stop:
        report(exp, "--metric", "wer", "--tokenize", "char")
    assert stop.value.code == 2
    assert "error: tokenize: no row is scored with BLEU" in capsys.readouterr().err
    assert report(exp, "--metric", "wer") == 0
    assert not (exp / "report" / "translation.csv").exists()
    assert "BLEU" not in (exp / "report" / "report.md").read_text()
    assert report(exp, "--metric", "bleu", "--tokenize", "char") == 0
    line, _ = read_csv(exp / "report" / "translation.csv")
    assert float(line["bleu"]) == pytest.approx(score(BLEU(tokenize="char"), SHORT))


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"mt_train_config": "x"}, True),
        ({"st_train_config": "None"}, True),
        ({"asr_train_config": "x"}, False),
        ({"s2t_train_config": "x", "task_sym": "asr"}, False),
        ({"s2t_train_config": "x", "task_sym": "st_deu"}, True),
        ({"s2t_train_config": "x", "task_sym": "<st_deu>"}, True),
        ({"s2t_train_config": "x", "task_sym": "<asr>"}, False),
    ],
)
def test_the_journal_says_whether_it_is_a_translation(options, expected, tmp_path):
    write_run(tmp_path / "dev", {}, options)
    assert translated(tmp_path / "dev" / JOURNAL) is expected


def test_owsm_is_scored_without_its_symbols(tmp_path):
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    options = {"s2t_train_config": "x", "task_sym": "st_deu", "beam_size": "4"}
    marked = {key: f"<eng><st_deu> {text}" for key, text in REFERENCES.items()}
    folder = tmp_path / "exp" / "owsm" / "dev"
    write_run(folder, marked, options, text_nospecial=REFERENCES)
    assert report(tmp_path / "exp") == 0
    (line,) = read_csv(tmp_path / "exp" / "report" / "translation.csv")
    assert float(line["bleu"]) == pytest.approx(100)
    (line,) = read_csv(tmp_path / "exp" / "report" / "table1.csv")
    assert float(line["wer"]) == 0


def test_rows_that_are_not_finished_are_compared_with_nothing():
    half = {key: REFERENCES[key] for key in ("s1-u1", "s1-u2")}
    of_all = translations(
        cells(
            (system("simple", 4), {"texts": half}),
            (system("simple", 8), {"texts": SHORT}),
            (system("explicit_length", 4), {"texts": OTHER}),
        ),
        "bleu",
        "13a",
    )
    assert [translation_line(x).missing for x in of_all] == [1, 0, 0]
    (line,) = paired_bleu_lines(of_all)
    assert (line.other, line.other_beam_size) == ("simple", 8)
    details = bleu_line(of_all[1]).strip("|\n").split("|")
    assert details[:2] == ["simple_8/dev", f"{score(BLEU(), SHORT):.2f}"]
    assert details[2].startswith("100.0/100.0/100.0/100.0 (BP = ")
