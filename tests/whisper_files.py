"""Tiny Whispers of random weights, in the files of openai-whisper and of ESPnet."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import torch
import yaml
from espnet2.tasks.asr import ASRTask

from espnet_lenbias.inference.whisper import whisper_ready

RATE = 16000
TASK = {"whisper_language": "de", "whisper_task": "transcribe"}


@dataclass(frozen=True)
class Kind:
    """What sets OpenAI's models apart."""

    name: str  # of the tokenizer
    n_vocab: int
    n_mels: int = 80
    language: str | None = "de"


ENGLISH = Kind("whisper_en", 51864, language=None)
MULTILINGUAL = Kind("whisper_multilingual", 51865)
LARGE_V3 = Kind("whisper_multilingual", 51866, n_mels=128)


def write_checkpoint(path: Path, kind: Kind) -> Path:
    """Write what `whisper.load_model` reads."""
    from whisper.model import ModelDimensions, Whisper

    dims = ModelDimensions(
        n_mels=kind.n_mels,
        n_audio_ctx=1500,
        n_audio_state=64,
        n_audio_head=1,
        n_audio_layer=1,
        n_vocab=kind.n_vocab,
        n_text_ctx=448,
        n_text_state=64,
        n_text_head=1,
        n_text_layer=2,
    )
    torch.manual_seed(0)
    model = Whisper(dims)
    torch.nn.init.normal_(model.decoder.positional_embedding)  # left empty
    with torch.no_grad():  # so that labels differ in probability, and with the audio
        model.decoder.token_embedding.weight.mul_(0.5)
        for block in model.decoder.blocks:
            block.cross_attn.out.weight.mul_(20)
    torch.save({"dims": asdict(dims), "model_state_dict": model.state_dict()}, path)
    return path


def labels_of(kind: Kind) -> list[str]:
    """Return the names of all labels by Whisper's own tokenizer.

    The characters of Latin-1 stand for the bytes of a piece: those that print are the
    ones that GPT-2's names have, but for the blank.
    """
    from whisper.tokenizer import get_tokenizer

    languages = kind.n_vocab - 51765 - (kind.language is not None)
    tokenizer = get_tokenizer(
        multilingual=kind.language is not None, num_languages=languages
    )
    n_pieces = kind.n_vocab - len(tokenizer.special_tokens)
    pieces = (
        tokenizer.encoding.decode_single_token_bytes(i).decode("latin-1")
        for i in range(n_pieces)
    )
    special = sorted(tokenizer.special_tokens, key=tokenizer.special_tokens.__getitem__)
    return [*pieces, *special]


def write_config(path: Path, kind: Kind, whisper_model: str, **encoder: Any) -> Path:
    """Write the config of an ESPnet training of a Whisper."""
    from espnet2.tasks.asr import ASRTask

    required = ["--output_dir", str(path.parent), "--token_list", "x"]
    config = vars(ASRTask.get_parser().parse_args(required))
    config.update(
        token_list=labels_of(kind),
        token_type=kind.name,
        bpemodel=kind.name,
        input_size=1,
        frontend=None,
        normalize=None,
        encoder="whisper",
        encoder_conf={"whisper_model": whisper_model, **encoder},
        decoder="whisper",
        decoder_conf={"whisper_model": whisper_model},
        model_conf={
            "ctc_weight": 0.0,
            "sym_sos": "<|startoftranscript|>",
            "sym_eos": "<|endoftext|>",
        },
        preprocessor_conf=TASK if kind.language else {},
    )
    with path.open("w") as f:
        yaml.dump(config, f, getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return path


def noise(seconds: float, seed: int = 0) -> np.ndarray:
    """Return noise of so many seconds, (samples,)."""
    generator = np.random.default_rng(seed)
    samples = 0.1 * generator.standard_normal(int(seconds * RATE))
    return samples.astype(np.float32)


def write_noise(path: Path, seconds: float, seed: int = 0) -> Path:
    """Write noise as a file of audio."""
    soundfile.write(path, noise(seconds, seed), RATE)
    return path


class Files(NamedTuple):
    """A Whisper, as OpenAI's package has it and as a training of ESPnet leaves it."""

    kind: Kind
    checkpoint: Path
    config: Path
    weights: Path

    @property
    def options(self) -> dict[str, str]:
        return {
            "asr_train_config": str(self.config),
            "asr_model_file": str(self.weights),
        }


def write_model(folder: Path, kind: Kind) -> Files:
    """Build a model by ESPnet's task from a yaml alone, and save it as a training does."""
    checkpoint = write_checkpoint(folder / "tiny.pt", kind)
    config = write_config(
        folder / "config.yaml", kind, str(checkpoint), do_pad_trim=True
    )
    with whisper_ready({"encoder": "whisper", "encoder_conf": _names(checkpoint)}):
        model, _ = ASRTask.build_model_from_file(config)
    torch.save(model.state_dict(), folder / "model.pth")
    return Files(kind, checkpoint, config, folder / "model.pth")


def _names(checkpoint: Path) -> dict[str, str]:
    return {"whisper_model": str(checkpoint)}
