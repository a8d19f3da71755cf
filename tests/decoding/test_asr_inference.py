"""The drop-in command line: ESPnet's files, options, the decode config, recipes."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from espnet2.bin import asr_inference as espnets
from espnet2.tasks.asr import ASRTask

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding import drop_in
from espnet_lenbias.options.decoding import get_parser
from espnet_lenbias.options.espnet_parser import inference_parser
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.packed_model import model_files
from tests.releases import needs_batches
from tests.tiny import Model, write_model
from tests.tool_models import asr_command, fails, files, lines, run_asr

MINI_LIBRISPEECH = Path(__file__).parents[2] / "recipes" / "mini_librispeech"


# --- The files ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "which, batch_size",
    [
        ("transformer_model", "1"),
        pytest.param("transformer_model", "2", marks=needs_batches),
        ("rnn_model", "1"),  # ESPnet does not batch RNN decoders
    ],
)
def test_search_espnet_writes_espnets_files(
    which, batch_size, wav_scp, tmp_path, request
):
    model = request.getfixturevalue(which)
    options = ["--batch_size", batch_size, "--nbest", "2"]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert run_asr(model, wav_scp, ours, *options, "--search", "espnet") == 0
    espnets.main(asr_command(model, wav_scp, theirs, *options))
    assert files(ours) == files(theirs)
    assert len(files(ours)) == 8


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_files_of_our_searches(
    search, batch_size, transformer_model, wav_scp, tmp_path
):
    out = tmp_path / "out"
    options = ["--search", search, "--batch_size", batch_size, "--nbest", "2"]
    assert run_asr(transformer_model, wav_scp, out, *options) == 0
    ours = {"original_score", "steps", "stopped"}
    names = {"token", "token_int", "score", "text"} | ours
    assert set(files(out)) == {f"{n}best_recog/{x}" for n in (1, 2) for x in names}
    for content in files(out).values():
        keys = [line.split()[0] for line in content.decode().splitlines()]
        assert keys == [f"utt{i}" for i in range(1, 6)]
    for key, token_ids in lines(out, "1best_recog/token_int").items():
        # one position for each label and one for the end label, at the least
        assert int(lines(out, "1best_recog/steps")[key]) >= len(token_ids.split()) + 1
        assert float(lines(out, "1best_recog/score")[key]) <= 0 or search == "simple"
        stopped = lines(out, "1best_recog/stopped")[key]
        assert stopped in {"bound", "ended", "limit", "forced"}


def test_ranks_without_a_hypothesis_have_their_lines(
    transformer_model, wav_scp, tmp_path
):
    out = tmp_path / "out"
    options = ["--nbest", "3", "--search_conf", "nbest=1"]
    assert run_asr(transformer_model, wav_scp, out, *options) == 0
    third = out / "3best_recog"
    assert (third / "text").read_text() == "".join(f"utt{i} \n" for i in range(1, 6))
    assert (third / "score").read_text().startswith("utt1 nan\nutt2 nan\n")


def test_the_key_file_chooses_and_orders(transformer_model, wav_scp, tmp_path):
    keys = tmp_path / "keys.scp"
    keys.write_text("utt4 x\nutt2 x\n")
    out = tmp_path / "out"
    assert run_asr(transformer_model, wav_scp, out, "--key_file", str(keys)) == 0
    assert list(lines(out)) == ["utt4", "utt2"]


@needs_batches
def test_predictions_of_the_encoders_layers_whatever_the_batch(
    transformer_model, wav_scp, tmp_path
):
    config = yaml.safe_load(transformer_model.config.read_text())
    config["encoder_conf"] |= {"num_blocks": 2, "interctc_layer_idx": [1]}
    config["model_conf"] = {"interctc_weight": 0.5}
    folder = tmp_path / "model"
    folder.mkdir()
    model = Model("asr", *write_model(folder, ASRTask, argparse.Namespace(**config)))
    for size in ("1", "3"):
        assert run_asr(model, wav_scp, tmp_path / size, "--batch_size", size) == 0
    assert files(tmp_path / "3") == files(tmp_path / "1")
    assert len(lines(tmp_path / "1", "1best_recog/encoder_interctc_layer1.txt")) == 5


# --- The options ----------------------------------------------------------------------


def test_every_option_of_espnets_tool_is_there():
    ours = {a.dest: a.default for a in get_parser(ASR.module)._actions}
    theirs = {a.dest: a.default for a in espnets.get_parser()._actions}
    own = {"search": "espnet", "search_conf": {}, "decoder_dtype": None}
    own |= {"decide": "map", "confidence": False, "posterior_nbest": None}
    own |= {"posterior_temperature": 1.0, "confidence_temperature": 1.0}
    own |= {"segments": None, "formats": [], "times": False}
    # without either, how much is decoded together depends on the search
    assert ours == {**theirs, **own, "batch_size": None, "batch_bins": None}


def test_a_parser_that_needs_its_module_is_taken_from_it(tmp_path, monkeypatch):
    (tmp_path / "some_inference.py").write_text(
        "import argparse\n"
        "BEAM = 7\n"
        "def get_parser():\n"
        "    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--beam', default=BEAM, help='3% of 100%%')\n"
        "    return parser\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    parser = inference_parser("some_inference")
    assert parser.parse_args([]).beam == 7
    assert "3% of 100%" in parser.format_help()


# --- The decode config ----------------------------------------------------------------


def _config(tmp_path: Path, text: str) -> tuple[str, str]:
    path = tmp_path / "decode.yaml"
    path.write_text(text)
    return "--config", str(path)


def test_the_command_line_beats_the_config(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    seen = {}

    def from_pretrained(model_tag, **options):
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "espnet_lenbias.inference.asr.Speech2Text.from_pretrained", from_pretrained
    )
    config = _config(
        tmp_path,
        "beam_size: 9\nnbest: 3\nsearch: simple\n"
        "search_conf:\n  length_norm: true\n  length_reward: 0.5\n",
    )
    options = [*config, "--search_conf", "length_reward=1.5"]
    assert run_asr(transformer_model, wav_scp, tmp_path / "out", *options) == 130
    assert seen["beam_size"] == 4
    assert seen["nbest"] == 3
    assert seen["search"] == "simple"
    assert seen["search_conf"] == {"length_norm": True, "length_reward": 1.5}


@pytest.mark.parametrize(
    "config, message",
    [
        ("serach: simple\n", "unknown option serach; did you mean search?"),
        ("beam_sise: 3\n", "unknown option beam_sise; did you mean beam_size?"),
        ("search: explicit\n", "no search 'explicit'; did you mean explicit_length?"),
        ("search_conf: {eos_threshold: 1.5}\n", "an option of search: simple, not of"),
        (
            "search: explicit_length\nsearch_conf: {score_treshold: 8}\n",
            "did you mean score_threshold?",
        ),
        ("search_conf: [score_threshold]\n", "search_conf must be a mapping"),
        (
            "search: explicit_length\nnormalize_length: true\n",
            "normalize_length does not go with search: expl",
        ),
        (
            "search: simple\nstreaming: true\n",
            "streaming: blockwise streaming search is",
        ),
        ("- beam_size\n", "a decode config holds `option: value` lines"),
        ("beam_size: {\n", "not a yaml file"),
    ],
)
def test_mistakes_in_the_config_name_key_file_and_remedy(
    config, message, transformer_model, wav_scp, tmp_path, capsys
):
    flag, path = _config(tmp_path, config)
    error = fails(
        capsys, run_asr, transformer_model, wav_scp, tmp_path / "out", flag, path
    )
    assert f"error: {path}: " in error
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--beam_sise", "3"], "arguments: --beam_sise 3; did you mean --beam_size?"),
        (
            ["--search", "simpel"],
            "error: there is no search 'simpel'; did you mean sim",
        ),
        (["--key_file", "gone.scp"], "key_file: there is no file gone.scp"),
        # a pipe of the shell, `<(command)`, is such a file
        (["--key_file", os.devnull], f"key_file: {os.devnull} is a pipe or a device"),
        (["--lm_file", "gone.pth"], "lm_file: there is no file gone.pth"),
        (["--model_tag", "gone.zip"], "model_tag: there is no file gone.zip"),
        (["--ctc_weight", "1.5"], "ctc_weight must be from 0 to 1"),
        (["--lm_weight", "nan"], "lm_weight must be a number, not nan"),
        (["--batch_size", "0"], "batch_size must be a whole number of 1 or more"),
    ],
)
def test_mistakes_on_the_command_line(
    options, message, transformer_model, wav_scp, tmp_path, capsys
):
    out = tmp_path / "out"
    assert message in fails(capsys, run_asr, transformer_model, wav_scp, out, *options)
    # nor are they those of a config that says the same option otherwise
    _, path = _config(tmp_path, "batch_size: 1\nctc_weight: 0.3\nsearch: simple\n")
    options = ["--config", path, *options]
    error = fails(capsys, run_asr, transformer_model, wav_scp, out, *options)
    assert message in error and path not in error


def test_a_train_config_that_is_another_file(
    transformer_model, wav_scp, tmp_path, capsys
):
    _, path = _config(tmp_path, "search: simple\n")
    args = (transformer_model, wav_scp, tmp_path / "out", "--asr_train_config", path)
    assert (
        f"error: asr_train_config: {path} is not the training config of a model"
        in fails(capsys, run_asr, *args)
    )


@pytest.mark.parametrize("key", ["asr_train_config", "lm_train_config"])
def test_a_train_config_of_another_kind(
    key, transformer_model, wav_scp, tmp_path, capsys
):
    config = tmp_path / "config.yaml"
    if key == "asr_train_config":
        config.write_text("lm: transformer\ntoken_list:\n- a\n")
    else:
        config.write_text(transformer_model.config.read_text())
    args = (transformer_model, wav_scp, tmp_path / "out", f"--{key}", str(config))
    kind = "an" if key == "asr_train_config" else "no"
    why = f"the training config of a model that is {kind} LM: give the config.yaml that"
    assert f"error: {key}: {config} is {why}" in fails(capsys, run_asr, *args)


def test_half_of_a_language_model(transformer_model, wav_scp, tmp_path, capsys):
    weights = str(transformer_model.weights)
    args = (transformer_model, wav_scp, tmp_path / "out", "--lm_file", weights)
    message = "error: lm_file: a language model takes two files: name its lm_train_conf"
    assert message in fails(capsys, run_asr, *args)


def test_a_model_named_without_its_config(transformer_model, wav_scp, tmp_path, capsys):
    weights = tmp_path / "model.pth"
    weights.write_bytes(transformer_model.weights.read_bytes())
    command = asr_command(transformer_model, wav_scp, tmp_path / "out")
    command = ["--asr_model_file", str(weights), *command[4:]]
    with pytest.raises(SystemExit) as e:
        asr_inference.main(command)
    assert e.value.code == 2
    message = f"asr_model_file: there is no config.yaml beside {weights}: name its"
    assert message in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text(transformer_model.config.read_text())
    assert asr_inference.main(command) == 0


def test_a_type_of_data_that_is_no_audio(transformer_model, wav_scp, tmp_path, capsys):
    command = asr_command(transformer_model, wav_scp, tmp_path / "out")
    with pytest.raises(SystemExit) as e:
        asr_inference.main([word.replace(",sound", ",text") for word in command])
    assert e.value.code == 2
    error = capsys.readouterr().err
    assert f"error: data_path_and_name_and_type: {wav_scp},speech,text: " in error
    assert not (tmp_path / "out").exists()


def test_an_option_of_the_search_in_the_wrong_place(
    transformer_model, wav_scp, tmp_path, capsys
):
    message = "it is an option of search: explicit_length, and goes into search_conf"
    _, path = _config(tmp_path, "score_threshold: 8.0\n")
    for options in (["--config", path], ["--score_threshold=8.0"]):
        args = (transformer_model, wav_scp, tmp_path / "out", *options)
        assert message in fails(capsys, run_asr, *args)


def test_nbest_is_said_twice(transformer_model, wav_scp, tmp_path, capsys):
    flag, path = _config(tmp_path, "search: simple\nsearch_conf: {nbest: 4}\n")
    args = (transformer_model, wav_scp, tmp_path / "out", flag, path)
    error = fails(capsys, run_asr, *args, "--nbest", "3")
    assert f"error: {path}: search_conf asks for nbest 4" in error
    assert "set nbest to 4 there" in error


def test_a_model_without_ctc(wav_scp, tmp_path, capsys):
    of_zip = model_files(str(MINI_LIBRISPEECH / "pretrained" / "asr_rnn.zip"))
    model = Model("asr", of_zip["asr_train_config"], of_zip["asr_model_file"])
    out = tmp_path / "out"
    error = fails(capsys, run_asr, model, wav_scp, out)
    assert "error: ctc_weight is 0.3, and the model has no CTC: set ctc_weight" in error
    # which is no other run, for there was none
    assert run_asr(model, wav_scp, out, "--ctc_weight", "0.0") == 0
    assert len(lines(out)) == 5


def test_a_release_that_decodes_no_batches(
    transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(drop_in, "decodes_batches", lambda: False)
    monkeypatch.setattr(drop_in, "version", {"espnet": "202511"}.get)
    args = (transformer_model, wav_scp, tmp_path / "out", "--batch_size", "2")
    assert fails(capsys, run_asr, *args).endswith(
        "error: batch_size is 2, and asr_inference of ESPnet 202511 decodes one "
        "utterance at a time: set batch_size to 1\n"
    )


def test_no_gpu(transformer_model, wav_scp, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    args = (transformer_model, wav_scp, tmp_path / "out")
    assert "set ngpu to 0" in fails(capsys, run_asr, *args, "--ngpu", "1")
    assert "a process decodes on one GPU" in fails(
        capsys, run_asr, *args, "--ngpu", "2"
    )


@pytest.mark.parametrize("by_key_file", [False, True])
@pytest.mark.parametrize(
    "content, message",
    [
        (b"a x.wav\nb y.wav\na\tz.wav\n", ", lines 1 and 3 have the same key a: "),
        (b"a x.wav\n\n", ", line 2 is empty: remove it"),
        (b"", " holds no utterance keys"),
        (b"a b\nRIFF\xe8", ", line 2 is no text in UTF-8: name a text file of lin"),
    ],
)
def test_data_that_is_no_list_of_utterances(
    content, message, by_key_file, transformer_model, tmp_path, capsys
):
    scp, keys = tmp_path / "other.scp", tmp_path / "keys.scp"
    scp.write_bytes(content)
    keys.write_text("a x\n")
    options = ["--key_file", str(keys)] if by_key_file else []
    error = fails(capsys, run_asr, transformer_model, scp, tmp_path / "out", *options)
    assert f"error: {scp}{message}" in error


def test_without_a_model(wav_scp, tmp_path, capsys):
    options = ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
    with pytest.raises(SystemExit) as stop:
        asr_inference.main([*options, "--output_dir", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith(
        "error: no model is named: give --asr_model_file and its --asr_train_config, "
        "or --model_tag\n"
    )


@pytest.mark.parametrize("search", ["[explicit_length]", ""])
def test_a_search_that_is_no_name(transformer_model, wav_scp, tmp_path, capsys, search):
    config = _config(tmp_path, f"search: {search}\n")
    error = fails(
        capsys, run_asr, transformer_model, wav_scp, tmp_path / "out", *config
    )
    assert "there is no search" in error


def test_help_and_mistakes_do_not_wait_for_torch(tmp_path):
    code = """
