"""Audio that is made ready for decoding: as files, and in pieces of them."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from espnet_lenbias.decoding import voice
from espnet_lenbias.decoding.cutting import CutOptions
from espnet_lenbias.decoding.found_audio import named_audio
from espnet_lenbias.decoding.prepared_audio import cut_at_silences, prepared
from tests.conftest import RATE
from tests.decoding.made import Loudness
from tests.docs.workplace import BOOTS, speech


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


def test_a_copy_that_was_cut_is_made_anew(audio, capsys):
    (audio / "out").mkdir()

    def made() -> Path:
        files, failures = prepared(
            {"walter": audio / "walter.flac"}, 8000, audio / "out"
        )
        assert not failures
        return files["walter"]

    copy = made()
    whole = copy.read_bytes()
    for length in (len(whole) // 2, len(whole) - 10):
        copy.write_bytes(whole[:length])
        assert made() == copy
        assert soundfile.read(copy)[0].shape == (soundfile.info(copy).frames,)
        assert copy.read_bytes() == whole


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


def test_links_that_lead_nowhere_are_named_and_cost_no_other(tone, tmp_path):
    audio = tmp_path / "audio"
    audio.mkdir()
    soundfile.write(audio / "a.wav", tone, 8000)
    (audio / "gone.wav").symlink_to(tmp_path / "nothing")
    (audio / "round.wav").symlink_to("round.wav")
    (audio / "folder.wav").symlink_to(tmp_path)
    found = named_audio([audio], Path("transcripts"))
    assert list(found) == ["a", "gone", "round"]
    ready, failures = prepared(found, 8000, tmp_path / "out")
    assert ready == {"a": audio / "a.wav"}
    gone, circle = failures
    assert gone == f"{audio}/gone.wav cannot be read: No such file or directory"
    assert circle.startswith(f"{audio}/round.wav cannot be read: ")
