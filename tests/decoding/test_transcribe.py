"""``espnet-lenbias transcribe``: from audio files of any kind to texts."""

import argparse
import errno
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
from espnet2.main_funcs.pack_funcs import pack
from scipy.signal import resample_poly

from espnet_lenbias import Speech2Text, cli
from espnet_lenbias.decoding import drop_in, transcribe, voice
from espnet_lenbias.decoding.cutting import CutOptions
from espnet_lenbias.decoding.found_audio import left_out, named_audio
from espnet_lenbias.decoding.plain_audio import plain_audio
from espnet_lenbias.decoding.prepared_audio import cut_at_silences, prepared
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.options import espnet_tools
from espnet_lenbias.options.run_journal import JOURNAL, read_run_options
from espnet_lenbias.options.segments import Segment
from tests.bundled import bundled
from tests.conftest import RATE
from tests.decoding.made import Loudness
from tests.docs.pages import ROOT
from tests.docs.workplace import SLICE, TEXTS
from tests.programs import needs_programs

BOOTS, WALTER = TEXTS
OUT = Path("transcripts")
COPY = (
    "a-0123cdef.flac"  # as copies in the folder `audio` of an output folder are called
)
NOT_RESULTS = (".lock", "decoding.jsonl", "decoding.log")


def speech(key):
    return next((ROOT / SLICE).rglob(f"{key}.flac"))


@pytest.fixture
def audio(tmp_path):
    """A folder with a FLAC file, a WAV of two channels and 8 kHz, and a broken one."""
    folder = tmp_path / "audio"
    (folder / "inner").mkdir(parents=True)
    shutil.copy(speech(WALTER), folder / "walter.flac")
    samples, rate = soundfile.read(speech(BOOTS))
    half = resample_poly(samples, 1, 2)
    # the mean of the channels is what was said
    wave = np.stack([1.5 * half, 0.5 * half], axis=1)
    soundfile.write(folder / "inner" / "nineteen boots.wav", wave, rate // 2)
    (folder / "broken.wav").write_text("no audio")
    (folder / "notes.txt").write_text("no audio, and no name of any")
    return folder


def command(folder, *options, model=None, out=None):
    model = model or bundled("asr_transformer")
    return [
        *("transcribe", str(folder), "--model", str(model)),
        *("--output_dir", str(out or folder.parent / "out"), "--num_workers", "0"),
        *options,
    ]


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in NOT_RESULTS
    }


def heard_at_8_khz(path):
    """Return what a model hears of audio without what 8 kHz do not hold."""
    weights = dict(ctc_weight=0.0, lm_weight=0.0)
    model = Speech2Text.from_pretrained(
        str(bundled("asr_transformer")), search="explicit_length", **weights
    )
    samples = resample_poly(soundfile.read(path)[0], 1, 2)
    return model(resample_poly(samples, 2, 1).astype(np.float32))[0][0]


def test_from_files_to_texts_and_again(audio, tmp_path, capsys, monkeypatch):
    options = ["--ctc_weight", "0.0", "--lm_weight", "0.0", "--formats", "json,trn"]
    assert cli.main(command(audio, *options)) == 1
    out, err = capsys.readouterr()
    at_8_khz = heard_at_8_khz(speech(BOOTS))
    assert at_8_khz.startswith("NINETEEN BOO")
    texts = {"nineteen-boots": at_8_khz, "walter": TEXTS[WALTER]}
    assert out.splitlines() == [
        "broken: ",
        *(f"{name}: {text}" for name, text in texts.items()),
        f"in {tmp_path}/out/recordings/1best_recog",
    ]
    assert (
        f"{audio}/inner/nineteen boots.wav: 2 channels mixed to one, resampled from "
        "8000 to 16000 Hz\n" in err
    )
    failed = f"espnet-lenbias transcribe: failed: {audio}/broken.wav is no audio"
    assert any(line.startswith(failed) for line in err.splitlines())
    assert ": left out, for their names are none of audio: .txt (1); a file" in err
    written = files(tmp_path / "out")
    text = written["recordings/1best_recog/text"].decode()
    whole = "".join(f"{name} {text}\n" for name, text in texts.items())
    assert text == f"broken \n{whole}"  # which could not be read
    lines = written["recordings/1best_recog/text.jsonl"].splitlines()
    found = {o["key"]: (o["text"], o["audio"]) for o in map(json.loads, lines)}
    (copy,) = (tmp_path / "out" / "audio").iterdir()
    assert found == {
        "broken": (None, None),
        "nineteen-boots": (at_8_khz, str(copy)),
        "walter": (TEXTS[WALTER], f"{audio}/walter.flac"),
    }

    # mended, the file is decoded, and no other
    decoded = []
    decode_here = drop_in.decode_here

    def noting(tool, args, folder, batches):
        decoded.extend(key for batch in batches for key in batch)
        return decode_here(tool, args, folder, batches)

    monkeypatch.setattr(drop_in, "decode_here", noting)
    assert cli.main(command(audio, *options)) == 1
    assert decoded == []
    assert files(tmp_path / "out") == written
    samples, rate = soundfile.read(speech(BOOTS))
    soundfile.write(audio / "broken.wav", samples, rate)
    assert cli.main(command(audio, *options)) == 0
    assert decoded == ["broken"]
    text = (tmp_path / "out" / "recordings" / "1best_recog" / "text").read_text()
    assert text.splitlines()[0] == f"broken {TEXTS[BOOTS]}"


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda wave: wave * 32768, "its samples go far beyond -1 to 1"),
        (lambda wave: wave / 0.0, "holds NaN or infinity"),
    ],
)
def test_what_a_file_of_16_bits_cannot_hold(spoilt, message, tmp_path):
    wave = np.sin(np.arange(8000))
    with np.errstate(all="ignore"):
        soundfile.write(tmp_path / "a.wav", spoilt(wave), 8000, subtype="FLOAT")
    (tmp_path / "out").mkdir()
    files, (failure,) = prepared({"a": tmp_path / "a.wav"}, 16000, tmp_path / "out")
    assert not files
    assert f"{tmp_path / 'a.wav'}" in failure
    assert message in failure
    assert not list(tmp_path.rglob("*.flac"))


