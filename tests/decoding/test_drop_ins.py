"""The drop-ins for ESPnet's tools beside ``asr_inference``: files, config, failures."""

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
import soundfile
import yaml
from espnet2.slu.espnet_model import ESPnetSLUModel

from espnet_lenbias import use_search
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding import unchanged_tool
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.options import espnet_tools
from espnet_lenbias.options.decoding import get_parser
from tests.conftest import RATE
from tests.make_models import SRC_TOKENS, TOKENS, WINDOW
from tests.releases import needs_batches, needs_s2t_of_ctc_alone
from tests.tool_models import TEXTS, TOOLS, command, fails, files, lines, tool_of

CTC = {"ctc_weight": 0.3}
GERMAN = {"lang_sym": "<deu>", "task_sym": "<st_deu>"}


def case(name, options, nbest, n_files, *marks):
    """Return model, options, how many ranks, how many files ESPnet writes."""
    test_id = "-".join([name, *options])
    return pytest.param(name, options, nbest, n_files, id=test_id, marks=marks)


# Two ranks of st end ESPnet's tool, which takes two results for those of two texts.
CASES = [
    case("st", {}, 1, 4),
    case("st_ctc", CTC, 1, 4),
    case("st_multi", {"asr_nbest": 2, "asr_beam_size": 3}, 1, 12),
    case("st_attention", {}, 1, 8),
    case("mt", {}, 2, 8),
    case("mt_units", CTC, 2, 8),
    case("slu", CTC, 2, 8),
    case("s2t", {}, 2, 10),
    case("s2t", CTC | GERMAN, 2, 10),
    case("s2t", {"predict_time": True}, 2, 10),
    case("s2t", {"batch_size": 2} | GERMAN, 2, 10, needs_batches),
    case("s2t_ctc", {"ctc_weight": 1.0}, 2, 10, needs_s2t_of_ctc_alone),
]


def run(model, data, out, *options: str) -> int:
    if not {"--search", "--config"} & set(options):
        options = (*options, "--search", "explicit_length")
    module = importlib.import_module(tool_of(model).drop_in)
    return module.main(command(model, data, out, *options))


def config(tmp_path, **options) -> tuple[str, str]:
    """Write a decode config, symbols as in a shell, without their angle brackets."""
    for key in options.keys() & GERMAN.keys():
        options[key] = options[key].strip("<>")
    path = tmp_path / "decode.yaml"
    path.write_text(yaml.safe_dump(options))
    return "--config", str(path)


# --- The files ------------------------------------------------------------------------


@pytest.mark.parametrize("name, options, nbest, n_files", CASES)
def test_search_espnet_writes_espnets_files(
    name, options, nbest, n_files, model_of, data, tmp_path
):
    model = model_of(name)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    options = options | {"nbest": nbest}
    choice = config(tmp_path, **options, search="espnet")
    assert run(model, data, ours, *choice) == 0
    espnets = importlib.import_module(tool_of(model).module)
    espnets.main(command(model, data, theirs, *config(tmp_path, **options)))
    assert files(ours) == files(theirs)
    assert len(files(ours)) == n_files


@pytest.mark.parametrize("name, options, nbest, n_files", CASES)
def test_explicit_length_by_the_config_alone(
    name, options, nbest, n_files, model_of, data, tmp_path, waves
):
    """It finds what an object of ESPnet's finds that was given the search."""
    model, out = model_of(name), tmp_path / "out"
    options = {"ctc_weight": 0.0} | options | {"nbest": nbest}
    choice = config(tmp_path, **options, search="explicit_length")
    assert run(model, data, out, *choice) == 0
    # beside each `score` there are `original_score`, `steps` and `stopped`
    n_scores = sum(path.endswith("score") for path in files(out)) // 2
    assert len(files(out)) == n_files + 3 * n_scores

    options.pop("batch_size", None)
    tool = tool_of(model)
    kind = getattr(importlib.import_module(tool.module), tool.class_name)
    theirs = use_search(kind(**model.files, **options, beam_size=4), "explicit_length")
    for key, text in TEXTS.items():
        source = np.zeros(int(WINDOW * RATE), dtype=np.float32)
        source[: len(waves[key])] = waves[key]
        if model.tool == "mt":
            source = np.array([TOKENS.index(c.replace(" ", "<space>")) for c in text])
        elif model.tool != "s2t":
            source = source[: len(waves[key])]
        result = theirs(source)
        result = result[0] if isinstance(result, tuple) else result
        for n, hypothesis in enumerate(result, 1):
            assert lines(out, f"{n}best_recog/text")[key] == hypothesis[0]
            score = float(lines(out, f"{n}best_recog/score")[key])
            assert score == pytest.approx(hypothesis[-1].score, abs=1e-3)
            assert score <= 0


