"""Pieces of recordings, decoded by their `segments`, and put together again."""

import subprocess
import sys

import numpy as np
import pytest
import soundfile

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.join_pieces import join_pieces
from espnet_lenbias.decoding.pieces import PieceReader
from espnet_lenbias.options import audio_files
from espnet_lenbias.options.segments import Segment
from tests.conftest import RATE
from tests.tool_models import asr_command, lines

# In samples: (recording, start, end) of each utterance, in the order of `segments`.
PIECES = {
    "b-1": ("b", 0, 2400),
    "a-1": ("a", 800, 3200),
    "a-0": ("a", 0, 1600),
    "b-2": ("b", 2000, 4000),
}


@pytest.fixture
def recordings(tmp_path):
    """Two recordings of half a second, their `wav.scp`, and `segments`."""
    noise = np.random.default_rng(0)
    waves = {name: 0.1 * noise.standard_normal(4000) for name in ("a", "b")}
    for name, wave in waves.items():
        soundfile.write(tmp_path / f"{name}.wav", wave, RATE, subtype="FLOAT")
    (tmp_path / "wav.scp").write_text(
        "".join(f"{name} {tmp_path / name}.wav\n" for name in waves)
    )
    (tmp_path / "segments").write_text(
        "".join(
            f"{key} {name} {start / RATE:.3f} {end / RATE:.3f}\n"
            for key, (name, start, end) in PIECES.items()
        )
    )
    return waves


def _options(model, folder, out, *more):
    more = ("--search", "explicit_length", *more)
    return asr_command(model, folder / "wav.scp", folder / out, *more)


@pytest.fixture
def cut_by_hand(transformer_model, recordings, tmp_path):
    """Return texts and scores of the pieces as files of their own."""
    hand = tmp_path / "hand"
    hand.mkdir()
    for key, (name, start, end) in PIECES.items():
        wave = recordings[name][start:end]
        soundfile.write(hand / f"{key}.wav", wave, RATE, subtype="FLOAT")
    (hand / "wav.scp").write_text(
        "".join(f"{key} {hand / key}.wav\n" for key in PIECES)
    )
    assert asr_inference.main(_options(transformer_model, hand, "out")) == 0
    return {n: lines(hand / "out", f"1best_recog/{n}") for n in ("text", "score")}