def test_a_name_is_as_long_as_names_of_files_are(audio, capsys):
    path = audio / f"{'m' * 250}.wav"
    shutil.copy(speech(BOOTS), path)
    (audio / "out").mkdir()
    files, failures = prepared(
        {path.stem: path, "walter": audio / "walter.flac"}, 8000, audio / "out"
    )
    assert not failures
    beginning = "m" * (255 - len("-0123456789abcdef-01234567.flac"))
    assert files[path.stem].name.startswith(f"{beginning}-")
    assert len(files[path.stem].name) == 255
    assert soundfile.info(files[path.stem]).samplerate == 8000


def test_a_long_file_that_is_damaged_is_left_to_its_decoding(tmp_path, monkeypatch):
    """Which fails, and costs no other."""
    monkeypatch.setattr(voice, "load_detector", Loudness)
    path = tmp_path / "a.flac"
    soundfile.write(path, np.random.default_rng(0).random(4 * RATE), RATE)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert cut_at_silences({"a": path}, CutOptions(2)) == ["a a 0 -1\n"]


def test_a_piece_is_called_as_no_file_is(tmp_path, monkeypatch):
    """A tone of 3 s, cut out of 5 s: its piece would have the name of the other file."""
    monkeypatch.setattr(voice, "load_detector", Loudness)
    seconds = np.arange(5 * RATE) / RATE
    loud = (seconds >= 1) & (seconds < 4)
    wave = 0.5 * loud * np.sin(2 * np.pi * 440 * seconds)
    paths = tmp_path / "a.wav", tmp_path / "b.wav"
    for path, samples in zip(paths, (wave, wave[:RATE]), strict=True):
        soundfile.write(path, samples, RATE)
    (piece,) = cut_at_silences({"a": paths[0]}, CutOptions(4))
    key, _, place = piece.partition(" ")
    files = {"a": paths[0], key: paths[1]}
    assert cut_at_silences(files, CutOptions(4)) == [
        f"{key}- {place}",
        f"{key} {key} 0 -1\n",
    ]


# --- With tiny models -----------------------------------------------------------------


