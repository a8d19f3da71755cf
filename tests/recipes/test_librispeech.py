"""The recipe for pretrained models: its decode configs, run.sh, the tuning."""

import csv
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import soundfile
import yaml

import espnet_lenbias.s2t
from espnet_lenbias import Speech2Text
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR, S2T
from espnet_lenbias.options.registry import check_search_conf
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.options.tool_choice import choose_tool
from espnet_lenbias.report.scoring import Errors, count_errors, read_text
from tests.bundled import bundled
from tests.recipes.commands import run_here, run_in

RECIPE = Path(__file__).parents[2] / "recipes" / "librispeech"
MT = RECIPE.with_name("mini_mt") / "pretrained" / "mt.zip"
MINI = RECIPE.parent / "mini_librispeech"
PACKED = bundled("asr_transformer")
TRANSLATOR = Path(__file__).parents[2] / "recipes" / "mini_mt" / "pretrained" / "mt.zip"
SLICE = MINI / "slice" / "LibriSpeech"

NORM, EOS = {"length_norm": True}, {"eos_threshold": 1.5}
PATIENCE = {"keep_ended": "separate", "patience": 1.0}
FRAMES = {"coverage": {"weight": 0.2, "threshold": 0.3}}

# Row -> its search and search_conf.
ROWS = {
    "espnet": ("espnet", {}),
    "simple": ("simple", {}),
    "simple_heuristics": ("simple", NORM | EOS),
    "length_norm": ("simple", NORM),
    "eos_threshold": ("simple", EOS),
    "length_reward": ("simple", {"length_reward": 0.3}),
    "coverage_frames": ("simple", FRAMES),
    "coverage_log": ("simple", {"coverage": {"weight": 0.1}}),
    "length_reward_coverage": ("simple", {"length_reward": 0.3} | FRAMES),
    "separate": ("simple", {"keep_ended": "separate"}),
    "separate_heuristics": ("simple", NORM | EOS | {"keep_ended": "separate"}),
    "patience": ("simple", PATIENCE),
    "length_penalty": ("simple", {"length_penalty": 1.0}),
    "patience_length_penalty": ("simple", PATIENCE | {"length_penalty": 1.0}),
    "simple_rectified": ("simple", {"label_smoothing": 0.1}),
    "explicit_length_rectified": ("explicit_length", {"label_smoothing": 0.1}),
    "simple_mbr": ("simple", {}),
    "explicit_length_mbr": ("explicit_length", {"exact_nbest": True}),
    "explicit_length": ("explicit_length", {}),
    "optimal": ("explicit_length", {"score_threshold": 8.0}),
}


def _run_sh(folder: Path, *options: object) -> subprocess.CompletedProcess:
    """Run the recipe on ``folder/LibriSpeech/dev-clean``; it writes below the folder."""
    return run_in(
        RECIPE,
        RECIPE / "run.sh",
        *("--librispeech", folder / "LibriSpeech", "--sets", "dev-clean"),
        *("--data", folder / "data", "--exp", folder / "exp", "--model", PACKED),
        *options,
    )


def _local(name: str, *arguments: object) -> subprocess.CompletedProcess:
    return run_in(RECIPE, sys.executable, "-m", f"local.{name}", *arguments)


@pytest.fixture
def corpus(tmp_path) -> Path:
    """Bundled audio in LibriSpeech's layout: ten utterances of dev-clean."""
    shutil.copytree(SLICE / "dev-clean", tmp_path / "LibriSpeech" / "dev-clean")
    return tmp_path


def _audio(corpus: Path) -> dict[str, Path]:
    return {p.stem: p for p in sorted((corpus / "LibriSpeech").rglob("*.flac"))}


def _write_model(path: Path, **files: object) -> Path:
    """Write what local/model.py writes."""
    model = {"asr_train_config": "c", "asr_model_file": "m", "vocabulary": 300}
    path.write_text(yaml.safe_dump({**model, **files}))
    return path


