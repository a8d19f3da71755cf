"""Where recordings are cut: by probabilities of speech that are written down here."""

import os
import sys
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from espnet_lenbias import cli
from espnet_lenbias.decoding import voice
from espnet_lenbias.decoding.cutting import CutOptions, cut
from espnet_lenbias.decoding.segment import segment_line
from espnet_lenbias.errors import AudioError
from tests.decoding.made import Loudness
from tests.docs import workplace

# A frame is a tenth of a second.
SPEECH, SILENCE = 0.9, 0.1


def _cut(*parts, length=None, margin=0.2, **options):
    """Cut at probabilities, given as (frames, probability) each."""
    probabilities = np.concatenate([np.full(n, p) for n, p in parts])
    length = len(probabilities) / 10 if length is None else length
    options = CutOptions(margin=margin, **options)
    pieces = cut(probabilities, 0.1, length, options)
    return [(round(start, 3), round(end, 3)) for start, end in pieces]


def test_speech_between_silences():
    """With a margin around it."""
    found = _cut((10, SILENCE), (20, SPEECH), (10, SILENCE), (5, SPEECH), (5, SILENCE))
    assert found == [(0.8, 3.2), (3.8, 4.7)]


def test_a_short_silence_is_no_place_to_cut():
    parts = (10, SPEECH), (2, SILENCE), (10, SPEECH)
    assert _cut(*parts, silence=0.3) == [(0.0, 2.2)]
    assert _cut(*parts, silence=0.2, margin=0.0) == [(0.0, 1.0), (1.2, 2.2)]


def test_margins_meet_in_the_middle():
    parts = (10, SPEECH), (4, SILENCE), (10, SPEECH)
    assert _cut(*parts, margin=0.5) == [(0.0, 1.2), (1.2, 2.4)]


def test_where_the_detector_hesitates_speech_goes_on_and_none_begins():
    assert _cut((5, SPEECH), (9, 0.4), (5, SPEECH), (9, SILENCE), (9, 0.4)) == [
        (0.0, 2.1)
    ]


def test_a_long_piece_is_cut_where_there_is_least_speech():
    """Not in the first half of what a piece may have, where there would be less."""
    parts = (10, SPEECH), (1, 0.4), (24, SPEECH), (1, 0.5), (14, SPEECH)
    found = _cut(*parts, longest=4.0, margin=0.0)
    assert len(found) == 2
    assert found[0][0] == 0.0
    assert found[1] == (found[0][1], 5.0)
    assert found[0][1] == pytest.approx(3.5, abs=0.25)


@pytest.mark.parametrize("longest", [1.0, 3.0, 20.0])
def test_no_piece_is_too_long_and_no_speech_is_left_out(longest):
    probabilities = np.random.default_rng(0).random(500)
    pieces = cut(probabilities, 0.1, 50.0, CutOptions(longest))
    assert max(end - start for start, end in pieces) <= longest + 1e-6
    for (_, end), (start, _) in pairwise(pieces):
        assert start >= end - 1e-9
    for frame in np.flatnonzero(probabilities > 0.5):
        middle = frame / 10 + 0.05
        assert any(start <= middle <= end for start, end in pieces)


def test_a_scrap_is_given_some_of_the_silence_around_it():
    """A frame of speech alone is less than encoders can read."""
    alone = (10, SILENCE), (1, SPEECH), (10, SILENCE)
    assert _cut(*alone, margin=0.0) == [(0.9, 1.2)]
    beside = (10, SPEECH), (1, SILENCE), (1, SPEECH), (10, SILENCE)
    pieces = _cut(*beside, silence=0.1, margin=0.0)
    assert pieces == [(0.0, 1.0), (1.05, 1.3)]


def test_the_end_is_that_of_the_recording():
    """The last frame is filled up with silence."""
    assert _cut((10, SILENCE), (10, SPEECH), length=1.95) == [(0.8, 1.95)]


@pytest.mark.parametrize("length", [1.9, 1.85])
def test_speech_behind_the_end_of_the_recording(length):
    """The detector can take what fills the last frame for it."""
    assert _cut((19, SILENCE), (1, SPEECH), length=length) == []


@pytest.mark.parametrize("parts", [[(0, SPEECH)], [(50, SILENCE)]])
def test_nothing_but_silence(parts):
    assert _cut(*parts) == []


