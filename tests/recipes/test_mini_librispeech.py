"""The bundled model and audio through every way of choosing a search."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import hydra
import numpy as np
import pytest
import soundfile
import torch
from espnet2.bin import asr_inference as espnets
from omegaconf import OmegaConf
from torch.nn.utils.rnn import pad_sequence

from espnet_lenbias import Speech2Text, use_search
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.compare.compare import ComparedSearch, compare, encode
from espnet_lenbias.compare.summary import errors_of
from espnet_lenbias.compare.utterances import Utterance, read_set, spread
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.report.scoring import count_errors, read_text
from tests.bundled import bundled
from tests.programs import needs_programs
from tests.recipes.commands import run_here, run_in

RECIPE = Path(__file__).parents[2] / "recipes" / "mini_librispeech"
MT = str(RECIPE.with_name("mini_mt") / "pretrained" / "mt.zip")
PACKED = str(bundled("asr_transformer"))
SLICE = RECIPE / "slice" / "LibriSpeech"

DECODING = {"beam_size": 8, "ctc_weight": 0.0, "lm_weight": 0.0}


def utterances(name: str) -> list[Utterance]:
    """Return a set of the bundled audio, the longest utterances first."""
    return sorted(read_set(SLICE, name), key=lambda u: -len(u.reference.split()))


needs_engines = needs_programs(
    all(map(shutil.which, ("espeak-ng", "flite"))), "espeak-ng flite"
)


@pytest.fixture(scope="module")
def model():
    return Speech2Text.from_pretrained(PACKED, **DECODING)


@pytest.fixture(scope="module")
def few() -> list[Utterance]:
    """Four utterances of different lengths."""
    return utterances("dev-clean")[::3][:4]


@pytest.fixture(scope="module")
def expected(few) -> dict[str, str]:
    """What the search finds in Python, utterance by utterance."""
    model = Speech2Text.from_pretrained(PACKED, search="explicit_length", **DECODING)
    texts = {u.key: model(soundfile.read(u.audio)[0])[0][0] for u in few}
    assert all(texts.values())
    return texts


@pytest.fixture
def wav_scp(few, tmp_path) -> Path:
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{u.key} {u.audio}\n" for u in few))
    return scp


@pytest.fixture
def decode_yaml(tmp_path) -> Path:
    """The decode config that an ESPnet user has, and one line more."""
    path = tmp_path / "decode.yaml"
    lines = [f"{key}: {value}" for key, value in DECODING.items()]
    path.write_text("\n".join([*lines, "search: explicit_length\n"]))
    return path


def test_most_words_of_clean_audio_are_right(few, expected):
    """The model is a real one, not only something that runs."""
    words = [(u.reference.split(), expected[u.key].split()) for u in few]
    hits = sum(len(set(said) & set(heard)) for said, heard in words)
    assert hits > 0.7 * sum(len(set(said)) for said, _ in words)


# --- Four ways of choosing ------------------------------------------------------------


def test_drop_in(wav_scp, decode_yaml, tmp_path, expected):
    out = tmp_path / "out"
    status = asr_inference.main(
        ["--config", str(decode_yaml), "--model_tag", PACKED, "--output_dir", str(out)]
        + ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
        + ["--num_workers", "0"]
    )
    assert status == 0
    assert read_text(out / "1best_recog" / "text") == expected


def test_wrapper(wav_scp, decode_yaml, tmp_path, expected):
    out = tmp_path / "out"
    files = model_files(PACKED)
    command = [
        sys.executable,
        "-m",
        "espnet_lenbias",
        "-m",
        "espnet2.bin.asr_inference",
    ]
    command += ["--asr_train_config", files["asr_train_config"]]
    command += ["--asr_model_file", files["asr_model_file"]]
    command += ["--config", str(decode_yaml), "--output_dir", str(out)]
    command += ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert read_text(out / "1best_recog" / "text") == expected


def test_espnet3(few, expected):
    """As the `model:` of a recipe's conf/inference.yaml is built."""
    conf = OmegaConf.create(
        {
            "_target_": "espnet_lenbias.Speech2Text",
            "search": "explicit_length",
            **model_files(PACKED),
            **DECODING,
        }
    )
    model = hydra.utils.instantiate(conf)
    texts = {u.key: model(soundfile.read(u.audio)[0])[0][0] for u in few}
    assert texts == expected


def test_use_search_on_espnets_own_object(few, expected):
    model = espnets.Speech2Text(**model_files(PACKED), **DECODING)
    use_search(model, "explicit_length")
    texts = {u.key: model(soundfile.read(u.audio)[0])[0][0] for u in few}
    assert texts == expected