# --- The decode configs ---------------------------------------------------------------


def test_there_is_a_decode_config_for_each_row():
    there = {p.stem.removeprefix("decode_") for p in RECIPE.glob("conf/decode_*")}
    assert there == ROWS.keys()


@pytest.mark.parametrize("row", ROWS)
def test_decode_configs_pass_the_door(row):
    path = RECIPE / "conf" / f"decode_{row}.yaml"
    command = ["--config", str(path), "--output_dir", "x"]
    command += ["--data_path_and_name_and_type", f"{path},speech,sound"]
    args = parse(get_parser(ASR.module), command)
    assert (args.search, args.search_conf) == ROWS[row]
    assert (args.ctc_weight, args.lm_weight) == (0.0, 0.0)
    assert args.beam_size == (5000 if row == "optimal" else 64)
    check_search_conf(args.search, args.search_conf)
    assert args.decide == ("mbr" if row.endswith("_mbr") else "map")
    known = {"beam_size", "ctc_weight", "lm_weight", "search", "search_conf", "decide"}
    assert yaml.safe_load(path.read_text()).keys() <= known


# --- run.sh ---------------------------------------------------------------------------


def test_all_stages(corpus):
    options = ("--utterances", 2, "--rows", "explicit_length", "--beams", 2)
    run = _run_sh(corpus, *options)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "dev-clean: only 2 of its 10 utterances, evenly spread" in run.stdout

    model = Speech2Text.from_pretrained(
        str(PACKED), search="explicit_length", beam_size=2, ctc_weight=0, lm_weight=0
    )
    audio = list(_audio(corpus).items())
    expected = {
        key: model(soundfile.read(path)[0])[0][0] for key, path in (audio[0], audio[5])
    }
    results = corpus / "exp" / "asr_transformer_2"
    row = results / "explicit_length_beam2_lm0.0"
    assert read_text(row / "dev-clean" / "1best_recog" / "text") == expected
    config = yaml.safe_load((row / "decode.yaml").read_text())
    assert (config["search"], config["beam_size"]) == ("explicit_length", 2)
    assert (config["lm_weight"], config["ctc_weight"]) == (0.0, 0.0)
    references = read_text(corpus / "data_2" / "dev-clean" / "text")
    wer = count_errors(references, expected).wer
    assert f"{wer:.1f}" in (results / "report" / "report.md").read_text()

    again = _run_sh(corpus, *options, "--stop_stage", 3)
    assert again.returncode == 0, again.stderr
    log = (row / "dev-clean" / "decode.log").read_text()
    assert "2 of 2 utterances are decoded already" in log
    assert "nothing is left to decode" in log
    # of the run that has decoded
    log = (row / "dev-clean" / "decoding.log").read_text()
    assert log.count("best hypo") == 2


def test_data(corpus):
    run = _run_sh(corpus, "--stop_stage", 1, "--utterances", 4)
    assert run.returncode == 0, run.stderr
    whole, part = corpus / "data" / "dev-clean", corpus / "data_4" / "dev-clean"
    audio = _audio(corpus)
    assert read_text(whole / "wav.scp") == {key: str(p) for key, p in audio.items()}
    said = {}
    for path in (corpus / "LibriSpeech").rglob("*.trans.txt"):
        said |= read_text(path)
    assert read_text(whole / "text") == said
    # every 10 / 4 = 2.5th: the utterances 0, 2.5, 5 and 7.5
    keys = [sorted(audio)[i] for i in (0, 2, 5, 7)]
    for name in ("wav.scp", "text"):
        whole_set = read_text(whole / name)
        assert read_text(part / name) == {key: whole_set[key] for key in keys}
    speakers = {key: key.split("-")[0] for key in keys}
    assert read_text(part / "utt2spk") == speakers
    assert read_text(part / "spk2utt") == {s: key for key, s in speakers.items()}


