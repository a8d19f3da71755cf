"""Audio of any kind, as one channel of the model's rate."""

import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from espnet_lenbias.decoding.plain_audio import is_copy, plain_audio
from espnet_lenbias.errors import AudioError
from tests.conftest import RATE
from tests.programs import needs_programs


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


def test_a_persons_own_file_that_is_called_as_a_copy_stays(tone, tmp_path):
    own = tmp_path / "a-20240115.flac"
    soundfile.write(own, tone, 8000)
    soundfile.write(tmp_path / "a.wav", tone, 8000)
    copy, _ = plain_audio(tmp_path / "a.wav", 16000, tmp_path, "a")
    assert own.exists() and is_copy(copy) and not is_copy(own)


@pytest.mark.parametrize("codec", ["GSM610", "NMS_ADPCM_32"])
def test_what_has_no_places_to_go_to_is_written_anew(codec, tone, tmp_path):
    """Of it no piece can be read without what is before it."""
    path = tmp_path / "a.wav"
    soundfile.write(path, tone, 8000, subtype=codec)
    copy, done = plain_audio(path, 8000, tmp_path, "a")
    assert done == "WAV written as FLAC"
    whole, _ = soundfile.read(path, dtype="int16")
    np.testing.assert_array_equal(soundfile.read(copy, dtype="int16")[0], whole)


def test_audio_that_is_cut_off_is_named(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", tone, 8000)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(whole[:8000])
    with pytest.raises(AudioError, match=f"{tmp_path}/a.wav: cut off"):
        plain_audio(tmp_path / "a.wav", 16000, tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


@pytest.mark.parametrize("gain", [1.0, 0.9])
def test_channels_that_cancel_out_are_named(tone, gain, tmp_path):
    """As of a cable that is soldered the wrong way round."""
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([tone, -gain * tone], axis=1), 8000, subtype="FLOAT")
    with pytest.raises(
        AudioError, match=rf"channels of {path} cancel .*pan=mono\|c0=c0"
    ):
        plain_audio(path, 16000, tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_channels_that_cancel_out_in_a_part(tone, tmp_path):
    """Half a second of ten does no harm; four of them are most of what was said."""
    path, second = tmp_path / "a.wav", np.resize(tone, 8000)
    for lost in (slice(0, 0), slice(16384, 20000), slice(16384, 49152)):
        both = np.tile(second[:, None], (10, 2))
        both[lost, 1] *= -1
        soundfile.write(path, both, 8000)
        if lost.stop == 49152:
            with pytest.raises(AudioError, match="cancel each other out"):
                plain_audio(path, 16000, tmp_path, "a")
        else:
            plain_audio(path, 16000, tmp_path, "a")


def test_a_file_in_the_place_of_a_copy_stays(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([tone, tone], axis=1), 8000)
    copy, _ = plain_audio(tmp_path / "a.wav", 8000, tmp_path, "a")
    soundfile.write(copy, tone / 2, 8000)  # a person's
    held = copy.read_bytes()
    with pytest.raises(AudioError, match=f"{copy} stands where a copy of .*a.wav goes"):
        plain_audio(tmp_path / "a.wav", 8000, tmp_path, "a")
    assert copy.read_bytes() == held


def test_channels_of_which_one_is_silent_or_all_are_do_not_cancel_out(tone, tmp_path):
    silent = np.zeros((len(tone), 8))
    spoken = np.stack([tone, *silent.T[1:]], axis=1)
    for name, samples, wanted in (("a", silent, 0.0), ("b", spoken, 0.25 / 8)):
        soundfile.write(tmp_path / f"{name}.wav", samples, 8000)
        copy, _ = plain_audio(tmp_path / f"{name}.wav", 8000, tmp_path, name)
        assert np.abs(soundfile.read(copy)[0]).max() == pytest.approx(wanted, abs=1e-3)


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
        kind = "Input #0, mov,mp4,m4a,3gp,3g2,mj2, from x:"
        no_second_track = f'case "$*" in *0:a:1*) echo "{kind}" >&2; exit 1;; esac'
        path.write_text(f"#!/bin/sh\n{no_second_track}\n{script}\n")
        path.chmod(0o755)

    return ffmpeg


def test_what_soundfile_does_not_read_ffmpeg_reads(tone, ffmpeg, tmp_path):
    (tmp_path / "a.m4a").write_bytes(b"some other format")
    pcm = (tone * 32768).astype("<i2")
    (tmp_path / "floats").write_bytes((pcm / 32768).astype("<f4").tobytes())
    ffmpeg(f'echo "$@" >{tmp_path}/options; exec /bin/cat {tmp_path}/floats')
    copy, done = plain_audio(tmp_path / "a.m4a", 8000, tmp_path, "a")
    assert done == "read by ffmpeg, as one channel of 8000 Hz"
    samples, rate = soundfile.read(copy, dtype="int16")
    assert rate == 8000
    np.testing.assert_array_equal(samples, pcm)
    options = (tmp_path / "options").read_text()
    assert f"-i file:{tmp_path}/a.m4a " in options
    assert "-ac 1 -ar 8000 -f f32le pipe:1" in options


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
        ("head -c 8003 /dev/zero; exit 9", "is no audio .* to its end"),
    ],
)
def test_what_nothing_reads(script, message, ffmpeg, tmp_path):
    (tmp_path / "a.m4a").write_bytes(b"no audio")
    if script is not None:
        ffmpeg(script)
    with pytest.raises(AudioError, match=message):
        plain_audio(tmp_path / "a.m4a", 8000, tmp_path, "a")
    assert not list(tmp_path.glob("*.flac")) + list(tmp_path.glob(".draft*"))


