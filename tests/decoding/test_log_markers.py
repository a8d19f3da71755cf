"""What the log says of each utterance, in pairs, and of all at the end."""

import logging

import pytest

from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding import log_markers
from espnet_lenbias.search.log_best import LIMIT, UTTERANCE
from tests.releases import needs_batches
from tests.tool_models import asr_command, lines, run_asr


@pytest.mark.parametrize("search", ["espnet", "explicit_length", "simple"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
def test_markers_of_the_real_time_factor_are_paired(
    search, batch_size, transformer_model, trouble, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    options = ["--search", search, "--batch_size", batch_size]
    assert run_asr(transformer_model, trouble, tmp_path / "out", *options) == 1
    messages = [record.getMessage() for record in caplog.records]
    speech = [m for m in messages if m.startswith("speech length: ")]
    best = [m for m in messages if m.startswith("best hypo: ")]
    assert speech == ["speech length: 3600"]  # utt5
    assert len(best) == 1


def test_the_log_says_what_the_files_say(transformer_model, wav_scp, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    out = tmp_path / "out"
    assert run_asr(transformer_model, wav_scp, out) == 0
    q, score, steps = (
        list(lines(out, f"1best_recog/{name}").values())
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
    assert run_asr(transformer_model, wav_scp, tmp_path / "out", *options) == 0
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


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_texts_that_the_length_limit_may_have_cut(
    search, transformer_model, wav_scp, tmp_path, caplog
):
    """Their number is said at the end: of each utterance at most one warning."""
    command = asr_command(transformer_model, wav_scp, tmp_path / "out")
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