def test_data_that_has_not_changed_keeps_its_date(corpus):
    """Decoding goes by it: the results of new data are not those of old data."""
    command = (corpus, "--stop_stage", 1, "--utterances", 4)
    assert _run_sh(*command).returncode == 0
    files = [corpus / data / "dev-clean" / "text" for data in ("data", "data_4")]
    dates = [path.stat().st_mtime_ns for path in files]
    assert _run_sh(*command).returncode == 0
    assert [path.stat().st_mtime_ns for path in files] == dates
    said = next(iter(sorted((corpus / "LibriSpeech").rglob("*.trans.txt"))))
    said.write_text(said.read_text().replace("\n", " INDEED\n"))
    assert _run_sh(*command).returncode == 0
    assert all("INDEED" in path.read_text() for path in files)


def test_a_missing_flac_is_named(corpus):
    key, path = list(_audio(corpus).items())[3]
    path.unlink()
    run = _run_sh(corpus, "--stop_stage", 1)
    assert run.returncode != 0
    assert f"no audio: {key}" in run.stderr


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            lambda lines: lines[0].replace(b"E", b"\xc9"),
            "trans.txt, line 1 is no text in",
        ),
        (lambda lines: b"".join([*lines, lines[0]]), "trans.txt has two lines for "),
    ],
    ids=["Latin-1", "twice"],
)
def test_transcripts_that_are_none(spoil, message, corpus):
    path = next((corpus / "LibriSpeech").rglob("*.trans.txt"))
    path.write_bytes(spoil(path.read_bytes().splitlines(keepends=True)))
    run = _run_sh(corpus, "--stop_stage", 1)
    assert run.returncode == 2
    assert f"data_prep.py: {path.parent}" in run.stderr.splitlines()[-1]
    assert message in run.stderr.splitlines()[-1]


def test_an_utterance_of_two_files_is_named(corpus):
    path = next(iter(_audio(corpus).values()))
    (path.parent / "again").mkdir()
    shutil.copy(path, path.parent / "again" / path.name)
    shutil.copy(next(path.parent.glob("*.txt")), path.parent / "again")
    run = _run_sh(corpus, "--stop_stage", 1)
    assert run.returncode == 2
    assert re.search("data_prep.py: .* has a line for .*, and so has", run.stderr)
    next((path.parent / "again").glob("*.txt")).unlink()
    run = _run_sh(corpus, "--stop_stage", 1)
    assert f"again/{path.name} is called as {path} is" in run.stderr.splitlines()[-1]
    assert run.returncode == 2


def test_a_truncated_flac_is_named(corpus):
    path = list(_audio(corpus).values())[3]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert soundfile.info(path).frames  # the header is whole
    run = _run_sh(corpus, "--stop_stage", 1)
    assert run.returncode != 0
    assert "1 faults" in run.stderr
    assert re.search(f"(unreadable|truncated) audio: {path}", run.stderr)


def test_an_unreadable_flac_is_named(corpus):
    path = list(_audio(corpus).values())[3]
    path.write_bytes(b"no flac")
    run = _run_sh(corpus, "--stop_stage", 1)
    assert run.returncode != 0
    assert f"unreadable audio: {path}" in run.stderr


@pytest.mark.parametrize("options", [("--beam", "4"), ("4",), ("--lm-weight", "0")])
def test_an_unknown_option_is_named(options, tmp_path):
    run = _run_sh(tmp_path, *options)
    assert run.returncode == 2
    assert f"unknown option {options[0]}" in run.stderr
    assert not (tmp_path / "data").exists()


def test_an_option_without_its_value_is_named(tmp_path):
    run = _run_sh(tmp_path, "--beams")
    assert run.returncode == 2
    assert "--beams needs a value" in run.stderr


# --- The model ------------------------------------------------------------------------


