"""Data of each of ESPnet's types, and data that a model does not take."""

import importlib

import numpy as np
import pytest
from espnet2.bin.asr_inference import Speech2Text as EspnetSpeech2Text
from espnet2.train.dataset import DATA_TYPES

from espnet_lenbias import OptionError
from espnet_lenbias.decoding.preprocessing import prepared
from espnet_lenbias.options.espnet_tools import ASR, MT, SLU
from tests.conftest import RATE
from tests.tool_models import files, lines

DATA = "--data_path_and_name_and_type"
SEARCH = ("--search", "simple", "--ctc_weight", "0.0", "--beam_size", "4")


def run(tool, model, data, out, *options) -> int:
    """Decode with a tool; return its exit status."""
    named = [word for entry in data for word in (DATA, entry)]
    where = ("--output_dir", str(out), "--num_workers", "0")
    main = importlib.import_module(tool.drop_in).main
    try:
        status: int = main([*model.options, *named, *where, *SEARCH, *options])
    except SystemExit as stop:
        return int(stop.code or 0)
    return status


@pytest.mark.parametrize("name", ["speech", "src_text"])
@pytest.mark.parametrize("kind", [*DATA_TYPES])
def test_whatever_the_type_no_traceback(kind, name, model_of, data, tmp_path, capsys):
    tool, model = (ASR, "asr") if name == "speech" else (MT, "mt")
    kind = kind.replace("\\d+", "3")  # rand_int_3_3
    file = f"{data}/wav.scp" if name == "speech" else f"{data}/text"
    status = run(tool, model_of(model), [f"{file},{name},{kind}"], tmp_path / "out")
    written = capsys.readouterr().err
    assert "Traceback" not in written
    if status == 2:
        last = written.splitlines()[-1]
        assert f"error: data_path_and_name_and_type: {file},{name},{kind}: " in last
    if kind == ("sound" if name == "speech" else "text"):
        assert status == 0


def test_a_type_whose_file_holds_something_else(model_of, data, tmp_path, capsys):
    scp = f"{data}/wav.scp"
    assert run(ASR, model_of("asr"), [f"{scp},speech,rand_float"], tmp_path / "o") == 2
    assert (
        f"error: data_path_and_name_and_type: {scp},speech,rand_float: {scp} cannot be "
        "read as rand_float (ValueError: invalid literal for int() with base 10: "
    ) in capsys.readouterr().err.splitlines()[-1]


def test_whole_numbers_of_16_bits(model_of, data, tmp_path, caplog):
    # what ESPnet's inference object makes of the same samples as they are
    wave = np.random.default_rng(1).integers(-9000, 9000, 3000).astype(np.int16)
    np.save(data / "utt1.npy", wave)
    (data / "npy.scp").write_text(f"utt1 {data}/utt1.npy\n")
    model, out = model_of("asr"), tmp_path / "out"
    source = f"{data}/npy.scp,speech,npy"
    assert run(ASR, model, [source], out, "--search", "espnet") == 0
    espnets = EspnetSpeech2Text(**model.files, ctc_weight=0.0, beam_size=4)
    expected = espnets(wave.astype(np.float32))[0]
    assert lines(out, "1best_recog/token")["utt1"].split() == expected[1]
    again = tmp_path / "again"
    assert run(ASR, model, [source], again) == 0
    assert lines(again, "1best_recog/token")["utt1"].split()


def test_arrays_have_the_warnings_of_files(model_of, data, tmp_path, caplog):
    """Samples are at the rate of the model, as nothing tells of another one."""
    noise = 0.1 * np.random.default_rng(1).standard_normal((41 * RATE, 2))
    np.save(data / "utt1.npy", noise[: 2 * RATE].astype(np.float32))
    np.save(data / "utt2.npy", noise[:, 0].astype(np.float32))
    scp = data / "npy.scp"
    scp.write_text("".join(f"{k} {data}/{k}.npy\n" for k in ("utt1", "utt2")))
    options = ["--search", "explicit_length", "--maxlenratio", "-2"]
    assert (
        run(ASR, model_of("asr"), [f"{scp},speech,npy"], tmp_path / "o", *options) == 0
    )
    said = [m for m in caplog.messages if m.startswith("Utterance utt")]
    assert any(f"Utterance utt1: {data}/utt1.npy has 2 channels" in m for m in said)
    assert any(f"Utterance utt2: {data}/utt2.npy" in m and "41" in m for m in said)


@pytest.mark.parametrize("kind", ["text_int", "csv_int"])
def test_numbers_for_a_model_that_takes_a_text(kind, model_of, data, tmp_path, capsys):
    (data / "ids").write_text("utt1 4\nutt2 5\n")
    source = f"{data}/ids,src_text,{kind}"
    assert run(MT, model_of("mt"), [source], tmp_path / "out") == 2
    assert (
        f"error: data_path_and_name_and_type: {source}: the model makes token ids of "
        f"src_text itself, and {kind} gives no text: say {data}/ids,src_text,text"
    ) in capsys.readouterr().err.splitlines()[-1]


def test_a_transcript_for_a_model_that_takes_none(model_of, data, tmp_path, capsys):
    speech, text = f"{data}/wav.scp,speech,sound", f"{data}/text,transcript,text"
    message = (
        "error: transcript: the model was trained without transcripts, and takes none: "
        "leave it out"
    )
    model = model_of("slu")
    assert run(SLU, model, [speech, text], tmp_path / "out") == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    understands = SLU.inference_class()(**model.files, ctc_weight=0.0)
    given = {"speech": np.ones(3000, np.float32), "transcript": "A B"}
    with pytest.raises(OptionError, match=r"^transcript: .* leave it out"):
        prepared(understands, SLU, given)  # as `explain` does


def test_data_of_other_names_can_be_left_out(model_of, data, tmp_path, caplog):
    model, speech = model_of("asr"), f"{data}/wav.scp,speech,sound"
    text = f"{data}/text,text,text"
    allow = ("--allow_variable_data_keys", "true")
    assert run(ASR, model, [speech, text], tmp_path / "with", *allow) == 0
    assert f"{text}: asr_inference takes speech, and no text: it is left out" in (
        caplog.text
    )
    assert run(ASR, model, [speech], tmp_path / "without") == 0
    assert files(tmp_path / "with") == files(tmp_path / "without")
