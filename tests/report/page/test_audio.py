import base64
import io
from urllib.parse import unquote

import numpy as np
import pytest
import soundfile

from espnet_lenbias.report.page.audio import (
    FULL,
    PEAKS,
    Source,
    page_audio,
    peaks,
    sources_of,
)
from tests.report.made import write_lines
from tests.report.page.made import RATE, speech

# One second.
TONE = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)


def decoded(audio):
    """The samples that a page holds, and their rate."""
    head, _, data = audio["src"].partition(",")
    assert head == "data:audio/mpeg;base64"
    return soundfile.read(io.BytesIO(base64.b64decode(data)))


def write(path, samples, rate=RATE, **options):
    soundfile.write(path, samples, rate, **options)
    return Source(str(path))


def test_peaks_are_the_ends_of_each_stretch():
    assert peaks(np.array([0.0, 0.25, -0.5, 0.125]), 2) == [0, 50, -100, 25]
    # three stretches of 5 samples begin at 0, 1 and 3
    assert peaks(np.array([0.1, 0.2, 0.4, -0.4, 0.0]), 3) == [25, 25, 50, 100, -100, 0]


def test_peaks_of_few_samples_and_of_silence():
    assert peaks(np.array([1.0, -1.0]), 600) == [100, 100, -100, -100]
    assert peaks(np.zeros(10), 2) == [0, 0, 0, 0]


def test_a_page_holds_the_audio(tmp_path):
    samples = np.tile(TONE, 2)
    audio = page_audio(write(tmp_path / "a.wav", samples), "embed", tmp_path)
    assert (audio["duration"], audio["start"]) == (2.0, 0.0)
    assert len(audio["peaks"]) == 2 * PEAKS
    assert max(audio["peaks"]) == FULL
    heard, rate = decoded(audio)
    assert (len(heard), rate) == (2 * RATE, RATE)
    # the tone is there, where it was
    assert np.corrcoef(heard[1000:-1000], samples[1000:-1000])[0, 1] > 0.99
    assert len(audio["src"]) < 2 * 27000 / 8 * 4 / 3 * 1.3  # 27 kbit/s, and base64


@pytest.mark.parametrize("rate", [44100, 8000, 22050, 192000])
def test_any_sampling_rate(tmp_path, rate):
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    audio = page_audio(write(tmp_path / "a.wav", tone, rate), "embed", tmp_path)
    heard, found = decoded(audio)
    assert found == (8000 if rate == 8000 else 16000)
    assert len(heard) / found == pytest.approx(1.0, abs=1e-3)
    spectrum = np.abs(np.fft.rfft(heard))
    assert spectrum.argmax() * found / len(heard) == pytest.approx(440, abs=2)


def test_all_channels_and_any_scale(tmp_path):
    tone = TONE.astype("float32")
    both = 100 * np.stack([tone, np.zeros(RATE)], 1)
    stereo = write(tmp_path / "a.wav", both, subtype="FLOAT")
    audio = page_audio(stereo, "embed", tmp_path)
    assert audio["peaks"] == peaks(tone)
    # as loud as can be, and not clipped, which would make a square of it
    heard = decoded(audio)[0][1000:-1000]
    assert np.abs(heard).max() == pytest.approx(1.0, abs=0.1)
    assert np.corrcoef(heard, tone[1000:-1000])[0, 1] > 0.99


def test_a_piece_of_a_recording(tmp_path):
    # silence, then one second of a tone, from second 1 on
    whole = np.concatenate([np.zeros(RATE), TONE, np.zeros(RATE)])
    source = Source(write(tmp_path / "a.wav", whole).file, 1.0, 2.0)
    audio = page_audio(source, "embed", tmp_path)
    assert (audio["duration"], audio["start"]) == (1.0, 0.0)
    assert len(decoded(audio)[0]) == RATE
    assert min(audio["peaks"][1::2]) > 50  # loud from end to end
    linked = page_audio(source, "link", tmp_path)
    assert (linked["duration"], linked["start"]) == (1.0, 1.0)
    assert linked["peaks"] == audio["peaks"]


def test_links_are_relative_to_the_page(tmp_path):
    (tmp_path / "da ta").mkdir()
    source = write(tmp_path / "da ta" / "a?#%:.wav", speech())
    page = tmp_path / "exp" / "report"
    page.mkdir(parents=True)
    audio = page_audio(source, "link", page)
    assert audio["src"] == "../../da%20ta/a%3F%23%25%3A.wav"
    assert (page / unquote(audio["src"])).is_file()
    # a page that is reached by a link lies where the link leads to
    (tmp_path / "short").symlink_to(page)
    assert page_audio(source, "link", tmp_path / "short") == audio


def test_no_audio_is_not_even_opened():
    assert page_audio(Source("/nowhere.wav"), "none", None) is None


@pytest.mark.parametrize("how", ["embed", "link"])
def test_files_that_cannot_be_read(tmp_path, how):
    (tmp_path / "text.wav").write_text("no audio")
    write(tmp_path / "empty.wav", np.zeros(0))
    write(tmp_path / "cut.wav", speech())
    whole = (tmp_path / "cut.wav").read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[: len(whole) // 2])

    def problem(file, **times):
        found = page_audio(Source(str(tmp_path / file), **times), how, tmp_path)
        assert set(found) == {"problem"}
        return found["problem"]

    assert "there is no audio file" in problem("gone.wav")
    assert "is no audio" in problem("text.wav")
    assert "holds no samples" in problem("empty.wav")
    assert "cut.wav" in problem("cut.wav")
    write(tmp_path / "short.wav", speech(1.0))
    assert "nothing from 5 s on" in problem("short.wav", start=5.0, end=6.0)
    assert page_audio(Source("sox a.wav -t wav - |"), how, tmp_path) == {
        "problem": "sox a.wav -t wav - | is a command, not a file"
    }
    assert page_audio(None, how, tmp_path) == {
        "problem": "wav.scp names no audio of it"
    }


def test_samples_that_are_no_numbers(tmp_path):
    samples = speech(0.5)
    samples[[3, 50]] = np.nan, np.inf
    source = write(tmp_path / "a.wav", samples, subtype="FLOAT")
    audio = page_audio(source, "embed", tmp_path)
    assert max(audio["peaks"]) <= FULL
    assert len(decoded(audio)[0]) == len(samples)


def test_where_the_audio_of_a_set_is(tmp_path):
    assert sources_of(tmp_path) == {}
    write(tmp_path / "talk.wav", speech(3.0))
    write_lines(tmp_path / "wav.scp", {"talk": tmp_path / "talk.wav"})
    assert sources_of(tmp_path) == {"talk": Source(str(tmp_path / "talk.wav"))}
    write_lines(tmp_path / "segments", {"p1": "talk 0.5 1.25", "p2": "talk 2 -1"})
    assert sources_of(tmp_path) == {
        "p1": Source(str(tmp_path / "talk.wav"), 0.5, 1.25),
        "p2": Source(str(tmp_path / "talk.wav"), 2.0, 3.0),
    }


def test_a_list_of_audio_that_is_none(tmp_path):
    (tmp_path / "wav.scp").write_text("a x.wav\na y.wav\n")
    with pytest.raises(ValueError, match="have the same key a"):
        sources_of(tmp_path)
