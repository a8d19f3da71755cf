"""The recipe for Whisper: its data, its packed model, its rivals, its scores."""

import contextlib
import csv
import importlib
import io
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml

from espnet_lenbias.decoding.plain_audio import plain_audio
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.report.scoring import read_text
from tests.recipes.commands import modules_of, run_in
from tests.whisper_files import (
    ENGLISH,
    MULTILINGUAL,
    labels_of,
    noise,
    write_checkpoint,
    write_noise,
)

pytest.importorskip(
    "whisper", reason="needs Whisper: pip install 'espnet_lenbias[whisper]'"
)

RECIPE = Path(__file__).parents[2] / "recipes" / "whisper"


@pytest.fixture(autouse=True)
def local() -> Iterator[None]:
    """Have `local` be the recipe's."""
    with modules_of(RECIPE):
        yield


def _module(name: str):
    """Import a module of the recipe."""
    return importlib.import_module(f"local.{name}")


def _local(name: str, *arguments: object) -> subprocess.CompletedProcess:
    """Run a module of the recipe, in this process, as Python would."""
    said, status = io.StringIO(), 0
    error = ""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        try:
            _module(name).main()
        except SystemExit as e:
            is_message = isinstance(e.code, str)  # as Python takes it
            status, error = (1, e.code) if is_message else (e.code, "")
    return subprocess.CompletedProcess(arguments, status, said.getvalue(), error)


@pytest.fixture(scope="module")
def english(tmp_path_factory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("en") / "random.en.pt", ENGLISH)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("multilingual")
    return write_checkpoint(folder / "random.pt", MULTILINGUAL)


def test_from_a_folder_to_tables_and_again(english, tmp_path):
    audio = tmp_path / "my clips"
    audio.mkdir()
    for i, text in enumerate(("It's colour, Mr. Smith!", "twenty one")):
        write_noise(audio / f"{i}.wav", 1.0, seed=i)
        (audio / f"{i}.txt").write_text(f"{text}\n")
    command = (
        *(RECIPE / "run.sh", "--audio", audio, "--checkpoint", english),
        *("--data", tmp_path / "data", "--exp", tmp_path / "exp"),
        *("--rows", "explicit_length:2", "--rival", "openai", "--rival_beams", 1),
        *("--inference_args", "--maxlenratio -3"),
        *("--stop_stage", 6, "--speed_clips", 1),
    )
    run = run_in(RECIPE, *command)
    assert run.returncode == 0, run.stdout + run.stderr
    results = tmp_path / "exp" / "random.en"
    rows = {"explicit_length_beam2_lm0.0", "openai_beam1"}
    assert {path.parts[-4] for path in results.glob("*/*/1best_recog/text")} == rows
    # by Whisper's normaliser: one spelling, digits, no titles in short
    assert read_text(results / "references/my_clips/text") == {
        "0": "it is color mister smith",
        "1": "21",
    }
    for row in rows:
        texts = read_text(results / row / "my_clips/1best_recog/text")
        for key, text in texts.items():
            path = results / "transcripts" / row / "my_clips" / f"{key}.txt"
            assert path.read_text().strip() == text
    for name in ("openai-whisper", "explicit_length"):
        assert f"| {name}" in run.stdout
    assert "# Decodings of random.en" in (results / "report/report.md").read_text()
    assert "rounds, threads: 1, torch" in (results / "speed/speed.md").read_text()
    with (results / "speed/speed.csv").open() as f:
        lines = list(csv.DictReader(f))
    timed = [(line["name"], line["beam_size"]) for line in lines]
    assert timed == [("openai-whisper", "1"), ("explicit_length", "2")]
    for line in lines:
        assert min(float(line[what]) for what in ("encoder", "search", "steps")) > 0

    # what is there already; the tables would be made anew
    again = run_in(RECIPE, *command[:-4], "--stage", 2, "--stop_stage", 4)
    assert again.returncode == 0, again.stderr
    assert "whisper.zip is there already" in again.stdout
    assert "2 of 2 utterances are decoded already" in again.stdout  # by the rival
    log = results / "explicit_length_beam2_lm0.0/my_clips/decode.log"
    assert "nothing is left to decode" in log.read_text()


# --- The audio ------------------------------------------------------------------------


