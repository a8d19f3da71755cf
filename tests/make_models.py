"""Tiny models of ESPnet's tasks, with random weights."""

from pathlib import Path
from typing import Any

from tests.conftest import RATE
from tests.tiny import Model, write_model

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOKENS = ["<blank>", "<unk>", "<space>", *LETTERS, "<sos/eos>"]
SRC_TOKENS = ["<blank>", "<unk>", "<space>", *LETTERS[:20], "<sos/eos>"]

WINDOW = 1.0  # seconds that the S2T models see at once
TIMES = [f"<{i / 10:.2f}>" for i in range(11)]
S2T_TOKENS = [
    *("<blank>", "<unk>", "<na>", "<nolang>", "<eng>", "<deu>", "<asr>", "<st_deu>"),
    *("<notimestamps>", *TIMES, *LETTERS, "<sop>", "<sos>", "<eos>"),
]

_ENCODER = {
    "output_size": 16,
    "attention_heads": 2,
    "linear_units": 16,
    "num_blocks": 1,
    "input_layer": "conv2d",
}
_DECODER = {"attention_heads": 2, "linear_units": 16, "num_blocks": 1}

SPEECH = {
    "token_type": "char",
    "frontend_conf": {"fs": RATE, "n_fft": 256, "hop_length": 80, "n_mels": 20},
    "normalize": None,
    "encoder": "transformer",
    "encoder_conf": _ENCODER,
    "decoder": "transformer",
    "decoder_conf": _DECODER,
}
# with features in the place of audio
FEATURES = {k: v for k, v in SPEECH.items() if k != "frontend_conf"}
FEATURES |= {"frontend": None, "input_size": 20}
TRANSDUCER = {"decoder": "transducer", "decoder_conf": {"hidden_size": 8}}
JOINT_NETWORK = {"joint_space_size": 8}
SOURCE = {"src_token_type": "char", "src_token_list": SRC_TOKENS}
# with CTC for both texts
WITH_CTC = {"model_conf": {"asr_weight": 0.3, "mtlalpha": 0.3, "st_mtlalpha": 0.3}}
# Searches the source text first, and translates what the decoder has made of it.
MULTI_DECODER = {
    **WITH_CTC,
    "extra_asr_decoder": "transformer",
    "extra_asr_decoder_conf": _DECODER,
    "md_encoder": "transformer",
    "md_encoder_conf": {**_ENCODER, "input_layer": None},
}
# The translation attends to the audio, too.
SPEECH_ATTENTION = {"decoder": "transformer_md"}
TEXT = {
    **SOURCE,
    "token_type": "char",
    "frontend": "embed",
    "frontend_conf": {"embed_dim": 16},
    "encoder": "transformer",
    "encoder_conf": {**_ENCODER, "input_layer": "linear"},
    "decoder": "transformer",
    "decoder_conf": _DECODER,
}
DISCRETE_UNITS = {**TEXT, "model": "discrete_asr"}  # which has a CTC
WINDOWED = {
    **SPEECH,
    "token_type": "word",
    "preprocessor": "s2t",
    "preprocessor_conf": {
        "fs": RATE,
        "speech_length": WINDOW,
        "speech_resolution": 0.1,
        "notime_symbol": "<notimestamps>",
        "first_time_symbol": TIMES[0],
        "last_time_symbol": TIMES[-1],
    },
}
# has no decoder: the prompt is an input of the encoder
WINDOWED_CTC = {
    **WINDOWED,
    "model": "espnet_ctc",
    "encoder": "e_branchformer_ctc",
    "encoder_conf": {
        "output_size": 16,
        "attention_heads": 2,
        "attention_layer_type": "selfattn",
        "pos_enc_layer_type": "abs_pos",
        "rel_pos_type": "latest",
        "cgmlp_linear_units": 16,
        "cgmlp_conv_kernel": 3,
        "num_blocks": 1,
        "input_layer": "conv2d",
        "use_cross_attention": [True],
    },
    "promptencoder": "transformer",
    "promptencoder_conf": {k: v for k, v in _ENCODER.items() if k != "input_layer"},
}


def make_model(
    folder: Path, tool: str, task: Any, tokens: list[str], **options
) -> Model:
    """Write a model with random weights, the same every time.

    Args:
        folder: Is made.
        tool: The letters that the tool's options begin with.
        task: ESPnet's task class.
        tokens: The vocabulary.
        **options: Of ESPnet's training.
    """
    folder.mkdir(parents=True)
    required = ["--output_dir", str(folder), "--token_list", "x"]
    if "src_token_list" in options:
        required += ["--src_token_list", "x"]
    args = task.get_parser().parse_args(required)
    vars(args).update(token_list=tokens, **options)
    return Model(tool, *write_model(folder, task, args))