def test_the_folder_of_a_training(transformer_model, tmp_path):
    folder, out = transformer_model.config.parent, tmp_path / "exp" / "model.yaml"
    run = _local("model", folder, out, "--asr_model_file", "model.pth")
    assert run.returncode == 0, run.stderr
    # blank, unk, space, 26 letters, sos/eos
    assert yaml.safe_load(out.read_text()) == {
        **transformer_model.files,
        "vocabulary": 30,
    }


def test_a_packed_model_comes_with_its_language_model(tmp_path):
    run = _local("model", PACKED, tmp_path / "model.yaml")
    assert run.returncode == 0, run.stderr
    model = yaml.safe_load((tmp_path / "model.yaml").read_text())
    assert model.pop("vocabulary") == 300
    names = {"asr_train_config", "asr_model_file", "lm_train_config", "lm_file"}
    assert model.keys() == names
    assert all(Path(path).is_file() for path in model.values())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gone.zip", "there is no file gone.zip"),
        (RECIPE / "run.sh", "run.sh is not a zip archive"),
        ("{training}", "/valid.acc.ave.pth (parameters there: model.pth)"),
    ],
)
def test_a_model_that_is_not_there(model, message, transformer_model, tmp_path):
    model = str(model).format(training=transformer_model.config.parent)
    run = _local("model", model, tmp_path / "model.yaml")
    assert run.returncode == 1
    assert message in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config.yaml is empty"),
        ("[1]", "config.yaml holds no `option: value` lines"),
        ("token_list: [a]\nlm: seq_rnn\n", "config of a model that is an LM"),
        ("token_list: [a]\nnormalize_conf: 5\nbpemodel: 5\n", ""),  # ESPnet tells
    ],
)
def test_a_config_that_is_none(text, message, transformer_model, tmp_path):
    (tmp_path / "config.yaml").write_text(text)
    shutil.copy(transformer_model.weights, tmp_path / "valid.acc.ave.pth")
    run = _local("model", tmp_path, tmp_path / "model.yaml")
    assert run.returncode == bool(message)
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_translator_of_texts_is_no_model_here(tmp_path):
    run = _local("model", TRANSLATOR, tmp_path / "model.yaml")
    assert run.returncode == 1
    assert f"model.py: {TRANSLATOR} is a model of mt, which translates" in run.stderr


def test_another_model_beside_results_is_refused(transformer_model, tmp_path):
    shutil.copy(transformer_model.weights, tmp_path / "valid.acc.ave.pth")
    shutil.copy(transformer_model.config, tmp_path / "config.yaml")
    out = tmp_path / "exp" / "model.yaml"
    assert _local("model", tmp_path, out).returncode == 0
    first = out.read_text()
    assert _local("model", PACKED, out).returncode == 0  # nothing is decoded yet
    assert _local("model", tmp_path, out).returncode == 0
    journal = out.parent / "simple_beam4" / "dev" / JOURNAL
    journal.parent.mkdir(parents=True)
    journal.touch()
    assert _local("model", tmp_path, out).returncode == 0
    run = _local("model", PACKED, out)
    assert run.returncode == 1
    assert f"model.py: {out.parent} holds results of another model" in run.stderr
    assert out.read_text() == first


def test_a_folder_that_cannot_be_made(transformer_model):
    run = _local("model", PACKED, "/dev/null/x/model.yaml")
    assert run.returncode == 1
    assert "model.py: output_dir /dev/null/x cannot be written" in run.stderr


def test_files_that_a_training_names_and_that_are_not_here(transformer_model, tmp_path):
    config = yaml.safe_load(transformer_model.config.read_text())
    config["bpemodel"] = "data/bpe.model"
    config["normalize_conf"] = {"stats_file": str(transformer_model.config)}  # is here
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "valid.acc.ave.pth").touch()
    run = _local("model", tmp_path, tmp_path / "model.yaml")
    assert run.returncode == 1
    assert "needs files that are not here: data/bpe.model. " in run.stderr


