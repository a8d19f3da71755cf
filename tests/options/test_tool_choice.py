"""Which tool a command line asks for."""

import zipfile

import pytest
import yaml

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.espnet_tools import ASR, MT, S2T, SLU, ST
from espnet_lenbias.options.tool_choice import check_tool, choose_tool


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Write a packed translator, something else, and decode configs."""
    monkeypatch.chdir(tmp_path)
    meta = {"files": {"mt_model_file": "x"}, "yaml_files": {"mt_train_config": "y"}}
    with zipfile.ZipFile("mt.zip", "w") as archive:
        archive.writestr("meta.yaml", yaml.safe_dump(meta))
    with zipfile.ZipFile("odd.zip", "w") as archive:
        archive.writestr("meta.yaml", "files: null\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "st.yaml").write_text("st_model_file: model.pth\n")
    (tmp_path / "slu.yaml").write_text("tool: slu\n")


@pytest.mark.parametrize(
    "command, expected",
    [
        ("", ASR),
        ("--tool st", ST),
        ("--tool=mt_inference", MT),
        ("--beam_size 4 --s2t_train_config c.yaml", S2T),
        ("--slu_model_file=m.pth --beam_size 4", SLU),
        ("--model_tag mt.zip", MT),
        ("--model mt.zip", MT),
        ("--model_tag mt.zip --lm_file x --tool mt", MT),
        ("--model_tag someone/model", ASR),
        ("--model_tag odd.zip", ASR),
        ("--model_tag gone.zip", ASR),
        ("--config st.yaml", ST),
        ("--config slu.yaml", SLU),
        ("--config slu.yaml --tool mt", MT),
        ("--config broken.yaml", ASR),
        ("--config gone.yaml --tool", ASR),
        ("--asr_train_config x --mt_train_config y", ASR),
    ],
)
def test_the_tool(command, expected):
    assert choose_tool(command.split()) is expected


@pytest.mark.parametrize(
    "command, message",
    [
        (
            "--tool asrr",
            r"tool: there is no tool 'asrr'; did you mean asr\? \(one of: asr, ",
        ),
        ("--tool st_streaming", "run python -m espnet_lenbias.bin.st_inference_stream"),
        ("--tool asr_inference_streaming", "chunk by chunk.* or say --tool asr for"),
        ("--tool st --model_tag mt.zip", "mt.zip is a model of mt, and not of st"),
        ("--tool st --mt_train_config c", "tool: c is a model of mt, and not of st"),
    ],
)
def test_mistakes(command, message):
    with pytest.raises(OptionError, match=message):
        choose_tool(command.split())


def test_files_of_a_model():
    check_tool(ASR, "x", ["asr_train_config", "lm_file"])
    check_tool(ASR, "x", ["something_else"])  # whose loading says what is wrong
    with pytest.raises(OptionError, match="tool: x is a model of slu, and not of asr"):
        check_tool(ASR, "x", ["slu_train_config", "lm_file"])
