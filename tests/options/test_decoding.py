"""One config, read by the parser of a tool, by Python and by a recipe."""

import os
import re

import pytest
import yaml

from espnet_lenbias.decoding.journal import options_line, read_journal
from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.options.decoding import get_parser, parse, peek_config
from espnet_lenbias.options.espnet_tools import ASR, MT, S2T, TOOLS
from espnet_lenbias.options.run_options import run_options

# As PyYAML reads it, `5e-1` is text.
AS_TEXT = """
search: simple
beam_size: "4"
ctc_weight: 5e-1
lm_weight: "0"
search_conf: {length_reward: 5e-1, coverage: {weight: "0.1", threshold: 5e-1}}
"""
AS_NUMBERS = """
search: simple
beam_size: 4
ctc_weight: 0.5
lm_weight: 0.0
search_conf: {length_reward: 0.5, coverage: {weight: 0.1, threshold: 0.5}}
"""


@pytest.fixture
def parsed(tmp_path):
    """Parse a decode config and options."""
    wavs = tmp_path / "wav.scp"
    wavs.write_text("u a.wav\n")

    def parse_it(text, *options, tool=ASR):
        config = tmp_path / "decode.yaml"
        config.write_text(text)
        command = ["--config", str(config), "--output_dir", str(tmp_path / "out")]
        command += ["--data_path_and_name_and_type", f"{wavs},speech,sound"]
        if tool.streams:  # ESPnet's parser asks for a model
            command += [
                word for key in tool.model_options for word in (f"--{key}", "x")
            ]
        return parse(get_parser(tool.module), [*command, *options])

    return parse_it


@pytest.mark.parametrize(
    "text", ["beam_size: 4\t\n", "beam_size:\t4\n", "beam_size: 4\t# few\n"]
)
def test_a_tab_behind_a_value_is_a_blank(parsed, text, tmp_path):
    """PyYAML's own loader, by which ESPnet reads, would refuse it."""
    assert parsed(text).beam_size == 4
    assert peek_config(tmp_path / "decode.yaml") == {"beam_size": 4}


def test_negative_numbers_with_an_exponent(parsed):
    assert parsed("penalty: 1.0\n", "--penalty", "-1e-1").penalty == -0.1
    assert parsed("penalty: 1.0\n", "--penalty", "-.1").penalty == -0.1
    assert parsed("penalty: 1.0\n", "--penalty", "-1E2").penalty == -100


def test_which_of_config_and_command_line_a_mistake_is_of(parsed, capsys):
    for text, option, start in (
        ("search: simple\n", ["--normalize_length", "true"], "error: normalize_length"),
        (
            "normalize_length: true\n",
            ["--search", "simple"],
            "yaml: normalize_length d",
        ),
    ):
        with pytest.raises(SystemExit):
            parsed(text, *option)
        assert start in capsys.readouterr().err


@pytest.mark.parametrize("tool", [ASR, MT])
def test_numbers_that_are_text_are_the_same_run(parsed, tool):
    numbers = AS_NUMBERS.replace("ctc_weight: 0.5\n", "") if tool is MT else AS_NUMBERS
    text = AS_TEXT.replace("ctc_weight: 5e-1\n", "") if tool is MT else AS_TEXT
    as_text, as_numbers = parsed(text, tool=tool), parsed(numbers, tool=tool)
    assert run_options(as_text) == run_options(as_numbers)
    assert as_text.search_conf == yaml.safe_load(AS_NUMBERS)["search_conf"]


@pytest.mark.parametrize(
    "line, change",
    [
        ("nbest: 2", "nbest was 1, is 2"),
        ("maxlenratio: 0.5", "maxlenratio was 0.0, is 0.5"),
        ("minlenratio: 0.1", "minlenratio was 0.0, is 0.1"),
        ("dtype: float64", "dtype was float32, is float64"),
        ("decoder_dtype: bfloat16", "decoder_dtype was None, is bfloat16"),
        ("lm_weight: 0.5", "lm_weight was 1.0, is 0.5"),
        ("penalty: 0.5", "penalty was 0.0, is 0.5"),
        ("seed: 7", "seed was 0, is 7"),
        ("search_conf: {length_norm: true}", "search_conf was {}, is {'length_no"),
    ],
)
def test_another_value_makes_another_run(line, change, parsed, tmp_path):
    before = run_options(parsed("search: simple"))
    path = tmp_path / "decoding.jsonl"
    path.write_text(options_line(before) + '["utt1", {}, "d1"]\n')
    now = run_options(parsed(f"search: simple\n{line}"))
    with pytest.raises(OtherRunError, match=rf"\({re.escape(change)}"):
        read_journal(path, now)


def test_the_command_line_takes_the_same_texts(parsed):
    args = parsed("search: simple", "--search_conf", "length_reward=5e-1")
    assert args.search_conf == {"length_reward": 0.5}