def test_all_stages_with_a_model_of_owsms_kind(corpus, model_of):
    """Two sets in the language that is said, and words without the symbols of OWSM."""
    shutil.copytree(SLICE / "test-other", corpus / "LibriSpeech" / "test-other")
    model, sets = model_of("s2t"), ("dev-clean", "test-other")
    asked = "--lang_sym <deu> --task_sym <asr> --maxlenratio -6"
    run = _run_sh(
        corpus,
        *("--model", model.config.parent, "--inference_asr_model", "model.pth"),
        *("--tool", "s2t", "--inference_args", asked, "--sets", " ".join(sets)),
        *("--utterances", 2, "--rows", "explicit_length", "--beams", 2),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    options = {"lang_sym": "<deu>", "maxlenratio": -6.0, "ctc_weight": 0.0}
    search = {"search": "explicit_length", "beam_size": 2, "lm_weight": 0.0}
    owsm = espnet_lenbias.s2t.Speech2Text(**model.files, **options, **search)
    results = corpus / "exp" / f"{model.config.parent.name}_2"
    for name in sets:
        found = results / "explicit_length_beam2_lm0.0" / name / "1best_recog"
        audio = read_text(corpus / "data_2" / name / "wav.scp")
        assert len(audio) == 2
        for key, path in audio.items():
            text, _, _, words, _ = owsm(soundfile.read(path)[0])[0]
            assert text.startswith("<deu> <asr> ") and "<" not in words
            assert read_text(found / "text")[key] == text
            assert read_text(found / "text_nospecial")[key] == words
        errors = count_errors(
            read_text(corpus / "data_2" / name / "text"),
            read_text(found / "text_nospecial"),
        )
        assert f" {errors.wer:.1f} " in run.stdout.replace("**", "")
    assert (results / "report" / "report.md").is_file()


def test_a_model_of_another_tool(model_of, tmp_path):
    """The folder of a training does not say whose it is."""
    model, out = model_of("s2t"), tmp_path / "model.yaml"
    options = ["--asr_model_file", "model.pth", "--tool", "s2t"]
    run = _local("model", model.config.parent, out, *options)
    assert run.returncode == 0, run.stderr
    written = yaml.safe_load(out.read_text())
    assert {key: written[key] for key in model.files} == model.files
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "decode_mine.yaml").write_text("search: simple\ntask_sym: st_deu\n")
    run = _local("rows", out, tmp_path, "--conf", conf, "--rows", "mine:4")
    assert run.returncode == 0, run.stderr
    path = tmp_path / "mine_beam4_lm0.0" / "decode.yaml"  # of ASR it would be lm1.0
    assert yaml.safe_load(path.read_text())["task_sym"] == "<st_deu>"
    assert choose_tool(["--config", str(path)]) is S2T  # so `decode` needs no --tool


# --- The grid of rows, beams and LM scales --------------------------------------------


def _rows(model: Path, *options: object) -> subprocess.CompletedProcess:
    return _local("rows", model, model.parent, "--conf", RECIPE / "conf", *options)


