"""Which utterances are decoded together."""

import os

import numpy as np
import pytest
import soundfile

from espnet_lenbias.decoding import batches
from espnet_lenbias.decoding.batches import (
    bounded,
    choose_batches,
    utterance_seconds,
)
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR, MT, S2T
from tests.releases import needs_batches

SECONDS = {"a": 4.0, "b": 10.0, "c": 1.0, "d": 3.0, "e": 9.0}


def test_batches_are_bounded_by_their_longest():
    # 20 s: b and e; d is below a, so a counts, 5 of which there would be room for
    assert bounded(["b", "e", "a", "d", "c"], SECONDS, 20.0, 9) == [
        ["b", "e"],
        ["a", "d", "c"],
    ]
    assert bounded(["b", "e", "a", "d", "c"], SECONDS, 20.0, 2) == [
        ["b", "e"],
        ["a", "d"],
        ["c"],
    ]
    # one that is too long by itself is decoded alone; an unknown one counts 15 s
    assert bounded(["b", "?", "e"], SECONDS, 9.0, 9) == [["b"], ["?"], ["e"]]
    assert bounded([], SECONDS, 9.0, 9) == []


def test_lengths_are_told_by_data_preparation_or_else_by_files(tmp_path):
    soundfile.write(tmp_path / "a b.wav", np.zeros(4000), 8000)
    soundfile.write(tmp_path / "c.flac", np.zeros(8000), 16000)
    (tmp_path / "broken.wav").write_text("no audio")
    scp = tmp_path / "wav.scp"
    scp.write_text(
        f"utt1 {tmp_path}/a b.wav\nutt2 {tmp_path}/c.flac\nutt3 cat x |\n"
        f"utt4 {tmp_path}/x.ark:7\n\nutt5\nutt6 {tmp_path}/broken.wav\n"
    )
    assert utterance_seconds(scp) == {"utt1": 0.5, "utt2": 0.5}
    (tmp_path / "utt2num_samples").write_text("utt1 16000\nutt3 8000\nutt4 ?\n")
    assert utterance_seconds(scp) == {"utt1": 1.0, "utt3": 0.5}


def test_each_file_is_opened_once(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        batches, "seconds_of", lambda path: opened.append(path.name) or 2.0
    )
    scp = tmp_path / "wav.scp"
    scp.write_text("a a.wav\nb b.wav\n")
    for _ in range(2):
        assert utterance_seconds(scp) == {"a": 2.0, "b": 2.0}
    assert opened == ["a.wav", "b.wav"]
    scp.write_text("a a.wav\nc long.wav\n")
    assert utterance_seconds(scp) == {"a": 2.0, "c": 2.0}


def test_a_list_of_the_same_size_is_read_anew(tmp_path, monkeypatch):
    """It tells itself from the older one by a time of change of ten milliseconds later."""
    monkeypatch.setattr(batches, "seconds_of", lambda path: 2.0)
    scp = tmp_path / "wav.scp"
    for change, key in enumerate("ab"):
        scp.write_text(f"{key} {key}.wav\n")
        os.utime(scp, ns=(0, 10**18 + change * 10**7))
        assert utterance_seconds(scp) == {key: 2.0}


@pytest.fixture
def chosen(tmp_path):
    """Return the batches that options ask for, of five utterances."""
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{key} {key}.wav\n" for key in SECONDS))
    samples = "".join(f"{key} {16000 * s:.0f}\n" for key, s in SECONDS.items())
    (tmp_path / "utt2num_samples").write_text(samples)

    def choose(*options, tool=ASR, keys=tuple(SECONDS)):
        command = ["--output_dir", "out", *options]
        command += ["--data_path_and_name_and_type", f"{scp},speech,sound"]
        args = parse(get_parser(tool.module), command)
        return [list(batch) for batch in choose_batches(tool, args, keys)]

    return choose


EXPLICIT = ("--search", "explicit_length")
INTEGERS = ("--quantize_asr_model", "true")


@needs_batches
@pytest.mark.parametrize(
    "options, expected",
    [
        (("--batch_size", "1"), [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ((*EXPLICIT, "--batch_size", "1"), [["a"], ["b"], ["c"], ["d"], ["e"]]),
        # ESPnet's own search encodes a batch: it has the order of the data
        (("--batch_size", "2"), [["a", "b"], ["c", "d"], ["e"]]),
        ((*EXPLICIT, "--batch_size", "2"), [["b", "e"], ["a", "d"], ["c"]]),
        # at beam 2, 40 hypotheses x seconds are two utterances of 10 s
        (
            (*EXPLICIT, "--batch_bins", "40", "--batch_size", "9", "--beam_size", "2"),
            [["b", "e"], ["a", "d", "c"]],
        ),
        (
            (*EXPLICIT, "--batch_bins", "40", "--batch_size", "2", "--beam_size", "2"),
            [["b", "e"], ["a", "d"], ["c"]],
        ),
        # of so few utterances each has a batch of its own
        (EXPLICIT, [["a"], ["b"], ["c"], ["d"], ["e"]]),
        # integers have one scale for a batch: only as asked for, in the order of the data
        (
            (*EXPLICIT, "--batch_size", "2", "--quantize_lm", "true"),
            [["a", "b"], ["c", "d"], ["e"]],
        ),
        (
            (*EXPLICIT, "--batch_size", "2", *INTEGERS, "--quantize_dtype", "float16"),
            [["b", "e"], ["a", "d"], ["c"]],
        ),
        ((), [["a"], ["b"], ["c"], ["d"], ["e"]]),
    ],
    ids=str,
)
def test_what_options_ask_for(chosen, options, expected):
    assert chosen(*options) == expected


@needs_batches
def test_many_utterances_are_decoded_together_unasked(chosen):
    # 80 at 15 s, as their length is not told, at beam 20: 5120 / 20 / 15 = 17 would have
    # room, and 8 batches hold 10 each
    keys = [f"u{i}" for i in range(80)]
    made = chosen(*EXPLICIT, keys=keys)
    assert [len(batch) for batch in made] == [10] * 8
    assert [key for batch in made for key in batch] == keys
    # of 400, 8 batches would hold 50 each
    keys = [f"u{i}" for i in range(400)]
    assert [len(batch) for batch in chosen(*EXPLICIT, keys=keys)] == [17] * 23 + [9]
    # of integers, what an utterance gets would depend on the others
    assert chosen(*EXPLICIT, *INTEGERS, keys=keys) == [[key] for key in keys]


@needs_batches
def test_models_of_a_window_hear_all_of_it(chosen):
    # 30 s each at beam 2: 180 have room for three, however short they are
    options = (*EXPLICIT, "--batch_bins", "180", "--batch_size", "9")
    made = chosen(*options, "--beam_size", "2", tool=S2T)
    assert [len(batch) for batch in made] == [3, 2]


def test_tools_that_decode_one_at_a_time(chosen):
    expected = [[key] for key in SECONDS]
    assert chosen(*EXPLICIT, tool=MT) == expected
