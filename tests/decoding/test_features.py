"""Models that take features, which another program has made, and no audio."""

import numpy as np
import pytest

from espnet_lenbias import AudioError, Speech2Text, cli
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.options.train_config import feature_size
from tests.tool_models import asr_command, command, lines


@pytest.fixture
def model(model_of):
    return model_of("asr_features")


def test_which_models_take_features():
    assert feature_size({"frontend": None, "input_size": 80}) == 80
    assert feature_size({"frontend": None, "input_size": 1}) is None  # Whisper's
    assert feature_size({"frontend": None, "input_size": None}) is None
    assert feature_size({"frontend": "default", "input_size": None}) is None
    assert feature_size({"input_size": 80}) is None


def test_audio_is_refused(model, wav_scp, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        asr_inference.main(command(model, tmp_path, tmp_path / "out"))
    assert stop.value.code == 2
    message = "the model takes features of size 20 and no audio"
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("tool", ["transcribe", "explain"])
def test_audio_is_refused_before_it_is_loaded(tool, packed, wav_scp, tmp_path, capsys):
    model = packed("asr_features")
    with pytest.raises(SystemExit) as stop:
        cli.main([tool, str(tmp_path / "utt1.wav"), "--model", model])
    assert stop.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"model: {model}: the model takes features of size 20" in error


def test_samples_are_refused_in_python(model):
    options = {"ctc_weight": 0.3, "beam_size": 4, "search": "explicit_length"}
    speech2text = Speech2Text(**model.files, **options, maxlenratio=-3)
    features = np.random.default_rng(0).standard_normal((200, 20)).astype(np.float32)
    assert speech2text(features)
    with pytest.raises(AudioError, match=r"\(8000,\), .* features, of \(frames, 20\)"):
        speech2text(np.zeros(8000))
    found, (nothing,) = speech2text([features, np.zeros(8000)])
    assert found and nothing[0] == ""


def test_features_are_decoded_and_have_no_times(model, tmp_path, capsys):
    features = np.random.default_rng(0).standard_normal((200, 20)).astype(np.float32)
    np.save(tmp_path / "a.npy", features)
    (tmp_path / "npy.scp").write_text(f"a {tmp_path}/a.npy\n")
    line = asr_command(model, "", tmp_path / "out", "--maxlenratio", "-3")
    at = line.index("--data_path_and_name_and_type") + 1
    line[at] = f"{tmp_path}/npy.scp,speech,npy"
    assert asr_inference.main(line) == 0
    assert lines(tmp_path / "out", "1best_recog/text").keys() == {"a"}
    with pytest.raises(SystemExit) as stop:
        asr_inference.main([*line, "--times", "true", "--output_dir", f"{tmp_path}/t"])
    assert stop.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "times: true: this model takes features" in error