def test_audio_of_any_rate_and_depth(tmp_path):
    audio, out = tmp_path / "audio", tmp_path / "data"
    (audio / "deep er").mkdir(parents=True)
    soundfile.write(audio / "as is.wav", noise(0.5), 16000)
    time = np.arange(44100) / 44100
    tone = 0.5 * np.sin(2 * np.pi * 440 * time)
    soundfile.write(audio / "deep er" / "tone.ogg", np.stack([tone, tone], 1), 44100)
    (audio / "as is.txt").write_text("as\nis\n")
    of_a_run = audio / "transcripts"  # whose copies are no audio
    of_a_run.mkdir()
    plain_audio(audio / "as is.wav", 8000, of_a_run, "audio/copy")
    (of_a_run / JOURNAL).touch()
    run = _local("data", audio, out)
    assert run.returncode == 0, run.stderr
    files = read_text(out / "wav.scp")
    assert files["as-is"] == str(audio / "as is.wav")
    heard, rate = soundfile.read(files["deep-er-tone"])
    assert (rate, heard.shape) == (16000, (16000,))
    spectrum = np.abs(np.fft.rfft(heard))
    assert np.argmax(spectrum) == 440  # of one second
    assert not (out / "text").exists()
    lacking = audio / "deep er" / "tone.txt"
    assert f"no table is made: there is no {lacking}" in run.stdout

    lacking.write_text("a tone")
    dates = [(out / name).stat().st_mtime_ns for name in ("wav.scp", "utt2spk")]
    assert _local("data", audio, out).returncode == 0
    assert read_text(out / "text") == {"as-is": "as is", "deep-er-tone": "a tone"}
    assert dates == [(out / n).stat().st_mtime_ns for n in ("wav.scp", "utt2spk")]


def test_long_audio_is_named(tmp_path):
    long = write_noise(tmp_path / "long.wav", 31.0)
    write_noise(tmp_path / "short.wav", 30.0)
    run = _local("data", tmp_path, tmp_path / "data")
    assert run.returncode == 0, run.stderr
    assert "WARNING: 1 are longer than 30 s, of which Whisper hears the b" in run.stdout
    assert str(long) in run.stdout


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no audio in"),
        ({"a.wav": b"no audio"}, "1 of 1 files cannot be read: "),
        ({"a b.wav": b"", "a-b.flac": b""}, "would both be called a-b"),
    ],
)
def test_a_folder_that_cannot_be_decoded(files, message, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    run = _local("data", tmp_path, tmp_path / "data")
    assert run.returncode == 1
    assert message in run.stderr
    assert "\n" not in run.stderr


@pytest.mark.parametrize("kind", ["cut off", "NaN"])
def test_damage_shows_before_the_model_is_packed(kind, tmp_path):
    path = tmp_path / "a.flac"
    if kind == "NaN":
        path = tmp_path / "a.wav"
        soundfile.write(path, np.full(16000, np.nan), 16000, subtype="FLOAT")
    else:
        write_noise(path, 5.0)
        path.write_bytes(path.read_bytes()[:20000])
    run = _local("data", tmp_path, tmp_path / "data")
    assert run.returncode == 1
    assert f"1 of 1 files cannot be read: {path}" in run.stderr


# --- The transcripts ------------------------------------------------------------------


def test_what_a_person_has_written_beside_transcripts_is_kept(tmp_path):
    """Also in their place, as by correcting them; those of files that are gone go."""
    results = tmp_path / "exp" / "row" / "set" / "1best_recog"
    results.mkdir(parents=True)
    (results / "text").write_text("a one\nb two\nc three\n")
    score = ("score", tmp_path / "exp", tmp_path, "--name", "x", "--sets", "set")
    assert _local(*score).returncode == 0
    folder = tmp_path / "exp" / "transcripts" / "row" / "set"
    assert (folder / "a.txt").read_text() == "one\n"

    (folder / "notes").mkdir()
    (folder / "notes" / "n.txt").write_text("mine")
    (folder / "mine.txt").write_text("mine")
    (folder / "b.txt").write_text("too")
    (results / "text").write_text("a one\nb two\n")
    assert _local(*score).returncode == 0
    files = {p.name: p.read_text() for p in folder.rglob("*.txt*")}
    assert files == {
        **{"a.txt": "one\n", "b.txt": "two\n", "b.txt.1": "too"},
        **{"mine.txt": "mine", "n.txt": "mine"},
    }


# --- The model ------------------------------------------------------------------------


def test_a_checkpoint_of_many_languages(multilingual, tmp_path):
    run = _local("pack", multilingual, tmp_path, "--language", "de")
    assert run.returncode == 0, run.stderr
    files = model_files(tmp_path / "whisper.zip")
    with open(files["asr_train_config"]) as f:
        config = yaml.load(f, yaml.CSafeLoader)
    labels = labels_of(MULTILINGUAL)
    for ours, name in zip(config["token_list"], labels, strict=True):
        assert ours.replace("Ġ", " ") == name or not name.isprintable()
    assert config["preprocessor_conf"] == {
        "whisper_language": "de",
        "whisper_task": "transcribe",
    }
    assert config["encoder_conf"]["do_pad_trim"] is True
    saved = torch.load(files["asr_model_file"], weights_only=True)
    openais = torch.load(multilingual, weights_only=True)["model_state_dict"]
    assert len(saved) == len(openais)
    name = "blocks.0.cross_attn.query.weight"
    assert torch.equal(saved[f"decoder.decoders.{name}"], openais[f"decoder.{name}"])

    again = _local("pack", multilingual, tmp_path, "--language", "fr")
    assert again.returncode == 1
    assert "language de, task transcribe, not of " in again.stderr
    assert "another --name" in again.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("gone.pt",),
            "there is no file gone.pt, and it is no name of a checkpoint: tin",
        ),
        ((RECIPE / "run.sh",), "run.sh is no checkpoint of openai-whisper"),
        (
            ("{en}", "--language", "de"),
            "a model of English alone: it cannot transcribe",
        ),
        (("{en}", "--task", "translate"), "it cannot translate english"),
        (("{en}", "--language", "xx"), "--language xx is no language of Whisper's"),
        # told before anything is fetched, which would fail here
        (("small", "--language", "xx"), "--language xx is no language of Whisper's"),
        (("tiny.en", "--language", "de"), "tiny.en is a model of English alone: it"),
    ],
)
def test_a_checkpoint_that_cannot_be_packed(options, message, english, tmp_path):
    options = [str(word).format(en=english) for word in options]
    run = _local("pack", options[0], tmp_path, *options[1:])
    assert run.returncode == 1
    assert message in run.stderr
    assert "\n" not in run.stderr
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_cannot_be_fetched(monkeypatch):
    module = _module("pack")

    def offline(name, **_):
        raise OSError("no net")

    monkeypatch.setattr(module.whisper, "load_model", offline)
    with pytest.raises(SystemExit) as end:
        module.load("tiny.en")
    assert "tiny.en cannot be fetched (no net): fetch https://" in str(end.value)
    assert "--checkpoint FILE.pt" in str(end.value)