def test_the_source_text_is_searched_by_the_same_search(model_of, data, tmp_path):
    model, out = model_of("st_multi"), tmp_path / "out"
    options = ("--asr_nbest", "3", "--asr_beam_size", "5")
    assert run(model, data, out, *options) == 0
    names = {path.partition("/")[0] for path in files(out)}
    assert names == {"1best_recog", *(f"{n}asr_best_recog" for n in (1, 2, 3))}
    n_found = []
    for key in TEXTS:
        scores = [
            float(lines(out, f"{n}asr_best_recog/asr_score")[key]) for n in (1, 2, 3)
        ]
        found = [score for score in scores if not np.isnan(score)]
        assert found == sorted(found, reverse=True)
        assert found[0] <= 0
        n_found.append(len(found))
        assert int(lines(out, "1asr_best_recog/asr_steps")[key]) > 0
    assert max(n_found) > 1


def test_a_transcript_reaches_the_understanding(model_of, data, tmp_path, monkeypatch):
    model, seen = model_of("slu_transcript"), []
    encode = ESPnetSLUModel.encode

    def encode_and_note(self, transcript_pad, transcript_pad_lens, **speech):
        seen.append(transcript_pad[0].int().tolist())
        return encode(self, **speech)

    monkeypatch.setattr(ESPnetSLUModel, "encode", encode_and_note)
    options = ("--data_path_and_name_and_type", f"{data}/text,transcript,text")
    assert run(model, data, tmp_path / "out", *options) == 0
    assert seen == [
        [SRC_TOKENS.index(word) for word in text.split()] for text in TEXTS.values()
    ]


@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
def test_previous_text(batch_size, model_of, data, tmp_path):
    """Primers of three lengths: ESPnet refuses such a batch, these searches do not."""
    model, out = model_of("s2t"), tmp_path / "out"
    options = ("--data_path_and_name_and_type", f"{data}/text,text_prev,text")
    assert run(model, data, out, *options, "--batch_size", batch_size) == 0
    (tmp_path / "text").write_text("utt1 <na>\nutt2 C\nutt3 <na>\n")
    without = tmp_path / "without"
    assert run(model, data, without, *options, "--batch_size", batch_size) == 0
    with_text, plain = (
        lines(folder, "1best_recog/original_score") for folder in (out, without)
    )
    assert {key for key in TEXTS if with_text[key] != plain[key]} == {"utt1", "utt3"}


@needs_batches
@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_previous_texts_in_a_batch_give_what_they_give_alone(
    search, model_of, data, tmp_path, caplog
):
    model = model_of("s2t")
    (tmp_path / "text").write_text("utt1 A B\nutt2 C\nutt3 D E F\n")
    options = ("--data_path_and_name_and_type", f"{data}/text,text_prev,text")
    texts = []
    for size in ("1", "3"):
        out = tmp_path / size
        choice = ("--batch_size", size, "--search", search)
        assert run(model, data, out, *options, *choice) == 0
        texts.append(lines(out))
    assert texts[0] == texts[1]
    # ESPnet's search refuses the batch, so that it is decoded one by one
    assert ("retrying them one at a time" in caplog.text) == (search == "espnet")


# --- The options ----------------------------------------------------------------------