def test_search_espnet_writes_espnets_files(wav_scp, tmp_path):
    files = model_files(PACKED)
    command = [
        *("--asr_train_config", files["asr_train_config"]),
        *("--asr_model_file", files["asr_model_file"]),
        *("--data_path_and_name_and_type", f"{wav_scp},speech,sound"),
        *("--beam_size", "4", "--ctc_weight", "0.3", "--num_workers", "0"),
    ]
    asr_inference.main([*command, "--output_dir", str(tmp_path / "ours")])
    espnets.main([*command, "--output_dir", str(tmp_path / "theirs")])
    theirs = {p.name: p.read_bytes() for p in (tmp_path / "theirs").glob("*/*")}
    ours = {p.name: p.read_bytes() for p in (tmp_path / "ours").glob("*/*")}
    assert ours == theirs
    assert set(ours) == {"text", "token", "token_int", "score"}


# --- What the search is for -----------------------------------------------------------


def test_a_larger_beam_loses_no_word_in_pure_attention(model):
    """Without CTC or LM, on long noisy utterances: simple search loses words by a
    larger beam; this one's word errors do not rise, and no output vanishes."""
    rows = [
        ComparedSearch(search, search, beam)
        for search in ("simple", "explicit_length")
        for beam in (20, 50, 200)
    ]
    by_row: dict[tuple[str, int], list] = {}
    for results in compare(model, rows, utterances("dev-other")[::4]):
        for result in results:
            by_row.setdefault((result.search, result.beam_size), []).append(result)
    errors = {key: errors_of(results) for key, results in by_row.items()}
    explicit = [errors["explicit_length", beam] for beam in (20, 50, 200)]
    simple = [errors["simple", beam] for beam in (20, 50, 200)]
    assert simple[2].deletions > simple[0].deletions
    assert simple[2].length_ratio < 0.9 < explicit[2].length_ratio
    assert explicit[2].wer < simple[2].wer
    for larger in explicit[1:]:
        assert larger.wer <= explicit[0].wer + 1.5
    assert all(r.text for r in by_row["explicit_length", 200])


def test_a_padded_batch_equals_its_utterances(model, few):
    encoded = [encode(model, u.audio) for u in few]
    conf = {"nbest": 3, "score_threshold": 10.0}
    search = use_search(
        Speech2Text.from_pretrained(PACKED, beam_size=8, ctc_weight=0.3),
        "explicit_length",
        **conf,
    ).beam_search
    alone = [search(x) for x in encoded]
    lengths = torch.tensor([len(x) for x in encoded])
    padded = pad_sequence(encoded, batch_first=True, padding_value=50.0)
    together = search(padded, x_lengths=lengths)
    for one, other in zip(alone, together, strict=True):
        assert [h.yseq.tolist() for h in one] == [h.yseq.tolist() for h in other]
        assert [h.score for h in one] == pytest.approx(
            [h.score for h in other], abs=1e-3
        )


def test_lists_are_decoded_as_batches_of_the_same_texts(few, expected):
    model = Speech2Text.from_pretrained(PACKED, search="explicit_length", **DECODING)
    results = model([soundfile.read(u.audio)[0] for u in few])
    texts = [nbest[0][0] for nbest in results]
    assert texts == [expected[u.key] for u in few]


# --- Mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program, options, message",
    [
        ("long_audio.py", ["--gap", "-1"], "--gap must be 0 or more, not -1"),
        ("long_audio.py", ["--margins", "-1"], "margin"),
        ("long_audio.py", ["--model", "gone.zip"], "there is no file gone.zip"),
        ("word_times.py", ["--ctc_leads", "nan"], "--ctc_leads: must be a finite numb"),
        ("word_times.py", ["--models", "gone.zip"], "there is no file gone.zip"),
        ("confidence.py", ["--models", "gone.zip"], "there is no file gone.zip"),
    ],
)
def test_mistakes_of_the_measuring_programs(program, options, message, tmp_path):
    usual = ("--utterances", 1, "--output_dir", tmp_path)
    run = run_here(RECIPE / program, *options, *usual)
    assert run.returncode == 2
    assert f"{program}: error: " in run.stderr.splitlines()[-1]
    assert message in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr


# --- The demo -------------------------------------------------------------------------


