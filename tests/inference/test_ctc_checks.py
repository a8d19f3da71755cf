"""CTC that a translator was trained without."""

from pathlib import Path

import pytest

from espnet_lenbias import OptionError, mt, st
from espnet_lenbias.inference.ctc_checks import train_config


@pytest.mark.parametrize("options", [{}, {"mt_train_config": "no-such.yaml"}])
def test_a_config_that_is_not_there_is_left_to_espnet(options):
    assert train_config(options, "mt") == {}


def test_the_config_beside_the_model_counts(tmp_path):
    (tmp_path / "config.yaml").write_text("model: discrete_asr\n")
    options = {"mt_model_file": str(tmp_path / "valid.acc.ave.pth")}
    assert train_config(options, "mt") == {"model": "discrete_asr"}
    (tmp_path / "other.yaml").write_text("model: mt\n")
    options["mt_train_config"] = str(tmp_path / "other.yaml")
    assert train_config(options, "mt") == {"model": "mt"}


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
