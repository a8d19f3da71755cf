"""Confidences and minimum Bayes risk through the drop-ins: files, options, resuming."""

import importlib
import math
from pathlib import Path

import pytest

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.options.values import score_number
from tests.posteriors.edits import distance
from tests.releases import needs_batches
from tests.tool_models import asr_command, command, lines, tool_of

OF_WORDS, OF_LABELS = "word_confidence", "label_confidence"
NAMES = {"token", "token_int", "score", "text"}
OURS = {"original_score", "steps", "stopped"}


@pytest.fixture
def run(transformer_model, wav_scp, tmp_path, capsys):
    """Return what decodes five utterances at beam 4 into a folder of tmp_path."""

    def run(name: str, *options: str) -> Path:
        out = tmp_path / name
        options = ("--ctc_weight", "0.0", "--maxlenratio", "-6", *options)
        asked = asr_command(transformer_model, wav_scp, out, *options)
        assert asr_inference.main(asked) == 0
        return out

    return run


def names_in(out: Path) -> set[str]:
    return {path.name for path in (out / "1best_recog").iterdir()}


def numbers(out: Path, name: str, rank: int = 1) -> dict[str, list[float]]:
    values = lines(out, f"{rank}best_recog/{name}")
    return {key: [float(v) for v in line.split()] for key, line in values.items()}


def nbest_of(out: Path, key: str) -> list[tuple[list[str], float]]:
    """Return the words and the probability of the hypotheses of four ranks."""
    ranks = range(1, 5)
    texts = [lines(out, f"{n}best_recog/text")[key].split() for n in ranks]
    scores = [score_number(lines(out, f"{n}best_recog/score")[key]) for n in ranks]
    masses = [0.0 if math.isnan(s) else math.exp(s) for s in scores]
    return [(text, m / sum(masses)) for text, m in zip(texts, masses)]


@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
@pytest.mark.parametrize("search", ["explicit_length", "simple", "espnet"])
def test_there_is_a_number_for_each_word_and_label(search, batch_size, run):
    options = ["--search", search, "--batch_size", batch_size]
    plain = run("plain", *options)
    out = run("out", *options, "--confidence", "true")
    more = set() if search == "espnet" else OURS
    assert names_in(plain) == NAMES | more
    shares = {"posterior"} if search == "explicit_length" else set()
    assert names_in(out) == NAMES | more | {OF_WORDS, OF_LABELS} | shares
    for name in NAMES | more:  # all else is as it was
        assert lines(out, f"1best_recog/{name}") == lines(plain, f"1best_recog/{name}")
    for name, of in ((OF_WORDS, "text"), (OF_LABELS, "token")):
        for key, values in numbers(out, name).items():
            assert len(values) == len(lines(out, f"1best_recog/{of}")[key].split())
            assert all(0 <= value <= 1 for value in values)


def test_posteriors_are_those_of_the_nbest_list(run):
    """In a list of four texts of one letter a word has the mass of its own."""
    options = ["--search", "explicit_length", "--maxlenratio", "-1"]
    of_four = run("four", *options, "--nbest", "4")
    out = run("out", *options, "--confidence", "posterior")
    confidences = numbers(out, OF_WORDS)
    for key, values in confidences.items():
        nbest = nbest_of(of_four, key)
        assert [len(words) for words, _ in nbest] == [1, 1, 1, 1]
        mass = sum(p for words, p in nbest if words == nbest[0][0])
        assert values == pytest.approx([mass], abs=1e-5)
    assert len(confidences) == 5


def test_the_confidence_of_espnets_search_is_the_mean_of_all_labels(run):
    out = run("out", "--search", "espnet", "--confidence", "true")
    for key, values in numbers(out, OF_LABELS).items():
        q = score_number(lines(out, "1best_recog/score")[key])
        mean = math.exp(q / (len(values) + 1))
        assert values == pytest.approx([mean] * len(values), abs=1e-5)


def test_the_labels_of_simple_search_have_their_own_probability(run):
    """With their end label they multiply to exp of the original score."""
    out = run("out", "--search", "simple", "--confidence", "true", "--nbest", "2")
    for rank in (1, 2):
        q = numbers(out, "original_score", rank)
        for key, values in numbers(out, OF_LABELS, rank).items():
            if values:
                assert math.prod(values) >= math.exp(q[key][0]) - 1e-5
                assert len(set(values)) > 1 or len(values) == 1


