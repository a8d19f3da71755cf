"""Put a checkpoint of openai-whisper into an ESPnet configuration, and pack it.

The audio is padded to 30 s, and outputs start from Whisper's prompt for language and
task, without time stamps.
"""

import argparse
import contextlib
import hashlib
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import torch
import whisper
import yaml
from espnet2.main_funcs.pack_funcs import pack
from whisper.tokenizer import LANGUAGES, TO_LANGUAGE_CODE, get_tokenizer

from espnet_lenbias.compare.half_precision import half_precision
from espnet_lenbias.espnet_compat import ASRTask
from espnet_lenbias.inference.whisper_shapes import HEAD
from espnet_lenbias.inference.whisper_tokens import HuggingFaceView
from espnet_lenbias.options.fast_yaml import DUMPER


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("checkpoint", help="a name that openai-whisper knows, or a file (.pt)")
    add("out", type=Path, help="folder that gets whisper.zip")
    add("--language", default="en", help="that is spoken, e.g. de")
    add("--task", default="transcribe", choices=["transcribe", "translate"])
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    source = Path(args.checkpoint)
    said = {
        "checkpoint": checkpoint_said(source) if source.is_file() else args.checkpoint,
        "language": TO_LANGUAGE_CODE.get(args.language, args.language),
        "task": args.task,
    }
    packed, note = args.out / "whisper.zip", args.out / "whisper.yaml"
    if packed.is_file() and note.is_file():
        of = yaml.safe_load(note.read_text("utf-8"))
        if of != said:
            sys.exit(
                f"pack.py: {packed} is of {_listed(of)}, not of {_listed(said)}: give "
                f"the run another --name, or remove {args.out}"
            )
        print(f"{packed} is there already")
        return
    check_language(args.checkpoint, said["language"], args.task)
    model = load(args.checkpoint)
    check(model, args.checkpoint, said["language"], args.task)
    args.out.mkdir(parents=True, exist_ok=True)
    files = args.out / "whisper.pth", args.out / "config.yaml"
    torch.save(espnet_parameters(model), files[0])
    with files[1].open("w", encoding="utf-8") as f:
        config = espnet_config(model, args.checkpoint, said["language"], args.task)
        yaml.dump(config, f, DUMPER)
    draft = args.out / "draft.zip"
    # in the folder, for the archive has the names of its files as they are from here
    with contextlib.chdir(args.out), contextlib.redirect_stdout(io.StringIO()):
        pack(
            files={"asr_model_file": files[0].name},
            yaml_files={"asr_train_config": files[1].name},
            outpath=draft.name,
        )
    draft.replace(packed)
    print(f"{packed}: {packed.stat().st_size / 1e6:.0f} MB")
    note.write_text(yaml.safe_dump(said), "utf-8")
    for file in files:  # they are in the archive
        file.unlink()


def checkpoint_said(file: Path) -> str:
    """Return which file a checkpoint is, by its name and by what it holds."""
    with file.open("rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    return f"{file.resolve()} (SHA-256 {digest[:16]})"


def load(checkpoint: str) -> Any:
    """Return the model of a checkpoint.

    Raises:
        SystemExit: It is not there, cannot be fetched, or is no checkpoint.
    """
    try:
        return whisper.load_model(checkpoint, device="cpu")
    except Exception as e:  # of the net, of the disk, of torch
        why = " ".join(str(e).split()) or type(e).__name__
        if isinstance(e, pickle.UnpicklingError):  # torch would have it unpickled
            why = "it is damaged, or holds other things than parameters"
        if checkpoint in whisper.available_models():
            url = whisper._MODELS[checkpoint]
            sys.exit(
                f"pack.py: the checkpoint {checkpoint} cannot be fetched ({why}): fetch "
                f"{url} where there is a net, and name the file: --checkpoint FILE.pt"
            )
        if not Path(checkpoint).is_file():
            names = ", ".join(whisper.available_models())
            sys.exit(
                f"pack.py: there is no file {checkpoint}, and it is no name of a "
                f"checkpoint: {names}"
            )
        sys.exit(f"pack.py: {checkpoint} is no checkpoint of openai-whisper: {why}")


def check_language(checkpoint: str, language: str, task: str) -> None:
    """Verify what can be told before a checkpoint is fetched.

    Raises:
        SystemExit: No such language, or none of the checkpoint's by its name.
    """
    if language not in LANGUAGES:
        sys.exit(
            f"pack.py: --language {language} is no language of Whisper's: "
            f"{', '.join(LANGUAGES)}"
        )
    if checkpoint in whisper.available_models() and checkpoint.endswith(".en"):
        _check_english(checkpoint, language, task)


def _check_english(checkpoint: str, language: str, task: str) -> None:
    """Verify that a checkpoint of English alone is asked for what it can do."""
    if (language, task) != ("en", "transcribe"):
        sys.exit(
            f"pack.py: {checkpoint} is a model of English alone: it cannot {task} "
            f"{LANGUAGES[language]}; give a checkpoint of many languages, such as small"
        )


def check(model: Any, checkpoint: str, language: str, task: str) -> None:
    """Verify that a model knows what it is to do.

    Raises:
        SystemExit: It does not.
    """
    if not model.is_multilingual:
        _check_english(checkpoint, language, task)
    else:
        known = list(LANGUAGES)[: model.num_languages]
        if language not in known:
            sys.exit(f"pack.py: {checkpoint} does not know {LANGUAGES[language]}")
    dims = model.dims
    if {
        dims.n_audio_state // dims.n_audio_head,
        dims.n_text_state // dims.n_text_head,
    } != {HEAD}:
        sys.exit(
            f"pack.py: {checkpoint} has attention heads of another size than {HEAD}, "
            "which all models of OpenAI's have, and cannot be packed"
        )


def espnet_parameters(model: Any) -> dict[str, torch.Tensor]:
    """Return a model's parameters by ESPnet's names; in half precision where that is all.

    OpenAI's checkpoints are in half precision, and loading makes them float32.
    """
    parameters = {}
    for name, value in model.state_dict().items():
        half, _, rest = name.partition(".")  # encoder, decoder
        parameters[f"{half}.{half}s.{rest}"] = value
    return half_precision(parameters, lossless=True)


def espnet_config(
    model: Any, checkpoint: str, language: str, task: str
) -> dict[str, Any]:
    """Return the config that an ESPnet training of a model would leave."""
    required = ["--output_dir", "exp", "--token_list", "x"]
    config = vars(ASRTask.get_parser().parse_args(required))
    name = "whisper_multilingual" if model.is_multilingual else "whisper_en"
    tokenizer = get_tokenizer(
        model.is_multilingual, num_languages=model.num_languages, language=language
    )
    n_labels = model.dims.n_vocab
    labels = HuggingFaceView(tokenizer.encoding).convert_ids_to_tokens(range(n_labels))
    texts = {"whisper_language": language, "whisper_task": task}
    config.update(
        token_list=labels,
        token_type=name,
        bpemodel=name,
        input_size=1,  # audio, not features
        frontend=None,
        normalize=None,
        encoder="whisper",
        encoder_conf={"whisper_model": checkpoint, "do_pad_trim": True},
        decoder="whisper",
        decoder_conf={"whisper_model": checkpoint},
        model_conf={
            "ctc_weight": 0.0,
            "sym_sos": "<|startoftranscript|>",
            "sym_eos": "<|endoftext|>",
        },
        preprocessor_conf=texts if model.is_multilingual else {},
    )
    return config


def _listed(said: dict[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in said.items())


if __name__ == "__main__":
    main()
