"""CTC that a translator was trained without."""

from pathlib import Path

import pytest
import yaml

from espnet_lenbias import OptionError, mt, st
from espnet_lenbias.inference import asr, s2t, slu
from tests.releases import needs_s2t_of_ctc_alone


@pytest.mark.parametrize(
    "name, tool, search",
    [
        ("mt", mt.Text2Text, "explicit_length"),
        ("mt", mt.Text2Text, "espnet"),
        ("st", st.Speech2Text, "explicit_length"),
    ],
)
def test_the_key_is_named_before_a_model_is_built(
    name, tool, search, model_of, monkeypatch
):
    files = dict(model_of(name).files)
    assert Path(files[f"{name}_train_config"]).name == "config.yaml"
    del files[f"{name}_train_config"]  # it lies beside the model
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("loaded"))
    message = "ctc_weight is 0.3, and the model has no CTC: set ctc_weight: 0.0"
    with pytest.raises(OptionError, match=message):
        tool(**files, ctc_weight=0.3, search=search)


@pytest.mark.parametrize(
    "name, tool", [("mt_units", mt.Text2Text), ("st_ctc", st.Speech2Text)]
)
def test_a_model_with_ctc_is_built(name, tool, model_of):
    model = tool(**model_of(name).files, ctc_weight=0.3, search="explicit_length")
    assert model.beam_search.weights["ctc"] == 0.3


@pytest.mark.parametrize("weight", [0.0, 0.5])
@pytest.mark.parametrize("search", ["explicit_length", "espnet"])
@pytest.mark.parametrize(
    "name, tool",
    [
        ("asr", asr.Speech2Text),
        pytest.param("s2t", s2t.Speech2Text, marks=needs_s2t_of_ctc_alone),
        ("slu", slu.Speech2Understand),
    ],
)
def test_a_model_without_decoder(name, tool, search, weight, model_of, tmp_path, waves):
    config = yaml.safe_load(model_of(name).config.read_text())
    config["model_conf"] = {**config["model_conf"], "ctc_weight": 1.0}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    files = {**model_of(name).files, f"{name}_train_config": str(path)}
    with pytest.raises(OptionError) as e:
        tool(**files, ctc_weight=weight, search=search)
    assert str(e.value) == (
        f"ctc_weight is {weight}, and the model has no decoder, as it was trained with "
        "CTC alone: set ctc_weight: 1.0 (in Python ctc_weight=1.0)"
    )
    model = tool(**files, ctc_weight=1.0, search=search)
    assert model(waves["utt1"])