@pytest.mark.parametrize(
    "line, message",
    [
        (
            "decoder_dtype: bfloat16\nsearch: espnet",
            "decoder_dtype: ESPnet's own search computes all in one dtype",
        ),
        (
            "decoder_dtype: bfloat16\nquantize_lm: true",
            "decoder_dtype does not go with quantize_lm",
        ),
        (
            "dtype: float64\nquantize_asr_model: true",
            "quantize_asr_model: torch multiplies quantized weights with float32 only",
        ),
        (
            "ngpu: 1\nquantize_lm: true",
            "quantize_lm: torch multiplies quantized weights on the CPU only",
        ),
        ("decoder_dtype: half", "decoder_dtype must be one of float32, bfloat16, not"),
        ("maxlenratio: .inf", "maxlenratio must be a number, not inf"),
        ("maxlenratio: .nan", "maxlenratio must be a number, not nan"),
        ("minlenratio: -.inf", "minlenratio must be a number, not -inf"),
        ('ctc_weight: "7"', "ctc_weight must be from 0 to 1"),
        ("lm_weight: true", "lm_weight must be a number, not True"),
        ("beam_size: true", "beam_size must be a whole number of 1 or more, not True"),
    ],
)
@pytest.mark.parametrize("search", ["simple", "explicit_length"])
def test_what_is_no_number_is_named_at_the_door(parsed, capsys, line, message, search):
    lines = [line] if "search: " in line else [f"search: {search}", line]
    with pytest.raises(SystemExit) as stop:
        parsed("\n".join(lines))
    assert stop.value.code == 2
    assert f"decode.yaml: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["row: 2024-02-30", "beam_size: 0x_"])
def test_what_yaml_cannot_build_is_named_at_the_door(line, parsed, capsys):
    with pytest.raises(SystemExit) as stop:
        parsed(line)
    assert stop.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "decode.yaml: not a yaml file: " in said
    assert peek_config(said.partition("error: ")[2].partition(": ")[0]) == {}


def test_an_option_twice_is_named_with_its_lines(parsed, capsys):
    with pytest.raises(SystemExit) as stop:
        parsed("search: explicit_length\nbeam_size: 60\nsearch: simple")
    assert stop.value.code == 2
    said = "decode.yaml: lines 1 and 3 have search: leave one of them out"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("given", ["st_deu", "<st_deu>", "<st_deu"])
def test_a_symbol_is_the_same_with_and_without_brackets(given, parsed):
    args = parsed(
        f"search: simple\nlang_sym: {given.strip('<>')}", "--task_sym", given, tool=S2T
    )
    options = run_options(args)
    assert (options["lang_sym"], options["task_sym"]) == ("<st_deu>", "<st_deu>")


@pytest.mark.parametrize(
    "line, message",
    [
        ("lang_sym: no", "lang_sym must be a text, not False: put it into quotes"),
        ("lang_sym: null", "lang_sym must be a text, not None: put it into quotes"),
        ("task_sym: 1", "task_sym must be a text, not 1: put it into quotes"),
        ("token_type: [a]", "token_type must be a text, not ['a']: put it into"),
        (
            "search_conf: score_threshold=1.5",
            "search_conf must be a mapping of options",
        ),
        ("search_conf: [1]", "search_conf must be a mapping of options, not [1]"),
        ("quantize_modules: [a, 1]", "quantize_modules must be a text, not 1: put"),
        ("output_dir: 2026", "output_dir must be a text, not 2026: put it into quo"),
    ],
)
def test_what_is_no_text_is_named_at_the_door(line, message, parsed, capsys):
    with pytest.raises(SystemExit) as stop:
        parsed(f"search: simple\n{line}\n", tool=S2T)
    assert stop.value.code == 2
    assert f"decode.yaml: {message}" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize(
    "line, message",
    [
        ("seed: 1.5", "seed must be a whole number, not 1.5"),
        ("seed: null", "seed must be a whole number, not None"),
        ("num_workers: [1]", "num_workers must be a whole number, not [1]"),
        ("ngpu: 0.5", "ngpu must be a whole number, not 0.5"),
        ("beam_size: 3000000000", "beam_size must be 2147483647 at most, not 30000"),
        (
            "allow_variable_data_keys: null",
            "allow_variable_data_keys must be true or false, not None",
        ),
        ("help: true", "help is an option of the command line alone"),
        ("config: x", "config is an option of the command line alone"),
        (
            "data_path_and_name_and_type: wav.scp,speech,sound",
            "data_path_and_name_and_type must be a list of lists [FILE, NAME, TYPE], "
            "not 'wav.scp,speech,sound'",
        ),
        (
            "data_path_and_name_and_type: [wav.scp, speech, sound]",
            "data_path_and_name_and_type must be a list of lists [FILE, NAME, TYPE]",
        ),
        (
            "log_level: LOUD",
            "log_level must be one of CRITICAL, ERROR, WARNING, INFO, DEB",
        ),
        (
            "log_level: 1",
            "log_level must be one of CRITICAL, ERROR, WARNING, INFO, DEBUG",
        ),
        (
            "log_level: null",
            "log_level must be one of CRITICAL, ERROR, WARNING, INFO, DE",
        ),
        (
            "dtype: int16",
            "dtype must be one of float16, float32, float64, not 'int16'\n",
        ),
        (
            "dtype: bfloat16",
            "dtype must be one of float16, float32, float64, not 'bfloat16'; decoder and "
            "language model can compute in it: decoder_dtype: bfloat16\n",
        ),
        ("decoder_dtype: int8", "decoder_dtype must be one of float32, bfloat16, not"),
    ],
)
def test_a_config_takes_no_other_choices_than_the_command_line(
    line, message, tool, parsed, capsys
):
    with pytest.raises(SystemExit) as stop:
        parsed(f"search: simple\n{line}\n", tool=tool)
    assert stop.value.code == 2
    assert f"decode.yaml: {message}" in capsys.readouterr().err.splitlines(True)[-1]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_config_takes_the_choices_that_there_are(tool, parsed, monkeypatch):
    monkeypatch.setattr("espnet_lenbias.options.decoding._check_files", lambda _: None)
    text = "log_level: debug\ndtype: float64\ntoken_type: null\ndecoder_dtype: null\n"
    args = parsed(text, tool=tool)
    chosen = args.log_level, args.dtype, args.token_type, args.decoder_dtype
    assert chosen == ("DEBUG", "float64", None, None)