def test_a_row_may_hold_numbers_as_text(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    text = 'search: simple\nbeam_size: "4"\nlm_weight: "0"\nctc_weight: 0.0\n'
    (conf / "decode_mine.yaml").write_text(
        f"{text}search_conf: {{length_reward: 5e-1}}\n"
    )
    model = _write_model(tmp_path / "model.yaml")
    run = _local("rows", model, tmp_path, "--conf", conf, "--rows", "mine")
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["mine_beam4_lm0.0"]
    config = yaml.safe_load((tmp_path / "mine_beam4_lm0.0/decode.yaml").read_text())
    assert (config["beam_size"], config["lm_weight"]) == (4, 0.0)
    assert config["search_conf"] == {"length_reward": 0.5}


def test_rows_beams_and_lm_weights(tmp_path):
    model = _write_model(tmp_path / "model.yaml", lm_file="l")
    beams = ("--beams", 4, 16, "--lm_weights", 0.0, 0.3)
    run = _rows(model, "--rows", "simple:8", "optimal", *beams)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [
        "simple_beam8_lm0.0",
        "simple_beam8_lm0.3",
        "optimal_beam4_lm0.0",
        "optimal_beam4_lm0.3",
        "optimal_beam16_lm0.0",
        "optimal_beam16_lm0.3",
    ]
    config = tmp_path / "optimal_beam16_lm0.3" / "decode.yaml"
    assert yaml.safe_load(config.read_text()) == {
        "asr_train_config": "c",
        "asr_model_file": "m",
        "lm_file": "l",
        "beam_size": 16,
        "ctc_weight": 0.0,
        "lm_weight": 0.3,
        "search": "explicit_length",
        "search_conf": {"score_threshold": 8.0},
    }


def test_without_beams_and_lm_weights_the_decode_config_has_them(tmp_path):
    run = _rows(_write_model(tmp_path / "model.yaml"), "--rows", "optimal", "--beams")
    assert run.stdout.split() == ["optimal_beam5000_lm0.0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "simpel"], "did you mean simple?"),
        (["--rows", "simple:x"], "'x' is no beam size"),
        (["--rows", "simple", "--beams", "0"], "'0'"),
        (["--rows", "simple", "--lm_weights", "0.3"], "without language model"),
        (["--rows", "espnet:301"], "within the 300 labels"),
    ],
)
def test_what_cannot_be_decoded_is_refused_at_the_door(options, message, tmp_path):
    run = _rows(_write_model(tmp_path / "model.yaml"), *options)
    assert run.returncode != 0
    assert message in run.stderr
    assert not list(tmp_path.glob("*/decode.yaml"))


def test_espnets_own_search_takes_a_beam_of_all_labels(tmp_path):
    run = _rows(_write_model(tmp_path / "model.yaml"), "--rows", "espnet:300")
    assert run.returncode == 0, run.stderr


def test_a_mistake_in_any_row_stops_all(tmp_path):
    conf = tmp_path / "conf"
    shutil.copytree(RECIPE / "conf", conf)
    (conf / "decode_mine.yaml").write_text("beam_sise: 4\n")
    model = _write_model(tmp_path / "model.yaml")
    run = _local("rows", model, tmp_path, "--conf", conf, "--rows", "simple", "mine")
    assert run.returncode == 2
    assert "decode_mine.yaml: unknown option beam_sise; did you mean beam_size?" in (
        run.stderr
    )
    assert not list(tmp_path.glob("*/decode.yaml"))


def test_results_of_another_model_are_not_mixed_with_this_ones(tmp_path):
    model = _write_model(tmp_path / "model.yaml")
    assert _rows(model, "--rows", "simple:4").returncode == 0
    assert _rows(model, "--rows", "simple:4").returncode == 0
    before = (tmp_path / "simple_beam4_lm0.0" / "decode.yaml").read_text()
    _write_model(model, asr_model_file="other")
    run = _rows(model, "--rows", "simple:4")
    assert run.returncode == 1
    assert "simple_beam4_lm0.0" in run.stderr
    assert (tmp_path / "simple_beam4_lm0.0" / "decode.yaml").read_text() == before


