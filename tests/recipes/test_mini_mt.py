"""The translation recipe: its corpus, its bundled model, the command of its table."""

import csv
import importlib
import math
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
import yaml

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.bin import mt_inference
from espnet_lenbias.compare.compare import Result
from espnet_lenbias.inference.mt import Text2Text
from espnet_lenbias.report.scoring import read_text
from tests.bundled import bundled

RECIPE = Path(__file__).parents[2] / "recipes" / "mini_mt"
PACKED = RECIPE / "pretrained" / "mt.zip"
TEST = RECIPE / "data" / "test"

RULES = """
# a comment

SENTENCE: THING1 THING2 to -> 3 THING1 saw THING2 / 1 THING2 was seen by THING1
THING 3: ba -> 2 cat / 1 small tiger
THING 1: THING mi -> my THING
""".splitlines()


@pytest.fixture(scope="module")
def local():
    """The modules of the recipe, whose folder has names that other recipes have too."""
    names = ("grammar", "noise", "make_corpus", "lines")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RECIPE))
        modules = {name: importlib.import_module(f"local.{name}") for name in names}
        modules["compare"] = importlib.import_module("compare")
    for name in [n for n in sys.modules if n.partition(".")[0] in ("local", "compare")]:
        del sys.modules[name]
    return SimpleNamespace(**modules)


@pytest.fixture(scope="module")
def grammar(local):
    return local.grammar.Grammar.read(RECIPE / "conf" / "grammar.txt")


# --- The grammar ----------------------------------------------------------------------


class Script:
    """Takes the place of a random generator: chooses what it is told."""

    def __init__(self, *choices: int):
        self.choices_left = list(choices)

    def choices(self, items, weights):
        assert len(items) == len(weights)
        return [items[self.choices_left.pop(0)]]


def test_a_meaning_is_said_in_both_languages(local):
    grammar = local.grammar.Grammar(RULES)
    # one sentence; THING1 is `ba`; THING2 is `THING mi` and that THING is `ba`
    meaning = grammar.draw(Script(0, 0, 1, 0))
    assert meaning.source() == "ba ba mi to"
    assert meaning.likeliest() == "cat saw my cat"
    # the passive; THING2's only wording, its THING the tiger; THING1 a cat
    assert meaning.english(Script(1, 0, 1, 0)) == "my small tiger was seen by cat"
    assert meaning.english(Script(0, 1, 0, 0)) == "small tiger saw my cat"


def test_wordings_and_rules_are_drawn_by_their_weights(local):
    grammar, rng = local.grammar.Grammar(RULES), Random(1)
    things = [grammar.draw(rng, "THING") for _ in range(4000)]
    plain = [thing for thing in things if thing.source() == "ba"]
    assert len(plain) / 4000 == pytest.approx(3 / 4, abs=0.03)
    counts = Counter(thing.english(rng) for thing in plain)
    assert counts.keys() == {"cat", "small tiger"}
    assert counts["cat"] / len(plain) == pytest.approx(2 / 3, abs=0.03)


@pytest.mark.parametrize(
    "line, fault",
    [
        ("THING ba -> cat", "line 2: this is no rule: THING ba -> cat"),
        ("S: THING THING -> THING THING", "a symbol stands twice in the source side"),
        ("S: THING ba -> 2 THING / 1 cat", "has other symbols than the source side"),
        ("S: THING VERB -> THING VERB", "grammar: there is no rule for VERB"),
    ],
)
def test_a_wrong_rule_is_named(local, line, fault):
    with pytest.raises(ValueError, match="grammar") as e:
        local.grammar.Grammar(["THING: ba -> cat", line])
    assert fault in str(e.value)


def test_a_source_text_says_one_thing(grammar):
    """Else the ambiguity would be more than that of the wordings."""
    rng, said = Random(2), {}
    for _ in range(20000):
        meaning = grammar.draw(rng)
        assert said.setdefault(meaning.source(), meaning.likeliest()) == (
            meaning.likeliest()
        )
    assert len(said) > 15000


def test_the_likeliest_wordings_are_as_long_as_the_others(grammar):
    """So the best a search can do has a length ratio of 1."""
    rng = Random(3)
    meanings = [grammar.draw(rng) for _ in range(4000)]
    likeliest = sum(len(m.likeliest().split()) for m in meanings)
    drawn = sum(len(m.english(rng).split()) for m in meanings)
    assert likeliest / drawn == pytest.approx(1.0, abs=0.01)


