"""Tiny ESPnet models with random weights, and audio for them."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import settings

from espnet_lenbias.scorers import cells
from tests.tiny import Model, write_model

# With tensors as small as these, threads only wait: here, and in tools that tests start.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples each time, however long one takes: no test fails by chance.
settings.register_profile(
    "repeatable", deadline=None, max_examples=25, derandomize=True, database=None
)
settings.load_profile("repeatable")

# Folders whose tests are slow: they start processes or clusters, load packed models,
# draw plots. Elsewhere the mark stands at the test.
_SLOW = ("compare", "decoding", "docs", "inference", "recipes", "report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders; ``pytest -m "not slow"`` runs the others."""
    tests = Path(__file__).parent
    for item in items:
        if item.path.relative_to(tests).parts[0] in _SLOW:
            item.add_marker("slow")


@pytest.fixture(params=["by utterance", "grid"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the CPU work in its own way, and as a device does that prefers a grid."""
    if request.param == "grid":
        monkeypatch.setattr(cells, "_WITHOUT_LAUNCHES", frozenset())


@pytest.fixture
def make_whisper(monkeypatch: pytest.MonkeyPatch) -> Callable[..., torch.nn.Module]:
    """Return what makes a tiny decoder of Whisper's."""
    from tests.scorers.made import whisper_maker  # takes a while to load

    return whisper_maker(monkeypatch)


RATE = 8000
TOKENS = ["<blank>", "<unk>", "<space>", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "<sos/eos>"]

_SMALL_TRANSFORMER = {
    "output_size": 16,
    "attention_heads": 2,
    "linear_units": 16,
    "num_blocks": 1,
    "input_layer": "conv2d",
}
_DECODERS = {
    "transformer": {"attention_heads": 2, "linear_units": 16, "num_blocks": 1},
    "rnn": {
        "num_layers": 1,
        "hidden_size": 16,
        "att_conf": {"adim": 16, "aconv_chans": 2, "aconv_filts": 3},
    },
}


def _make_model(folder: Path, decoder: str) -> Model:
    """Write an ASR model of ESPnet's with random weights, the same every time."""
    from espnet2.tasks.asr import ASRTask

    folder.mkdir()
    tokens = folder / "tokens.txt"
    tokens.write_text("\n".join(TOKENS) + "\n")
    args = ASRTask.get_parser().parse_args(
        ["--output_dir", str(folder), "--token_list", str(tokens)]
    )
    args.token_list = TOKENS
    args.token_type = "char"
    args.frontend_conf = {"fs": RATE, "n_fft": 256, "hop_length": 80, "n_mels": 20}
    args.normalize = None
    args.encoder = "transformer"
    args.encoder_conf = _SMALL_TRANSFORMER
    args.decoder = decoder
    args.decoder_conf = _DECODERS[decoder]
    return Model("asr", *write_model(folder, ASRTask, args))


@pytest.fixture(scope="session")
def transformer_model(tmp_path_factory) -> Model:
    return _make_model(tmp_path_factory.mktemp("asr") / "transformer", "transformer")


@pytest.fixture(scope="session")
def rnn_model(tmp_path_factory) -> Model:
    return _make_model(tmp_path_factory.mktemp("asr") / "rnn", "rnn")


@pytest.fixture(scope="session")
def waves() -> dict[str, np.ndarray]:
    """Return noise of 0.25 to 0.45 s, five utterances."""
    noise = np.random.default_rng(0)
    return {
        f"utt{i}": 0.1 * noise.standard_normal(int(RATE * (0.2 + 0.05 * i)))
        for i in range(1, 6)
    }


@pytest.fixture
def wav_scp(tmp_path, waves) -> Path:
    """Write the utterances and their ``wav.scp``."""
    lines = []
    for key, wave in waves.items():
        path = tmp_path / f"{key}.wav"
        soundfile.write(path, wave, RATE)
        lines.append(f"{key} {path}\n")
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(lines))
    return scp
