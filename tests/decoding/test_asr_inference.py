"""The drop-in command line: ESPnet's files, a line for every key, resuming."""

import argparse
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml
from espnet2.bin import asr_inference as espnets
from espnet2.tasks.asr import ASRTask

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding import drop_in, log_markers, result_folder, result_rows
from espnet_lenbias.decoding.folder_lock import LOCK
from espnet_lenbias.decoding.run_log import LOG
from espnet_lenbias.options import run_options as described
from espnet_lenbias.options.data_files import lines_of, utterances
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_parser import inference_parser
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.search.log_best import LIMIT, UTTERANCE
from tests.conftest import RATE, Model
from tests.releases import needs_batches
from tests.tiny import write_model
from tests.tool_models import files

MINI_LIBRISPEECH = Path(__file__).parents[2] / "recipes" / "mini_librispeech"
DECODING = ["--beam_size", "4", "--ctc_weight", "0.3", "--num_workers", "0"]


def _command(model, scp: Path, out: Path, *options: str) -> list[str]:
    return [
        *("--asr_train_config", str(model.config)),
        *("--asr_model_file", str(model.weights)),
        *("--data_path_and_name_and_type", f"{scp},speech,sound"),
        *("--output_dir", str(out)),
        *DECODING,
        *options,
    ]


def _run(*args) -> int:
    if not {"--search", "--config"} & set(args):
        args = (*args, "--search", "explicit_length")
    return asr_inference.main(_command(*args))


def _lines(out: Path, name: str = "text") -> dict[str, str]:
    lines = (out / "1best_recog" / name).read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def _write_wav(scp: Path, key: str, samples: np.ndarray) -> None:
    """Give an utterance other audio."""
    soundfile.write(scp.parent / f"{key}.wav", samples, RATE, subtype="FLOAT")


def _fails(capsys, *args) -> str:
    """Return what a command that ends with status 2 says; its error comes last."""
    with pytest.raises(SystemExit) as e:
        _run(*args)
    assert e.value.code == 2
    error = capsys.readouterr().err
    # what the yaml parser says has several lines
    assert ": error: " in error.splitlines()[-1] or "not a yaml file" in error
    return error


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
    assert _run(model, wav_scp, ours, *options, "--search", "espnet") == 0
    espnets.main(_command(model, wav_scp, theirs, *options))
    assert files(ours) == files(theirs)
    assert len(files(ours)) == 8


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_files_of_our_searches(
    search, batch_size, transformer_model, wav_scp, tmp_path
):
    out = tmp_path / "out"
    options = ["--search", search, "--batch_size", batch_size, "--nbest", "2"]
    assert _run(transformer_model, wav_scp, out, *options) == 0
    ours = {"original_score", "steps", "stopped"}
    names = {"token", "token_int", "score", "text"} | ours
    assert set(files(out)) == {f"{n}best_recog/{x}" for n in (1, 2) for x in names}
    for content in files(out).values():
        keys = [line.split()[0] for line in content.decode().splitlines()]
        assert keys == [f"utt{i}" for i in range(1, 6)]
    for key, token_ids in _lines(out, "token_int").items():
        # one position for each label and one for the end label, at the least
        assert int(_lines(out, "steps")[key]) >= len(token_ids.split()) + 1
        assert float(_lines(out, "score")[key]) <= 0 or search == "simple"
        assert _lines(out, "stopped")[key] in {"bound", "ended", "limit", "forced"}


def test_ranks_without_a_hypothesis_have_their_lines(
    transformer_model, wav_scp, tmp_path
):
    out = tmp_path / "out"
    options = ["--nbest", "3", "--search_conf", "nbest=1"]
    assert _run(transformer_model, wav_scp, out, *options) == 0
    third = out / "3best_recog"
    assert (third / "text").read_text() == "".join(f"utt{i} \n" for i in range(1, 6))
    assert (third / "score").read_text().startswith("utt1 nan\nutt2 nan\n")


def test_the_key_file_chooses_and_orders(transformer_model, wav_scp, tmp_path):
    keys = tmp_path / "keys.scp"
    keys.write_text("utt4 x\nutt2 x\n")
    out = tmp_path / "out"
    assert _run(transformer_model, wav_scp, out, "--key_file", str(keys)) == 0
    assert list(_lines(out)) == ["utt4", "utt2"]


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
    assert _run(transformer_model, wav_scp, tmp_path / "out", *options) == 130
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
    error = _fails(capsys, transformer_model, wav_scp, tmp_path / "out", flag, path)
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
    assert message in _fails(capsys, transformer_model, wav_scp, out, *options)
    # nor are they those of a config that says the same option otherwise
    _, path = _config(tmp_path, "batch_size: 1\nctc_weight: 0.3\nsearch: simple\n")
    options = ["--config", path, *options]
    error = _fails(capsys, transformer_model, wav_scp, out, *options)
    assert message in error and path not in error