@pytest.fixture
def packed(model_of, tmp_path, monkeypatch, capsys):
    """Return what packs a tiny model, as ESPnet does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def packed(name):
        model, archive = model_of(name), tmp_path / f"{name}.zip"
        config, weights = model.files.items()
        monkeypatch.chdir(model.config.parent)
        pack(files=dict([weights]), yaml_files=dict([config]), outpath=archive)
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()  # what ESPnet says of it
        return archive

    return packed


def test_a_long_file_is_cut_at_silences(packed, tmp_path, monkeypatch, capsys):
    """Tones of 3 s at 1 and 6 s; a short file beside it, and one of silence."""
    seconds = np.arange(12 * RATE) / RATE
    loud = sum((s <= seconds) & (seconds < s + 3) for s in (1, 6))
    wave = 0.5 * loud * np.sin(2 * np.pi * 440 * seconds)
    (tmp_path / "audio").mkdir()
    soundfile.write(tmp_path / "audio" / "long.wav", wave, RATE)
    soundfile.write(tmp_path / "audio" / "short.wav", wave[RATE : 2 * RATE], RATE)
    soundfile.write(tmp_path / "audio" / "silent.wav", 0 * wave, RATE)
    monkeypatch.setattr(voice, "load_detector", Loudness)
    options = ["--longest", "4", "--beam_size", "2", "--maxlenratio", "-4"]
    options += ["--ctc_weight", "0.0", "--formats", "json"]
    model = packed("asr")
    own = [tmp_path / "out" / "wav.scp", tmp_path / "out" / "segments"]
    own[0].parent.mkdir()
    for path in own:
        path.write_text("a person's own\n")
    assert cli.main(command(tmp_path / "audio", *options, model=model)) == 0
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()[:-1]] == [
        "long",
        "short",
        "silent",
    ]
    assert f"silent: there is no speech in {tmp_path}/audio/silent.wav\n" in err
    lines = (tmp_path / "out" / "transcribe.segments").read_text().splitlines()
    *pieces, short = [line.split() for line in lines]
    assert short == ["short", "short", "0", "-1"]
    times = [float(value) for _, _, *both in pieces for value in both]
    assert times == pytest.approx([0.95, 4.05, 5.95, 9.05], abs=0.04)
    path = tmp_path / "out" / "recordings" / "1best_recog" / "text.jsonl"
    found = {o["key"]: o for o in map(json.loads, path.read_text().splitlines())}
    assert [piece["key"] for piece in found["long"]["pieces"]] == [p[0] for p in pieces]
    texts = (tmp_path / "out" / "1best_recog" / "text").read_text().splitlines()
    words = [w for line in texts for w in line.split()[1:] if line.startswith("long-")]
    assert found["long"]["text"].split() == words
    assert found["long"]["duration"] == found["silent"]["duration"] == 12.0
    assert (path.with_name("text")).read_text().endswith("\nsilent \n")
    assert [path.read_text() for path in own] == ["a person's own\n"] * 2


@pytest.mark.parametrize("name", ["st", "s2t"])
def test_other_tools(name, packed, tmp_path, wav_scp, capsys):
    model = packed(name)
    wave = str(tmp_path / "utt1.wav")
    options = ["--beam_size", "2", "--maxlenratio", "-4"]
    assert cli.main(command(Path(wave), *options, model=model, out=tmp_path / "o")) == 0
    (line, _) = capsys.readouterr().out.splitlines()
    assert line.startswith("utt1: ")
    assert "<" not in line  # of OWSM's symbols
    read = tmp_path / "o" / "recordings" / "1best_recog"
    named = read / ("text_nospecial" if name == "s2t" else "text")
    assert line.removeprefix("utt1: ") == named.read_text().partition(" ")[2].strip()


def test_whisper(tmp_path, monkeypatch, capsys):
    """Which has no CTC, and of which no config tells the sampling rate."""
    pytest.importorskip("whisper")
    from tests.whisper_files import ENGLISH, write_model

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    made = write_model(tmp_path, ENGLISH)
    pack(
        files={"asr_model_file": made.weights.name},
        yaml_files={"asr_train_config": made.config.name},
        outpath=tmp_path / "whisper.zip",
    )
    capsys.readouterr()
    noise = 0.1 * np.random.default_rng(0).standard_normal((8000, 2))
    soundfile.write(tmp_path / "a.wav", noise, 8000)
    options = ["--beam_size", "2", "--maxlenratio", "-3", "--minlenratio", "-3"]
    wave, out = tmp_path / "a.wav", tmp_path / "o"
    assert cli.main(command(wave, *options, model="whisper.zip", out=out)) == 0
    assert len(capsys.readouterr().out.splitlines()[0]) > len("a: ")
    (copy,) = (out / "audio").iterdir()
    assert soundfile.info(copy).samplerate == 16000
    ran = read_run_options(out / "decoding.jsonl")
    assert (ran["search"], ran["ctc_weight"]) == ("explicit_length", "0.0")


def test_a_translator_of_texts_is_refused(packed, tmp_path, wav_scp, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(command(tmp_path / "utt1.wav", model=packed("mt")))
    assert stop.value.code == 2
    assert "a model of mt, which translates texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, message",
    [
        (["--longest", "0.5"], "longest is 0.5: it is 1 s or longer"),
        (["--beam_size", "0"], "beam_size must be a whole number of 1 or more"),
        (
            ["--formats", "vtt", "--times", "false"],
            "formats: vtt holds the time of each word",
        ),
        (["--segments", "wav.scp"], "segments: what to transcribe is named as FILE"),
        (["--key_file", "wav.scp"], "key_file: what to transcribe is named as FILE"),
        (
            ["--data_path_and_name_and_type", "wav.scp,speech,sound"],
            "data_path_and_name_and_type: what to transcribe is named as FILE",
        ),
        (["--model_tag", "some/model"], "model_tag: the model is named by --model"),
        (["--tool", "s2t"], "is a model of asr, and not of s2t"),
        ([""], "argument FILE: the name is empty"),
        (["--output_dir", ""], "argument --output_dir: the name is empty"),
        (["gone.wav"], "FILE: there is no file or folder gone.wav"),
        (["a" * 300], f"FILE: there is no file or folder {'a' * 300}"),
        (["/dev/null"], "FILE: /dev/null is a pipe or a device, and files are read mo"),
        (["cache"], "FILE: there is no audio in the folder cache"),
    ],
)
def test_mistakes(options, message, packed, tmp_path, wav_scp, capsys, monkeypatch):
    monkeypatch.setattr(drop_in, "decode_here", None)
    model = packed("asr")
    (tmp_path / "cache").mkdir()
    with pytest.raises(SystemExit) as stop:
        # options stand before the files, so that more can follow
        _, wave, *rest = command(tmp_path / "utt1.wav", model=model)
        cli.main(["transcribe", *rest, wave, *options])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_nothing_but_broken_files(packed, tmp_path, capsys):
    (tmp_path / "broken.wav").write_text("no audio")
    assert cli.main(command(tmp_path / "broken.wav", model=packed("asr"))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"failed: {tmp_path}/broken.wav is no audio" in err


def test_a_folder_in_use_is_left_as_it_is(holder, packed, tmp_path, wav_scp, capsys):
    """Copies and lists are those of the run that is at work there."""
    out = tmp_path / "out"  # of the holder
    (out / "transcribe.scp").write_text("of the other run")
    with pytest.raises(SystemExit) as stop:
        cli.main(command(tmp_path / "utt1.wav", model=packed("asr"), out=out))
    assert stop.value.code == 2
    said = f"error: output_dir {out} is in use by another run ("
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert files(out) == {"transcribe.scp": b"of the other run"}


def test_threads_wait_passively_before_torch_is_loaded(
    packed, tmp_path, wav_scp, monkeypatch
):
    monkeypatch.setenv("OMP_WAIT_POLICY", "")  # so that what is set is taken back
    monkeypatch.delenv("OMP_WAIT_POLICY")
    found = []

    def cut(*_):  # the detector of silence loads torch
        found.append(os.environ.get("OMP_WAIT_POLICY"))
        return []

    monkeypatch.setattr(transcribe, "cut_at_silences", cut)
    wave = tmp_path / "utt1.wav"
    assert cli.main(command(wave, model=packed("asr"), out=tmp_path / "o")) == 0
    assert found == ["passive"]


def test_a_reader_who_goes_is_no_error_of_the_run(
    packed, tmp_path, wav_scp, monkeypatch, capsys
):
    def gone(*_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(transcribe, "_show", gone)
    wave, out = tmp_path / "utt1.wav", tmp_path / "o"
    options = ["--beam_size", "2", "--maxlenratio", "-3"]
    with pytest.raises(BrokenPipeError):
        transcribe.main(command(wave, *options, model=packed("asr"), out=out)[1:])
    assert "error" not in capsys.readouterr().err
    assert (out / "recordings" / "1best_recog" / "text").is_file()


def results(folder: Path) -> set[str]:
    """Return the names of the result files in a folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*best_recog/**/*")}


