"""Audio files read as ESPnet's inference tools read them: soundfile is the reference."""

import numpy as np
import pytest
import soundfile
from espnet2.fileio.sound_scp import SoundScpReader

from espnet_lenbias.decoding.sound_reader import SoundReader

# of what libsndfile cannot go to a place in, and of what it can
KINDS = {
    "gsm.wav": {"subtype": "GSM610"},
    "nms.wav": {"subtype": "NMS_ADPCM_32"},
    "g721.au": {"format": "AU", "subtype": "G721_32"},
    "pcm.wav": {"subtype": "PCM_16"},
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_kind(dtype, tmp_path):
    wave = 0.1 * np.random.default_rng(0).standard_normal(8000)
    for name, kind in KINDS.items():
        soundfile.write(tmp_path / name, wave, 8000, **kind)
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{name} {tmp_path / name}\n" for name in KINDS))
    reader = SoundReader(SoundScpReader(scp, dtype=dtype))
    assert list(reader) == list(reader.keys()) == list(KINDS)
    assert len(reader) == len(KINDS) and "gsm.wav" in reader and "a" not in reader
    for name in KINDS:
        rate, samples = reader[name]
        whole, _ = soundfile.read(tmp_path / name)
        assert rate == 8000 and samples.dtype == dtype
        np.testing.assert_array_equal(samples, whole.astype("float32").astype(dtype))


def test_other_errors_stay_what_they_are(tmp_path):
    (tmp_path / "wav.scp").write_text(f"a {tmp_path}/a.wav\nb {tmp_path}/b.wav\n")
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    reader = SoundReader(SoundScpReader(tmp_path / "wav.scp", dtype="float32"))
    for key in ("a", "b"):
        with pytest.raises(soundfile.LibsndfileError, match="Error opening"):
            reader[key]