# --- Tuning ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def settings() -> ModuleType:
    """The recipe's local/settings.py."""
    spec = importlib.util.spec_from_file_location(
        "librispeech_settings", RECIPE / "local" / "settings.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


TRIED = {
    "lm_weight": [0.0, 0.4],
    "eos_threshold": [1.0, 1.5, 2.0],
    "length_reward": [0.1],
    "coverage_weight": [0.2, 0.3],
    "coverage_threshold": [0.5, 0.6],
    "patience": [1.0, 2.0],
    "length_penalty": [0.5, 1.0, 1.5],
    "label_smoothing": [0.1, 1.0],
}


def _config(row: str) -> dict:
    return yaml.safe_load((RECIPE / "conf" / f"decode_{row}.yaml").read_text())


@pytest.mark.parametrize(
    ("row", "points"),
    [
        ("explicit_length", 2),  # the LM scale alone
        ("optimal", 2),
        ("length_norm", 2),
        ("simple_heuristics", 2 * 3),
        ("coverage_log", 2 * 2),
        ("coverage_frames", 2 * 2 * 2),
        ("length_reward_coverage", 2 * 1 * 2 * 2),
        ("patience", 2 * 2),
        ("patience_length_penalty", 2 * 2 * 3),
        ("explicit_length_rectified", 2 * 2),
    ],
)
def test_the_grid_has_what_the_row_has(row, points, settings):
    config = _config(row)
    grid = list(settings.grid(row, config, TRIED))
    assert len(grid) == points
    assert config == _config(row)  # untouched
    for setting in grid:
        conf = setting.config.get("search_conf", {})
        check_search_conf(setting.config["search"], conf)
    unique = {yaml.safe_dump(setting.config) for setting in grid}
    assert len(unique) == points


def test_a_row_of_three_numbers_has_every_second_default(settings):
    config = _config("length_reward_coverage")
    tried = {**TRIED, "length_reward": [0.1, 0.2, 0.4, 0.8, 1.6]}
    tried["coverage_weight"] = [0.1, 0.2, 0.3, 0.4]
    defaults = ("lm_weight", "length_reward", "coverage_weight")
    found = list(settings.grid("row", config, tried, defaults))
    values = {
        name: sorted({setting.values[name] for setting in found})
        for name in found[0].values
    }
    assert values == {
        "lm_weight": [0.0, 0.4],
        "length_reward": [0.1, 0.4, 1.6],
        "coverage_weight": [0.1, 0.3, 0.4],  # the ends stay
        "coverage_threshold": [0.5, 0.6],  # given
    }
    assert len(found) == 2 * 3 * 3 * 2
    of_two = settings.grid("row", _config("coverage_frames"), tried, defaults)
    assert len(list(of_two)) == 2 * 4 * 2


def test_the_grid_puts_values_where_the_config_has_them(settings):
    *_, last = settings.grid("coverage_frames", _config("coverage_frames"), TRIED)
    assert last.config["lm_weight"] == 0.4
    assert last.config["search_conf"] == {"coverage": {"weight": 0.3, "threshold": 0.6}}
    values = {"lm_weight": 0.4, "coverage_weight": 0.3, "coverage_threshold": 0.6}
    assert last.values == values


def test_the_edge_of_the_grid(settings):
    def edge(**values: float) -> list[str]:
        return settings.at_the_edge(settings.Setting("row", values, {}), TRIED)

    assert edge(lm_weight=0.0, eos_threshold=1.5) == []  # none is to be tried below 0
    assert edge(lm_weight=0.4, eos_threshold=1.0) == ["lm_weight", "eos_threshold"]
    assert edge(length_reward=0.1) == []  # the only one
    assert edge(patience=2.0, label_smoothing=0.1) == ["patience", "label_smoothing"]
    assert edge(label_smoothing=1.0) == []  # there is none above 1


def test_rows_that_need_another_model_are_not_tuned_together(settings):
    rows = {"simple": _config("simple"), "optimal": _config("optimal")}
    assert settings.shared_options(rows) == {"ctc_weight": 0.0}
    rows["optimal"]["ctc_weight"] = 0.3
    with pytest.raises(ValueError, match="simple and optimal differ"):
        settings.shared_options(rows)


def test_the_best_setting_and_among_equal_ones_that_inside_the_grid(settings):
    def errors(*wers: int) -> list[Errors]:
        return [Errors(1, 100 - wer, wer, 0, 0) for wer in wers]

    heuristics = list(settings.grid("a", _config("simple_heuristics"), TRIED))[:3]
    other = list(settings.grid("b", _config("simple"), TRIED))
    grid = [*heuristics, *other]  # EOS thresholds 1.0, 1.5, 2.0, then the other row
    best = settings.choose("a", grid, errors(50, 50, 60, 10, 20), TRIED)
    assert best.values["eos_threshold"] == 1.5
    best = settings.choose("a", grid, errors(49, 50, 60, 10, 20), TRIED)
    assert best.values["eos_threshold"] == 1.0


def test_the_oversmoothing_rate_of_sets(corpus):
    """Of two utterances; without label smoothing in it, fewer positions are."""
    assert _run_sh(corpus, "--stop_stage", 2, "--utterances", 2).returncode == 0
    out = corpus / "rate"
    model = corpus / "exp" / "asr_transformer_2" / "model.yaml"
    options = ("--data", corpus / "data_2", "--sets", "dev-clean", "--lm_weight", 1.5)
    run = _local("oversmoothing", model, out, *options, "--label_smoothing", 0.0, 0.1)
    assert run.returncode == 0, run.stderr
    assert (out / "oversmoothing.md").read_text() in run.stdout
    with (out / "oversmoothing.csv").open(newline="") as f:
        plain, rectified = csv.DictReader(f)
    assert (plain["dataset"], plain["utterances"]) == ("dev-clean", "2")
    assert plain["positions"] == rectified["positions"]
    assert 0 <= float(rectified["rate"]) < float(plain["rate"]) <= 100

    wrong = (model, out, *options, "--label_smoothing", 2.0)
    run = run_here(RECIPE / "local" / "oversmoothing.py", *wrong)
    assert run.returncode == 1
    assert "oversmoothing.py: " in run.stderr
    assert "label_smoothing must be a number from 0 to 1" in run.stderr
    assert "Traceback" not in run.stderr


def test_tuning_finds_what_decoding_finds(corpus):
    """Word errors of each setting, and those of the model that is built with it."""
    assert _run_sh(corpus, "--stop_stage", 2, "--utterances", 3).returncode == 0
    out = corpus / "tuned"
    model_yaml = corpus / "exp" / "asr_transformer_3" / "model.yaml"
    run = _local(
        "tune",
        *(model_yaml, out, "--data", corpus / "data_3", "--sets", "dev-clean"),
        *("--rows", "explicit_length", "length_reward", "--beam", 3),
        *("--lm_weight", 0.0, 0.8, "--length_reward", 2.0),
    )
    assert run.returncode == 0, run.stderr
    with (out / "tune.csv").open(newline="") as f:
        found = {
            (line["row"], float(line["lm_weight"])): float(line["wer"])
            for line in csv.DictReader(f)
        }

    data = corpus / "data_3" / "dev-clean"
    references = read_text(data / "text")
    waves = {k: soundfile.read(p)[0] for k, p in read_text(data / "wav.scp").items()}
    expected = {}
    for row, search, conf in [
        ("explicit_length", "explicit_length", {}),
        ("length_reward", "simple", {"length_reward": 2.0}),
    ]:
        for weight in (0.0, 0.8):
            model = Speech2Text.from_pretrained(
                str(PACKED),
                search=search,
                search_conf=conf,
                beam_size=3,
                ctc_weight=0.0,
                lm_weight=weight,
            )
            texts = {key: model(wave)[0][0] for key, wave in waves.items()}
            expected[row, weight] = count_errors(references, texts).wer
    assert found == pytest.approx(expected)
    assert len(set(expected.values())) > 2  # the settings do differ

    config = yaml.safe_load((out / "decode_explicit_length.yaml").read_text())
    best = min((0.0, 0.8), key=lambda weight: expected["explicit_length", weight])
    assert config == {
        "search": "explicit_length",
        "beam_size": 3,
        "ctc_weight": 0.0,
        "lm_weight": best,
    }