# --- The rivals -----------------------------------------------------------------------


def test_a_rival_that_was_killed_goes_on(tmp_path):
    """What has no line in all of its files is decoded again; half lines go."""
    rival = _module("rival")
    for name in ("text", "steps", "score", "token_int", "seconds", "audio"):
        (tmp_path / name).write_text("a x\nb y\n")
    with (tmp_path / "text").open("a") as f:
        f.write("c z\n")
    with (tmp_path / "steps").open("a") as f:
        f.write("c 1")  # it died here
    assert rival.already_done(tmp_path, {"a": "x", "b": "y"}) == {"a", "b"}
    assert (tmp_path / "text").read_text() == "a x\nb y\n"
    assert (tmp_path / "steps").read_text() == "a x\nb y\n"
    # other audio of that name, and audio that is not named any more
    assert rival.already_done(tmp_path, {"a": "z", "b": "y"}) == {"b"}
    assert (tmp_path / "text").read_text() == "b y\n"
    assert rival.already_done(tmp_path, {"a": "x"}) == set()


def test_results_of_another_run_of_a_rival_are_refused(english, tmp_path):
    scp = tmp_path / "wav.scp"
    scp.write_text(f"a {write_noise(tmp_path / 'a.wav', 0.5)}\n")
    model = tmp_path / "model.pt"
    model.write_bytes(english.read_bytes())
    out = tmp_path / "row" / "set"

    def run(*options: object) -> subprocess.CompletedProcess:
        command = ("openai", scp, out, "--checkpoint", model, "--beam_size", 1)
        return _local("rival", *command, *options)

    assert run().returncode == 0
    text = (out / "1best_recog/text").read_text()
    assert "1 of 1 utterances are decoded already" in run().stdout
    refused = run("--beam_size", 2)
    assert refused.returncode == 1
    assert f"the results in {out} are of beam_size 1, not 2: remove" in refused.stderr
    with model.open("ab") as f:
        f.write(b"x")  # trained further, under the same name
    assert f"are of model {model} (" in run().stderr
    (out / "run.yaml").unlink()
    assert "program that is not known, not openai-whisper 2" in run().stderr
    assert (out / "1best_recog/text").read_text() == text


