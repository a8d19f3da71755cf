"""Times of words through the drop-ins: files, pieces, resuming, workers, options."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from espnet_lenbias.bin import asr_inference, asr_inference_streaming, mt_inference
from espnet_lenbias.decoding import result_rows
from espnet_lenbias.decoding.journal import is_row
from espnet_lenbias.search.hypotheses import RatedHypothesis
from tests.conftest import RATE
from tests.releases import needs_batches
from tests.tool_models import command, files, lines, tool_of

OF_WORDS, OF_LABELS = "word_times", "label_times"


CONFIG = """\
token_list: [<blank>, <unk>, A, <sos/eos>]
encoder: contextual_block_transformer
"""


def options_of(model, folder: Path, name: str, *more: str) -> list[str]:
    options = ["--search", "explicit_length", "--ctc_weight", "0.0"]
    options += ["--maxlenratio", "-3", *more]
    return command(model, folder, folder / name, *options)


@pytest.fixture
def run(transformer_model, wav_scp, tmp_path):
    """Return what decodes five utterances at beam 4 into a folder of tmp_path."""

    def run(name: str, *options: str) -> Path:
        asked = options_of(transformer_model, tmp_path, name, *options)
        assert asr_inference.main(asked) == 0
        return tmp_path / name

    assert wav_scp == tmp_path / "wav.scp"
    return run


def spans_in(out: Path, name: str, rank: int = 1) -> dict[str, list[list[float]]]:
    values = lines(out, f"{rank}best_recog/{name}")
    return {
        key: [[float(v) for v in span.split("-")] for span in line.split()]
        for key, line in values.items()
    }


@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
@pytest.mark.parametrize("times", ["true", "ctc", "attention"])
def test_there_is_a_span_for_each_word_and_label(times, batch_size, run, waves):
    options = ["--nbest", "2", "--batch_size", batch_size]
    plain = run("plain", *options)
    out = run("out", *options, "--times", times)
    assert set(files(out)) - set(files(plain)) == {
        f"{n}best_recog/{name}" for n in (1, 2) for name in (OF_WORDS, OF_LABELS)
    }
    for name, content in files(plain).items():  # all else is as it was
        assert files(out)[name] == content
    for rank in (1, 2):
        for name, of in ((OF_WORDS, "text"), (OF_LABELS, "token_int")):
            texts = lines(out, f"{rank}best_recog/{of}")
            for key, spans in spans_in(out, name, rank).items():
                assert len(spans) == len(texts[key].split())
                flat = [value for span in spans for value in span]
                assert flat == sorted(flat)
                assert all(0 <= v <= len(waves[key]) / RATE + 0.001 for v in flat)


def test_seconds_have_three_decimals(run):
    out = run("out", "--times", "true")
    for line in (out / "1best_recog" / OF_LABELS).read_text().splitlines():
        _, *spans = line.split(" ")
        for span in spans:
            assert [len(v.partition(".")[2]) for v in span.split("-")] == [3, 3]


def test_the_line_of_a_result_without_times_is_empty():
    asked = RatedHypothesis(yseq=None, score=-1.0)
    asked.word_times = asked.label_times = None
    row = result_rows.result_row([("A B", ["A", "B"], [3, 4], asked)], 1)
    assert row["1best_recog/word_times"] == row["1best_recog/label_times"] == ""
    assert is_row(row)
    asked.word_times = [(0.0, 0.12345), (1.0, 12.0)]
    row = result_rows.result_row([("A B", ["A", "B"], [3, 4], asked)], 1)
    assert row["1best_recog/word_times"] == "0.000-0.123 1.000-12.000"
    not_asked = RatedHypothesis(yseq=None, score=-1.0)
    row = result_rows.result_row([("A B", ["A", "B"], [3, 4], not_asked)], 1)
    assert not {name for name in row if "times" in name}


def test_an_interrupted_run_goes_on(run, tmp_path, interrupted_after):
    options = ["--times", "true", "--nbest", "2"]
    unbroken = run("unbroken", *options)
    with interrupted_after(3) as decoded:
        run("out", *options)
    assert list(spans_in(tmp_path / "out", OF_WORDS)) == decoded
    assert files(run("out", *options)) == files(unbroken)


def test_two_workers_write_the_same(run, transformer_model, tmp_path):
    unbroken = run("unbroken", "--times", "true")
    options = options_of(transformer_model, tmp_path, "out", "--times", "true")
    cli = [sys.executable, "-m", "espnet_lenbias", "decode", "--nj", "2"]
    subprocess.run([*cli, *options], check=True)
    assert files(tmp_path / "out") == files(unbroken)


def test_audio_of_another_rate_has_the_times_of_its_file(run, waves, tmp_path):
    """The model hears the samples as slower speech; where they lie does not change."""
    as_trained = run("as trained", "--times", "true")
    rates = dict(zip(waves, (RATE, 3 * RATE, RATE // 2, RATE, 2 * RATE)))
    for key, rate in rates.items():
        soundfile.write(tmp_path / f"{key}.wav", waves[key], rate)
    segments = [
        f"{key} {key} 0 {len(wave) / rates[key]}\n" for key, wave in waves.items()
    ]
    (tmp_path / "segments").write_text("".join(segments))
    for out in (
        run("others", "--times", "true"),
        run("pieces", "--times", "true", "--segments", str(tmp_path / "segments")),
    ):
        found = spans_in(out, OF_LABELS)
        for key, spans in spans_in(as_trained, OF_LABELS).items():
            wanted = np.array(spans) * RATE / rates[key]
            np.testing.assert_allclose(found[key], wanted, atol=2e-3, err_msg=key)


def test_times_of_a_piece_are_those_within_it(transformer_model, tmp_path):
    """As of a file that holds nothing else."""
    wave = 0.1 * np.random.default_rng(0).standard_normal(8000)
    soundfile.write(tmp_path / "a.wav", wave, RATE, subtype="FLOAT")
    (tmp_path / "wav.scp").write_text(f"a {tmp_path}/a.wav\n")
    (tmp_path / "segments").write_text("piece a 0.500 0.900\n")
    pieces = ["--times", "true", "--segments", str(tmp_path / "segments")]
    options = options_of(transformer_model, tmp_path, "out", *pieces)
    assert asr_inference.main(options) == 0
    alone = tmp_path / "alone"
    alone.mkdir()
    soundfile.write(alone / "b.wav", wave[4000:7200], RATE, subtype="FLOAT")
    (alone / "wav.scp").write_text(f"piece {alone}/b.wav\n")
    options = options_of(transformer_model, alone, "out", "--times", "true")
    assert asr_inference.main(options) == 0
    for name in (OF_WORDS, OF_LABELS):
        assert spans_in(tmp_path / "out", name) == spans_in(alone / "out", name)
        assert spans_in(tmp_path / "out", name)["piece"]
    joined = tmp_path / "out" / "recordings" / "1best_recog"
    assert [path.name for path in joined.iterdir()] == ["text"]


@pytest.mark.parametrize("name", ["st", "slu", "s2t"])
def test_every_tool_that_hears_has_them(name, model_of, data, tmp_path):
    model, out = model_of(name), tmp_path / "out"
    tool = importlib.import_module(tool_of(model).drop_in)
    options = ["--search", "explicit_length", "--ctc_weight", "0.0", "--times", "true"]
    status = tool.main(command(model, data, out, *options, "--maxlenratio", "-3"))
    assert status == 0
    texts = lines(out)
    for key, spans in spans_in(out, OF_WORDS).items():
        assert len(spans) == len(texts[key].split())
        # whatever the window that the audio is filled up to
        seconds = soundfile.info(data / f"{key}.wav").duration
        assert all(end <= seconds for _, end in spans)


def test_a_config_can_ask_for_them(run, tmp_path):
    config = tmp_path / "decode.yaml"
    config.write_text("times: attention\n")
    by_config = run("by_config", "--config", str(config))
    assert files(by_config) == files(run("out", "--times", "attention"))


def test_other_times_are_another_run(run, capsys):
    run("out", "--times", "ctc")
    with pytest.raises(SystemExit):
        run("out", "--times", "attention")
    assert "times was ctc, is attention" in capsys.readouterr().err


# --- At the door ----------------------------------------------------------------------


def test_a_mistake_is_named(run, capsys):
    with pytest.raises(SystemExit) as e:
        run("out", "--times", "words")
    assert e.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "times must be true, false, ctc or attention, not 'words'" in last


@pytest.mark.parametrize(
    "tool, source, message",
    [
        (
            asr_inference_streaming,
            "speech,sound",
            "times: true: in streaming the audio of a word may be gone when it is",
        ),
        (
            mt_inference,
            "src_text,text",
            "times: true: a text has no times, only audio has: leave times out",
        ),
    ],
)
def test_a_tool_that_cannot_says_so(
    tool, source, message, wav_scp, capsys, monkeypatch
):
    """Before its model is loaded, which is none."""
    monkeypatch.chdir(wav_scp.parent)
    letters = "mt" if tool is mt_inference else "asr"
    Path("config.yaml").write_text(CONFIG)
    Path("model.pth").touch()
    with pytest.raises(SystemExit) as e:
        tool.main(
            [
                *(f"--{letters}_train_config", "config.yaml"),
                *(f"--{letters}_model_file", "model.pth"),
                *("--data_path_and_name_and_type", f"wav.scp,{source}"),
                *("--output_dir", "out", "--times", "true"),
            ]
        )
    assert e.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not Path("out").exists()
