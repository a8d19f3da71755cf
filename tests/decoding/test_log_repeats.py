"""What ESPnet repeats for each utterance is in the log once."""

import importlib
import logging

from espnet_lenbias import espnet_compat
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding import drop_in
from espnet_lenbias.decoding.log_repeats import repeats_said_once

BEGINNING = "Using make_pad_mask with a list"


def _warn_of_utterances() -> None:
    module = f"{espnet_compat._layout()}.pytorch_backend.nets_utils"
    make_pad_mask = importlib.import_module(module).make_pad_mask
    for key in ("utt1", "utt2", "utt3"):
        make_pad_mask([2, 1])
        logging.warning(f"Utterance {key}: too short")
        logging.warning("the same for each")


def test_other_warnings_stay(caplog):
    with repeats_said_once():
        _warn_of_utterances()
    beginnings = [message[: len(BEGINNING)] for message in caplog.messages]
    assert beginnings.count(BEGINNING) == 1
    assert len(caplog.messages) == 1 + 6
    _warn_of_utterances()  # as it was before
    assert len(caplog.messages) == 1 + 6 + 9


def test_each_run_says_it_once(
    transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    def decode(*_):
        _warn_of_utterances()
        return {}

    monkeypatch.setattr(drop_in, "decode_here", decode)
    options = [*transformer_model.options]
    options += ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
    for run in (1, 2):
        assert (
            asr_inference.main([*options, "--output_dir", str(tmp_path / "out")]) == 0
        )
        said = [m for m in caplog.messages if m.startswith(BEGINNING)]
        assert len(said) == run