import sys
from espnet_lenbias.bin.asr_inference import main
for cmd in (["--help"], ["--config", sys.argv[1]]):
    try:
        main(cmd)
    except SystemExit as e:
        print("status", e.code, "torch" in sys.modules)
"""
    _, path = _config(tmp_path, "serach: simple\n")
    command = [sys.executable, "-c", code, path]
    out = subprocess.run(command, capture_output=True, text=True)
    assert "--search_conf" in out.stdout and "--lm_weight" in out.stdout
    statuses = [line for line in out.stdout.splitlines() if line.startswith("status")]
    assert statuses == ["status 0 False", "status 2 False"], out.stderr


# --- ESPnet's recipes -----------------------------------------------------------------


def test_stage_12_of_asr_sh(transformer_model, trouble, tmp_path):
    """The command line of ESPnet's ``asr.sh`` with ``--python`` set to the wrapper."""
    config = _config(
        tmp_path, "search: explicit_length\nbeam_size: 3\nctc_weight: 0.3\n"
    )
    python = f"{sys.executable} -m espnet_lenbias"
    out, log = tmp_path / "logdir" / "output.1", tmp_path / "asr_inference.1.log"
    command = [
        *python.split(), "-m", "espnet2.bin.asr_inference",
        "--batch_size", "1",
        "--ngpu", "0",
        "--data_path_and_name_and_type", f"{trouble},speech,sound",
        "--key_file", str(trouble.parent / "keys.scp"),
        "--asr_train_config", str(transformer_model.config),
        "--asr_model_file", str(transformer_model.weights),
        "--output_dir", str(out),
        *config,
        "--beam_size", "2",
    ]  # fmt: skip
    recipe = {**os.environ, "OMP_NUM_THREADS": "1"}  # as its path.sh says
    with log.open("w") as f:
        assert subprocess.run(command, stdout=f, stderr=f, env=recipe).returncode == 1

    assert list(lines(out)) == [f"utt{i}" for i in range(1, 7)]
    names = {path.name for path in (out / "1best_recog").iterdir()}
    ours = {"original_score", "steps", "stopped"}
    assert names == {"token", "token_int", "score", "text"} | ours
    text = log.read_text()
    date = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \(\w+:\d+\) INFO: "
    assert len(re.findall(date + "speech length: 3600$", text, re.MULTILINE)) == 1
    assert len(re.findall(date + "best hypo: ", text, re.MULTILINE)) == 1
    assert text.count("INFO: speech length") == text.count("INFO: best hypo") == 1
    assert "5 of 6 utterances failed" in text
    assert "batch/s" not in text  # no progress bar in a log