# --- Noise ----------------------------------------------------------------------------

TEXTS = [f"a{i} b{i} c{i} d{i} e{i}" for i in range(500)]


def spoilt(local, **rates: float) -> list[tuple[list[str], list[str]]]:
    """Return the words of each text, and those of it with noise."""
    noisy = local.noise.spoil(Random(4), TEXTS, rates)
    return [(a.split(), b.split()) for a, b in zip(TEXTS, noisy, strict=True)]


def test_cut_keeps_a_beginning(local):
    pairs = spoilt(local, cut=1.0)
    assert all(noisy == text[: len(noisy)] for text, noisy in pairs)
    counts = Counter(len(noisy) for _, noisy in pairs)
    assert counts.keys() == {1, 2, 3, 4}
    assert all(count == pytest.approx(125, abs=40) for count in counts.values())


def test_incomplete_drops_a_fifth_of_the_words(local):
    pairs = spoilt(local, incomplete=1.0)
    for text, noisy in pairs:
        assert noisy and noisy == [word for word in text if word in noisy]
    left = sum(len(noisy) for _, noisy in pairs)
    assert left / 2500 == pytest.approx(0.8, abs=0.03)


def test_foreign_takes_another_text(local):
    pairs = spoilt(local, foreign=1.0)
    assert all(" ".join(noisy) in TEXTS for _, noisy in pairs)
    assert sum(noisy != text for text, noisy in pairs) > 490


def test_noise_comes_at_its_rate(local):
    pairs = spoilt(local, cut=0.1, foreign=0.2)
    changed = [(text, noisy) for text, noisy in pairs if noisy != text]
    assert len(changed) / 500 == pytest.approx(0.3, abs=0.05)
    cut = sum(len(noisy) < 5 for _, noisy in changed)
    assert cut / 500 == pytest.approx(0.1, abs=0.04)


def test_an_unknown_kind_of_noise_is_named(local):
    with pytest.raises(ValueError, match="no kind drop .kinds: cut, incomplete"):
        local.noise.spoil(Random(0), TEXTS, {"drop": 0.1})


# --- The corpus -----------------------------------------------------------------------


def test_the_bundled_test_set_is_what_the_config_makes(local, grammar, tmp_path):
    """Whatever the size of the training set."""
    config = yaml.safe_load((RECIPE / "conf" / "corpus.yaml").read_text())
    assert config["sets"]["train"] == 40000
    config["sets"]["train"] = 50
    corpus = local.make_corpus.make_corpus(grammar, config)
    local.make_corpus.write_set(tmp_path, "test", corpus["test"])
    for name in ("src_text", "text"):
        assert (tmp_path / name).read_bytes() == (TEST / name).read_bytes()
    assert local.make_corpus.make_corpus(grammar, config) == corpus


def test_a_persons_own_data_is_not_written_over(local, grammar, tmp_path):
    """What a run has left that was killed is."""
    corpus = {"test": [("ba mi", "a b"), ("ba", "a")]}
    text = tmp_path / "test" / "text"
    text.parent.mkdir()
    text.write_text("mine\n")
    with pytest.raises(SystemExit, match=f"{text} is not of this corpus: name another"):
        local.make_corpus.check_own(tmp_path, corpus)
    text.write_text("test-00000 a b\ntest-")
    local.make_corpus.check_own(tmp_path, corpus)
    local.make_corpus.write_set(tmp_path / "test", "test", corpus["test"])
    assert text.read_text() == "test-00000 a b\ntest-00001 a\n"
    local.make_corpus.check_own(tmp_path, corpus)


def test_no_source_text_of_the_other_sets_is_trained_on(local):
    """More than half of what this grammar says is one and the same text."""
    grammar = local.grammar.Grammar(RULES)
    config = {"seed": 1, "sets": {"train": 300, "dev": 5, "test": 5}, "noise": {}}
    corpus = local.make_corpus.make_corpus(grammar, config)
    sources = {name: [s for s, _ in pairs] for name, pairs in corpus.items()}
    assert {name: len(s) for name, s in sources.items()} == config["sets"]
    assert len({*sources["dev"], *sources["test"]}) == 10
    assert not {*sources["dev"], *sources["test"]} & set(sources["train"])
    assert len(set(sources["train"])) < 300


