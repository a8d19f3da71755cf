"""The log of runs that decoded, and what of it a finished run repeats."""

import logging

import pytest

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.run_log import LOG, kept_markers, log_kept, log_to_terminal

TIME = "2026-01-02 03:04:05,678 (label_synchronous:9) INFO: "


def test_what_is_logged_is_appended(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    for number in (1, 2):
        with log_kept(tmp_path):
            logging.info(f"run {number}")
        logging.info("behind it")
    lines = (tmp_path / LOG).read_text().splitlines()
    assert [line.partition(" INFO: ")[2] for line in lines] == ["run 1", "run 2"]


def test_starts_and_ends_come_in_pairs(tmp_path):
    pair = [f"{TIME}speech length: 8\n", f"{TIME}best hypo: a speech length: 9\n"]
    killed = f"{TIME}speech length: 7\n"
    cut = f"{TIME}speech leng"
    other = f"{TIME}progress: 2/2\n"
    lines = [*pair, other, killed, cut, *pair, "\n", *pair, f"{TIME}speech length: 5"]
    (tmp_path / LOG).write_text("".join(lines))
    # what was cut has taken along the line behind it, and so its end
    assert kept_markers(tmp_path) == [*pair, killed, pair[1], *pair]


def test_no_log(tmp_path):
    assert kept_markers(tmp_path) == []


def test_no_link_is_followed(tmp_path):
    (tmp_path / "target").write_text("dear to me")
    (tmp_path / LOG).symlink_to(tmp_path / "target")
    # at once, not when something is logged, which may be deep in the loading of a model
    with pytest.raises(OSError, match="is a link"), log_kept(tmp_path):
        pytest.fail("it is written through the link")
    assert (tmp_path / "target").read_text() == "dear to me"


def test_a_finished_run_repeats_what_the_real_time_factor_is_told_from(
    transformer_model, wav_scp, tmp_path, caplog, capsys
):
    caplog.set_level(logging.INFO)
    out = tmp_path / "out"
    options = [*transformer_model.options]
    options += ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
    options += ["--output_dir", str(out), "--beam_size", "2", "--num_workers", "0"]
    options += ["--search", "simple"]
    assert asr_inference.main(options) == 0
    log = (out / LOG).read_text()
    assert log.count("INFO: speech length: ") == log.count("INFO: best hypo") == 5
    capsys.readouterr()
    assert asr_inference.main(options) == 0
    said = [x for x in capsys.readouterr().err.splitlines() if "INFO: " in x]
    assert said == [x for x in log.splitlines() if "speech len" in x or "best h" in x]
    assert (out / LOG).read_text() == log


def test_names_of_files_steer_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    log_to_terminal("WARNING")
    try:
        logging.warning("one \x1b]0;title\x07\nand \u4f60 another")
    finally:
        logging.root.handlers.clear()
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("WARNING: one ?]0;title?")
    assert second == "and \u4f60 another"