def test_names_are_sorted_as_the_times_are():
    lines = [segment_line("r", *times) for times in ((9.5, 10.004), (100.25, 101.0))]
    assert lines == [
        "r-0000950-0001000 r 9.50 10.00\n",
        "r-0010025-0010100 r 100.25 101.00\n",
    ]
    assert sorted(lines) == lines


@pytest.mark.parametrize("rate, channels", [(16000, 1), (44100, 2)])
def test_a_recording_is_cut_block_by_block(rate, channels, tmp_path, monkeypatch):
    """Tones of 3 s at 1, 31 and 50 s, the second of them across the end of a block."""
    seconds = np.arange(60 * rate) / rate
    loud = sum((s <= seconds) & (seconds < s + 3) for s in (1, 31, 50))
    wave = 0.5 * loud * np.sin(2 * np.pi * 440 * seconds)
    wave = np.repeat(wave[:, None], channels, axis=1)
    soundfile.write(tmp_path / "a.wav", wave, rate)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path / 'a.wav'}\n")
    monkeypatch.setattr(voice, "load_detector", Loudness)
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    assert cli.main([*command, "--margin", "0.2"]) == 0
    lines = [x.split() for x in (tmp_path / "segments").read_text().splitlines()]
    assert [columns[1] for columns in lines] == ["a"] * 3
    times = [float(value) for columns in lines for value in columns[2:]]
    assert times == pytest.approx([0.8, 4.2, 30.8, 34.2, 49.8, 53.2], abs=0.04)


@pytest.mark.parametrize(
    ("name", "message"),
    [("b.wav", "holds NaN or infinity"), ("b.flac", "cannot be read to its end")],
)
def test_a_spoilt_recording_costs_no_other(
    name, message, tmp_path, monkeypatch, capsys
):
    wave = np.full(4 * 16000, 0.5)
    soundfile.write(tmp_path / "a.wav", wave, 16000)
    spoilt = tmp_path / name
    if spoilt.suffix == ".wav":
        wave[1000] = np.nan
        soundfile.write(spoilt, wave, 16000, subtype="FLOAT")
    else:  # half of it
        soundfile.write(spoilt, np.random.default_rng(0).random(64000), 16000)
        spoilt.write_bytes(spoilt.read_bytes()[: spoilt.stat().st_size // 2])
    (tmp_path / "wav.scp").write_text(f"b {spoilt}\na {tmp_path / 'a.wav'}\n")
    monkeypatch.setattr(voice, "load_detector", Loudness)
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    assert cli.main(command) == 1
    said = capsys.readouterr().err
    assert f"failed: b: {spoilt} {message}" in said
    assert "no speech" not in said
    assert (tmp_path / "segments").read_text() == "a-0000000-0000400 a 0.00 4.00\n"


def test_recordings_that_cannot_be_read_cost_no_other(tmp_path, monkeypatch, capsys):
    """Found before any is cut: one is gone, one cut off, one a command."""
    soundfile.write(tmp_path / "a.wav", np.full(64000, 0.5), 16000)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "b.wav").write_bytes(whole[: len(whole) // 2])
    files = {"b": tmp_path / "b.wav", "c": "gone.wav", "d": "cat x |"}
    lines = [f"{key} {file}\n" for key, file in files.items()]
    (tmp_path / "wav.scp").write_text("".join([*lines, f"a {tmp_path / 'a.wav'}\n"]))
    monkeypatch.setattr(voice, "load_detector", Loudness)
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    assert cli.main(command) == 1
    failed = capsys.readouterr().err.splitlines()
    assert [line.partition("failed: ")[2] for line in failed] == [
        f"b: {tmp_path}/b.wav: cut off: its header says 4.00 s, and 2.00 s are there: "
        "copy or make it anew",
        "c: there is no audio file gone.wav",
        "d: cat x |: name a file, not a command",
    ]
    assert (tmp_path / "segments").read_text() == "a-0000000-0000400 a 0.00 4.00\n"


def test_segments_that_a_person_has_taken_from_are_kept(tmp_path, monkeypatch, capsys):
    """Nothing tells them from older ones of this command, so that those are kept, too."""
    wave = np.concatenate([np.full(64000, 0.5), np.zeros(32000), np.full(64000, 0.5)])
    soundfile.write(tmp_path / "a.wav", wave, 16000)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path / 'a.wav'}\n")
    monkeypatch.setattr(voice, "load_detector", Loudness)
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    command += ["--longest", "8"]
    segments = tmp_path / "segments"
    assert cli.main(command) == 0
    first, second = segments.read_text().splitlines(keepends=True)
    for n in (1, 2):
        segments.write_text(second)
        assert cli.main(command) == 0
        assert segments.read_text() == first + second
        assert (tmp_path / f"segments.{n}").read_text() == second
        assert f"were there are {segments}.{n} now" in capsys.readouterr().err
    assert cli.main(command) == 0  # the same again
    assert not (tmp_path / "segments.3").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_segments_that_are_no_file(make, tmp_path, capsys):
    soundfile.write(tmp_path / "a.wav", np.full(64000, 0.5), 16000)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path / 'a.wav'}\n")
    make(tmp_path / "segments")
    with pytest.raises(SystemExit) as raised:
        cli.main(["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)])
    assert raised.value.code == 2
    message = f"output_dir: {tmp_path / 'segments'} is "
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("line", ["mine a 0.50 1.00", "a", "a-0000050-0000100 a 0.5 1"])
def test_segments_of_a_corpus_stay(line, tmp_path, monkeypatch, capsys):
    """Those that this command has written are written anew."""
    soundfile.write(tmp_path / "a.wav", np.full(64000, 0.5), 16000)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path / 'a.wav'}\n")
    monkeypatch.setattr(voice, "load_detector", Loudness)
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    written = "a-0000000-0000400 a 0.00 4.00\n"
    for _ in range(2):
        assert cli.main(command) == 0
        assert (tmp_path / "segments").read_text() == written
    (tmp_path / "segments").write_text(f"{written}{line}\n")
    with pytest.raises(SystemExit) as raised:
        cli.main(command)
    assert raised.value.code == 2
    assert "segments that this command has not written" in capsys.readouterr().err
    assert (tmp_path / "segments").read_text() == f"{written}{line}\n"


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("a gone.wav\nb x", [], "a: there is no audio file gone.wav; b: there is no"),
        ("a gone.wav", [], "wav.scp: a: there is no audio file gone.wav"),
        ("a cat x.wav |", [], "wav.scp: a: cat x.wav |: name a file"),
        ("a", [], "wav.scp: a: no file stands behind it"),
        ("a x", ["--longest", "0.5"], "longest is 0.5"),
        ("a x", ["--silence", "0"], "silence is 0"),
        ("a x", ["--margin", "-1"], "margin is -1"),
    ],
)
def test_what_is_wrong_is_named(lines, options, message, tmp_path, capsys):
    (tmp_path / "wav.scp").write_text(f"{lines}\n")
    command = ["segment", str(tmp_path / "wav.scp"), "--output_dir", str(tmp_path)]
    with pytest.raises(SystemExit) as raised:
        cli.main([*command, *options])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_without_the_detector_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "silero_vad", None)
    with pytest.raises(ValueError, match="pip install silero-vad"):
        voice.load_detector()