def test_a_train_config_that_is_another_file(
    transformer_model, wav_scp, tmp_path, capsys
):
    _, path = _config(tmp_path, "search: simple\n")
    args = (transformer_model, wav_scp, tmp_path / "out", "--asr_train_config", path)
    assert (
        f"error: asr_train_config: {path} is not the training config of a model"
        in _fails(capsys, *args)
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
    assert f"error: {key}: {config} is {why}" in _fails(capsys, *args)


def test_half_of_a_language_model(transformer_model, wav_scp, tmp_path, capsys):
    weights = str(transformer_model.weights)
    args = (transformer_model, wav_scp, tmp_path / "out", "--lm_file", weights)
    message = "error: lm_file: a language model takes two files: name its lm_train_conf"
    assert message in _fails(capsys, *args)


def test_a_model_named_without_its_config(transformer_model, wav_scp, tmp_path, capsys):
    weights = tmp_path / "model.pth"
    weights.write_bytes(transformer_model.weights.read_bytes())
    command = _command(transformer_model, wav_scp, tmp_path / "out")
    command = ["--asr_model_file", str(weights), *command[4:]]
    with pytest.raises(SystemExit) as e:
        asr_inference.main(command)
    assert e.value.code == 2
    message = f"asr_model_file: there is no config.yaml beside {weights}: name its"
    assert message in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text(transformer_model.config.read_text())
    assert asr_inference.main(command) == 0


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_texts_that_the_length_limit_may_have_cut(
    search, transformer_model, wav_scp, tmp_path, caplog
):
    """Their number is said at the end: of each utterance at most one warning."""
    command = _command(transformer_model, wav_scp, tmp_path / "out")
    command += ["--search", search, "--maxlenratio", "-2", "--minlenratio", "-2"]
    assert asr_inference.main(command) == 0
    each = [m for m in caplog.messages if m.endswith("leaves it more room")]
    assert len(each) == 5
    assert caplog.messages[-1] == (
        "5 of 5 utterances have texts that the length limit may have cut: see the "
        "warnings above, and decode into another folder with a larger maxlenratio"
    )


def test_an_utterance_counts_once():
    with log_markers.utterance_warnings() as warnings:
        for key in ("a", "b", "a"):
            logging.warning(f"Utterance {key}: cut", extra={LIMIT: True})
        logging.warning("Utterance c: something else")
    (said,) = warnings.summary(7)
    assert said.startswith("2 of 7 utterances have texts that the length limit may")


@pytest.mark.parametrize("num_workers", ["0", "2"])
def test_audio_of_another_rate(
    num_workers, transformer_model, wav_scp, tmp_path, caplog
):
    """Two of five utterances, and not the first."""
    for key, rate in (("utt3", 2 * RATE), ("utt4", RATE // 2)):
        wave = wav_scp.parent / f"{key}.wav"
        soundfile.write(wave, soundfile.read(wave)[0], rate, subtype="FLOAT")
    options = ["--num_workers", num_workers]
    assert _run(transformer_model, wav_scp, tmp_path / "out", *options) == 0
    each = [m for m in caplog.messages if "samples a second" in m]
    assert each == [
        f"Utterance {key}: {wav_scp.parent / key}.wav has {rate} samples a second, and "
        f"the model takes {RATE}: resample it (sox {wav_scp.parent / key}.wav -r {RATE} "
        "out.wav)"
        for key, rate in (("utt3", 2 * RATE), ("utt4", RATE // 2))
    ]
    (together,) = [m for m in caplog.messages if "2 of 5 utterances" in m]
    assert "have another sampling rate than the model's" in together


def test_audio_of_the_models_rate(transformer_model, wav_scp, tmp_path, caplog):
    assert _run(transformer_model, wav_scp, tmp_path / "out") == 0
    assert "rate" not in caplog.text


@pytest.mark.parametrize("kind", ["sound", "multi_columns_sound", "kaldi_ark"])
def test_audio_that_is_cut_off(kind, transformer_model, wav_scp, tmp_path, caplog):
    """A WAV in the middle, and a FLAC, which its reader refuses."""
    wave = tmp_path / "utt3.wav"
    wave.write_bytes(wave.read_bytes()[: 44 + RATE // 4 * 2])  # 0.25 s of 0.35
    failed = [f"AudioError: {wave}: cut off: its header says 0.35 s, and 0.25 s are "]
    if kind != "kaldi_ark":
        flac = tmp_path / "utt5.flac"
        soundfile.write(flac, soundfile.read(tmp_path / "utt5.wav")[0], RATE)
        flac.write_bytes(flac.read_bytes()[:-1000])
        wav_scp.write_text(wav_scp.read_text().replace("utt5.wav", "utt5.flac"))
        failed.append(f"{flac}: LibsndfileError: ")
    command = _command(transformer_model, wav_scp, tmp_path / "out")
    command = [word.replace(",sound", f",{kind}") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    said = [m.split(": ", 2)[2] for m in caplog.messages if m.startswith("failed: ")]
    assert len(said) == len(failed)
    assert all(map(str.startswith, said, failed))
    empty = [key for key, text in _lines(tmp_path / "out").items() if not text]
    assert empty == ["utt3", "utt5"][: len(failed)]


@pytest.mark.parametrize("trained_on", ["sound", "kaldi_ark"])
def test_whole_numbers_are_as_espnet_hands_them_on(
    trained_on, transformer_model, wav_scp, tmp_path, caplog
):
    """With a warning, if those of the training were scaled."""
    config = yaml.safe_load(transformer_model.config.read_text())
    data = [["dump/raw/train/wav.scp", "speech", trained_on]]
    config["train_data_path_and_name_and_type"] = data
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    lines = [line.split() for line in wav_scp.read_text().splitlines()]
    wav_scp.write_text("".join(f"{key} cat {wave} |\n" for key, wave in lines[:2]))
    model = Model(tmp_path / "config.yaml", transformer_model.weights)
    ours, theirs = (
        [w.replace(",sound", ",kaldi_ark") for w in _command(model, wav_scp, out)]
        for out in (tmp_path / "ours", tmp_path / "theirs")
    )
    assert asr_inference.main(ours) == 0
    warnings = [m for m in caplog.messages if "scale" in m]
    espnets.main(theirs)
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    starts = ["Utterance utt1: cat ", "Utterance utt2: cat ", "2 of 2 utterances may "]
    assert len(warnings) == (len(starts) if trained_on == "sound" else 0)
    assert all(map(str.startswith, warnings, starts))


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_floats_of_another_scale(search, transformer_model, wav_scp, tmp_path, caplog):
    """Up to 32768, in one file of five."""
    wave = tmp_path / "utt3.wav"
    soundfile.write(wave, soundfile.read(wave)[0] * 32768, RATE, subtype="FLOAT")
    assert _run(transformer_model, wav_scp, tmp_path / "out", "--search", search) == 0
    said = [m for m in caplog.messages if "scale" in m or "beyond" in m]
    assert len(said) == 2
    assert said[0].startswith(f"Utterance utt3: {wave}: its samples go far beyond -1")
    assert said[1].startswith("1 of 5 utterances may have samples on another scale")


def test_the_first_of_two_channels_is_heard(
    transformer_model, wav_scp, tmp_path, caplog
):
    assert _run(transformer_model, wav_scp, tmp_path / "mono") == 0
    wave = tmp_path / "utt3.wav"
    samples, rate = soundfile.read(wave, dtype="int16")
    soundfile.write(wave, np.stack([samples, samples[::-1]], axis=1), rate)
    caplog.clear()
    assert _run(transformer_model, wav_scp, tmp_path / "stereo") == 0
    said = [m for m in caplog.messages if "channels" in m]
    assert len(said) == 2
    assert said[0].startswith(f"Utterance utt3: {wave} has 2 channels, of which")
    assert said[1].startswith("1 of 5 utterances have several channels")
    texts = [tmp_path / n / "1best_recog" / "text" for n in ("mono", "stereo")]
    assert texts[0].read_text() == texts[1].read_text()


@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_a_raw_file_costs_no_other(
    batch_size, transformer_model, wav_scp, tmp_path, caplog
):
    """In batches, too, for which the length of each file is asked for."""
    text = wav_scp.read_text()
    (tmp_path / "utt2.raw").write_bytes((tmp_path / "utt2.wav").read_bytes())
    wav_scp.write_text(text.replace("utt2.wav", "utt2.raw"))
    size = ("--batch_size", batch_size)
    assert _run(transformer_model, wav_scp, tmp_path / "out", *size) == 1
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert len(failed) == 1
    assert failed[0].startswith(
        f"failed: utt2: AudioError: {tmp_path / 'utt2.raw'}: .raw"
    )


@pytest.mark.parametrize("kind", ["sound", "multi_columns_sound"])
def test_a_command_as_sound(kind, transformer_model, wav_scp, tmp_path, caplog):
    text = wav_scp.read_text()
    wave = tmp_path / "utt2.wav"
    wav_scp.write_text(text.replace(f"{wave}", f"cat {wave} |"))
    command = _command(transformer_model, wav_scp, tmp_path / "out")
    command = [word.replace(",sound", f",{kind}") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    assert caplog.messages[-1] == (
        f"failed: utt2: cat {wave} |: sound takes no commands: use kaldi_ark"
    )


def test_commands_that_fail(transformer_model, wav_scp, tmp_path, caplog):
    """Two of five, each its utterance's own failure, and one of another rate."""
    soundfile.write(tmp_path / "utt3.wav", np.full(4000, 0.1), 2 * RATE)
    lines = [line.split() for line in wav_scp.read_text().splitlines()]
    commands = {key: f"cat {wave} |" for key, wave in lines}
    commands["utt2"] = "cat gone.wav |"
    commands["utt4"] = "cat gone.wav; false |"
    commands["utt5"] = f"{tmp_path}/gone.ark:12"
    scp = tmp_path / "pipes.scp"
    scp.write_text("".join(f"{k} {command}\n" for k, command in commands.items()))
    command = _command(transformer_model, scp, tmp_path / "out")
    command = [word.replace(",sound", ",kaldi_ark") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert len(failed) == 3
    assert failed[0].startswith("failed: utt2: cat gone.wav |: the command failed")
    assert failed[1].startswith("failed: utt4: cat gone.wav; false |: the command fail")
    assert failed[2].startswith(f"failed: utt5: {tmp_path}/gone.ark:12: ")
    assert f"Utterance utt3: {commands['utt3']} has {2 * RATE} samples" in caplog.text


def test_a_type_of_data_that_is_no_audio(transformer_model, wav_scp, tmp_path, capsys):
    command = _command(transformer_model, wav_scp, tmp_path / "out")
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
        assert message in _fails(capsys, *args)


def test_nbest_is_said_twice(transformer_model, wav_scp, tmp_path, capsys):
    flag, path = _config(tmp_path, "search: simple\nsearch_conf: {nbest: 4}\n")
    args = (transformer_model, wav_scp, tmp_path / "out", flag, path)
    error = _fails(capsys, *args, "--nbest", "3")
    assert f"error: {path}: search_conf asks for nbest 4" in error
    assert "set nbest to 4 there" in error


def test_a_model_without_ctc(wav_scp, tmp_path, capsys):
    of_zip = model_files(str(MINI_LIBRISPEECH / "pretrained" / "asr_rnn.zip"))
    model = Model(of_zip["asr_train_config"], of_zip["asr_model_file"])
    out = tmp_path / "out"
    error = _fails(capsys, model, wav_scp, out)
    assert "error: ctc_weight is 0.3, and the model has no CTC: set ctc_weight" in error
    # which is no other run, for there was none
    assert _run(model, wav_scp, out, "--ctc_weight", "0.0") == 0
    assert len(_lines(out)) == 5


def test_a_release_that_decodes_no_batches(
    transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(drop_in, "decodes_batches", lambda: False)
    monkeypatch.setattr(drop_in, "version", {"espnet": "202511"}.get)
    args = (transformer_model, wav_scp, tmp_path / "out", "--batch_size", "2")
    assert _fails(capsys, *args).endswith(
        "error: batch_size is 2, and asr_inference of ESPnet 202511 decodes one "
        "utterance at a time: set batch_size to 1\n"
    )


def test_no_gpu(transformer_model, wav_scp, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    args = (transformer_model, wav_scp, tmp_path / "out")
    assert "set ngpu to 0" in _fails(capsys, *args, "--ngpu", "1")
    assert "a process decodes on one GPU" in _fails(capsys, *args, "--ngpu", "2")


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
    error = _fails(capsys, transformer_model, scp, tmp_path / "out", *options)
    assert f"error: {scp}{message}" in error


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


# --- Utterances that fail -------------------------------------------------------------


@pytest.fixture
def trouble(wav_scp) -> Path:
    """Break utterances 1 to 4, each in its way, and add one that has no audio."""
    _write_wav(wav_scp, "utt1", np.full(RATE, np.nan))
    _write_wav(wav_scp, "utt2", np.zeros(160))  # too short for the subsampling
    cut = wav_scp.parent / "utt3.wav"
    soundfile.write(cut, np.random.default_rng(0).random(RATE), RATE, format="FLAC")
    cut.write_bytes(cut.read_bytes()[:9000])
    (wav_scp.parent / "utt4.wav").unlink()
    keys = wav_scp.parent / "keys.scp"
    keys.write_text(wav_scp.read_text() + "utt6 x\n")
    return wav_scp


@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
@pytest.mark.parametrize("search", ["espnet", "explicit_length", "simple"])
def test_a_failing_utterance_costs_only_itself(
    search, batch_size, transformer_model, wav_scp, tmp_path, caplog, request
):
    options = ["--search", search, "--batch_size", batch_size]
    clean, out = tmp_path / "clean", tmp_path / "out"
    assert _run(transformer_model, wav_scp, clean, *options) == 0
    trouble = request.getfixturevalue("trouble")
    options += ["--key_file", str(trouble.parent / "keys.scp")]
    assert _run(transformer_model, trouble, out, *options) == 1

    spoiled = ["utt1", "utt2", "utt3", "utt4", "utt6"]
    for name in ("text", "token", "token_int", "score"):
        lines = _lines(out, name)
        assert list(lines) == [f"utt{i}" for i in range(1, 7)]
        assert lines["utt5"] == _lines(clean, name)["utt5"]
        assert {lines[key] for key in spoiled} == {"nan" if name == "score" else ""}

    report = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    report = report[report.index(next(m for m in report if "of 6 utterances" in m)) :]
    assert report[0].startswith(f"{len(spoiled)} of 6 utterances failed; their lines")
    failed = dict(re.fullmatch("failed: (utt.): (.*)", m).groups() for m in report[1:])
    assert sorted(failed) == spoiled
    assert "is too short" in failed["utt2"]
    assert "utt3.wav" in failed["utt3"]
    assert failed["utt4"] == f"there is no file {trouble.parent / 'utt4.wav'}"
    assert failed["utt6"] == f"is not in all of {trouble}"
    assert re.fullmatch("AudioError: .* holds NaN or infinity", failed["utt1"])


@pytest.mark.parametrize("batch_size", ["1", pytest.param("5", marks=needs_batches)])
def test_out_of_memory_costs_only_the_long_utterance(
    batch_size, transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    clean, out = tmp_path / "clean", tmp_path / "out"
    _run(transformer_model, wav_scp, clean)
    forward = ExplicitLengthBeamSearch.forward

    def forward_if_short(self, x, **kwargs):
        if x.size(-2) >= 10:  # utt5
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, x, **kwargs)

    monkeypatch.setattr(ExplicitLengthBeamSearch, "forward", forward_if_short)
    options = ["--batch_size", batch_size]
    assert _run(transformer_model, wav_scp, out, *options) == 1
    assert _lines(out) == {**_lines(clean), "utt5": ""}
    (failed,) = [m for m in caplog.messages if m.startswith("failed: ")]
    assert failed.startswith("failed: utt5: ")
    assert "out of memory" in failed.lower() and "lower beam_size" in failed


def test_all_fail(transformer_model, wav_scp, tmp_path):
    for path in tmp_path.glob("*.wav"):
        path.unlink()
    assert _run(transformer_model, wav_scp, tmp_path / "out") == 1
    assert _lines(tmp_path / "out") == {f"utt{i}": "" for i in range(1, 6)}


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_one_encoder_frame_is_enough(search, transformer_model, wav_scp, tmp_path):
    _write_wav(wav_scp, "utt1", 0.1 * np.ones(480))  # 7 frames, 1 when subsampled
    out = tmp_path / "out"
    assert _run(transformer_model, wav_scp, out, "--search", search) == 0
    assert int(_lines(out, "steps")["utt1"]) >= 1


@pytest.mark.parametrize("batch_size", ["1", pytest.param("5", marks=needs_batches)])
def test_empty_audio_gets_its_line(batch_size, transformer_model, wav_scp, tmp_path):
    _write_wav(wav_scp, "utt3", np.zeros(0))
    options = ["--batch_size", batch_size]
    assert _run(transformer_model, wav_scp, tmp_path / "out", *options) == 1
    lines = _lines(tmp_path / "out")
    assert list(lines) == [f"utt{i}" for i in range(1, 6)]
    assert [key for key, text in lines.items() if not text] == ["utt3"]


# --- Resuming -------------------------------------------------------------------------


def _interrupt_after(n: int, monkeypatch) -> list[str]:
    """End the process after n results; return the keys that are decoded."""
    decoded = []
    add = result_folder.ResultFolder.add

    def add_some(self, key, row):
        if len(decoded) == n:
            raise KeyboardInterrupt
        decoded.append(key)
        add(self, key, row)

    monkeypatch.setattr(result_folder.ResultFolder, "add", add_some)
    return decoded


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_an_interrupted_run_goes_on(
    search, batch_size, transformer_model, wav_scp, tmp_path, monkeypatch, capsys
):
    options = ["--search", search, "--nbest", "2", "--batch_size", batch_size]
    order = [f"utt{i}" for i in range(1, 6)]
    if search != "espnet" and batch_size != "1":  # the longest first
        order.reverse()
    unbroken, out = tmp_path / "unbroken", tmp_path / "out"
    _run(transformer_model, wav_scp, unbroken, *options)

    with monkeypatch.context() as patch:
        _interrupt_after(4, patch)
        assert _run(transformer_model, wav_scp, out, *options) == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        "interrupted; the same command decodes the rest"
    )
    # What was there when it was killed can be read already, ...
    assert list(_lines(out)) == order[:4]
    # ... and a kill may cut any file inside a line.
    for path in (out / "1best_recog" / "text", out / JOURNAL):
        path.write_bytes(path.read_bytes()[:-4])

    decoded = _interrupt_after(99, monkeypatch)
    assert _run(transformer_model, wav_scp, out, *options) == 0
    assert decoded == order[3:]
    assert files(out) == files(unbroken)
    assert {p.name for p in out.iterdir() if p.is_file()} <= {JOURNAL, LOCK, LOG}


@needs_batches
def test_a_finished_run_is_not_made_again(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    _run(transformer_model, wav_scp, out)
    before = files(out)
    (out / "1best_recog" / "text").unlink()
    monkeypatch.setattr(drop_in, "decode_here", lambda *_: 1 / 0)
    assert _run(transformer_model, wav_scp, out, "--batch_size", "7") == 0
    assert files(out) == before


def test_failed_utterances_are_tried_again(
    transformer_model, waves, wav_scp, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    wave = wav_scp.parent / "utt2.wav"
    audio = wave.read_bytes()
    wave.unlink()
    assert _run(transformer_model, wav_scp, out) == 1
    wave.write_bytes(audio)
    decoded = _interrupt_after(99, monkeypatch)
    assert _run(transformer_model, wav_scp, out) == 0
    assert decoded == ["utt2"]
    _run(transformer_model, wav_scp, tmp_path / "unbroken")
    assert files(out) == files(tmp_path / "unbroken")


def test_another_run_does_not_mix(transformer_model, wav_scp, tmp_path, capsys):
    out = tmp_path / "out"
    _run(transformer_model, wav_scp, out)
    before = files(out)
    args = (transformer_model, wav_scp, out)
    error = _fails(capsys, *args, "--beam_size", "5", "--search", "simple")
    assert "(beam_size was 4, is 5; search was explicit_length, is simple)" in error
    assert f"remove the folder (rm -r {out})" in error
    assert files(out) == before


@pytest.mark.parametrize("read", [2**24, 0])
def test_a_file_that_changes_is_another_run(
    read, transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    """A small file by what it holds, a large one by its date too."""
    monkeypatch.setattr(described, "_READ", read)
    weights = tmp_path / "model.pth"
    weights.write_bytes(transformer_model.weights.read_bytes())
    args = (Model(transformer_model.config, weights), wav_scp, tmp_path / "out")
    assert _run(*args) == 0
    os.utime(weights, (1, 1))
    if read:
        assert _run(*args) == 0
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")  # trained further
    assert "(asr_model_file was" in _fails(capsys, *args)
    assert "wav.scp" not in _fails(capsys, *args)


def test_another_list_of_audio_keeps_what_is_as_it_was(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    """One utterance is taken out, one has other audio, one is new."""
    out, anew = tmp_path / "out", tmp_path / "anew"
    assert _run(transformer_model, wav_scp, out) == 0
    utt1, utt2, utt3, utt4, utt5 = wav_scp.read_text().splitlines()
    other = utt2.replace("utt2.wav", "utt3.wav")
    new = utt5.replace("utt5 ", "utt6 ")
    scp = tmp_path / "other.scp"
    scp.write_text("\n".join([utt1, other, utt4, utt5, new]))
    with monkeypatch.context() as patch:
        decoded = _interrupt_after(99, patch)
        assert _run(transformer_model, scp, out) == 0
    assert decoded == ["utt2", "utt6"]
    assert _run(transformer_model, scp, anew) == 0
    assert files(out) == files(anew)
    assert list(_lines(out)) == ["utt1", "utt2", "utt4", "utt5", "utt6"]
    # what was taken out comes back without being decoded again
    scp.write_text("\n".join([utt1, utt3]))
    decoded = _interrupt_after(99, monkeypatch)
    assert _run(transformer_model, scp, out) == 0
    assert decoded == []
    assert list(_lines(out)) == ["utt1", "utt3"]


def test_a_line_of_another_data_file_counts_too(transformer_model, wav_scp):
    """Two files for each utterance, as of a model that takes a prompt."""
    text = wav_scp.parent / "text"
    text.write_text("utt1 a\nutt2  b \nutt3 c\n")

    def digests() -> dict[str, str]:
        command = _command(transformer_model, wav_scp, Path("out"))
        more = ["--data_path_and_name_and_type", f"{text},text_prev,text"]
        args = parse(get_parser(ASR.module), [*command, *more])
        return utterances(args, lines_of(args))

    before = digests()
    assert list(before) == [f"utt{i}" for i in range(1, 6)]
    assert len(set(before.values())) == 5
    text.write_text("utt3 c\nutt2 b\nutt1 x\n")
    after = digests()
    assert [key for key in before if before[key] != after[key]] == ["utt1"]


def test_results_of_another_tool_are_overwritten(transformer_model, wav_scp, tmp_path):
    out = tmp_path / "out"
    (out / "1best_recog").mkdir(parents=True)
    (out / "1best_recog" / "text").write_text("utt9 A\n")
    _run(transformer_model, wav_scp, out)
    assert list(_lines(out)) == [f"utt{i}" for i in range(1, 6)]


# --- The log --------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["espnet", "explicit_length", "simple"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
def test_markers_of_the_real_time_factor_are_paired(
    search, batch_size, transformer_model, trouble, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    options = ["--search", search, "--batch_size", batch_size]
    assert _run(transformer_model, trouble, tmp_path / "out", *options) == 1
    messages = [record.getMessage() for record in caplog.records]
    speech = [m for m in messages if m.startswith("speech length: ")]
    best = [m for m in messages if m.startswith("best hypo: ")]
    assert speech == ["speech length: 3600"]  # utt5
    assert len(best) == 1


def test_the_log_says_what_the_files_say(transformer_model, wav_scp, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    out = tmp_path / "out"
    assert _run(transformer_model, wav_scp, out) == 0
    q, score, steps = (
        list(_lines(out, name).values())
        for name in ("original_score", "score", "steps")
    )
    # what comes first is as in ESPnet's log
    said = [m for m in caplog.messages if m.startswith("total log probability: ")]
    assert said == [
        f"total log probability: {float(x):.2f} (original_score)" for x in q
    ]
    said = [m for m in caplog.messages if m.startswith("ranking score: ")]
    assert said == [f"ranking score: {float(x):.2f} (score)" for x in score]
    said = [m.partition(":")[0] for m in caplog.messages if m.startswith("stopped ")]
    assert said == [f"stopped after {n} positions (steps)" for n in steps]


def _records(*messages: str) -> list[logging.LogRecord]:
    return [
        logging.LogRecord("x", logging.INFO, "x.py", 1, message, None, None)
        for message in messages
    ]


def _messages(records) -> str:
    return " ".join(record.getMessage() for record in records)


def test_a_batch_decoded_in_halves_leaves_one_marker_each():
    s, e = "speech length", "best hypo"
    # three utterances, out of memory, then two of them, then the third
    records = _records(s, s, s, "oom", s, s, e, e, s, e)
    kept = log_markers._kept(records, failed=False)
    assert _messages(kept) == f"oom {s} {s} {e} {e} {s} {e}"
    kept = log_markers._kept(records, failed=True)
    assert _messages(kept) == "oom"


@pytest.mark.parametrize(
    "keys, utt, tag",
    [
        (["a", "b"], 1, "Utterance b: "),
        (["a"], None, "Utterance a: "),
        (["a"], 1, "Utterance a: "),  # the second search of one utterance
        (["a", "b"], None, ""),  # one of a loop over them
    ],
)
def test_a_warning_of_an_output_names_its_utterance(keys, utt, tag, caplog):
    with log_markers.paired_markers(keys):
        old = "" if utt is None else f"utt {utt}: "
        logging.warning("%s%s", old, "cut", extra={UTTERANCE: utt})
        logging.warning("%s%s", "other", "s")
    assert caplog.messages == [f"{tag}cut", "others"]


@needs_batches
def test_a_text_that_is_cut_is_named(transformer_model, wav_scp, tmp_path, caplog):
    options = ("--batch_size", "5", "--maxlenratio", "-1", "--minlenratio", "-1")
    assert _run(transformer_model, wav_scp, tmp_path / "out", *options) == 0
    *cut, last = [m for m in caplog.messages if "a larger maxlenratio" in m]
    assert sorted(m.split(": ")[0] for m in cut) == [
        f"Utterance utt{i}" for i in range(1, 6)
    ]
    assert last.startswith(
        "5 of 5 utterances have texts that the length limit may have"
    )


def test_records_are_passed_on_in_order_whatever_happens(caplog):
    caplog.set_level(logging.INFO)
    with pytest.raises(KeyboardInterrupt), log_markers.paired_markers(["a"]):
        logging.info("speech length: 1")
        logging.info("other")
        raise KeyboardInterrupt
    with log_markers.paired_markers(["a"]):
        logging.info("speech length: 2")
        logging.info("best hypo: A")
    assert caplog.messages == ["other", "speech length: 2", "best hypo: A"]


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

    assert list(_lines(out)) == [f"utt{i}" for i in range(1, 7)]
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


# --- What a result puts into the files ------------------------------------------------


def test_rows_of_several_speakers_and_of_intermediate_ctc():
    class Hypothesis:
        score = -1.5

    first, second = (
        ("A B", ["A", "B"], [4, 5], Hypothesis()),
        (None, [], [], Hypothesis()),
    )
    assert result_rows.result_row([[first], [second]], 1, multi_speaker=True) == {
        "1best_recog/token_spk1": "A B",
        "1best_recog/token_int_spk1": "4 5",
        "1best_recog/score_spk1": "-1.5",
        "1best_recog/text_spk1": "A B",
        "1best_recog/token_spk2": "",
        "1best_recog/token_int_spk2": "",
        "1best_recog/score_spk2": "-1.5",
    }
    row = result_rows.result_row(([first], {6: ["A", "C"]}), 1, multi_speaker=False)
    assert row["1best_recog/encoder_interctc_layer6.txt"] == "A C"


def test_no_hypothesis_is_an_error():
    with pytest.raises(ValueError, match="no hypothesis; lower minlenratio"):
        result_rows.result_row([], 1, multi_speaker=False)


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
    error = _fails(capsys, transformer_model, wav_scp, tmp_path / "out", *config)
    assert "there is no search" in error


# --- The output folder ----------------------------------------------------------------


def test_two_runs_in_one_folder(transformer_model, wav_scp, tmp_path):
    """The second ends at once, and the first is none the worse for it."""
    out, clean = tmp_path / "out", tmp_path / "clean"
    python = [sys.executable, "-m", "espnet_lenbias.bin.asr_inference"]
    options = ["--search", "simple", "--num_workers", "1"]
    command = [*python, *_command(transformer_model, wav_scp, out, *options)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # as here, for equal scores
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=env) as first:
        while not (out / JOURNAL).exists():
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        second = subprocess.run(
            [*command, "--beam_size", "5"], capture_output=True, text=True
        )
        first.send_signal(signal.SIGCONT)
        assert second.returncode == 2
        last = second.stderr.splitlines()[-1]
        assert f"error: output_dir {out} is in use by another run (" in last
        assert f"process {first.pid} on " in last
        assert first.wait() == 0
    assert _run(transformer_model, wav_scp, out, *options[:2]) == 0
    assert _run(transformer_model, wav_scp, clean, *options[:2]) == 0
    assert files(out) == files(clean)


def test_a_full_disk(transformer_model, wav_scp, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        _fill_disk(patch, after=3)
        error = _fails(capsys, transformer_model, wav_scp, out)
    assert error.endswith(
        f"error: {out / JOURNAL}: No space left on device; make room, and the same "
        "command goes on where it has stopped\n"
    )
    decoded = _interrupt_after(99, monkeypatch)
    assert _run(transformer_model, wav_scp, out) == 0
    assert decoded == ["utt4", "utt5"]


def _fill_disk(monkeypatch, after: int) -> None:
    note = result_folder.ResultFolder._note
    noted = []

    def note_some(self, line):
        noted.append(line)
        if len(noted) > after:
            raise OSError(28, "No space left on device", str(self.folder / JOURNAL))
        note(self, line)

    monkeypatch.setattr(result_folder.ResultFolder, "_note", note_some)


@needs_batches
def test_predictions_of_the_encoders_layers_whatever_the_batch(
    transformer_model, wav_scp, tmp_path
):
    config = yaml.safe_load(transformer_model.config.read_text())
    config["encoder_conf"] |= {"num_blocks": 2, "interctc_layer_idx": [1]}
    config["model_conf"] = {"interctc_weight": 0.5}
    folder = tmp_path / "model"
    folder.mkdir()
    model = Model(*write_model(folder, ASRTask, argparse.Namespace(**config)))
    for size in ("1", "3"):
        assert _run(model, wav_scp, tmp_path / size, "--batch_size", size) == 0
    assert files(tmp_path / "3") == files(tmp_path / "1")
    lines = _lines(tmp_path / "1", "encoder_interctc_layer1.txt")
    assert len(lines) == 5
