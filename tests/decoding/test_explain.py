"""``espnet-lenbias explain`` on the bundled model, and what it refuses."""

import contextlib
import importlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lxml.html
import numpy as np
import pytest
import soundfile
import yaml

from espnet_lenbias import Speech2Text, cli
from espnet_lenbias.decoding import explain, loading, model_command
from espnet_lenbias.decoding.explained_input import Input, check_input, input_of
from espnet_lenbias.options import audio_files as audio
from espnet_lenbias.options.espnet_tools import ASR, S2T
from espnet_lenbias.options.espnet_tools import MT as MT_TOOL
from espnet_lenbias.options.tool_choice import choose_tool
from tests.bundled import bundled
from tests.tool_models import lines

RECIPE = Path(__file__).parents[2] / "recipes" / "mini_librispeech"
PACKED = str(bundled("asr_transformer"))
TRANSLATES = str(RECIPE.with_name("mini_mt") / "pretrained" / "mt.zip")
AUDIO = min((RECIPE / "slice" / "LibriSpeech" / "dev-clean").rglob("*.flac"))


@pytest.fixture
def loaded(monkeypatch):
    """Note whether a model gets loaded, and do not."""
    calls = []
    monkeypatch.setattr(
        loading, "load_model", lambda *args: calls.append(args) or 1 / 0
    )
    return calls