def test_nothing_of_the_audio_before_is_left(packed, tmp_path, capsys):
    """Where the file of that name is none any more; as it was, it has its text again."""
    out, audio = tmp_path / "o", tmp_path / "audio"
    audio.mkdir()
    shutil.copy(speech(BOOTS), audio / "talk.flac")
    options = ["--formats", "json,trn", "--beam_size", "2", "--maxlenratio", "-3"]
    again = command(audio, *options, model=packed("asr"), out=out)
    assert cli.main(again) == 0
    before = results(out)
    assert "recordings/1best_recog/text.jsonl" in before
    (out / "1best_recog" / "notes").write_text("the user's own")
    whole = (audio / "talk.flac").read_bytes()
    (audio / "talk.flac").write_text("no audio")
    assert cli.main(again) == 1
    assert results(out) == {"1best_recog/notes"}
    (audio / "talk.flac").write_bytes(whole)
    assert cli.main(again) == 0
    assert results(out) == before | {"1best_recog/notes"}


def test_other_audio_of_the_same_size_is_decoded(packed, tmp_path):
    """As it is to be decoded, with no copy: what lies there now is noticed."""
    wave, out = tmp_path / "talk.wav", tmp_path / "o"
    options = ["--beam_size", "2", "--maxlenratio", "-3"]
    again = command(wave, *options, model=packed("asr"), out=out)
    noted = []
    for second in (1, 1, 2):
        soundfile.write(wave, np.full(RATE, 0.1 * second), RATE)
        os.utime(wave, (second, second))
        assert cli.main(again) == 0
        *_, line = (out / JOURNAL).read_text().splitlines()
        key, _, data, _ = json.loads(line)
        assert key == "talk"
        noted.append(data)
    assert noted[0] == noted[1] != noted[2]


def test_a_refused_run_leaves_all_as_it_is(packed, tmp_path, capsys):
    """Copies and lists, too: they are of what has been decoded."""
    out, audio, other = tmp_path / "o", tmp_path / "a.ogg", tmp_path / "other" / "a.ogg"
    other.parent.mkdir()
    for path, speed in ((audio, 1), (other, 2)):
        wave, _ = soundfile.read(speech(BOOTS))
        soundfile.write(path, wave[::speed], RATE)
    options = ["--beam_size", "2", "--maxlenratio", "-3"]
    model = packed("asr")
    assert cli.main(command(audio, *options, model=model, out=out)) == 0
    before = files(out)
    assert "transcribe.scp" in before
    assert any(name.startswith("audio/a-") for name in before)
    with pytest.raises(SystemExit) as stop:
        cli.main(command(other, *options, "--beam_size", "3", model=model, out=out))
    assert stop.value.code == 2
    assert "beam_size was 2, is 3" in capsys.readouterr().err
    assert files(out) == before