@pytest.mark.parametrize("search", ["explicit_length", "espnet"])
def test_minimum_bayes_risk_is_that_of_the_nbest_list(search, run):
    of_four = run("four", "--search", search, "--nbest", "4")
    out = run("out", "--search", search, "--decide", "mbr")
    assert names_in(out) == names_in(of_four) | {"posterior"}
    shares = numbers(out, "posterior")
    for key, text in lines(out).items():
        nbest = nbest_of(of_four, key)
        risks = [sum(p * distance(a, b) for b, p in nbest) for a, _ in nbest]
        # of equal risks the first
        best = min(i for i, risk in enumerate(risks) if risk <= min(risks) + 1e-6)
        assert text.split() == nbest[best][0]
        assert shares[key] == pytest.approx([nbest[best][1]], abs=1e-4)


def test_a_temperature_makes_words_surer(run):
    options = ["--search", "explicit_length", "--confidence", "true"]
    out = run("out", *options)
    surer = run("surer", *options, "--confidence_temperature", "2")
    for key, values in numbers(out, OF_LABELS).items():
        roots = [value**0.5 for value in values]
        assert numbers(surer, OF_LABELS)[key] == pytest.approx(roots, abs=1e-3)


def test_an_interrupted_run_goes_on(run, tmp_path, interrupted_after):
    options = ["--search", "explicit_length", "--confidence", "true", "--decide", "mbr"]
    unbroken = run("unbroken", *options)
    with interrupted_after(3) as decoded:
        run("out", *options)
    assert list(numbers(tmp_path / "out", OF_WORDS)) == decoded
    out = run("out", *options)
    for name in NAMES | OURS | {OF_WORDS, OF_LABELS}:
        file = Path("1best_recog") / name
        assert (out / file).read_bytes() == (unbroken / file).read_bytes()


def test_another_decision_is_another_run(run, capsys):
    run("out", "--search", "explicit_length")
    with pytest.raises(SystemExit) as e:
        run("out", "--search", "explicit_length", "--decide", "mbr")
    assert e.value.code == 2
    assert "decide was map, is mbr" in capsys.readouterr().err


@pytest.mark.parametrize(
    "message, options",
    [
        ("decide must be map or mbr, not 'best'", ["--decide", "best"]),
        ("posterior_nbest has no effect", ["--posterior_nbest", "9"]),
        (
            "confidence: true compares hypotheses with one another, and beam_size 1",
            ["--confidence", "true", "--beam_size", "1"],
        ),
        (
            "search_conf: nbest would take from decide: mbr",
            ["--decide", "mbr", "--search_conf", "nbest=1"],
        ),
    ],
)
def test_mistakes(message, options, run, capsys):
    with pytest.raises(SystemExit) as e:
        run("out", "--search", "explicit_length", *options)
    assert e.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_mistake_in_the_config_names_it(run, tmp_path, capsys):
    config = tmp_path / "decode.yaml"
    config.write_text("search: explicit_length\nconfidence: words\n")
    with pytest.raises(SystemExit):
        run("out", "--config", str(config))
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"{config}: confidence must be true, false, combined" in last


@pytest.mark.parametrize("name", ["st", "st_multi", "mt", "slu", "s2t"])
@pytest.mark.parametrize("confidence", ["posterior", "combined"])
def test_every_tool_has_them(name, confidence, model_of, data, tmp_path):
    model, out = model_of(name), tmp_path / "out"
    tool = importlib.import_module(tool_of(model).drop_in)
    options = ["--search", "explicit_length", "--confidence", confidence]
    assert tool.main(command(model, data, out, *options, "--decide", "mbr")) == 0
    for of_words, of in ((OF_WORDS, "text"), (OF_LABELS, "token")):
        for key, values in numbers(out, of_words).items():
            assert len(values) == len(lines(out, f"1best_recog/{of}")[key].split())
            assert all(0 <= value <= 1 for value in values)
    source = out / "1asr_best_recog"
    assert source.exists() == (name == "st_multi")  # which has no confidence
    assert not (source / f"asr_{OF_WORDS}").exists()