def test_the_demo_speaks_before_it_loads_anything_large():
    code = (
        "import runpy, sys; sys.argv[1:] = ['--model', 'gone.zip']\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as e: print(e, 'torch' in sys.modules)"
    )
    code = code.replace("sys.argv[0]", repr(str(RECIPE / "demo.py")))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert lines[0].startswith("14 searches, 80 utterances of dev-other, test-other")
    assert "The defaults take up to a quarter of an hour on two slow cores." in lines
    assert lines[-1].startswith("demo.py: there is no model gone.zip: name one with")
    assert lines[-1].endswith(" False"), run.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--model", MT],
            f"demo.py: model_tag: {MT} is a model of mt_inference, not of",
        ),
        (
            ["--output_dir", "/dev/null/x"],
            "demo.py: output_dir /dev/null/x cannot be w",
        ),
    ],
)
def test_what_the_demo_cannot_do_is_one_line(options, message, tmp_path):
    run = run_here(RECIPE / "demo.py", "--output_dir", tmp_path, *options)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in run.stderr


def test_the_demo_adds_a_huge_beam_on_a_few_utterances(tmp_path):
    options = "--sets dev-clean --utterances 3 --searches simple explicit_length"
    options += " --beams 2 --largest 4 --huge 400 --few 2"  # of 300 labels
    command = [sys.executable, str(RECIPE / "demo.py"), *options.split()]
    command += ["--output_dir", str(tmp_path), "--model", PACKED]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with (tmp_path / "huge.csv").open() as f:
        lines = list(csv.DictReader(f))
    assert [(line["search"], line["beam_size"]) for line in lines] == [
        (search, beam)
        for search in ("simple", "explicit_length")
        for beam in ("2", "4", "400")
    ]
    with (tmp_path / "utterances.csv").open() as f:
        results = list(csv.DictReader(f))
    with (tmp_path / "huge_utterances.csv").open() as f:
        few = {row["utterance"] for row in csv.DictReader(f)}
    assert len(few) == 2
    small = [r for r in results if r["search"] == "simple" and r["beam_size"] == "2"]
    assert len(small) == 3
    steps = [int(r["steps"]) for r in small if r["utterance"] in few]
    assert float(lines[0]["steps"]) == sum(steps) / 2
    assert "2 of the utterances (references: " in run.stdout


# --- Confidences ----------------------------------------------------------------------