def test_floats_above_full_scale_are_scaled_and_not_cut(tone, ffmpeg, tmp_path):
    """Field recorders write such files. The same by soundfile, and by ffmpeg."""
    loud = (10 * tone).astype("<f4")  # to 2.5
    (tmp_path / "floats").write_bytes(loud.tobytes())
    (tmp_path / "a.m4a").write_bytes(b"some other format")
    ffmpeg(f"exec /bin/cat {tmp_path}/floats")
    soundfile.write(
        tmp_path / "a.wav", np.stack([loud, loud], 1), 8000, subtype="FLOAT"
    )
    for name, done in (
        ("a.wav", "2 channels mixed to one, scaled by 0.4"),
        ("a.m4a", "read by ffmpeg, as one channel of 8000 Hz, scaled by 0.4"),
    ):
        for _ in range(2):  # the second run finds the copy
            copy, said = plain_audio(tmp_path / name, 8000, tmp_path, name)
            assert said == done
            np.testing.assert_allclose(soundfile.read(copy)[0], 4 * tone, atol=1e-4)


def test_what_resampling_adds_to_full_scale_is_cut(tmp_path):
    """Ends of full scale ring; that is no reason to make the recording less loud."""
    loud = np.repeat([0.0, 0.99, 0.0, -0.99], 1000)
    soundfile.write(tmp_path / "a.wav", loud, 8000)
    copy, done = plain_audio(tmp_path / "a.wav", 16000, tmp_path, "a")
    assert done == "resampled from 8000 to 16000 Hz"
    assert np.median(soundfile.read(copy)[0][2500:3500]) == pytest.approx(
        0.99, abs=1e-3
    )


@pytest.mark.parametrize(
    "value, message", [(np.nan, "holds NaN or inf"), (30000.0, "go far beyond -1 to 1")]
)
def test_what_16_bits_cannot_hold_is_named(value, message, tone, ffmpeg, tmp_path):
    samples = tone.astype("<f4")
    samples[100] = value
    (tmp_path / "floats").write_bytes(samples.tobytes())
    (tmp_path / "a.m4a").write_bytes(b"some other format")
    ffmpeg(f"exec /bin/cat {tmp_path}/floats")
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    for name in ("a.wav", "a.m4a"):
        with pytest.raises(AudioError, match=f"{name}.* {message}"):
            plain_audio(tmp_path / name, 16000, tmp_path, "a")


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
def test_a_film_without_sound(tmp_path):
    make = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i"]
    make += ["color=size=16x16:rate=5:duration=1", str(tmp_path / "film.mkv")]
    subprocess.run(make, check=True)
    with pytest.raises(AudioError, match="film.mkv has no audio track that ffmpeg can"):
        plain_audio(tmp_path / "film.mkv", 8000, tmp_path, "film")