def test_interrupted_over_other_audio(packed, tmp_path, interrupted_after):
    """No text of the audio before stands as that of a recording."""
    out, audio = tmp_path / "o", tmp_path / "audio"
    audio.mkdir()
    for name in "ab":
        shutil.copy(speech(BOOTS), audio / f"{name}.flac")
    options = ["--formats", "json,srt", "--beam_size", "2", "--maxlenratio", "-3"]
    model = packed("asr")
    assert cli.main(command(audio, *options, model=model, out=out)) == 0
    before = results(out)
    (tmp_path / "other").mkdir()
    for name in "ab":
        shutil.copy(speech(WALTER), tmp_path / "other" / f"{name}.flac")
    again = command(tmp_path / "other", *options, model=model, out=out)
    with interrupted_after(1):
        transcribe.main(again[1:])
    assert not {name for name in results(out) if name.startswith("recordings/")}
    assert cli.main(again) == 0
    assert results(out) == before


# --- Weights of what the model has not ------------------------------------------------


@pytest.mark.parametrize(
    "conf, has_lm, options, expected",
    [
        ({}, False, [], (0.5, 0.0)),
        ({"ctc_weight": 0.3}, True, [], (0.5, 1.0)),
        ({"ctc_weight": 0.0}, False, [], (0.0, 0.0)),
        ({"ctc_weight": 0.0}, False, ["--ctc_weight", "0.3"], (0.3, 0.0)),
        ({"ctc_weight": 0.0}, False, ["--config", "decode.yaml"], (0.2, 0.4)),
    ],
)
def test_weights(conf, has_lm, options, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decode.yaml").write_text("ctc_weight: 0.2\nlm_weight: 0.4\n")
    own = argparse.Namespace(output_dir=Path("out"), model="tag")
    args = transcribe.decoding_options(espnet_tools.ASR, own, ["a.wav", *options])
    transcribe._weigh_what_is_there(args, {"model_conf": conf}, has_lm, options)
    assert (args.ctc_weight, args.lm_weight) == expected


def test_subtitles_are_left_out_and_come_back(packed, tmp_path, wav_scp, monkeypatch):
    """Nothing is decoded for it: results that have times keep them."""
    wave, out, model = tmp_path / "utt1.wav", tmp_path / "o", packed("asr")
    options = ["--beam_size", "2", "--maxlenratio", "-3", "--ctc_weight", "0.3"]
    first = command(wave, *options, "--formats", "srt", model=model, out=out)
    assert cli.main(first) == 0
    before = results(out)
    assert "recordings/1best_recog/srt/utt1.srt" in before
    monkeypatch.setattr(drop_in, "decode_here", None)
    other = command(wave, *options, "--formats", "json", model=model, out=out)
    assert cli.main(other) == 0
    assert {n for n in results(out) if "srt" in n or "jsonl" in n} == {
        "1best_recog/text.jsonl",
        "recordings/1best_recog/text.jsonl",
    }
    assert cli.main(first) == 0
    assert results(out) == before


def test_formats_that_need_times_bring_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decode.yaml").write_text("formats: [json, srt]\n")
    own = argparse.Namespace(output_dir=Path("out"), model="tag")

    def times(*options):
        words = ["a.wav", *options]
        return transcribe.decoding_options(espnet_tools.ASR, own, words).times

    assert times() is False
    assert times("--formats", "json,trn") is False
    assert times("--formats", "json,ctm") is True
    assert times("--config", "decode.yaml") is True
    assert times("--formats", "srt", "--times", "attention") == "attention"


# --- On the screen --------------------------------------------------------------------


def test_times_are_shown_where_they_are_known(capsys):
    rows = {
        name: {
            "1best_recog/token": "",
            "1best_recog/score": "-1",
            "1best_recog/text": text,
            "1best_recog/word_times": times,
        }
        for name, text, times in (
            ("x-0", "once upon", "0.1-0.4 0.5-1.6"),
            ("x-1", "a time", "0.0-0.2 0.2-0.9"),
            ("y-0", "", ""),
        )
    }
    segments = {
        "x-0": Segment("x", "x.wav", 0.5, 2.5),
        "x-1": Segment("x", "x.wav", 61.0, 62.0),
        "y-0": Segment("y", "y.wav", 0.0, 1.0),
    }
    transcribe._show(
        argparse.Namespace(pieces=segments, recordings=[]), Path("o"), rows
    )
    assert capsys.readouterr().out == (
        "x:\n  00:00:00.600 --> 00:00:02.100  once upon\n"
        "  00:01:01.000 --> 00:01:02.000  a time\ny: \n"
        "in o/recordings/1best_recog\n"
    )


# --- Files ----------------------------------------------------------------------------


def test_names(tmp_path):
    paths = [
        tmp_path / name
        for name in ("a b.wav", "in/a.mp3", "in/a.wav", "one/x.WAV", "two/x.WAV")
    ]
    for path in (*paths, tmp_path / "in" / "text"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    prefix = "-".join(tmp_path.parts[1:])
    names = {
        "a-b": paths[0],
        "a.mp3": paths[1],
        "a.wav": paths[2],
        f"{prefix}-one-x.WAV": paths[3],
        f"{prefix}-two-x.WAV": paths[4],
    }
    assert named_audio([tmp_path], OUT) == names
    assert named_audio([*paths[::-1], tmp_path / "in"], OUT) == names
    # a file that is named itself can end in anything
    assert named_audio([tmp_path / "in" / "text"], OUT) == {
        "text": tmp_path / "in" / "text"
    }


def test_copies_of_an_earlier_run_are_no_audio(tmp_path):
    for name in ("a.m4a", f"out/audio/{COPY}", "other/out/b.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = named_audio([tmp_path], tmp_path / "out")
    assert list(found) == ["a", "b"]
    assert found["a"] == tmp_path / "a.m4a"


def test_results_of_other_runs_are_no_audio_of_a_folder(tmp_path):
    of_runs = (f"old/audio/{COPY}", "old/1best_recog/b.flac")
    for name in ("a.wav", *of_runs, "music/a.flac"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "old" / JOURNAL).touch()
    found = named_audio([tmp_path], tmp_path / "new")
    assert set(found.values()) == {tmp_path / "a.wav", tmp_path / "music" / "a.flac"}


@pytest.mark.parametrize("results", [".", "day2", "new"])
def test_own_audio_in_an_output_folder_is_transcribed(results, tmp_path):
    own = ["a.wav", "day2/b.wav", "audio/c.wav", "recordings/d.wav", "audio/e-12.flac"]
    out = tmp_path / results
    written = [f"audio/{COPY}", "decoding.jsonl", "decoding.log", "decoding.formats"]
    written += ["transcribe.scp", "transcribe.segments"]
    written += ["1best_recog/text.trn", "recordings/1best_recog/text"]
    for path in (*(tmp_path / name for name in own), *(out / name for name in written)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = named_audio([tmp_path], out)
    assert set(found.values()) == {tmp_path / name for name in own}
    assert left_out([tmp_path], out) == {}


def test_a_name_in_another_encoding(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    path.touch()
    assert named_audio([path], OUT) == {"caf?": path}


def test_what_a_folder_holds_beside_audio_is_counted(tmp_path):
    folder, results = tmp_path / "folder", tmp_path / "folder" / "out"
    results.mkdir(parents=True)
    for name in (
        "a.wav",
        "b.WEBM",
        "c.txt",
        "d.TXT",
        "e",
        ".hidden",
        "out/transcribe.scp",
    ):
        (folder / name).touch()
    (tmp_path / "named.xyz").touch()
    named = [folder, tmp_path / "named.xyz"]
    assert left_out(named, results) == {".txt": 2, "without an ending": 1}
    assert {file.name for file in named_audio(named, results).values()} == {
        *("a.wav", "b.WEBM", "named.xyz")
    }


def test_names_that_cannot_be_told_apart(tmp_path):
    for name in ("a b.wav", "a-b.wav"):
        (tmp_path / name).touch()
    with pytest.raises(OptionError, match=r"a b\.wav and .*a-b\.wav would have the sa"):
        named_audio([tmp_path], OUT)


@pytest.fixture
def tone():
    """A second of 440 Hz, at 8 kHz."""
    return 0.25 * np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)


def test_audio_is_mixed_and_resampled(tone, tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([tone * 2, tone * 0], axis=1), 8000, subtype="FLOAT")
    copy, done = plain_audio(path, 16000, tmp_path, "audio/a")
    assert list((tmp_path / "audio").iterdir()) == [copy]
    assert re.fullmatch("a-[0-9a-f]{8}.flac", copy.name)
    assert done == "2 channels mixed to one, resampled from 8000 to 16000 Hz"
    samples, rate = soundfile.read(copy)
    assert (rate, len(samples)) == (16000, 16000)
    wanted = 0.25 * np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    middle = slice(1000, -1000)  # at its ends a tone that breaks off rings
    np.testing.assert_allclose(samples[middle], wanted[middle], atol=2e-3)


def test_audio_that_is_as_it_has_to_be_stays(tone, tmp_path):
    for name in ("a.wav", "a.flac"):
        soundfile.write(tmp_path / name, tone, 8000)
        path = tmp_path / name
        assert plain_audio(path, 8000, tmp_path, "x") == (path, "")
    assert not list(tmp_path.glob("x*"))


def test_a_name_that_wav_scp_cannot_hold(tone, tmp_path):
    """Kaldi takes what ends in a bar for a command."""
    path = tmp_path / "rm -r x |"
    soundfile.write(path, tone, 8000, format="WAV")
    copy, done = plain_audio(path, 8000, tmp_path, "x")
    assert copy.name.startswith("x-") and done == "WAV written as FLAC"


def test_a_copy_is_made_once_and_anew_of_other_audio(tone, tmp_path):
    """By another name, so that what was decoded of the older one does not count."""
    path = tmp_path / "a.wav"
    soundfile.write(path, tone, 8000)

    def copied(path: Path, rate: int) -> Path:
        copy, _ = plain_audio(path, rate, tmp_path, "copies/a")
        # of the others nothing is left
        assert list((tmp_path / "copies").iterdir()) == [copy]
        return copy

    copy = copied(path, 16000)
    made = copy.stat().st_mtime_ns
    assert copied(path, 16000) == copy
    assert copy.stat().st_mtime_ns == made
    soundfile.write(path, tone[:4000], 8000)
    shorter = copied(path, 16000)
    assert shorter != copy and soundfile.info(shorter).frames == 8000
    slower = copied(path, 4000)
    assert slower != shorter and soundfile.info(slower).samplerate == 4000
    (tmp_path / "b").mkdir()
    soundfile.write(tmp_path / "b" / "a.wav", tone, 8000)
    assert copied(tmp_path / "b" / "a.wav", 4000) != slower


def test_a_copy_of_audio_of_the_same_size_is_made_anew(tone, tmp_path):
    """It tells itself from the older one by a time of change of ten milliseconds later."""
    path = tmp_path / "a.wav"
    copies = []
    for change, samples in enumerate([tone, tone[::-1]]):
        soundfile.write(path, samples, 8000)
        os.utime(path, ns=(0, 10**18 + change * 10**7))
        copies.append(plain_audio(path, 16000, tmp_path, "copy")[0])
    assert copies[0] != copies[1]
    assert list(tmp_path.glob("copy*")) == copies[1:]


def test_links_that_lead_nowhere_are_named_and_cost_no_other(tone, tmp_path):
    audio = tmp_path / "audio"
    audio.mkdir()
    soundfile.write(audio / "a.wav", tone, 8000)
    (audio / "gone.wav").symlink_to(tmp_path / "nothing")
    (audio / "round.wav").symlink_to("round.wav")
    (audio / "folder.wav").symlink_to(tmp_path)
    found = named_audio([audio], OUT)
    assert list(found) == ["a", "gone", "round"]
    ready, failures = prepared(found, 8000, tmp_path / "out")
    assert ready == {"a": audio / "a.wav"}
    gone, circle = failures
    assert gone == f"{audio}/gone.wav cannot be read: No such file or directory"
    assert circle.startswith(f"{audio}/round.wav cannot be read: ")


def test_audio_that_is_cut_off_is_named(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", tone, 8000)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(whole[:8000])
    with pytest.raises(AudioError, match=f"{tmp_path}/a.wav: cut off"):
        plain_audio(tmp_path / "a.wav", 16000, tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_a_full_disk_is_named(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.tile(tone, 20), 8000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, hard))
    try:
        with pytest.raises(OSError, match=rf"{tmp_path}/a-\w+\.flac cannot be written"):
            plain_audio(tmp_path / "a.wav", 16000, tmp_path, "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


@pytest.fixture
def ffmpeg(tmp_path, monkeypatch):
    """Return what puts a script in the place of ffmpeg; none is there before."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def ffmpeg(script):
        path = tmp_path / "bin" / "ffmpeg"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return ffmpeg


def test_what_soundfile_does_not_read_ffmpeg_reads(tone, ffmpeg, tmp_path):
    (tmp_path / "a.m4a").write_bytes(b"some other format")
    pcm = (tone * 32768).astype("<i2")
    (tmp_path / "pcm").write_bytes(pcm.tobytes())
    ffmpeg(f'echo "$@" >{tmp_path}/options; exec /bin/cat {tmp_path}/pcm')
    copy, done = plain_audio(tmp_path / "a.m4a", 8000, tmp_path, "a")
    assert done == "read by ffmpeg, as one channel of 8000 Hz"
    samples, rate = soundfile.read(copy, dtype="int16")
    assert rate == 8000
    np.testing.assert_array_equal(samples, pcm)
    options = (tmp_path / "options").read_text()
    assert f"-i file:{tmp_path}/a.m4a " in options
    assert "-ac 1 -ar 8000 -f s16le pipe:1" in options


@pytest.mark.parametrize(
    "script, message",
    [
        (None, "and ffmpeg, which reads more, is not installed"),
        (
            "echo first >&2; echo 'Invalid data' >&2; exit 1",
            r"a\.m4a is no audio that soundfile or ffmpeg can read to its end "
            r"\(Invalid data\)",
        ),
        # as of a file that is cut off
        (
            "head -c 8000 /dev/zero; echo 'File ended prematurely' >&2",
            r"a\.m4a is no audio .* to its end \(File ended prematurely\)",
        ),
        ("exit 0", "holds no samples"),
    ],
)
def test_what_nothing_reads(script, message, ffmpeg, tmp_path):
    (tmp_path / "a.m4a").write_bytes(b"no audio")
    if script is not None:
        ffmpeg(script)
    with pytest.raises(AudioError, match=message):
        plain_audio(tmp_path / "a.m4a", 8000, tmp_path, "a")
    assert not list(tmp_path.glob("*.flac")) + list(tmp_path.glob(".draft*"))


needs_ffmpeg = needs_programs(shutil.which("ffmpeg") is not None, "ffmpeg")


@needs_ffmpeg
def test_sound_that_begins_after_the_picture(tmp_path):
    """Half a second of a tone that begins at 2 s of a film, and again at 4 s."""
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE // 2) / RATE)
    soundfile.write(tmp_path / "a.wav", tone, RATE)
    film = ["-f", "lavfi", "-i", "color=size=16x16:rate=5:duration=6"]
    sound = ["-itsoffset", "2", "-i", str(tmp_path / "a.wav")]
    # the second half of the tone comes 2 s later than it should
    late = ["-af", "asetpts='PTS+gte(T,2.25)*2/TB'", "-shortest"]
    make = ["ffmpeg", "-nostdin", "-v", "error", *film, *sound, "-map", "0:v"]
    make += ["-map", "1:a", "-c:a", "libopus", *late, str(tmp_path / "film.mkv")]
    subprocess.run(make, check=True)
    (path, _) = plain_audio(tmp_path / "film.mkv", RATE, tmp_path, "film")
    samples, _ = soundfile.read(path)
    loud = np.flatnonzero(np.abs(samples) > 0.2) / RATE
    first, second = loud[loud < 3], loud[loud > 3]
    assert (first.min(), first.max()) == pytest.approx((2.0, 2.25), abs=0.05)
    assert (second.min(), second.max()) == pytest.approx((4.25, 4.5), abs=0.05)


@needs_ffmpeg
@pytest.mark.parametrize("name", ["a.m4a", "a.mka", "a.wma", "a.aac", "a.caf"])
def test_half_of_what_ffmpeg_reads(name, tmp_path):
    """ffmpeg itself makes half the audio of it, and mostly ends with status 0."""
    wave = 0.1 * np.random.default_rng(0).standard_normal(80000)
    soundfile.write(tmp_path / "a.wav", wave, 8000)
    make = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(tmp_path / "a.wav")]
    path = tmp_path / name
    start = ["-movflags", "+faststart"] if name == "a.m4a" else []
    subprocess.run([*make, *start, str(path)], check=True)
    copy, _ = plain_audio(path, 16000, tmp_path, "whole")
    assert soundfile.info(copy).duration == pytest.approx(10, abs=0.3)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(AudioError, match="to its end|cut off"):
        plain_audio(path, 16000, tmp_path, "half")
    assert not list(tmp_path.glob("half*"))


@needs_ffmpeg
@pytest.mark.parametrize("end", ["#EXT-X-ENDLIST\n", ""], ids=["ended", "going on"])
def test_a_playlist_is_no_audio(end, tone, tmp_path):
    """ffmpeg would read the file that it names, or wait for more of it."""
    soundfile.write(tmp_path / "secret.wav", tone, 8000)
    make = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(tmp_path / "secret.wav")]
    subprocess.run([*make, str(tmp_path / "secret.ts")], check=True)
    (tmp_path / "a.mp4").write_text(
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.0,\n"
        f"secret.ts\n{end}"
    )
    (tmp_path / "b.mp4").write_text(f"ffconcat version 1.0\nfile secret.wav\n{end}")
    for name in ("a.mp4", "b.mp4"):
        with pytest.raises(AudioError, match=f"{name} is no audio that soundfile or"):
            plain_audio(tmp_path / name, 16000, tmp_path, "a")


@needs_ffmpeg
def test_ffmpeg_itself(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([tone, tone], axis=1), 8000)
    make = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(tmp_path / "a.wav")]
    subprocess.run([*make, str(tmp_path / "a.m4a")], check=True)
    copy, _ = plain_audio(tmp_path / "a.m4a", 16000, tmp_path, "a")
    samples, rate = soundfile.read(copy)
    assert rate == 16000
    spectrum = np.abs(np.fft.rfft(samples[4000:12000]))
    assert np.argmax(spectrum) * 16000 / 8000 == pytest.approx(440, abs=2)


def test_folders_that_are_linked_to_are_searched_once(tmp_path):
    """A link may lead in a circle, or to a folder that is there already."""
    folder, elsewhere = tmp_path / "in", tmp_path / "talks"
    (folder / "day1").mkdir(parents=True)
    elsewhere.mkdir()
    for path in (folder / "day1" / "a.wav", elsewhere / "b.wav"):
        path.touch()
    (folder / "talks").symlink_to(elsewhere)
    (folder / "again").symlink_to(folder / "day1")
    (elsewhere / "back").symlink_to(folder)
    found = named_audio([folder], OUT)
    assert sorted(path.name for path in found.values()) == ["a.wav", "b.wav"]
