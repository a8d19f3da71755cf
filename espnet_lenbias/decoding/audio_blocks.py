"""Any audio, read block by block, as one channel at a sampling rate; no torch here.

What soundfile does not read is read by ffmpeg, where that is installed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import soundfile
import soxr

from espnet_lenbias.decoding.mixing import Mixer
from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import are_large, scale_warning
from espnet_lenbias.options.cut_audio import damage_named

_BLOCK = 2**18  # samples

# Parts of audio, (samples,) each, where 1 is full scale.
Blocks = Generator[np.ndarray, None, None]

# What ffmpeg may take a file for, whatever its name: what holds audio itself. Playlists
# and the like would have it read other files, or wait for more.
_CONTAINERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,eac3,flac,flv,gsm,loas,matroska,mov,"
    "mp3,mpc,mpc8,mpeg,mpegts,nut,ogg,oma,rm,shn,tak,truehd,tta,voc,w64,wav,wtv,wv"
)

# How its log names one of them, and those of which it tells that they are cut off. Of Ogg
# others do, see :mod:`espnet_lenbias.options.ogg_pages`.
_KIND = re.compile(rb"^Input #0, (\S+), from ", re.MULTILINE)
_TELL_THEIR_END = (
    *(b"matroska,webm", b"mov,mp4,m4a,3gp,3g2,mj2", b"caf", b"nut", b"ogg", b"tta"),
    *(b"wtv", b"wv"),
)

# And an audio track, with its channels.
_AUDIO_TRACK = re.compile(rb"^ +Stream #0:.*: Audio: .*$", re.MULTILINE)

_CAUTIOUSLY = (
    *("-nostdin", "-v", "error", "-err_detect", "crccheck"),
    *("-protocol_whitelist", "file,pipe", "-format_whitelist", _CONTAINERS),
)

# Lines of ffmpeg's that follow one that tells what is wrong.
_TELLS_NOTHING = ("Last message repeated", "Error marking filters", "Conversion failed")

# In a film sound may begin after the picture, or be missing for a while: silence takes its
# place, so that times are those of the film.
_ON_TIME = "aresample=async=1:first_pts=0"


def soundfile_blocks(path: Path, rate: int) -> Blocks:
    """Yield the audio at a rate, the mean of its channels, (samples,) each.

    Raises:
        AudioError: It is damaged, holds what a file of 16 bits cannot, or its channels
            cancel each other out.
    """
    mixer = Mixer(path)
    with damage_named(path), soundfile.SoundFile(os.fsencode(path)) as f:
        stream = soxr.ResampleStream(f.samplerate, rate, 1, dtype="float32")
        # not by its `blocks`, which go on to the length that the header says
        while len(samples := f.read(_BLOCK, dtype="float32", always_2d=True)):
            mono = mixer.mix(samples)
            _check_samples(path, mono)
            yield stream.resample_chunk(mono)
        mixer.check()
        yield stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True)


def _check_samples(path: Path, samples: np.ndarray) -> None:
    """Verify that samples are from -1 to 1, but for some that are clipped.

    Raises:
        AudioError: They are not.
    """
    if not np.isfinite(samples).all():
        raise AudioError(f"{path} holds NaN or infinity")
    warning = scale_warning(str(path), "sound", are_large(samples), None)
    if warning:
        raise AudioError(warning)


def ffmpeg_blocks(path: Path, rate: int) -> Blocks:
    """Yield the audio that ffmpeg makes of a file, (samples,) each.

    Raises:
        AudioError: It makes none, finds the file damaged, or is not there; or the file
            holds what one of 16 bits cannot, or its channels cancel each other out.
    """
    for samples in _ffmpeg_samples(path, rate, 1):
        _check_samples(path, samples[:, 0])
        yield samples[:, 0]
    first = _AUDIO_TRACK.search(_ffmpeg_tells(path)[0])
    if first and b", mono" not in first[0]:
        # ffmpeg has mixed them, and does not say what of them is left
        mixer = Mixer(path)
        for samples in _ffmpeg_samples(path, rate, 2):
            mixer.mix(samples)
        mixer.check()


def _ffmpeg_samples(path: Path, rate: int, n_channels: int) -> Blocks:
    """Yield what ffmpeg makes of a file, (samples, channels) each.

    Raises:
        AudioError: It makes none, finds the file damaged, or is not there.
    """
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        raise AudioError(
            f"{path} is no audio that soundfile can read, and ffmpeg, which reads more, "
            "is not installed"
        )
    command = [ffmpeg, "-xerror", *_CAUTIOUSLY]
    command += ["-i", f"file:{path}", "-map", "0:a:0", "-af", _ON_TIME]
    command += ["-ac", str(n_channels), "-ar", str(rate), "-f", "f32le", "pipe:1"]
    with (
        TemporaryFile() as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        assert process.stdout is not None
        try:
            while data := process.stdout.read(4 * n_channels * _BLOCK):
                # without a part of a sample, as of an ffmpeg that is killed
                whole = len(data) // (4 * n_channels) * n_channels
                samples = np.frombuffer(data, dtype="<f4", count=whole)
                yield samples.reshape(-1, n_channels)
        finally:
            process.stdout.close()
            status = process.wait()
        # of a file that is cut off it says so, and often ends well all the same
        said.seek(0)
        why = said.read().decode("utf-8", "replace").strip().splitlines()
        if any("matches no streams" in line for line in why):
            raise AudioError(f"{path} has no audio track that ffmpeg can read")
        if status or why:
            told = [line for line in why if not line.strip().startswith(_TELLS_NOTHING)]
            raise AudioError(
                f"{path} is no audio that soundfile or ffmpeg can read to its end"
                + (f" ({(told or why)[-1]})" if why else "")
            )


def ffmpeg_remarks(path: Path) -> str:
    """Return what to say of a file that ffmpeg reads; "" if nothing.

    That it has a second audio track, beside the one that is heard; that nobody can tell
    whether it is whole.
    """
    if shutil.which("ffmpeg") is None:
        return ""  # which is told where it is read
    told, has_second = _ffmpeg_tells(path)
    kind = _KIND.search(told)
    said = ", and of its audio tracks the first alone" if has_second else ""
    if kind is None or kind[1] not in _TELL_THEIR_END:
        said += "; of its kind it cannot be told whether a file is whole"
    return said


def _ffmpeg_tells(path: Path) -> tuple[bytes, bool]:
    """Return what ffmpeg tells of a file, and whether it has a second audio track."""
    command = ["ffmpeg", *_CAUTIOUSLY, "-v", "info", "-i", f"file:{path}"]
    command += ["-map", "0:a:1", "-t", "0", "-f", "null", "-"]
    found = subprocess.run(command, capture_output=True, check=False)
    return found.stderr, not found.returncode