def test_an_empty_file(tmp_path):
    (tmp_path / "a.m4a").touch()
    with pytest.raises(AudioError, match=r"a\.m4a is empty"):
        plain_audio(tmp_path / "a.m4a", 8000, tmp_path, "a")


@needs_ffmpeg
def test_the_first_of_two_tracks(tone, tmp_path):
    """As of a recording of a voice and of a game."""
    make = ["ffmpeg", "-nostdin", "-v", "error"]
    for name, samples in (("a.wav", tone), ("b.wav", 0 * tone)):
        soundfile.write(tmp_path / name, samples, 8000)
        make += ["-i", str(tmp_path / name)]
    both = str(tmp_path / "both.mka")
    subprocess.run([*make, "-map", "0:a", "-map", "1:a", both], check=True)
    subprocess.run([*make, "-map", "0:a", str(tmp_path / "one.mka")], check=True)
    copy, done = plain_audio(tmp_path / "both.mka", 8000, tmp_path, "both")
    said = "read by ffmpeg, as one channel of 8000 Hz"
    assert done == f"{said}, and of its audio tracks the first alone"
    assert np.abs(soundfile.read(copy)[0]).max() > 0.2
    assert plain_audio(tmp_path / "one.mka", 8000, tmp_path, "one")[1] == said


@needs_ffmpeg
@pytest.mark.parametrize(
    "name, tells",
    [("a.m4a", True), ("a.mka", True), ("a.aac", False), ("a.avi", False)],
)
def test_kinds_that_may_be_cut_off_unnoticed(name, tells, tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", tone, 8000)
    make = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(tmp_path / "a.wav")]
    subprocess.run([*make, str(tmp_path / name)], check=True)
    _, done = plain_audio(tmp_path / name, 8000, tmp_path, "a")
    assert ("; of its kind it cannot be told whether a file is" in done) != tells


def test_a_kind_of_soundfile_s_that_may_be_cut_off_unnoticed(tone, tmp_path):
    soundfile.write(tmp_path / "a.voc", tone, 8000, "PCM_16")
    _, done = plain_audio(tmp_path / "a.voc", 8000, tmp_path, "a")
    assert done == (
        "VOC written as FLAC; of VOC it cannot be told whether a file is whole"
    )


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
@pytest.mark.parametrize("name", ["a.m4a", "a.mka", "a.wma"])
@pytest.mark.parametrize("right, cancels", [(-1, True), (1, False), (0, False)])
def test_channels_that_cancel_out_where_ffmpeg_reads(
    name, right, cancels, tone, tmp_path
):
    """The right one upside down; as the left one; silent."""
    both = np.stack([tone, right * tone], axis=1)
    soundfile.write(tmp_path / "a.wav", both, 8000)
    make = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(tmp_path / "a.wav")]
    codec = ["-c:a", "flac"] if name == "a.mka" else []
    subprocess.run([*make, *codec, str(tmp_path / name)], check=True)
    if cancels:
        with pytest.raises(AudioError, match=f"channels of .*{name} cancel each other"):
            plain_audio(tmp_path / name, 16000, tmp_path, "a")
        assert not list(tmp_path.glob("a-*"))
    else:
        copy, _ = plain_audio(tmp_path / name, 16000, tmp_path, "a")
        assert np.abs(soundfile.read(copy)[0]).max() > 0.1


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


@needs_ffmpeg
def test_an_ogg_of_another_kind_that_is_cut_off(tone, tmp_path):
    """libsndfile reads no Speex and no FLAC in it; ffmpeg says nothing of the cut."""
    noise = 0.1 * np.random.default_rng(0).standard_normal(10 * len(tone))
    soundfile.write(tmp_path / "a.flac", noise, 8000)
    path = tmp_path / "a.oga"
    ffmpeg = ["ffmpeg", "-loglevel", "error", "-i", tmp_path / "a.flac"]
    subprocess.run([*ffmpeg, "-codec:a", "flac", path], check=True)
    _, done = plain_audio(path, 8000, tmp_path, "x")
    assert done.startswith("read by ffmpeg")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 6 // 10])
    with pytest.raises(AudioError, match="a.oga: (cut off|damaged)"):
        plain_audio(path, 8000, tmp_path, "x")