def test_a_text_that_is_too_long_for_a_file_is_no_file(parsed):
    text = "a" * 300
    args = parsed("search: simple", "--model_tag", text)
    assert run_options(args)["model_tag"] == text


def test_the_command_line_says_where_bfloat16_is_an_option(parsed, capsys):
    with pytest.raises(SystemExit) as stop:
        parsed("search: simple", "--dtype", "bfloat16")
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith(
        "; decoder and language model can compute in it: decoder_dtype: bfloat16; see "
        "--help\n"
    )


@pytest.mark.parametrize(
    "text, data",
    [
        ("a.scp,speech,sound", ("a.scp", "speech", "sound")),
        ("('a.scp', 'speech', 'sound')", ("a.scp", "speech", "sound")),  # as from yaml
        ("a,b/c, d.scp,speech,sound", ("a,b/c, d.scp", "speech", "sound")),
    ],
)
def test_names_of_data_files(text, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / data[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text("u a.wav\n")
    command = ["--output_dir", "out", "--data_path_and_name_and_type", text]
    args = parse(get_parser(ASR.module), command)
    assert args.data_path_and_name_and_type == [data]


DATA = ["--data_path_and_name_and_type", "a.scp,speech,sound"]


@pytest.mark.parametrize(
    "options, message",
    [
        (
            [*DATA, *DATA],
            "a.scp,speech,sound: speech is given twice: leave one of them",
        ),
        (
            [*DATA, *DATA[:1], "a.scp"],
            "'a.scp' is not FILE,NAME,TYPE, such as wav.scp,",
        ),
        ([*DATA, "--output_dir", ""], "output_dir names no folder: name one"),
        (
            [*DATA, "--num_workers", "-1"],
            "num_workers must be from 0 to 4194304, not -1",
        ),
        ([*DATA, "--ngpu=--"], "argument --ngpu: -- is no value"),
        ([*DATA, "--search_conf=--"], "argument --search_conf: -- is no value"),
        ([*DATA, "--config=--"], "argument --config: -- is no value"),
        ([*DATA, "--seed", "-1"], "seed must be from 0 to 4294967295, not -1"),
        ([*DATA, "--seed", str(2**32)], "not 4294967296"),
        ([*DATA, "--config", ""], "config: '' is no name of a file"),
        ([*DATA, "--config", "."], "config: . is a folder: give the file in it"),
        ([*DATA, "--config", os.devnull], f"config: {os.devnull} is a pipe or a devi"),
        ([*DATA, "--config", "gone.yaml"], "config: there is no file gone.yaml"),
        (
            [*DATA, "--search_conf", "nbest=["],
            "argument --search_conf: 'nbest=[' is no yaml: while parsing",
        ),
        (
            [*DATA, "--search_conf", "{nbest: 8, nbest: 1}"],
            "'{nbest: 8, nbest: 1}': line 1 has nbest twice: leave one of them out",
        ),
        (
            [*DATA, "--search_conf", "{nbest: 2024-02-30}"],
            "argument --search_conf: '{nbest: 2024-02-30}' is no yaml: day is out of ra",
        ),
        (
            [*DATA, "--asr_model_file", "a" * 300],
            f"asr_model_file: there is no file {'a' * 300}",
        ),
    ],
    ids=str,
)
def test_what_a_command_line_cannot_hold(
    options, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.scp").write_text("u a.wav\n")
    with pytest.raises(SystemExit) as stop:
        parse(get_parser(ASR.module), ["--output_dir", "out", *options])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
