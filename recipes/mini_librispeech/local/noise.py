"""Noise and reverberation, drawn from a random generator."""

import numpy as np
from scipy.signal import fftconvolve

SAMPLE_RATE = 16000
SLOPES = {"white": 0.0, "pink": 0.5, "brown": 1.0}  # amplitude falls as 1 / f ** slope


def coloured(rng, length, slope):
    """Gaussian noise whose spectrum falls by `slope`."""
    spectrum = np.fft.rfft(rng.standard_normal(length))
    f = np.maximum(np.fft.rfftfreq(length, 1 / SAMPLE_RATE), 40.0)
    return np.fft.irfft(spectrum / f**slope, length)


def babble(rng, length, pool, talkers=5):
    """The sum of `talkers` waves of the pool, each begun anywhere and repeated."""
    out = np.zeros(length)
    for _ in range(talkers):
        wave = np.roll(pool[int(rng.integers(len(pool)))], int(rng.integers(1 << 20)))
        out += np.resize(wave, length)
    return out


def reverberate(rng, wave):
    """The wave in a room whose reverberation decays within 0.1 to 0.4 s."""
    t60 = rng.uniform(0.1, 0.4)
    t = np.arange(int(t60 * SAMPLE_RATE)) / SAMPLE_RATE
    impulse = rng.standard_normal(len(t)) * 10 ** (-3 * t / t60)
    impulse *= rng.uniform(0.2, 0.6) / np.linalg.norm(impulse)
    impulse[0] = 1.0
    return fftconvolve(wave, impulse)[: len(wave)]


def degrade(rng, wave, conf, pool):
    """`wave` with noise and reverberation as `conf` has them, at a random gain."""
    if rng.random() < conf["reverb"]:
        wave = reverberate(rng, wave)
    if rng.random() < conf["noise"]:
        kind = str(rng.choice(["white", "pink", "brown", "babble"]))
        noise = (
            babble(rng, len(wave), pool)
            if kind == "babble"
            else coloured(rng, len(wave), SLOPES[kind])
        )
        snr = rng.uniform(*conf["snr"])
        wave = wave + noise * np.sqrt(
            np.mean(wave**2) / np.mean(noise**2) / 10 ** (snr / 10)
        )
    wave = wave * 10 ** (rng.uniform(-6, 4) / 20)
    return (wave * min(1.0, 0.98 / np.abs(wave).max())).astype(np.float32)