@pytest.mark.parametrize("name", TOOLS)
def test_every_option_of_espnets_tool_is_there(name):
    module = TOOLS[name].module
    ours = {a.dest: a.default for a in get_parser(module)._actions}
    espnets = importlib.import_module(module).get_parser()
    theirs = {a.dest: a.default for a in espnets._actions}
    own = {"search": "espnet", "search_conf": {}, "decoder_dtype": None}
    own |= {"decide": "map", "confidence": False, "posterior_nbest": None}
    own |= {"posterior_temperature": 1.0, "confidence_temperature": 1.0}
    own |= {"segments": None, "formats": [], "times": False}
    # without either, how much is decoded together depends on the search
    assert ours == {**theirs, **own, "batch_size": None, "batch_bins": None}


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("st", {"ctc_greedy": True}, "ctc_greedy: the best path of CTC is not label-"),
        ("st", {"asr_ctc_weight": 1.1}, "asr_ctc_weight must be from 0 to 1"),
        ("st", {"asr_beam_size": 0}, "asr_beam_size must be a whole number of 1 or"),
        ("st", {"asr_minlenratio": 2}, "asr_minlenratio 2 asks for a longer output"),
        ("st", {"ctc_weight": 0.3}, "0.3, and the model has no CTC: set ctc_weight: 0"),
        ("st", {"batch_size": 2}, "2, and st_inference of ESPnet "),
        ("mt", {"ctc_weight": 0.3}, "0.3, and the model has no CTC: set ctc_weight: 0"),
        ("mt", {"normalize_length": True}, "normalize_length does not go with search"),
        ("mt", {"batch_size": 2}, "batch_size is 2, and mt_inference of ESPnet "),
        ("slu", {"run_chunk": True}, "run_chunk: classification chunk by chunk is not"),
        ("slu", {"streaming": True}, "streaming: blockwise streaming search is not la"),
        ("slu", {"batch_size": 2}, "batch_size is 2, and slu_inference of ESPnet "),
        ("slu", {"beam_sise": 2}, "unknown option beam_sise; did you mean beam_size?"),
        ("s2t", {"partial_ar": True}, "partial_ar: partially autoregressive decoding"),
        ("s2t", {"ctc_weight": 2}, "ctc_weight must be from 0 to 1"),
        ("s2t", {"word_lm_train_config": "x"}, "there is no file x"),
    ],
)
def test_what_does_not_go_together(name, options, message, model_of, data, capsys):
    choice = config(data, search="explicit_length", **options)
    assert message in fails(capsys, run, model_of(name), data, data / "out", *choice)


def test_help_does_not_wait_for_torch():
    code = """
import sys
from importlib import import_module
for name in sys.argv[1:]:
    try:
        import_module(f"espnet_lenbias.bin.{name}_inference").main(["--help"])
    except SystemExit as e:
        print("status", e.code, "torch" in sys.modules)
"""
    command = [sys.executable, "-c", code, *TOOLS]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    statuses = [line for line in out.splitlines() if line.startswith("status")]
    assert statuses == ["status 0 False"] * len(TOOLS)
    assert out.count("--search_conf") >= len(TOOLS)


@pytest.mark.parametrize("tool", [*(f"bin.{t.name}" for t in espnet_tools.TOOLS), "k2"])
@pytest.mark.parametrize(
    "options, message",
    [
        ([], "the following arguments are required: "),
        (["--beam_size", "x"], "argument --beam_size: invalid int value: 'x'"),
    ],
)
def test_a_wrong_command_is_two_lines(tool, options, message, capsys):
    with pytest.raises(SystemExit) as stop:
        if tool == "k2":
            unchanged_tool.main(["espnet2.bin.asr_inference_k2", *options])
        else:
            importlib.import_module(f"espnet_lenbias.{tool}").main(options)
    assert stop.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: ") and usage.endswith(" [options]")
    assert f"error: {message}" in error and error.endswith("; see --help")


# --- Utterances that fail, runs that are interrupted ----------------------------------


def spoil(model, data) -> str:
    """Break the second utterance; return why it fails."""
    if model.tool == "mt":
        text = (data / "text").read_text()
        (data / "text").write_text(text.replace("utt2 C\n", ""))
        return f"is not in {data}/text"
    soundfile.write(data / "utt2.wav", np.full(RATE, np.nan), RATE, subtype="FLOAT")
    return "NaN or infinity"