def test_only_the_training_set_has_noise(local):
    grammar = local.grammar.Grammar(["SENTENCE: ba X -> a b c X", "X: mi -> d"])
    config = {"seed": 1, "sets": {"test": 1, "train": 9}, "noise": {"cut": 1.0}}
    corpus = local.make_corpus.make_corpus
    assert corpus(grammar, config | {"sets": {"test": 1}})["test"] == [
        ("ba mi", "a b c d")
    ]
    config["sets"] = {"train": 9}
    texts = [text for _, text in corpus(grammar, config)["train"]]
    assert set(texts) <= {"a", "a b", "a b c"}


# --- Tables ---------------------------------------------------------------------------


def result(search: str, text: str, reference: str, steps: int, seconds: float):
    return Result("test", "k", search, 4, reference, text, -1.0, -1.0, steps, seconds)


def test_bleu_and_lengths_of_a_line(local):
    """By hand: a text that lacks the fifth of five words has no wrong n-gram, so that
    its BLEU is the brevity penalty, exp(1 - 5/4)."""
    results = [
        result("short", "a b c d", "a b c d e", 5, 0.2),
        result("equal", "a b c d e", "a b c d e", 6, 0.1),
        result("equal", "f g h i", "f g h i", 8, 0.3),
        result("short", "f g h i", "f g h i j", 6, 0.4),
    ]
    short, equal = local.lines.translation_lines(results)
    assert (short.search, equal.search) == ("short", "equal")
    assert short.bleu == pytest.approx(100 * math.exp(1 - 10 / 8))
    assert short.length_ratio == pytest.approx(0.8)
    assert (short.words, short.steps) == (4.0, 5.5)
    assert short.seconds == pytest.approx(0.3)
    assert equal.bleu == pytest.approx(100)
    assert (equal.length_ratio, equal.words, equal.steps) == (1.0, 4.5, 7.0)


def test_empty_translations_count(local):
    [line] = local.lines.translation_lines([result("s", "", "a b c d", 4, 0.1)])
    assert (line.bleu, line.length_ratio, line.words) == (0.0, 0.0, 0.0)


# --- The bundled model ----------------------------------------------------------------


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as f:
        return list(csv.DictReader(f))


@pytest.fixture(scope="module")
def longest(local, tmp_path_factory) -> list[dict[str, str]]:
    """The table of the six longest of the bundled sentences."""
    folder = tmp_path_factory.mktemp("longest")
    data = folder / "test"
    data.mkdir()
    texts = read_text(TEST / "text")
    keys = sorted(sorted(texts, key=lambda key: -len(texts[key].split()))[:6])
    for name in ("src_text", "text"):
        lines = read_text(TEST / name)
        (data / name).write_text("".join(f"{key} {lines[key]}\n" for key in keys))
    local.compare.main(
        ["--data", str(data), "--output_dir", str(folder), "--beams", "4", "200"]
        + ["--searches", "simple", "explicit_length"]
    )
    return rows(folder / "comparison.csv")