def test_channels_that_cancel_out_hold_no_silence(tmp_path):
    """Their mean does: no place to cut would be found by it."""
    tone = 0.5 * np.sin(np.arange(16000, dtype=np.float32))
    for name, right in (("both", tone), ("upside_down", -tone)):
        samples = np.stack([tone, right], axis=1)
        soundfile.write(tmp_path / f"{name}.wav", samples, 16000)
    assert voice.speech_probabilities(tmp_path / "both.wav", Loudness()).max() == 1
    with pytest.raises(AudioError, match=r"channels of .*upside_down.wav cancel each"):
        voice.speech_probabilities(tmp_path / "upside_down.wav", Loudness())


def test_silero_tells_speech_from_silence(tmp_path):
    """A second of silence, bundled speech, a second of silence."""
    pytest.importorskip("silero_vad")
    path = workplace.speech(workplace.BOOTS)
    speech, rate = soundfile.read(path, dtype="float32")
    gap = np.zeros(rate, dtype=np.float32)
    soundfile.write(tmp_path / "a.wav", np.concatenate([gap, speech, gap]), rate)
    found = voice.speech_probabilities(tmp_path / "a.wav", voice.load_detector())
    frames = len(speech) / 512
    assert len(found) == -(-(len(speech) + 2 * rate) // 512)
    assert found[:30].max() < 0.3
    assert found[32 : 32 + int(frames)].mean() > 0.6
    assert found[-20:].max() < 0.3