@pytest.mark.parametrize("name", ["st", "st_multi", "mt", "slu", "s2t"])
def test_a_failing_utterance_costs_only_itself(name, model_of, data, tmp_path, caplog):
    model = model_of(name)
    clean, out = tmp_path / "clean", tmp_path / "out"
    (data / "keys").write_text("".join(f"{key} x\n" for key in TEXTS))
    options = ("--ctc_weight", "0.0", "--key_file", str(data / "keys"))
    assert run(model, data, clean, *options) == 0
    why = spoil(model, data)
    assert run(model, data, out, *options) == 1
    assert set(files(out)) == set(files(clean))
    for path in files(out):
        kind = re.split("[/_]", path)[-1]
        empty = {"score": "nan", "steps": "0"}.get(kind, "")
        assert lines(out, path) == {**lines(clean, path), "utt2": empty}, path
    assert "1 of 3 utterances failed" in caplog.text
    (reason,) = [m for m in caplog.messages if m.startswith("failed: utt2: ")]
    assert why in reason


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
@pytest.mark.parametrize("name", ["st", "mt", "slu", "s2t"])
def test_nothing_to_decode_is_that_utterances_failure(
    name, search, model_of, data, tmp_path, caplog
):
    model, out = model_of(name), tmp_path / "out"
    if model.tool == "mt":
        why = "the source text is empty"
        (data / "text").write_text("utt1 A B\nutt2\nutt3  \n")
        failing = ["utt2", "utt3"]
    else:
        why = "the audio is empty"
        soundfile.write(data / "utt2.wav", np.zeros(0), RATE)
        failing = ["utt2"]
    options = ("--search", search, "--ctc_weight", "0.0")
    assert run(model, data, out, *options) == 1
    tokens = lines(out, "1best_recog/token")
    assert [key for key in TEXTS if not tokens[key]] == failing
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert [m.split(": ")[1] for m in failed] == failing
    assert all(m.endswith(why) for m in failed)


def test_audio_beyond_the_window_is_warned_of(model_of, data, tmp_path, caplog):
    """Of 1 s. ESPnet cuts the audio before the model sees it."""
    for key, seconds in {"utt1": 1.5, "utt2": 1.0}.items():
        samples = 0.1 * np.random.default_rng(0).standard_normal(int(seconds * RATE))
        soundfile.write(data / f"{key}.wav", samples, RATE)
    options = ("--ctc_weight", "0.0")
    assert run(model_of("s2t"), data, tmp_path / "out", *options) == 0
    warning, total = [m for m in caplog.messages if "hears" in m]
    assert warning == (
        f"Utterance utt1: {data}/utt1.wav has 1.50 s, and the model hears no more than "
        "1.00 s at once: the rest is left out"
    )
    assert total.startswith("1 of 3 utterances are longer than what the model hears")


@pytest.mark.parametrize("name", ["st_multi", "mt", "slu", "s2t"])
def test_an_interrupted_run_goes_on(name, model_of, data, tmp_path, monkeypatch):
    model = model_of(name)
    unbroken, out = tmp_path / "unbroken", tmp_path / "out"
    options = ("--ctc_weight", "0.0")
    assert run(model, data, unbroken, *options) == 0
    added = []
    add = ResultFolder.add

    def add_two(self, key, row):
        if len(added) == 2:
            added.clear()
            raise KeyboardInterrupt
        added.append(key)
        add(self, key, row)

    monkeypatch.setattr(ResultFolder, "add", add_two)
    assert run(model, data, out, *options) == 130
    assert list(lines(out)) == ["utt1", "utt2"]
    assert run(model, data, out, *options) == 0
    assert added == ["utt3"]
    assert files(out) == files(unbroken)


@pytest.mark.parametrize("name", TOOLS)
def test_all_fail(name, model_of, data, tmp_path):
    model = model_of(name)
    (data / "keys").write_text("gone1 x\ngone2 x\n")
    out = tmp_path / "out"
    options = ("--key_file", str(data / "keys"), "--ctc_weight", "0.0")
    assert run(model, data, out, *options) == 1
    names = {"token", "token_int", "score", "text"}
    names |= {"text_nospecial"} if name == "s2t" else set()
    assert set(files(out)) == {f"1best_recog/{file}" for file in names}
    assert lines(out) == {"gone1": "", "gone2": ""}


