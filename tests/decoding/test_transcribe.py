"""``espnet-lenbias transcribe``: from audio files of any kind to texts."""

import argparse
import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from espnet2.main_funcs.pack_funcs import pack
from scipy.signal import resample_poly

from espnet_lenbias import Speech2Text, cli
from espnet_lenbias.decoding import drop_in, transcribe, voice
from espnet_lenbias.options import espnet_tools
from espnet_lenbias.options.run_journal import JOURNAL, read_run_options
from espnet_lenbias.options.segments import Segment
from tests.bundled import bundled
from tests.conftest import RATE
from tests.decoding.made import Loudness
from tests.docs.workplace import BOOTS, TEXTS, WALTER, speech

NOT_RESULTS = (".lock", "decoding.jsonl", "decoding.log")


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


# --- With tiny models -----------------------------------------------------------------


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


def test_a_model_is_named_as_it_was_given(tmp_path, capsys):
    """By the option of this command, of which `model_tag` is none."""
    (tmp_path / "config.yaml").write_text("a: 1\n")
    soundfile.write(tmp_path / "a.wav", [0.0] * 16000, 16000)
    for model, message in (
        (tmp_path / "config.yaml", "config.yaml is not a zip archive"),
        (tmp_path, f"{tmp_path} is a folder"),
        (tmp_path / "gone.zip", f"there is no file {tmp_path / 'gone.zip'}"),
    ):
        for tool in ("transcribe", "explain"):
            with pytest.raises(SystemExit) as stop:
                cli.main([tool, str(tmp_path / "a.wav"), "--model", str(model)])
            assert stop.value.code == 2
            error = capsys.readouterr().err.splitlines()[-1]
            assert (
                f"espnet-lenbias {tool}: error: model: " in error and message in error
            )


def test_the_folder_that_a_decode_config_names(
    packed, tmp_path, wav_scp, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("decode.yaml").write_text("output_dir: there\nbeam_size: 2\nctc_weight: 0.0\n")
    line = ["transcribe", "utt1.wav", "--config", "decode.yaml"]
    line += ["--model", packed("asr")]
    assert cli.main(line) == 0
    assert (tmp_path / "there" / "recordings" / "1best_recog" / "text").is_file()
    assert cli.main([*line, "--output_dir", "here"]) == 0
    assert (tmp_path / "here" / "recordings" / "1best_recog" / "text").is_file()
    assert not (tmp_path / "transcripts").exists()
    Path("decode.yaml").write_text("output_dir: ''\n")
    with pytest.raises(SystemExit) as stop:
        cli.main(line)
    assert stop.value.code == 2
    assert "error: output_dir: the name is empty" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["transcribe.scp", "transcribe.segments"])
def test_a_persons_own_lists_stay(name, packed, tmp_path, wav_scp, capsys):
    own = tmp_path / "out" / name
    own.parent.mkdir()
    own.write_text("a list of my own\n")
    line = command(tmp_path / "utt1.wav", "--ctc_weight", "0.0", model=packed("asr"))
    with pytest.raises(SystemExit) as stop:
        cli.main(line)
    assert stop.value.code == 2
    message = f"error: output_dir: {own} stands where a list of this program goes"
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert own.read_text() == "a list of my own\n"
    own.unlink()
    assert cli.main(line) == cli.main(line) == 0  # over its own lists


def test_nothing_but_broken_files(packed, tmp_path, capsys):
    (tmp_path / "broken.wav").write_text("no audio")
    assert cli.main(command(tmp_path / "broken.wav", model=packed("asr"))) == 1
    out, err = capsys.readouterr()
    results = f"{tmp_path}/out/recordings/1best_recog"
    assert out == f"broken: \nin {results}\n"
    assert f"failed: {tmp_path}/broken.wav is no audio" in err
    assert Path(results, "text").read_text() == "broken \n"


def test_nothing_but_silence_and_a_broken_file(
    packed, tmp_path, wav_scp, monkeypatch, capsys
):
    """They have what they have beside a good file, of which nothing is left."""
    model, out = packed("asr"), tmp_path / "out"
    monkeypatch.setattr(voice, "load_detector", Loudness)
    soundfile.write(tmp_path / "silent.wav", np.zeros(30 * RATE), RATE)
    (tmp_path / "broken.wav").write_text("no audio")
    names = ("silent.wav", "broken.wav")
    options = ["--formats", "json,srt,trn", "--times", "true", "--ctc_weight", "0.3"]
    options += ["--maxlenratio", "-3"]
    line = command(tmp_path / "silent.wav", *options, model=model, out=out)
    line.insert(2, str(tmp_path / "broken.wav"))
    assert cli.main([*line[:1], str(tmp_path / "utt1.wav"), *line[1:]]) == 1
    beside = files(out)
    assert cli.main(line) == 1
    alone = files(out)
    for name in ("text", "text.jsonl", "text.trn"):
        place = f"recordings/1best_recog/{name}"
        ours = [x for x in beside[place].splitlines() if b"utt1" not in x]
        assert alone[place].splitlines() == ours != []
    of_files = {f"recordings/1best_recog/srt/{Path(name).stem}.srt" for name in names}
    assert {name for name in alone if name.endswith(".srt")} == of_files
    assert not any(alone[name] for name in of_files)


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
    recordings = out / "recordings" / "1best_recog"
    assert (recordings / "text").read_text() == "talk \n"
    assert json.loads((recordings / "text.jsonl").read_text())["text"] is None
    of_pieces = {name for name in results(out) if not name.startswith("recordings")}
    empty = {"1best_recog/text.jsonl", "1best_recog/text.trn"}
    assert of_pieces == {"1best_recog/notes"} | empty
    assert not any((out / name).read_text() for name in empty)
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


@pytest.mark.parametrize("command", ["transcribe", "explain"])
@pytest.mark.parametrize("option", ["--formats", "--config", "--search"])
def test_an_option_without_its_value(command, option, capsys):
    """The command says so, not a parser that looked for something else before."""
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--model", str(bundled("asr_transformer")), option])
    assert stop.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"usage: espnet-lenbias {command} ")
    message = f"argument {option}: expected one argument; see --help"
    assert said[-1] == f"espnet-lenbias {command}: error: {message}"