def tables(text):
    """The rows of each Markdown table, without heading."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append(rows[2:])
            rows = []
    return found


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_the_bundled_model(search, tmp_path, capsys):
    config = tmp_path / "decode.yaml"
    options = {"beam_size": 4, "ctc_weight": 0.0, "lm_weight": 0.0, "search": "simple"}
    config.write_text(yaml.safe_dump(options))
    command = ["explain", str(AUDIO), "--model", PACKED, "--config", str(config)]
    command += ["--search", search, "--output_dir", str(tmp_path / "out"), "--html"]
    assert cli.main(command) == 0
    text = capsys.readouterr().out
    steps, nbest = tables(text)
    assert [int(row[0]) for row in steps] == list(range(1, len(steps) + 1))
    assert f"The search stopped after N = {len(steps)}: " in text
    scores = [float(row[2]) for row in nbest]
    assert scores == sorted(scores, reverse=True)
    assert nbest[0][3]
    if search == "explicit_length":
        assert float(steps[-1][5]) == scores[0]
        # the columns agree: what has not ended before N, from the ending probabilities
        not_ended = 0.0
        for _, p_end, before, *_ in steps:
            assert float(before) == pytest.approx(not_ended, abs=2e-2)
            if float(p_end) > 0.99:  # of which four digits do not tell enough
                break
            not_ended += math.log1p(-float(p_end))
    else:
        assert float(steps[-1][3]) == scores[0]
        assert [row[1] for row in nbest] == [row[2] for row in nbest]
    plot = tmp_path / "out" / f"{AUDIO.stem}_{search}_beam4.png"
    assert plot.read_bytes().startswith(b"\x89PNG")
    page = lxml.html.fromstring(plot.with_suffix(".html").read_text("utf-8"))
    shown = page.xpath("//table[@id='nbest']/tbody/tr")
    assert [[cell.text for cell in row] for row in shown] == nbest
    assert len(page.xpath("//table[@id='steps']/tbody/tr")) == len(steps)
    (player,) = json.loads(page.get_element_by_id("data").text)["players"]
    assert player["audio"]["duration"] == round(soundfile.info(AUDIO).duration, 3)
    assert player["rows"][0]["times"] is player["rows"][0]["confidence"] is None

    # made once more, it takes the place of its own files, and of no others
    assert cli.main(command) == 0
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / AUDIO.name
    shutil.copy(AUDIO, other)
    of_other = [str(other), *command[2:]]
    refused(of_other, f"{plot} stands where a file of {other} goes", capsys)
    plot.unlink()
    message = f"{plot.with_suffix('.html')} stands where a file of {other} goes"
    refused(of_other, message, capsys)
    plot.with_suffix(".html").write_text("dear to me")
    refused(command[1:], "and it is of something else: move it, or name", capsys)
    assert plot.with_suffix(".html").read_text() == "dear to me"


def test_times_and_confidences_are_on_the_page(tmp_path):
    options = {"beam_size": 4, "ctc_weight": 0.0, "lm_weight": 0.0}
    command = ["explain", str(AUDIO), "--model", PACKED, "--output_dir", str(tmp_path)]
    for key, value in options.items():
        command += [f"--{key}", str(value)]
    assert (
        cli.main([*command, "--html", "--times", "true", "--confidence", "true"]) == 0
    )
    (path,) = tmp_path.glob("*.html")
    page = lxml.html.fromstring(path.read_text("utf-8"))
    (player,) = json.loads(page.get_element_by_id("data").text)["players"]
    model = Speech2Text.from_pretrained(
        PACKED,
        search="explicit_length",
        times=True,
        confidence=True,
        nbest=5,
        **options,
    )
    results = model(soundfile.read(AUDIO)[0])
    for row, (text, *_, hypothesis) in zip(player["rows"], results, strict=True):
        assert row["text"] == text
        times = [pytest.approx(list(pair), abs=1e-3) for pair in hypothesis.word_times]
        assert row["times"] == times
        assert row["confidence"] == pytest.approx(hypothesis.word_confidence, abs=1e-3)


def test_audio_that_is_too_short_for_the_model(tmp_path, capsys):
    soundfile.write(tmp_path / "short.wav", np.zeros(50), 16000)
    with pytest.raises(SystemExit) as stop:
        cli.main(
            ["explain", str(tmp_path / "short.wav"), "--model", PACKED]
            + ["--output_dir", str(tmp_path), "--ctc_weight", "0", "--lm_weight", "0"]
        )
    assert stop.value.code == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.match("espnet-lenbias explain: error: .*short.wav: ", last)


def parsed(*command: str):
    own, rest = explain.get_parser().parse_known_args(command)
    return explain.decoding_options(choose_tool(command), own, rest)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_what_is_not_said_is_as_espnet_has_it_but_the_search(place, tmp_path):
    command = ["--model", PACKED, "--output_dir", str(tmp_path), "--beam_size", "7"]
    command.insert(place, str(AUDIO))
    args = parsed(*command)
    assert args.input == AUDIO
    assert (args.search, args.nbest, args.beam_size) == ("explicit_length", 5, 7)
    assert (args.ctc_weight, args.maxlenratio) == (0.5, 0.0)
    assert args.model_tag == PACKED


@pytest.mark.parametrize("name", ["a,b.wav", "a b.wav", "$x$,_.wav", "\u4f60.wav"])
def test_audio_of_any_name(tmp_path, name):
    path = write_audio(tmp_path / name, np.zeros(800), 16000)
    command = [str(path), "--model", PACKED, "--output_dir", str(tmp_path)]
    assert parsed(*command).input == path


def test_signs_that_the_locale_does_not_have(tmp_path):
    path = write_audio(tmp_path / "\u4f60,$.wav", np.zeros(16000), 16000)
    code = "import sys, espnet_lenbias.cli as c; sys.exit(c.main())"
    command = [sys.executable, "-c", code, "explain", path, "--model", PACKED]
    command += ["--output_dir", tmp_path / "\u597d", "--beam_size", "2"]
    command += ["--ctc_weight", "0", "--lm_weight", "0", "--maxlenratio", "-2"]
    out = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
        check=False,
    )
    assert out.returncode == 0, out.stderr
    assert b"Traceback" not in out.stderr
    assert list((tmp_path / "\u597d").glob("\u4f60,$_explicit_length_beam2.png"))


def write_audio(path, samples, rate):
    soundfile.write(path, samples, rate)
    return path


@pytest.mark.parametrize(
    "name, samples, rate, message",
    [
        ("slow.wav", np.zeros(800), 8000, "8000 samples a second, .* takes 16000"),
        ("none.wav", np.zeros(0), 16000, "none.wav holds no samples"),
    ],
)
def test_audio_of_another_kind(tmp_path, loaded, capsys, name, samples, rate, message):
    path = write_audio(tmp_path / name, samples, rate)
    refused([str(path), "--model", PACKED], message, capsys)
    assert not loaded


def test_audio_that_is_cut_off(tmp_path, loaded, capsys):
    path = write_audio(tmp_path / "cut.wav", np.zeros(32000), 16000)
    path.write_bytes(path.read_bytes()[:32044])
    refused([str(path), "--model", PACKED], "cut.wav: cut off: its header says", capsys)
    assert not loaded


def test_two_channels_are_what_the_drop_in_makes_of_them(tmp_path, capsys):
    """Of silence beside the audio: the first one counts, as in ESPnet."""
    samples, rate = soundfile.read(AUDIO)
    both = np.stack([samples, np.zeros_like(samples)], axis=1)
    path = write_audio(tmp_path / "two_channels.wav", both, rate)
    found = []
    for file in (AUDIO, path):
        command = ["explain", str(file), "--model", PACKED, "--beam_size", "2"]
        command += ["--ctc_weight", "0", "--lm_weight", "0", "--maxlenratio", "-8"]
        assert cli.main([*command, "--output_dir", str(tmp_path / "out")]) == 0
        found.append(tables(capsys.readouterr().out)[1][0][3])
    assert found[0] == found[1] != ""


def test_a_model_that_was_trained_on_whole_numbers(
    tmp_path, loaded, capsys, monkeypatch
):
    config = tmp_path / "config.yaml"
    data = [["wav.scp", "speech", "kaldi_ark"]]
    options = {"train_data_path_and_name_and_type": data, "token_list": ["a"]}
    config.write_text(yaml.safe_dump(options))
    files = {"asr_train_config": str(config), "asr_model_file": "model.pth"}
    monkeypatch.setattr(model_command, "model_files", lambda _: files)
    command = ["explain", str(AUDIO), "--model", PACKED, "--output_dir", str(tmp_path)]
    with pytest.raises(ZeroDivisionError):
        cli.main(command)
    assert loaded
    error = capsys.readouterr().err
    assert error.startswith(f"espnet-lenbias explain: warning: {AUDIO}: sound gives")


@pytest.mark.parametrize(
    "options, missing",
    [
        (["--model", PACKED, "--beam_size", "4"], "AUDIO: asr decodes an audio file"),
        (
            ["--beam_size", "4", "--model", PACKED, "--nbest", "2"],
            "AUDIO: asr decodes an audio file",
        ),
        (
            ["--search_conf", "nbest=1", "--model", PACKED],
            "AUDIO: asr decodes an audio file",
        ),
        (["a.wav"], "the following arguments are required: --model"),
    ],
)
def test_what_is_missing_is_named(options, missing, capsys):
    with pytest.raises(SystemExit) as stop:
        explain.main(options)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert f"error: {missing}" in error


@pytest.mark.parametrize("place", range(4))
def test_audio_stands_anywhere_between_options(place, tmp_path):
    """A number behind an option is its value, not the audio."""
    options = ["--model", PACKED, "--beam_size", "7", "--output_dir", str(tmp_path)]
    options.insert(2 * place, "4")
    args = parsed(*options)
    assert (args.input, args.beam_size) == (Path("4"), 7)


def test_no_audio(tmp_path, loaded, capsys):
    path = tmp_path / "gone.wav"
    refused([str(path), "--model", PACKED], "there is no audio file .*gone.wav", capsys)
    path.write_text("not audio")
    refused([str(path), "--model", PACKED], "gone.wav is no audio that", capsys)
    refused([str(tmp_path), "--model", PACKED], f"{tmp_path} is a folder", capsys)
    os.mkfifo(tmp_path / "pipe")
    message = "pipe is a pipe or a device, and files are read more than once"
    refused([str(tmp_path / "pipe"), "--model", PACKED], message, capsys)
    assert not loaded


def test_a_folder_where_the_plot_goes(loaded, tmp_path, capsys):
    plot = tmp_path / f"{AUDIO.stem}_explicit_length_beam2.png"
    plot.mkdir()
    options = ["--model", PACKED, "--beam_size", "2", "--output_dir", str(tmp_path)]
    refused([str(AUDIO), *options], f"output_dir: {plot} is a folder", capsys)
    assert not loaded


def test_a_plot_of_audio_of_a_long_name():
    """Names of files have 255 bytes at most; those that fit are kept as they are."""
    usual, long = (Input(ASR, Path(f"/d/{n}.wav"), None) for n in (".a%b", 251 * "a"))
    assert usual.file(".simple.png") == ".a%b.simple.png"
    name = long.file(".simple.png")
    assert len(name) == 255
    assert name.startswith(200 * "a") and name.endswith(".simple.png")


@pytest.mark.parametrize(
    "options, message",
    [
        (["--model", "gone.zip"], "there is no file gone.zip"),
        (
            ["--model", TRANSLATES, "--tool", "asr"],
            "mt.zip is a model of mt, and not of asr: say --tool mt",
        ),
        (
            ["--model", PACKED, "--multi_asr", "true"],
            "multi_asr: the model of .* hears",
        ),
        (
            ["--model", PACKED, "--asr_train_config", "/"],
            "asr_train_config: / is a folder",
        ),
        (["--model", PACKED, "--search", "espnet"], "search: espnet does not tell"),
        (["--model", PACKED, "--search", "simpel"], "did you mean simple?"),
        (
            ["--model", PACKED, "--beem_size", "4"],
            "unrecognized arguments: --beem_size",
        ),
        (
            ["--model", PACKED, "--search_conf", "length_norm=true"],
            "length_norm is an option of search: simple, not of explicit_length",
        ),
        (["--model", PACKED, "--html_audio", "none"], "--html_audio: .* add --html"),
    ],
)
def test_options_that_are_wrong(loaded, capsys, options, message):
    refused([str(AUDIO), *options], message, capsys)
    assert not loaded


def test_a_page_that_cannot_be_made(loaded, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    message = r"--html: the page needs vl_convert .*pip install .espnet_lenbias\[html\]"
    refused([str(AUDIO), "--model", PACKED, "--html"], message, capsys)
    assert not loaded


def test_a_file_as_output_dir(loaded, tmp_path, capsys):
    (tmp_path / "out").write_text("dear to me")
    options = ["--model", PACKED, "--output_dir", str(tmp_path / "out")]
    message = f"error: output_dir {tmp_path}/out cannot be written .*is a file"
    refused([str(AUDIO), *options], message, capsys)
    assert not loaded


def refused(command, message, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["explain", *command])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("espnet-lenbias explain: error: ")
    assert re.search(message, error), error


@pytest.mark.parametrize("fs, rate", [("8k", 8000), (8000, 8000), (None, 16000)])
def test_the_rate_of_a_model(fs, rate):
    conf = {"n_fft": 512} if fs is None else {"fs": fs}
    audio.check_rate(Path("a.wav"), rate, conf)
    with pytest.raises(ValueError, match=f"a.wav has 11025 .* the model takes {rate}"):
        audio.check_rate(Path("a.wav"), 11025, conf)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--model_tag", str(bundled("asr_rnn"))], "model_tag: the model is named"),
        (["--output", "x"], "unrecognized arguments: --output x"),
        (["--formats", "json"], "formats: what a search does is printed and drawn"),
        (
            ["--segments", str(AUDIO)],
            "segments: what is to be explained is named as AU",
        ),
        (
            ["--key_file", str(AUDIO)],
            "key_file: what is to be explained is named as AU",
        ),
        (
            ["--times", "true"],
            "times: only a page shows it: say --html, or leave times",
        ),
        (["--confidence", "true"], "confidence: only a page shows it"),
        (["--html", "--decide", "mbr"], "decide: here is shown what the search finds"),
    ],
)
def test_options_that_would_have_no_effect(
    tmp_path, monkeypatch, capsys, options, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        explain.main([str(AUDIO), "--model", PACKED, *options])
    assert stop.value.code == 2
    assert f"explain: error: {message}" in capsys.readouterr().err


# --- Every tool -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, options",
    [
        ("st", []),
        ("st_multi", ["--asr_beam_size", "3"]),
        ("mt", []),
        ("s2t", ["--lang_sym", "deu", "--task_sym", "st_deu"]),
        ("s2t", ["--text", "A B"]),
        ("slu", []),
        ("slu_transcript", ["--text", "A B"]),
    ],
)
def test_every_tool_finds_what_its_drop_in_finds(
    name, options, packed, data, tmp_path, capsys
):
    """The packed model says whose it is; a text of another name than the audio's."""
    model, text = packed(name), data / "text"
    tool = choose_tool(["--model", model])
    given = [str(data / "utt1.wav")]
    source = f"{data}/wav.scp,speech,sound"
    if name == "mt":
        given, source = ["--text", "A B"], f"{data}/text,src_text,text"
    common = ["--beam_size", "4", "--ctc_weight", "0.0", "--nbest", "2"]
    common += [x for x in options if options[0] != "--text"]
    dropped = ["--model_tag", model, "--output_dir", str(tmp_path / "out"), *common]
    dropped += ["--search", "explicit_length", "--num_workers", "0"]
    dropped += ["--data_path_and_name_and_type", source]
    if options[:1] == ["--text"]:
        given += options
        dropped += ["--data_path_and_name_and_type", f"{text},{tool.text},text"]
    assert importlib.import_module(tool.drop_in).main(dropped) == 0
    capsys.readouterr()

    command = ["explain", *given, "--model", model, *common]
    assert cli.main([*command, "--output_dir", str(tmp_path / "explained")]) == 0
    shown = capsys.readouterr().out
    _, nbest = tables(shown)
    for n, row in enumerate(nbest, 1):
        found = {
            file: lines(tmp_path / "out", f"{n}best_recog/{file}")["utt1"]
            for file in ("text", "score", "original_score")
        }
        assert row[3] == found["text"].strip()
        assert float(row[2]) == pytest.approx(float(found["score"]), abs=2e-3)
        assert float(row[1]) == pytest.approx(float(found["original_score"]), abs=2e-3)
    if name == "st_multi":
        source_text = lines(tmp_path / "out", "1asr_best_recog/asr_text")["utt1"]
        assert f"The source text, searched before: {source_text}" in shown
    stem = "A-B" if name == "mt" else "utt1"
    plot = tmp_path / "explained" / f"{stem}_explicit_length_beam4.png"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_text_in_a_file(packed, tmp_path, capsys):
    file = tmp_path / "source.txt"
    file.write_text("\nA B\n")
    model, shown = packed("mt"), []
    capsys.readouterr()
    for given in ([str(file)], ["--text", "A B"]):
        assert cli.main(["explain", *given, "--model", model, "--beam_size", "2"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_plots_are_called_by_the_words_of_the_text(packed, tmp_path, capsys):
    """Also by words that are the name of a file, which is said."""
    (tmp_path / "A").write_text("B")
    model = packed("mt")
    capsys.readouterr()
    for text in ("A", "B A/", "A" * 300):
        command = ["explain", "--text", text, "--model", model, "--beam_size", "2"]
        command += ["--output_dir", str(tmp_path / "plots")]
        with contextlib.chdir(tmp_path):
            assert cli.main(command) == 0
        said = "A is taken for a text, though there is a file of that name"
        assert (said in capsys.readouterr().err) == (text == "A")
    ending = "_explicit_length_beam2.png"
    long, *names = sorted((p.name for p in (tmp_path / "plots").iterdir()), key=len)[
        ::-1
    ]
    assert sorted(names) == [f"A{ending}", f"B-A%2F{ending}"]
    assert len(long) == 255 and long.startswith("AAAA") and long.endswith(ending)


def test_audio_beyond_the_window_is_warned_of(packed, tmp_path, capsys):
    path = write_audio(tmp_path / "long.wav", 0.1 * np.ones(12000), 8000)
    command = ["explain", str(path), "--model", packed("s2t"), "--ctc_weight", "0"]
    assert cli.main([*command, "--beam_size", "2"]) == 0
    warning = "long.wav has 1.50 s, and the model hears no more than 1.00 s"
    assert warning in capsys.readouterr().err


MT = str(RECIPE.parent / "mini_mt" / "pretrained" / "mt.zip")


@pytest.mark.parametrize(
    "given, message",
    [
        (["--model", MT], "text: mt translates a text: give one, with --text TEXT"),
        (["x", "--text", "y", "--model", MT], "text: mt translates a text: give one"),
        (["--text", " ", "--model", MT], "text: there is nothing in it"),
        (
            ["gone", "--model", MT],
            "there is no text file gone: give a text with --text",
        ),
        (["lines", "--model", MT], "lines has 2 lines of text, and one is explained"),
        (["utf-16", "--model", MT], "utf-16 holds NUL: it is no text in UTF-8"),
        (["--text", "x", "--model", PACKED], "text: asr takes no text, only audio"),
        (["--model", PACKED], "AUDIO: asr decodes an audio file: name one"),
        (
            ["--text", "x", "--model", MT, "--tool", "st"],
            "mt.zip is a model of mt, and not of st: say --tool mt",
        ),
        (
            ["--text", "x", "--model", MT, "--html", "--html_audio", "link"],
            "--html_audio link: a text is explained, without audio: say .* none",
        ),
        (
            ["--text", "x", "--model", MT, "--mt_train_config", "lines"],
            "mt_train_config: lines holds no `option: value` lines",
        ),
        (
            ["--text", "x", "--model", MT]
            + ["--data_path_and_name_and_type", "lines,src_text,text"],
            "data_path_and_name_and_type: what is to be explained is named as AUDIO",
        ),
    ],
)
def test_what_is_missing_or_has_no_place(
    given, message, loaded, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines").write_text("a\nb\n")
    (tmp_path / "utf-16").write_text("a b", encoding="utf-16-le")
    refused(given, message, capsys)
    assert not loaded


def test_the_mark_at_the_beginning_of_a_text_is_no_word(tmp_path):
    """Some editors write it."""
    (tmp_path / "text").write_text("a b\n", encoding="utf-8-sig")
    assert input_of(MT_TOOL, tmp_path / "text", None).text == "a b"


def test_a_model_of_the_zoo_that_is_another_tools(tmp_path, capsys, monkeypatch):
    """It is told from its files once they are here."""
    files = {"mt_train_config": "x", "mt_model_file": "y"}
    monkeypatch.setattr(model_command, "model_files", lambda _: files)
    command = [str(AUDIO), "--model", "someone/model", "--output_dir", str(tmp_path)]
    refused(command, "someone/model is a model of mt, .* say --tool mt", capsys)


@pytest.mark.parametrize(
    "tool, config, n_warnings",
    [(ASR, {}, 2), (ASR, {"encoder": "whisper"}, 1), (S2T, {}, 1)],
)
def test_audio_is_warned_of_as_in_decoding(tool, config, n_warnings, tmp_path):
    """A model with a window tells itself what it leaves out."""
    path = tmp_path / "a.wav"
    soundfile.write(path, np.full((41 * 16000, 2), 0.1), 16000)
    *of_length, of_channels = check_input(Input(tool, path, None), config)
    assert len(of_length) == n_warnings - 1
    assert f"{path} has 2 channels, of which" in of_channels
    assert all(f"{path} has 41.00 s" in warning for warning in of_length)