@pytest.mark.parametrize("nj", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_pieces_are_decoded_as_files_of_their_own(
    nj, transformer_model, cut_by_hand, tmp_path
):
    segments = ("--segments", str(tmp_path / "segments"))
    options = _options(transformer_model, tmp_path, "out", *segments)
    if nj is None:
        assert asr_inference.main(options) == 0
    else:
        command = [sys.executable, "-m", "espnet_lenbias", "decode", *options]
        subprocess.run([*command, "--nj", str(nj)], check=True)
    out = tmp_path / "out"
    assert list(lines(out)) == list(PIECES)
    assert lines(out) == cut_by_hand["text"]
    found = {key: float(v) for key, v in lines(out, "1best_recog/score").items()}
    expected = {key: float(v) for key, v in cut_by_hand["score"].items()}
    assert found == pytest.approx(expected, abs=1e-5)
    assert not any(np.isnan(v) for v in found.values())


def test_a_piece_of_several_channels(tmp_path):
    """Only the piece is read, as (samples, channels)."""
    wave = np.arange(200, dtype=np.float32).reshape(100, 2) / 1000
    soundfile.write(tmp_path / "a.wav", wave, 100, subtype="FLOAT")
    piece = Segment("a", str(tmp_path / "a.wav"), 0.29, 0.57)
    rate, samples = PieceReader({"u": piece}, "float32")["u"]
    assert rate == 100
    np.testing.assert_array_equal(samples, wave[29:57])


def test_a_mistake_ends_the_run_before_a_model_is_loaded(
    transformer_model, recordings, tmp_path, capsys
):
    (tmp_path / "segments").write_text("u c 0 0.1\n")
    options = _options(transformer_model, tmp_path, "out", "--segments")
    with pytest.raises(SystemExit) as raised:
        asr_inference.main([*options, str(tmp_path / "segments")])
    assert raised.value.code == 2
    assert "line 1: u is a piece of c, and wav.scp has no" in capsys.readouterr().err


def test_a_broken_recording_costs_its_pieces_alone(
    transformer_model, recordings, tmp_path, caplog
):
    (tmp_path / "b.wav").write_bytes(b"no audio")
    segments = ("--segments", str(tmp_path / "segments"))
    options = _options(transformer_model, tmp_path, "out", *segments)
    assert asr_inference.main(options) == 1
    texts = lines(tmp_path / "out")
    assert {key for key, text in texts.items() if not text} >= {"b-1", "b-2"}
    scores = lines(tmp_path / "out", "1best_recog/score")
    assert [key for key, score in scores.items() if score == "nan"] == ["b-1", "b-2"]
    failed = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    for key in ("b-1", "b-2"):
        named = [line for line in failed if line.startswith(f"failed: {key}: ")]
        assert len(named) == 1
        assert str(tmp_path / "b.wav") in named[0]


def test_texts_of_recordings_are_not_written_through_a_link(tmp_path):
    (tmp_path / "out" / "1best_recog").mkdir(parents=True)
    (tmp_path / "out" / "1best_recog" / "text").write_text("x1 ONCE\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "recordings").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="out/recordings is a link"):
        join_pieces(tmp_path / "out", {"x1": Segment("x", "x.wav", 0, 1)}, ["x1"])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_recording_in_the_place_of_a_piece(
    transformer_model, recordings, tmp_path, caplog
):
    (tmp_path / "keys").write_text("a\na-1\n")
    options = _options(transformer_model, tmp_path, "out", "--segments")
    options += [str(tmp_path / "segments"), "--key_file", str(tmp_path / "keys")]
    assert asr_inference.main(options) == 1
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert len(failed) == 1
    assert failed[0].startswith("failed: a: is no piece of a recording that segments")


def test_pieces_are_joined_in_the_order_of_time(tmp_path):
    """Pieces without a text leave no space; a recording without any has a line."""
    times = {"x3": ("x", 4, 5), "y1": ("y", 0, 1), "x1": ("x", 0, 2), "x2": ("x", 1, 3)}
    segments = {k: Segment(r, f"{r}.wav", s, e) for k, (r, s, e) in times.items()}
    (tmp_path / "1best_recog").mkdir()
    files = {
        "text": "x3 THE END\ny1 \nx1 ONCE\nx2 \n",
        "text_nospecial": "x3 the end\ny1 \nx1 once\nx2 upon\n",
        "token": "x3 T\ny1 T\nx1 T\nx2 T\n",
    }
    for name, content in files.items():
        (tmp_path / "1best_recog" / name).write_text(content)
    join_pieces(tmp_path, segments, times)
    joined = tmp_path / "recordings" / "1best_recog"
    assert {path.name: path.read_text() for path in joined.iterdir()} == {
        "text": "x ONCE THE END\ny \n",
        "text_nospecial": "x once upon the end\ny \n",
    }


def test_a_warning_where_recordings_are_decoded_whole(
    transformer_model, recordings, tmp_path, monkeypatch, caplog
):
    """Of half a second each, where 0.4 s are long; the pieces have up to 0.3 s."""
    monkeypatch.setattr(audio_files, "LONG_SECONDS", 0.4)
    assert asr_inference.main(_options(transformer_model, tmp_path, "whole")) == 0
    each = [m for m in caplog.messages if "has 0.50 s, and models are trained" in m]
    assert [m.partition(" has")[0] for m in each] == [
        f"Utterance {name}: {tmp_path / name}.wav" for name in "ab"
    ]
    assert "2 of 2 utterances are far longer than" in caplog.messages[-1]
    caplog.clear()
    segments = ("--segments", str(tmp_path / "segments"))
    assert (
        asr_inference.main(_options(transformer_model, tmp_path, "cut", *segments)) == 0
    )
    assert "models are trained" not in caplog.text