def test_the_table_of_two_sentences(tmp_path):
    """Of the two beams, 500 is more than the vocabulary, so that espnet has but one."""
    command = [sys.executable, str(RECIPE / "compare.py"), "--sentences", "2"]
    command += ["--beams", "4", "500", "--output_dir", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    heading = "7 searches, 2 sentences of test (references: 11.0 words on average)"
    assert heading in run.stdout  # ESPnet 202511 prints a line of its own before it
    lines = rows(tmp_path / "comparison.csv")
    assert [(line["search"], line["beam_size"]) for line in lines] == [
        ("espnet", "4"),
        ("simple", "4"),
        ("simple", "500"),
        ("simple+length_norm", "4"),
        ("simple+length_norm", "500"),
        ("explicit_length", "4"),
        ("explicit_length", "500"),
    ]
    references = read_text(TEST / "text")
    sentences = rows(tmp_path / "sentences.csv")
    keys = [r["utterance"] for r in sentences]
    assert keys == 7 * ["test-00000"] + 7 * ["test-00100"]
    assert all(r["reference"] == references[r["utterance"]] for r in sentences)
    words = [len(r["text"].split()) for r in sentences]
    assert float(lines[0]["words"]) == (words[0] + words[7]) / 2
    table = (tmp_path / "comparison.md").read_text()
    # a line of the table, and one of the example below it
    assert table.count("\n| explicit_length    |  500 |") == 2
    assert "\nReference: " in table and table.splitlines()[-1] in run.stdout


def test_a_larger_beam_shortens_simple_search_alone(longest):
    lines = {(r["search"], int(r["beam_size"])): r for r in longest}
    ratio = {key: float(line["length_ratio"]) for key, line in lines.items()}
    bleu = {key: float(line["bleu"]) for key, line in lines.items()}
    assert ratio["simple", 200] < 0.7
    assert ratio["explicit_length", 200] == pytest.approx(1, abs=0.2)
    assert bleu["explicit_length", 200] > bleu["simple", 200]
    assert bleu["explicit_length", 200] > bleu["explicit_length", 4] - 3


def test_the_drop_in_translates_as_the_table_does(local, tmp_path):
    """By the recipe's decode config."""
    for name in ("src_text", "text"):
        lines = (TEST / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(lines[:3]))
    local.compare.main(
        ["--data", str(tmp_path), "--output_dir", str(tmp_path / "table")]
        + ["--searches", "explicit_length", "--beams", "64"]
    )
    status = mt_inference.main(
        ["--config", str(RECIPE / "conf" / "decode_mt.yaml"), "--num_workers", "0"]
        + ["--model_tag", str(PACKED), "--output_dir", str(tmp_path / "out")]
        + ["--data_path_and_name_and_type", f"{tmp_path / 'src_text'},src_text,text"]
    )
    assert status == 0
    texts = read_text(tmp_path / "out" / "1best_recog" / "text")
    assert texts == {
        r["utterance"]: r["text"] for r in rows(tmp_path / "table" / "sentences.csv")
    }
    assert all(texts.values())


def test_every_reference_is_within_the_length_limit():
    """That of the decode config: its ratio times source words and start label."""
    config = yaml.safe_load((RECIPE / "conf" / "decode_mt.yaml").read_text())
    sources, references = read_text(TEST / "src_text"), read_text(TEST / "text")
    for key, source in sources.items():
        limit = int(config["maxlenratio"] * (len(source.split()) + 1))
        assert len(references[key].split()) + 1 <= limit


def test_unseen_texts_from_python(local, grammar):
    """Most words of texts that the model has not seen are the likeliest ones."""
    model = Text2Text.from_pretrained(
        str(PACKED), ctc_weight=0.0, maxlenratio=3.0, search="explicit_length"
    )
    assert isinstance(model.beam_search, ExplicitLengthBeamSearch)
    tokens = model.mt_train_args.src_token_list
    rng, right, words = Random("unseen"), 0, 0
    for _ in range(10):
        meaning = grammar.draw(rng)
        ids = [tokens.index(word) for word in meaning.source().split()]
        text, *_ = model(torch.tensor(ids))[0]
        expected = Counter(meaning.likeliest().split())
        right += (expected & Counter(text.split())).total()
        words += expected.total()
    assert right / words > 0.7


# --- Mistakes -------------------------------------------------------------------------


def test_a_missing_model_is_named(local, tmp_path):
    with pytest.raises(SystemExit) as e:
        local.compare.main(["--model", "gone.zip", "--output_dir", str(tmp_path)])
    assert "compare.py: model_tag: there is no file gone.zip" in str(e.value)


def test_a_model_of_another_tool_is_named(local, tmp_path):
    model = str(bundled("asr_transformer"))
    with pytest.raises(SystemExit) as e:
        local.compare.main(["--model", model, "--output_dir", str(tmp_path)])
    assert str(e.value).startswith(
        f"compare.py: model_tag: {model} is a model of asr_inf"
    )


def test_a_folder_that_cannot_be_made_is_named(local):
    with pytest.raises(SystemExit) as e:
        local.compare.main(["--output_dir", "/dev/null/x"])
    assert str(e.value).startswith("compare.py: output_dir /dev/null/x cannot be writt")


def test_files_of_different_sentences_are_named(local, tmp_path):
    shutil.copy(TEST / "text", tmp_path)
    lines = (TEST / "src_text").read_text().splitlines(keepends=True)
    (tmp_path / "src_text").write_text("".join(lines[1:]))
    with pytest.raises(SystemExit) as e:
        local.compare.main(["--data", str(tmp_path), "--sentences", "1"])
    assert "compare.py: test-00000 is in one of" in str(e.value)
