"""What of a checkpoint a model takes: nothing is missing, and nothing that matters left."""

import pytest
import torch
import yaml
from espnet2.train.abs_espnet_model import AbsESPnetModel

from espnet_lenbias import OptionError, Speech2Text
from espnet_lenbias.inference.loaded_parameters import (
    CheckpointError,
    loading_checked,
)
from espnet_lenbias.options.espnet_tools import ASR, MT, S2T, SLU, ST

SIMPLE = {"search": "simple", "ctc_weight": 0.0}
TOOLS = {"asr": ASR, "st": ST, "mt": MT, "s2t": S2T, "slu": SLU}


@pytest.fixture
def files_with(model_of, tmp_path):
    """Return what writes a model whose checkpoint, or config, is another one."""

    def write(name, change=lambda weights: weights, **config) -> dict[str, str]:
        model = model_of(name)
        written = yaml.safe_load(model.config.read_text()) | config
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(written))
        torch.save(change(torch.load(model.weights)), tmp_path / "model.pth")
        return {
            f"{model.tool}_train_config": str(tmp_path / "config.yaml"),
            f"{model.tool}_model_file": str(tmp_path / "model.pth"),
        }

    return write


def second_block(weights, part="encoder.encoders"):
    """Return parameters with a second block, a copy of the first."""
    first = {k: v for k, v in weights.items() if k.startswith(f"{part}.0.")}
    return weights | {k.replace(".0.", ".1.", 1): v for k, v in first.items()}


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("part", ["encoder.encoders", "decoder.decoders"])
def test_a_block_too_many_is_refused(name, part, files_with, model_of):
    files = files_with(name, lambda weights: second_block(weights, part))
    before = torch.load(model_of(name).weights)
    count = sum(key.startswith(f"{part}.0.") for key in before)
    with pytest.raises(OptionError) as e:
        TOOLS[name].inference_class()(**files, **SIMPLE)
    path = files[f"{name}_model_file"]
    assert str(e.value).startswith(
        f"{name}_model_file: {path} is not the checkpoint of this model, which has no "
        f"place for {count} of the parameters there ({part}.1."
    )
    assert f"see {part.partition('.')[0]} in the config" in str(e.value)


@pytest.mark.parametrize("search", ["espnet", "simple"])
@pytest.mark.parametrize(
    "left_over",
    [
        ["normalize.mean", "normalize.std"],
        ["preencoder.linear_out.weight"],
        ["postencoder.norm.bias"],
        ["encoder.interctc.weight"],
    ],
)
def test_a_part_that_the_config_has_not_is_refused(left_over, search, files_with):
    more = dict.fromkeys(left_over, torch.ones(20))
    files = files_with("asr", lambda weights: weights | more)
    message = f"no place for {len(more)} of the parameters there .{left_over[0]}.*see "
    with pytest.raises(OptionError, match=message):
        Speech2Text(**files, **{**SIMPLE, "search": search})


def test_other_normalisation_than_in_the_training_is_refused(files_with):
    more = {"normalize.mean": torch.ones(20), "normalize.std": torch.ones(20)}
    conf = {"normalize": "utterance_mvn", "normalize_conf": {}}
    files = files_with("asr", lambda weights: weights | more, **conf)
    with pytest.raises(OptionError, match="see normalize in the config"):
        Speech2Text(**files, **SIMPLE)


@pytest.mark.parametrize(
    "left_over",
    [
        {"aux_head.weight": torch.ones(3)},
        {"criterion_att.weights": torch.ones(3)},
        # a mask that older releases of a package save
        {"encoder.position_ids": torch.arange(3)},
    ],
)
def test_what_decoding_does_not_use_is_warned_of(left_over, files_with, caplog):
    files = files_with("asr", lambda weights: weights | left_over)
    Speech2Text(**files, **SIMPLE)
    assert (
        "holds 1 parameters that are left out, of nothing that the model decodes "
        in (caplog.text)
    )
    assert next(iter(left_over)) in caplog.text


def test_a_decoder_that_is_never_asked(files_with, caplog):
    # ESPnet builds none for a model that it trains with CTC alone
    files = files_with("asr", model_conf={"ctc_weight": 1.0})
    Speech2Text(**files, search="simple", ctc_weight=1.0)
    assert "parameters that are left out" in caplog.text


@pytest.mark.parametrize("name", TOOLS)
def test_a_whole_checkpoint_is_not_warned_of(name, model_of, caplog):
    TOOLS[name].inference_class()(**model_of(name).files, **SIMPLE)
    assert "left out" not in caplog.text


def test_the_names_of_another_release(files_with, model_of, waves):
    def renamed(weights):
        """Name the layer behind the subsampling as the other release does."""
        is_old = any("embed.out.0." in name for name in weights)
        names = ("embed.out.0.", "embed.out.")
        now, then = names if is_old else names[::-1]
        return {k.replace(now, then): v for k, v in weights.items()}

    before = torch.load(model_of("asr").weights)
    assert renamed(before).keys() != before.keys()
    # up to 0.5.2 ESPnet saved the table of positions, too
    positions = {"encoder.embed.out.1.pe": torch.zeros(1, 9, 16)}
    files = files_with("asr", lambda weights: renamed(weights) | positions)
    models = [Speech2Text(**f, **SIMPLE) for f in (files, model_of("asr").files)]
    results = [model(waves["utt1"])[0] for model in models]
    assert results[0][:3] == results[1][:3]
    assert results[0][3].score == results[1][3].score


class Upstream(torch.nn.Module):
    """Of a package whose parameters have come and gone."""

    def __init__(self):
        super().__init__()
        self.upstream = torch.nn.Module()
        self.upstream.model = torch.nn.Linear(2, 1)


class Model(AbsESPnetModel):
    """What loads a checkpoint as ESPnet's models do."""

    def __init__(self):
        super().__init__()
        self.frontend = torch.nn.Module()
        self.frontend.upstream = Upstream()

    def forward(self):
        """Do nothing."""

    collect_feats = forward


def test_parameters_of_other_packages_may_be_gone(caplog):
    model = Model()
    saved = model.state_dict() | {"frontend.upstream.projection.weight": torch.ones(2)}
    with loading_checked({}, lm_is_used=False):
        model.load_state_dict(saved, strict=False)
    assert "frontend.upstream.projection.weight" in caplog.text
    with (
        pytest.raises(CheckpointError, match="no place for 1 of the parameters there"),
        loading_checked({}, lm_is_used=False),
    ):
        model.load_state_dict(saved | {"frontend.more": torch.ones(2)}, strict=False)


def test_the_older_name_of_an_upstream_model():
    # espnet2/tasks/abs_task.py renames it, where the first attempt to load has failed
    model, name = Model(), "frontend.upstream.model.weight"
    saved = {
        name: torch.tensor([[5.0, 6.0]]),
        name.replace("weight", "bias"): torch.ones(1),
    }
    with loading_checked({}, lm_is_used=False):
        model.load_state_dict(saved, strict=False)
    assert model.frontend.upstream.upstream.model.weight.tolist() == [[5.0, 6.0]]


def test_torch_loads_as_before_afterwards():
    with loading_checked({}, lm_is_used=False):
        pass
    assert AbsESPnetModel.load_state_dict is torch.nn.Module.load_state_dict