# --- Tools that do not search label by label ------------------------------------------


@pytest.fixture
def maskctc(model_of, data):
    model = model_of("asr")
    return ["espnet2.bin.asr_inference_maskctc", *command(model, data, data / "out")]


def test_another_tool_says_that_a_search_has_no_place_in_it(maskctc, data, capsys):
    # whatever else of the config has no place either, such as beam_size
    given = config(
        data, search="explicit_length", beam_size=4, search_conf={"nbest": 2}
    )
    with pytest.raises(SystemExit) as e:
        unchanged_tool.main([*maskctc, *given])
    assert e.value.code == 2
    assert capsys.readouterr().err.endswith(
        "asr_inference_maskctc: error: it decodes by refining the output of CTC "
        "(mask-CTC), not label by label, so search: explicit_length has no place in "
        "it; say search: espnet, or leave search out\n"
    )


@pytest.mark.parametrize("choice", [{}, {"search": "espnet"}], ids=str)
def test_another_tool_runs_unchanged(choice, maskctc, data, monkeypatch):
    del maskctc[maskctc.index("--beam_size") :]
    espnets = importlib.import_module(maskctc[0])
    called = []
    monkeypatch.setattr(espnets, "inference", lambda **options: called.append(options))
    espnets.main([*maskctc[1:], *config(data, maskctc_n_iterations=3)])
    assert (
        unchanged_tool.main([*maskctc, *config(data, maskctc_n_iterations=3, **choice)])
        == 0
    )
    assert called[0] == called[1]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"confidence": True}, "confidence has no place in it"),
        ({"formats": ["json"]}, "formats has no place in it"),
        ({"segments": "segments"}, "segments has no place in it"),
        ({"decoder_dtype": "bfloat16"}, "decoder_dtype has no place in it"),
        ({"search_conf": {"nbest": 2}}, "search_conf has no place in it"),
        ({"beam_size": 4}, "decode.yaml: unknown option beam_size"),
        ({"token_type": False}, "token_type must be a text, not False"),
    ],
    ids=str,
)
def test_what_has_no_place_in_another_tool_is_named(
    choice, said, maskctc, data, monkeypatch, capsys
):
    del maskctc[maskctc.index("--beam_size") :]
    monkeypatch.setattr(importlib.import_module(maskctc[0]), "inference", None)
    with pytest.raises(SystemExit) as e:
        unchanged_tool.main([*maskctc, *config(data, **choice)])
    assert e.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_another_tool_takes_no_log_level_that_there_is_not(maskctc, data, capsys):
    del maskctc[maskctc.index("--beam_size") :]
    with pytest.raises(SystemExit) as e:
        unchanged_tool.main([*maskctc, *config(data, log_level="LOUD")])
    assert e.value.code == 2
    assert capsys.readouterr().err.endswith(
        "error: log_level must be one of CRITICAL, ERROR, WARNING, INFO, DEBUG, NOTSET, "
        "not 'LOUD'\n"
    )


def test_data_that_the_task_does_not_take_are_named(model_of, data, tmp_path, capsys):
    model = model_of("asr")
    options = [
        *model.options,
        *("--data_path_and_name_and_type", f"{data}/wav.scp,sound,sound"),
        *("--output_dir", str(tmp_path / "out"), "--search", "simple"),
        *("--ctc_weight", "0.0", "--num_workers", "0"),
    ]
    with pytest.raises(SystemExit) as stop:
        asr_inference.main(options)
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "error: data_path_and_name_and_type: " in last
    assert "speech" in last


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--lang_sym", "dau"],
            "lang_sym: the model has no symbol <dau>; did you mean",
        ),
        (["--lang_sym", "<dau"], "lang_sym: the model has no symbol <dau>; did you m"),
        (["--task_sym", "<st_dee>"], "no symbol <st_dee>; did you mean <st_deu>?"),
        (["--predict_time", "true", "--ctc_weight", "0.3"], "predict_time: CTC, whose"),
    ],
)
def test_a_symbol_that_the_model_does_not_have(
    options, message, model_of, data, tmp_path, capsys
):
    assert message in fails(
        capsys, run, model_of("s2t"), data, tmp_path / "out", *options
    )
