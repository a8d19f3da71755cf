"""A model for each tool of ESPnet, and data to decode with it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from espnet2.tasks.asr import ASRTask
from espnet2.tasks.mt import MTTask
from espnet2.tasks.s2t import S2TTask
from espnet2.tasks.s2t_ctc import S2TTask as S2TCTCTask
from espnet2.tasks.slu import SLUTask
from espnet2.tasks.st import STTask

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.options.espnet_tools import MT, S2T, SLU, ST, Tool
from tests import make_models as models
from tests.make_models import make_model
from tests.tiny import Model

_ST = {**models.SPEECH, **models.SOURCE}

# name -> task, vocabulary, options of the training
MODELS = {
    "asr": (ASRTask, models.TOKENS, models.SPEECH),
    "asr_features": (ASRTask, models.TOKENS, models.FEATURES),
    "st": (STTask, models.TOKENS, _ST),
    "st_ctc": (STTask, models.TOKENS, {**_ST, **models.WITH_CTC}),
    "st_multi": (STTask, models.TOKENS, {**_ST, **models.MULTI_DECODER}),
    "st_attention": (
        STTask,
        models.TOKENS,
        {**_ST, **models.MULTI_DECODER, **models.SPEECH_ATTENTION},
    ),
    "mt": (MTTask, models.TOKENS, models.TEXT),
    "mt_units": (MTTask, models.TOKENS, models.DISCRETE_UNITS),
    "s2t": (S2TTask, models.S2T_TOKENS, models.WINDOWED),
    "s2t_ctc": (S2TCTCTask, models.S2T_TOKENS, models.WINDOWED_CTC),
    "slu": (SLUTask, models.TOKENS, models.SPEECH),
    "slu_transcript": (
        SLUTask,
        models.TOKENS,
        {**models.SPEECH, "transcript_token_list": models.SRC_TOKENS},
    ),
}
TOOLS = {"st": ST, "mt": MT, "s2t": S2T, "slu": SLU}
TEXTS = {"utt1": "A B", "utt2": "C", "utt3": "D E F"}


@pytest.fixture(scope="session")
def model_of(tmp_path_factory) -> Callable[[str], Model]:
    """Return what gives the model of a name, made when it is first asked for."""
    made: dict[str, Model] = {}
    folder = tmp_path_factory.mktemp("models")

    def model(name: str) -> Model:
        if name not in made:
            task, tokens, options = MODELS[name]
            made[name] = make_model(
                folder / name, name.partition("_")[0], task, tokens, **options
            )
        return made[name]

    return model


def tool_of(model: Model) -> Tool:
    return TOOLS[model.tool]


@pytest.fixture
def data(wav_scp, tmp_path) -> Path:
    """Write ``wav.scp`` and a text of three utterances; return their folder."""
    lines = wav_scp.read_text().splitlines(keepends=True)
    wav_scp.write_text("".join(lines[:3]))
    texts = "".join(f"{key} {text}\n" for key, text in TEXTS.items())
    (tmp_path / "text").write_text(texts)
    return tmp_path


def command(model: Model, data: Path, out: Path, *options: str) -> list[str]:
    """Return the options of a tool, for ESPnet's or ours."""
    source = f"{data}/wav.scp,speech,sound"
    if model.tool == "mt":
        source = f"{data}/text,src_text,text"
    return _command(model, source, out, *options)


def asr_command(
    model: Model, scp: Path | str, out: Path | str, *options: str
) -> list[str]:
    """Return the options of speech recognition, with audio of any list."""
    more = ("--ctc_weight", "0.3", *options)
    return _command(model, f"{scp},speech,sound", out, *more)


def _command(model: Model, source: str, out: Path | str, *options: str) -> list[str]:
    return [
        *model.options,
        *("--data_path_and_name_and_type", source),
        *("--output_dir", str(out)),
        *("--num_workers", "0"),
        *("--beam_size", "4"),
        *options,
    ]


def run_asr(model: Model, scp: Path, out: Path, *options: str) -> int:
    """Recognise speech with ``explicit_length``, where no other search is named."""
    if not {"--search", "--config"} & set(options):
        options = (*options, "--search", "explicit_length")
    return asr_inference.main(asr_command(model, scp, out, *options))


def fails(capsys: pytest.CaptureFixture, run: Callable[..., object], *args) -> str:
    """Return what a command that ends with status 2 says; its error comes last."""
    with pytest.raises(SystemExit) as e:
        run(*args)
    assert e.value.code == 2
    error = capsys.readouterr().err
    # what the yaml parser says has several lines
    assert ": error: " in error.splitlines()[-1] or "not a yaml file" in error
    return error


def files(out: Path) -> dict[str, bytes]:
    """Return the result files, below the output folder."""
    return {str(p.relative_to(out)): p.read_bytes() for p in out.glob("*/*")}


def lines(out: Path, name: str = "1best_recog/text") -> dict[str, str]:
    """Return the lines of a result file: key -> the rest."""
    return dict(line.split(" ", 1) for line in (out / name).read_text().splitlines())
