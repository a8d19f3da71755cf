"""Speakers made of a speech engine, a voice, a pitch and a vocal-tract factor."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np
import soundfile
import soxr

SAMPLE_RATE = 16000
ACCENTS = [
    "en-us",
    "en-gb",
    "en-gb-scotland",
    "en-gb-x-rp",
    "en-gb-x-gbclan",
    "en-gb-x-gbcwmd",
    "en-029",
    "en-us-nyc",
]
VARIANTS = [f"m{i}" for i in range(1, 9)] + [f"f{i}" for i in range(1, 6)]
VARIANTS += [
    "Alex",
    "Andy",
    "Annie",
    "Michael",
    "Mike",
    "Gene",
    "linda",
    "steph",
    "robert",
]
FEMALE = {"f1", "f2", "f3", "f4", "f5", "Annie", "linda", "steph", "slt"}
FLITE_VOICES = ["kal16", "awb", "rms", "slt"]
FLITE_F0 = {"kal16": 105, "awb": 130, "rms": 100, "slt": 180}
FLITE_SHARE = 1 / 3


@dataclass(frozen=True)
class Speaker:
    """One synthetic speaker."""

    id: int
    engine: str  # espeak-ng or flite
    voice: str  # of espeak-ng, accent+variant
    pitch: float  # espeak-ng: 0 to 99; flite: mean F0 in Hz
    rate: float  # speaking rate, 1 = the engine's own
    tract: float  # > 1: a longer vocal tract, so lower formants and pitch

    @property
    def sex(self):
        """F or M, as in SPEAKERS.TXT."""
        return "F" if self.voice.split("+")[-1] in FEMALE else "M"

    def __str__(self):
        parts = f"pitch {self.pitch:.0f} rate {self.rate:.2f} tract {self.tract:.2f}"
        return f"{self.engine} {self.voice} {parts}"


def check_engines():
    """Say what to install when a speech engine is missing."""
    missing = [name for name in ("espeak-ng", "flite") if shutil.which(name) is None]
    if missing:
        raise SystemExit(
            f"speech engine not found: {', '.join(missing)}. "
            f"Install it, e.g. apt-get install {' '.join(missing)}"
        )


def draw_speakers(rng, sets):
    """{set: [Speaker]}; no espeak-ng voice with its variant is in two sets."""
    pairs = [f"{accent}+{variant}" for accent in ACCENTS for variant in VARIANTS]
    rng.shuffle(pairs)
    out = {}
    for s, (name, conf) in enumerate(sets.items(), start=1):
        speakers = []
        n_flite = round(conf["speakers"] * FLITE_SHARE)
        for i in range(conf["speakers"]):
            rate, tract = (
                float(rng.uniform(*conf["rate"])),
                float(rng.uniform(0.9, 1.12)),
            )
            if i < n_flite:
                voice = FLITE_VOICES[i % len(FLITE_VOICES)]
                engine, pitch = (
                    "flite",
                    FLITE_F0[voice] * float(rng.uniform(0.85, 1.25)),
                )
            else:
                engine, voice, pitch = (
                    "espeak-ng",
                    pairs.pop(),
                    float(rng.integers(30, 71)),
                )
            speakers.append(
                Speaker(
                    s * 1000 + i + 1,
                    engine,
                    voice,
                    round(pitch),
                    round(rate, 2),
                    round(tract, 2),
                )
            )
        out[name] = speakers
    return out


def engine_rate(speaker):
    """The engine's own figure for the speed: words a minute, or flite's stretch."""
    rate = speaker.rate * speaker.tract  # resampling by tract slows the speech down
    return round(1 / rate, 3) if speaker.engine == "flite" else round(160 * rate)


def command(speaker, text, path):
    """The command line that writes `text`, spoken by `speaker`, to `path`."""
    if speaker.engine == "flite":
        return [
            "flite",
            "-voice",
            speaker.voice,
            "--setf",
            f"duration_stretch={engine_rate(speaker):.3f}",
            "--setf",
            f"int_f0_target_mean={speaker.pitch}",
            "-t",
            text,
            "-o",
            path,
        ]
    return [
        "espeak-ng",
        "-v",
        speaker.voice,
        "-p",
        str(int(speaker.pitch)),
        "-s",
        str(engine_rate(speaker)),
        "-w",
        path,
        text,
    ]


def speak(speaker, text):
    """`text` spoken: float32 at 16 kHz, RMS 0.05, 0.1 s of silence at both ends."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    ) as folder:
        path = os.path.join(folder, "a.wav")
        run = subprocess.run(
            command(speaker, text.lower(), path),
            check=False,
            capture_output=True,
            text=True,
        )
        if run.returncode or not os.path.exists(path):
            raise RuntimeError(
                f"{speaker.engine} failed for speaker {speaker.id} ({speaker}): "
                f"{run.stderr.strip()}"
            )
        wave, rate = soundfile.read(path, dtype="float32")
    return trim(wave, rate, speaker.tract)[0]


def trim(wave, rate, tract):
    """An engine's wave as `speak` has it, and the seconds that are cut off before it."""
    wave = soxr.resample(wave, rate / tract, SAMPLE_RATE).astype(np.float32)
    loud = np.flatnonzero(np.abs(wave) > 0.01 * np.abs(wave).max())
    pad = SAMPLE_RATE // 10
    first = max(0, loud[0] - pad)
    wave = wave[first : loud[-1] + pad]
    return wave * (0.05 / np.sqrt(np.mean(wave**2))), first / SAMPLE_RATE