def test_confidences_are_measured(tmp_path):
    options = "--sets dev-clean --temperature_from dev-clean --utterances 2"
    command = [
        *(sys.executable, str(RECIPE / "confidence.py"), *options.split()),
        *("--models", PACKED, "--searches", "explicit_length", "--beam_sizes", "4"),
        *("--output_dir", str(tmp_path)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "confidence.csv").open() as f:
        rows = {row["measure"]: row for row in csv.DictReader(f)}
    assert set(rows) == {"combined", "posterior", "label_probability"}
    assert len({row["words"] for row in rows.values()}) == 1
    means = {name: float(row["mean"]) for name, row in rows.items()}
    assert means["combined"] < means["posterior"] <= 1


# --- Long audio -----------------------------------------------------------------------


def test_long_audio_is_cut_and_measured(model, tmp_path):
    """Three utterances, 2 s of silence between them: no other place to cut."""
    command = [
        *(sys.executable, str(RECIPE / "long_audio.py"), "--sets", "dev-clean"),
        *("--utterances", "3", "--beam_size", "8", "--gap", "2", "--silences", "1.5"),
        *("--output_dir", str(tmp_path)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "long_audio.csv").open() as f:
        zeros, noise = csv.DictReader(f)
    chosen = spread(read_set(SLICE, "dev-clean"), 3)
    use_search(model, "explicit_length", beam_size=8)
    texts = [model(soundfile.read(utterance.audio)[0])[0][0] for utterance in chosen]
    alone = count_errors(
        {u.key: u.reference for u in chosen}, {u.key: t for u, t in zip(chosen, texts)}
    )
    seconds = sum(soundfile.info(utterance.audio).duration for utterance in chosen) + 4
    for row in (zeros, noise):
        assert row["pieces"] == row["utterances"] == "3"
        assert float(row["seconds"]) == pytest.approx(seconds)
        assert float(row["alone"]) == pytest.approx(alone.wer)
    # zeros are no noise: the two recordings are not one
    waves = [soundfile.read(path)[0] for path in sorted(tmp_path.glob("*.wav"))]
    difference = waves[1] - waves[0]
    assert 20 * np.log10(difference.std()) == pytest.approx(-60, abs=0.1)


# --- Times of words -------------------------------------------------------------------


@needs_engines
def test_times_of_words_are_compared_with_those_of_the_engines(tmp_path):
    options = "--sets dev-clean --beam_size 4 --ctc_leads 0 1.5"
    command = [
        *(sys.executable, str(RECIPE / "word_times.py"), *options.split()),
        *("--models", PACKED, "--output_dir", str(tmp_path)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "word_times.csv").open() as f:
        rows = {row["method"]: row for row in csv.DictReader(f)}
    assert set(rows) == {"ctc, 0 frames", "ctc", "attention"}
    assert len({row["words"] for row in rows.values()}) == 1
    late = float(rows["ctc, 0 frames"]["late"]) - float(rows["ctc"]["late"])
    assert late == pytest.approx(60, abs=15)  # frames are of 40 ms and a bit
    assert float(rows["ctc"]["within_100"]) > 90
    assert float(rows["attention"]["within_200"]) > 90
    starts = read_text(tmp_path / "word_starts")
    chosen = utterances("dev-clean")
    references = {u.key: u.reference.split() for u in chosen if u.key in starts}
    assert len(references) == 10
    for key, line in starts.items():
        seconds = [float(word) for word in line.split() if word != "-"]
        assert len(line.split()) == len(references[key])
        assert seconds == sorted(seconds)


@needs_engines
@pytest.mark.parametrize("engine", ["espeak-ng", "flite"])
def test_the_engines_libraries_say_what_their_programs_do(engine, tmp_path):
    """Sample by sample, so what they tell of the words is of the corpus."""
    script = (
        "import subprocess, sys; import soundfile\n"
        "from local.spoken_words import say\n"
        "from local.voices import Speaker, command\n"
        "voice, pitch = sys.argv[1:3]\n"
        "flite = voice == 'slt'\n"
        "engine = 'flite' if flite else 'espeak-ng'\n"
        "speaker = Speaker(1, engine, voice, int(pitch), 1.3, 1.05)\n"
        "text = 'THE GREY HORSE SANG'\n"
        "spoken = say(speaker, text)\n"
        "subprocess.run(command(speaker, text.lower(), sys.argv[3]), check=True)\n"
        "wave, rate = soundfile.read(sys.argv[3], dtype='int16')\n"
        "assert rate == spoken.rate and (wave == spoken.wave).all()\n"
        "assert len(spoken.starts) == 4\n"
    )
    voice = ("slt", "180") if engine == "flite" else ("en-gb+f5", "50")
    command = [sys.executable, "-c", script, *voice, str(tmp_path / "a.wav")]
    subprocess.run(command, check=True, cwd=RECIPE)


@pytest.mark.parametrize(
    "program",
    ["confidence.py --models", "long_audio.py --model", "word_times.py --models"],
)
def test_a_model_that_is_not_there_is_named_at_once(program):
    name, option = program.split()
    done = run_here(RECIPE / name, option, "gone.zip")
    assert done.returncode == 2
    assert "there is no file gone.zip" in done.stderr.splitlines()[-1]


# --- Folders that are not the recipe's ------------------------------------------------


@pytest.fixture
def persons(tmp_path) -> Path:
    """A folder such as LibriSpeech itself."""
    root = tmp_path / "LibriSpeech"
    shutil.copytree(SLICE / "dev-clean", root / "dev-clean")
    (root / "SPEAKERS.TXT").write_text("; Some pipe(|) separated metadata\n")
    return root


@pytest.mark.parametrize(
    "command",
    [
        ("make_slice", str(SLICE), "{root}", "dev-clean=1"),
        ("make_corpus", "--out", "{root}/..", "--sets", "dev-clean"),
    ],
)
@needs_engines  # make_corpus asks for them first
def test_a_persons_own_corpus_is_not_written_over(command, persons):
    before = sorted(persons.rglob("*"))
    run = _local(*(word.format(root=persons) for word in command))
    assert run.returncode == 1
    assert "holds files that this recipe has not made, and would write over" in (
        run.stderr
    )
    assert sorted(persons.rglob("*")) == before


def test_a_slice_is_made_again_and_not_of_itself(tmp_path):
    out = tmp_path / "slice"
    for n_utts in (3, 2):
        assert _local("make_slice", SLICE, out, f"dev-clean={n_utts}").returncode == 0
        assert len(list(out.rglob("*.flac"))) == n_utts
    run = _local("make_slice", out, out, "dev-clean=1")
    assert run.returncode == 1
    assert "a slice does not replace what it is taken from" in run.stderr
    assert len(list(out.rglob("*.flac"))) == 2


def _local(module: str, *options: object) -> subprocess.CompletedProcess:
    return run_in(RECIPE, sys.executable, "-m", f"local.{module}", *options)
