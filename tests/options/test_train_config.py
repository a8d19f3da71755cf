"""The training config of a model, found as ESPnet finds it."""

import pytest

from espnet_lenbias.options.train_config import train_config


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