def test_audio_that_cannot_be_read_costs_no_other(english, tmp_path, capsys):
    """It has empty lines, and is decoded once it is there again."""
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    write_noise(tmp_path / "b.wav", 0.5)
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{k} {tmp_path / k}.wav\n" for k in ("a", "gone", "b")))
    out = tmp_path / "row" / "set"
    command = ("openai", scp, out, "--checkpoint", english, "--beam_size", 1)
    first = _local("rival", *command)
    assert first.returncode == 3
    said = capsys.readouterr().err.splitlines()[-2:]
    assert said[0].startswith(f"failed: a: Error opening '{tmp_path}/a.wav'")
    assert said[1].startswith("failed: gone: ")
    assert (out / "failed").read_text().splitlines() == said

    def lines(name):
        return (out / "1best_recog" / name).read_text().splitlines()

    assert lines("text")[:2] == lines("token_int")[:2] == ["a ", "gone "]
    assert lines("score")[:2] == ["a nan", "gone nan"]
    assert lines("text")[2].startswith("b ")
    write_noise(tmp_path / "a.wav", 0.5)
    write_noise(tmp_path / "gone.wav", 0.5)
    again = _local("rival", *command)
    assert again.returncode == 0
    assert "1 of 3 utterances are decoded already" in again.stdout
    assert sorted(line.split()[0] for line in lines("audio")) == ["a", "b", "gone"]
    assert (out / "failed").read_text() == ""


def test_a_run_of_faster_whisper_is_that_of_its_model(tmp_path):
    rival = _module("rival")
    folder = tmp_path / "faster"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"12345")
    command = ["faster", "wav.scp", "out", "--checkpoint", "tiny", "--ngpu", "1"]
    parse = rival.get_parser().parse_args
    found = rival.run_of(parse([*command, "--faster_model", str(folder)]))
    assert found["model"].startswith(f"{folder}/model.bin (5 bytes, sha256 ")
    assert found["precision"] == "float16"
    assert rival.run_of(parse(command))["model"] == "tiny"


def test_a_rival_that_is_not_installed(english, tmp_path, monkeypatch):
    rival = _module("rival")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)  # its import fails
    scp = tmp_path / "wav.scp"
    scp.write_text(f"a {write_noise(tmp_path / 'a.wav', 0.5)}\n")
    command = ["rival", "faster", str(scp), str(tmp_path / "row/set")]
    command += ["--checkpoint", str(english)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="pip install faster-whisper"):
        rival.main()


# --- The times ------------------------------------------------------------------------


@pytest.fixture
def speed():
    return _module("speed")


def test_all_take_turns_at_a_clip(speed):
    calls = []

    def decode(name, clip):
        calls.append((name, int(clip[0])))
        return speed.Turn(1.0, 2.0, 3.0)

    contestants = {(name, 5): partial(decode, name) for name in "ab"}
    turns = speed.take_turns(contestants, [np.array([0]), np.array([1])], 2)
    warm_up = [("a", 0), ("b", 0)]
    assert calls == [*warm_up, *2 * [("a", 0), ("b", 0), ("a", 1), ("b", 1)]]
    assert turns == {key: 2 * [2 * [(1.0, 2.0, 3.0)]] for key in contestants}


def test_a_clip_that_cannot_be_read_is_named(speed, tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(SystemExit, match=rf"speed.py: .*: mend {tmp_path}/a.wav"):
        speed.read_clip(str(tmp_path / "a.wav"))


def test_times_are_medians_of_rounds_and_means_of_clips(speed):
    def turns(*by_clip):
        return [[speed.Turn(0.5, search, 7.0) for search in clip] for clip in by_clip]

    found = {
        ("simple", 5): turns((1.0, 2.0, 9.0), (4.0, 4.0, 4.0)),
        ("simple", 64): turns((8.0, 8.0, 8.0), (8.0, 8.0, 8.0)),
        # times the first's at the same turn: 3, 1, 1 and 2, 2, 0.5
        ("rival", 5): turns((3.0, 2.0, 9.0), (8.0, 8.0, 2.0)),
    }
    lines = list(speed.summed(found))
    assert [(line.name, line.beam_size) for line in lines] == [
        ("simple", 5),
        ("rival", 5),
        ("simple", 64),
    ]
    assert [line.search for line in lines] == [3.0, 5.5, 8.0]  # (2 + 4)/2, (3 + 8)/2
    assert [line.together for line in lines] == [3.5, 6.0, 8.5]
    assert [line.ratio for line in lines] == [1.0, 1.5, 1.0]


# --- The scores -----------------------------------------------------------------------


def test_normalisers():
    score = _module("score")
    assert score.normaliser("en")("Twenty-one, COLOUR!").split() == ["21", "color"]
    assert score.normaliser("de")("Schöne, GRÜSSE!").split() == ["schöne", "grüsse"]
    assert score.normaliser("ja")("東京 だ。").split() == ["東", "京", "だ"]
