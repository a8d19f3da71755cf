"""Other formats of the results: from rows that are written down here."""

import argparse
import importlib
import io
import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
import soundfile
import srt
import webvtt

from espnet_lenbias.decoding import drop_in, format_list, result_rows
from espnet_lenbias.decoding.format_files import write_formats
from espnet_lenbias.decoding.format_lines import clock
from espnet_lenbias.decoding.format_list import LIST
from espnet_lenbias.decoding.older_results import remove_derived
from espnet_lenbias.decoding.plain_files import file_name, replace_file
from espnet_lenbias.decoding.transcript import transcript_of
from espnet_lenbias.options import decoding as options_of_decoding
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.formats import FORMATS, check_formats
from espnet_lenbias.options.segments import Segment
from tests.conftest import RATE
from tests.programs import SCLITE, needs_sclite
from tests.tool_models import command, run_asr, tool_of


def row(text, times="", confidence="", rank=1, **more):
    """Return what a row has for a hypothesis of this rank."""
    values = {"token": " ".join(text), "token_int": "1", "score": "-1.5", "text": text}
    if times:
        values["word_times"] = times
    if confidence:
        values["word_confidence"] = confidence
    return {f"{rank}best_recog/{k}": v for k, v in {**values, **more}.items()}


# Of two utterances and one that failed; the first has a second hypothesis.
ROWS = {
    "ann-1": {
        **row(
            "a <b> & {",
            "0.120-0.450 0.480-0.910 0.91-1.00 1.000-1.250",
            "0.990000 0.500000 1.000000 0.250000",
            original_score="-2.25",
            steps="7",
            stopped="bound",
            posterior="0.750000",
        ),
        **row("a b", "0.120-0.450 0.480-0.910", "0.5 0.5", 2, score="-3.0"),
    },
    "ann-2": {},
    "bob-1": {
        **row("-->", "3601.5-3602.0", "0.125"),
        **row("", rank=2, score="nan"),
    },
}

CTM = """\
ann-1 1 0.120 0.330 a 0.99
ann-1 1 0.480 0.430 <b> 0.50
ann-1 1 0.910 0.090 & 1.00
ann-1 1 1.000 0.250 \uff5b 0.25
bob-1 1 3601.500 0.500 --> 0.12
"""
TRN = "a <b> & \uff5b (ann-ann-1)\n (ann-ann-2)\n--> (bob-bob-1)\n"
SRT = "1\n00:00:00,120 --> 00:00:01,250\na <b> & {\n\n"
VTT = "WEBVTT\n\n00:00:00.120 --> 00:00:01.250\na &lt;b&gt; &amp; {\n"
LATE_SRT = "1\n01:00:01,500 --> 01:00:02,500\n-->\n\n"
LATE_VTT = "WEBVTT\n\n01:00:01.500 --> 01:00:02.500\n--&gt;\n"


@pytest.fixture
def args(tmp_path):
    """The options of a run, whose data are three files that are not there."""
    lines = "".join(f"{key} {tmp_path / key}.wav\n" for key in ROWS)
    (tmp_path / "wav.scp").write_text(lines)
    return argparse.Namespace(
        formats=list(FORMATS),
        nbest=2,
        pieces={},
        recordings=[],
        search="explicit_length",
        beam_size=4,
        times=True,
        asr_model_file="model.pth",
        ctc_weight=float("inf"),  # which JSON has no number for
        data_path_and_name_and_type=[(str(tmp_path / "wav.scp"), "speech", "sound")],
    )


def files(folder: Path) -> dict[str, str]:
    every = [path for path in folder.rglob("*") if path.is_file()]
    paths = [path for path in every if path.name != LIST]
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths}


def test_every_file(args, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write_formats(out, args, ROWS)
    written = files(out)
    objects = written.pop("1best_recog/text.jsonl")
    assert len(objects.splitlines()) == 3
    assert written == {
        "1best_recog/text.ctm": CTM,
        "1best_recog/text.trn": TRN,
        "1best_recog/srt/ann-1.srt": SRT,
        "1best_recog/srt/ann-2.srt": "",
        "1best_recog/srt/bob-1.srt": LATE_SRT,
        "1best_recog/vtt/ann-1.vtt": VTT,
        "1best_recog/vtt/ann-2.vtt": "WEBVTT\n",
        "1best_recog/vtt/bob-1.vtt": LATE_VTT,
        "2best_recog/text.ctm": (
            "ann-1 1 0.120 0.330 a 0.50\nann-1 1 0.480 0.430 b 0.50\n"
        ),
        "2best_recog/text.trn": "a b (ann-ann-1)\n (ann-ann-2)\n (bob-bob-1)\n",
        "2best_recog/srt/ann-1.srt": "1\n00:00:00,120 --> 00:00:01,120\na b\n\n",
        "2best_recog/srt/ann-2.srt": "",
        "2best_recog/srt/bob-1.srt": "",
        "2best_recog/vtt/ann-1.vtt": "WEBVTT\n\n00:00:00.120 --> 00:00:01.120\na b\n",
        "2best_recog/vtt/ann-2.vtt": "WEBVTT\n",
        "2best_recog/vtt/bob-1.vtt": "WEBVTT\n",
    }


def test_keys_that_are_longer_than_names_of_files(args, tmp_path):
    """Each has its file, and none costs the others theirs."""
    long = ["\u00e9" * 200 + end for end in ("a", "b")]
    keys = ["ann-1", *long, "k" * 251]
    write_formats(tmp_path, args, dict.fromkeys(keys, ROWS["ann-1"]))
    for rank in (1, 2):
        names = [p.stem for p in (tmp_path / f"{rank}best_recog/srt").iterdir()]
        assert len(set(names)) == 4 and "k" * 251 in names
        assert sum(name.startswith("\u00e9" * 100) for name in names) == 2
        ctm = (tmp_path / f"{rank}best_recog/text.ctm").read_text().splitlines()
        assert {line.split()[0] for line in ctm} == set(keys)


def test_what_the_last_command_did_not_ask_for_goes(args, tmp_path):
    """Files of formats, ranks and utterances of an earlier run; nothing else."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (tmp_path / "disk").mkdir()
    out.symlink_to(tmp_path / "disk")  # the folder itself may be a link
    write_formats(out, args, ROWS)
    (out / "2best_recog/text.ctm").unlink()
    (out / "2best_recog/text.ctm").mkdir()
    of_subtitles = ("notes.txt", "ann-1.de.srt", "mine.srt")
    others = ["1best_recog/text", *(f"1best_recog/srt/{n}" for n in of_subtitles)]
    others += ["text.trn"]
    for name in others:
        (out / name).write_text("kept")
    elsewhere.mkdir()
    (elsewhere / "ann-2.vtt").write_text("not ours")
    for path in (out / "2best_recog/vtt").iterdir():
        path.unlink()
    (out / "2best_recog/vtt").rmdir()
    (out / "2best_recog/vtt").symlink_to(elsewhere)

    args.formats, args.nbest = ["srt", "trn"], 1
    write_formats(out, args, {"bob-1": ROWS["bob-1"]})
    assert files(out) == {
        "1best_recog/text.trn": "--> (bob-bob-1)\n",
        "1best_recog/srt/bob-1.srt": LATE_SRT,
        **dict.fromkeys(others, "kept"),
    }
    assert not (out / "1best_recog/vtt").exists()
    assert (elsewhere / "ann-2.vtt").read_text() == "not ours"

    args.formats = None
    write_formats(out, args, ROWS)
    assert files(out) == dict.fromkeys(others, "kept")


def test_a_persons_own_file_in_the_place_of_one_is_set_aside(args, tmp_path, caplog):
    own = {"1best_recog/text.trn": "mine", "1best_recog/srt/bob-1.srt": "mine, too"}
    own["1best_recog/text.trn.1"] = "older"
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    args.formats, args.nbest = ["srt", "trn"], 1
    for _ in range(2):  # what the first has written is no person's own
        write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
        written = files(tmp_path)
        written.pop("wav.scp", None)
        assert written == {
            "1best_recog/text.trn": "--> (bob-bob-1)\n",
            "1best_recog/text.trn.1": "older",
            "1best_recog/text.trn.2": "mine",
            "1best_recog/srt/bob-1.srt": LATE_SRT,
            "1best_recog/srt/bob-1.srt.1": "mine, too",
        }
    path = tmp_path / "1best_recog" / "text.trn"
    assert f"{path} is not as a run has written it: it is {path}.2 now" in caplog.text
    assert len(caplog.records) == 2


@pytest.mark.parametrize("formats", [["srt"], ["trn"]])
def test_what_a_person_has_changed_is_kept(formats, args, tmp_path, caplog):
    """Whether it is written anew, or goes because nobody asks for it any more."""
    args.formats, args.nbest = ["srt"], 1
    write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
    path = tmp_path / "1best_recog/srt/bob-1.srt"
    path.write_text("corrected")
    args.formats = formats
    write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
    assert path.with_name("bob-1.srt.1").read_text() == "corrected"
    assert path.exists() == (formats == ["srt"])
    assert f"{path} is not as a run has written it" in caplog.text
    remove_derived(tmp_path)
    assert [p.name for p in path.parent.iterdir()] == ["bob-1.srt.1"]


def test_a_run_that_was_killed_has_changed_no_file_of_a_persons(
    args, tmp_path, monkeypatch
):
    """What it has written anew before it died is its own for the next run, too."""
    args.formats, args.nbest = ["srt", "trn"], 1
    write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
    first = files(tmp_path)

    def killed(folder, name, lines):
        if name == LIST:
            return replace_file(folder, name, lines)
        replace_file(folder, name, ["other", *lines])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(format_list, "replace_file", killed)
        write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
    assert files(tmp_path) != first
    write_formats(tmp_path, args, {"bob-1": ROWS["bob-1"]})
    assert files(tmp_path) == first


def test_a_planted_list_of_files_removes_no_others(args, tmp_path):
    """Names that lead elsewhere, or to files that no format has."""
    out = tmp_path / "out"
    (out / "1best_recog/srt").mkdir(parents=True)
    own = ["1best_recog/srt/x.srt", "1best_recog/text", "decoding.jsonl"]
    for place in (*(out / name for name in own), tmp_path / "y.srt"):
        place.write_text("kept")
    elsewhere = ["../y.srt", "1best_recog/srt/../../../y.srt", str(tmp_path / "y.srt")]
    names = [*own[1:], *elsewhere, f"1best_recog/srt/{300 * 'x'}.srt"]
    (out / LIST).write_text("\n".join([*own[:1], *names, "1best_recog/srt/z.srt"]))
    args.formats = None
    write_formats(out, args, ROWS)
    assert files(out) == dict.fromkeys(own[1:], "kept")
    assert (tmp_path / "y.srt").read_text() == "kept"


def test_names_that_the_locale_cannot_write(args, tmp_path, monkeypatch):
    """As in ISO-8859-1: UTF-8 in percent signs, as addresses have it."""
    encode = partial(str.encode, encoding="latin-1")
    monkeypatch.setattr("os.fsencode", encode)
    assert file_name("\u65e5/\u00e9 a") == "%E6%97%A5%2F%C3%A9 a"
    assert file_name("\u00e9 a") == "\u00e9 a"


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def test_json(args, tmp_path):
    soundfile.write(tmp_path / "ann-1.wav", [0.0] * (3 * RATE // 2), RATE)
    write_formats(tmp_path, args, ROWS)
    lines = (tmp_path / "1best_recog" / "text.jsonl").read_text().splitlines()
    first, failed, last = (json.loads(x, parse_constant=no_constant) for x in lines)
    options = {
        "search": "explicit_length",
        "beam_size": 4,
        "nbest": 2,
        "ctc_weight": None,
        "times": True,
        "asr_model_file": "model.pth",
    }
    assert first == {
        "key": "ann-1",
        "audio": str(tmp_path / "ann-1.wav"),
        "duration": 1.5,
        "text": "a <b> & {",
        "words": [
            {"word": "a", "start": 0.12, "end": 0.45, "confidence": 0.99},
            {"word": "<b>", "start": 0.48, "end": 0.91, "confidence": 0.5},
            {"word": "&", "start": 0.91, "end": 1.0, "confidence": 1.0},
            {"word": "{", "start": 1.0, "end": 1.25, "confidence": 0.25},
        ],
        "nbest": [
            {
                "text": "a <b> & {",
                "score": -1.5,
                "original_score": -2.25,
                "posterior": 0.75,
            },
            {
                "text": "a b",
                "score": -3.0,
                "original_score": None,
                "posterior": None,
            },
        ],
        "steps": 7,
        "stopped": "bound",
        "options": options,
    }
    assert failed == {
        "key": "ann-2",
        "audio": str(tmp_path / "ann-2.wav"),
        "duration": None,
        "text": None,
        "words": [],
        "nbest": [],
        "steps": None,
        "stopped": None,
        "options": options,
    }
    assert [hypothesis["text"] for hypothesis in last["nbest"]] == ["-->"]


def test_what_nobody_has_asked_for_is_null(args, tmp_path):
    args.formats = ["json", "trn"]
    write_formats(tmp_path, args, {"u": row("a b")})
    line = json.loads((tmp_path / "1best_recog" / "text.jsonl").read_text())
    nothing = {"start": None, "end": None, "confidence": None}
    assert line["words"] == [{"word": "a"} | nothing, {"word": "b"} | nothing]
    assert (line["steps"], line["stopped"], line["audio"]) == (None, None, None)


# --- Recordings -----------------------------------------------------------------------

# The second piece of the first recording could not be decoded, and they are not in the
# order of time.
SEGMENTS = {
    "x-2": Segment("x", "x.wav", 10.5, 12.0),
    "y-0": Segment("y", "y.wav", 2.0, 3.0),
    "x-0": Segment("x", "x.wav", 0.25, 2.0),
    "x-1": Segment("x", "x.wav", 5.0, 6.0),
}
PIECES = {
    "x-2": row("the end", "0.1-0.4 0.5-1.0", "0.5 0.25", steps="3"),
    "y-0": row("", steps="1"),
    "x-0": row("once upon", "0.5-0.75 0.75-1.25", "1.0 0.75", steps="4"),
    "x-1": {},
}


def test_recordings_are_put_together(args, tmp_path):
    args.pieces, args.nbest = SEGMENTS, 1
    write_formats(tmp_path, args, PIECES)
    written = files(tmp_path)
    objects = {
        name: [json.loads(line) for line in written.pop(name).splitlines()]
        for name in (
            "1best_recog/text.jsonl",
            "recordings/1best_recog/text.jsonl",
        )
    }
    written.pop("wav.scp")
    cue, last = "00:00:00.750 --> 00:00:01.750\nonce upon\n", "the end\n"
    assert written == {
        "1best_recog/text.trn": (
            "the end (x-x-2)\n (y-y-0)\nonce upon (x-x-0)\n (x-x-1)\n"
        ),
        "recordings/1best_recog/text.trn": "once upon the end (x-x)\n (y-y)\n",
        "recordings/1best_recog/text.ctm": (
            "x 1 0.750 0.250 once 1.00\nx 1 1.000 0.500 upon 0.75\n"
            "x 1 10.600 0.300 the 0.50\nx 1 11.000 0.500 end 0.25\n"
        ),
        "recordings/1best_recog/vtt/x.vtt": (
            f"WEBVTT\n\n{cue}\n00:00:10.600 --> 00:00:11.600\n{last}"
        ),
        "recordings/1best_recog/vtt/y.vtt": "WEBVTT\n",
        "recordings/1best_recog/srt/x.srt": (
            f"1\n{cue.replace('.', ',')}\n2\n00:00:10,600 --> 00:00:11,600\n{last}\n"
        ),
        "recordings/1best_recog/srt/y.srt": "",
    }
    pieces = objects["1best_recog/text.jsonl"]
    assert [(o["key"], o["audio"], o["duration"], o["text"]) for o in pieces] == [
        ("x-2", "x.wav", 1.5, "the end"),
        ("y-0", "y.wav", 1.0, ""),
        ("x-0", "x.wav", 1.75, "once upon"),
        ("x-1", "x.wav", 1.0, None),
    ]
    whole, silent = objects["recordings/1best_recog/text.jsonl"]
    assert whole["text"] == "once upon the end"
    assert [word["start"] for word in whole["words"]] == [0.75, 1.0, 10.6, 11.0]
    assert whole["pieces"] == [
        {"key": "x-0", "start": 0.25, "end": 2.0},
        {"key": "x-1", "start": 5.0, "end": 6.0},
        {"key": "x-2", "start": 10.5, "end": 12.0},
    ]
    assert (whole["steps"], whole["stopped"], silent["text"]) == (7, None, "")
    assert [hypothesis["text"] for hypothesis in whole["nbest"]] == [whole["text"]]


def test_pieces_that_overlap(args, tmp_path):
    """As those of two speakers: sclite wants words, and players cues, in order of time."""
    args.pieces = {
        "ann": Segment("x", "x.wav", 0.0, 5.0),
        "bob": Segment("x", "x.wav", 1.0, 4.0),
    }
    args.nbest, args.formats = 1, ["ctm", "vtt"]
    rows = {"ann": row("a b", "0.5-1.0 3.0-3.5"), "bob": row("c", "0.5-1.0")}
    write_formats(tmp_path, args, rows)
    results = tmp_path / "recordings" / "1best_recog"
    assert (results / "text.ctm").read_text() == (
        "x 1 0.500 0.500 a\nx 1 1.500 0.500 c\nx 1 3.000 0.500 b\n"
    )
    assert [c.text for c in webvtt.read(results / "vtt" / "x.vtt")] == ["a", "c", "b"]


def test_no_recording_is_a_comment_of_ctm(args, tmp_path):
    args.formats = ["ctm"]
    write_formats(tmp_path, args, {";;x;;": row("a", "0.5-1.0")})
    written = (tmp_path / "1best_recog" / "text.ctm").read_text()
    assert written == "\uff1b\uff1bx;; 1 0.500 0.500 a\n"


@pytest.mark.parametrize("formats", [["ctm", "json"], ["json"]])
def test_words_without_times_are_named(formats, args, tmp_path, caplog):
    """A text that does not fit its frames has none."""
    args.formats = formats
    write_formats(tmp_path, args, {**ROWS, "cid-1": row("a b")})
    named = (
        "1 of 4 utterances have words without a time, which are missing in ctm: cid-1"
    )
    assert caplog.messages == ([named] if "ctm" in formats else [])


def test_a_recording_of_one_piece_has_its_nbest_list(args, tmp_path):
    args.pieces = {"y": Segment("y", "y.wav", 2.0, 3.0)}
    rows = {**row("a b", "0.1-0.2 0.3-0.4", stopped="bound"), **row("a", "0-1", rank=2)}
    write_formats(tmp_path, args, {"y": rows})
    path = tmp_path / "recordings" / "1best_recog" / "text.jsonl"
    found = json.loads(path.read_text())
    assert [hypothesis["text"] for hypothesis in found["nbest"]] == ["a b", "a"]
    assert [word["start"] for word in found["words"]] == [2.1, 2.3]
    assert found["stopped"] == "bound"


# --- What the names of files and words may be -----------------------------------------


@pytest.mark.parametrize(
    "key, name",
    [("a b", "a b"), ("a/b", "a%2Fb"), ("..", "%2E."), ("a%2Fb", "a%252Fb")],
)
def test_names_of_subtitles(key, name):
    assert file_name(key) == name


def test_symbols_of_owsm_are_no_words():
    said = row(
        "<eng><asr> a b<0.02>",
        "0.0-0.0 0.1-0.2 0.3-0.4",
        "1 0.5 0.25",
        text_nospecial=" a b",
    )
    transcript = transcript_of("u", said, 1)
    assert transcript.text() == "a b"
    found = [(word.text, word.time, word.confidence) for word in transcript.words()]
    assert found == [("a", (0.1, 0.2), 0.5), ("b", (0.3, 0.4), 0.25)]


def test_each_speaker_has_files(args, tmp_path):
    rows = {
        "u": {
            f"{name}_spk{i}": value
            for i, text in ((1, "a"), (2, "b"))
            for name, value in row(text, "0.5-1.5").items()
        }
    }
    write_formats(tmp_path, args, rows)
    ctm = {i: tmp_path / "1best_recog" / f"text_spk{i}.ctm" for i in (1, 2)}
    assert ctm[1].read_text() == "u 1 0.500 1.000 a\n"
    assert ctm[2].read_text() == "u 1 0.500 1.000 b\n"
    assert (tmp_path / "1best_recog" / "srt_spk2" / "u.srt").is_file()


def test_scores_as_espnet_writes_them():
    said = row("a", score="tensor(-1.5, device='cuda:0')")
    assert transcript_of("u", said, 1).hypotheses[0].score == -1.5


def test_speakers_lie_beside_the_data(args, tmp_path, caplog):
    (tmp_path / "utt2spk").write_text("ann-1 eve\nbob-1 bob\n")
    args.formats = ["trn"]
    write_formats(tmp_path, args, ROWS)
    lines = (tmp_path / "1best_recog" / "text.trn").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [
        "(eve-ann-1)",
        "(ann-ann-2)",
        "(bob-bob-1)",
    ]
    assert "1 of 3 utterances, such as ann-2, have no speaker in utt2spk" in caplog.text


# --- Others read them -----------------------------------------------------------------


def test_a_parser_of_subrip_reads_the_subtitles(args, tmp_path):
    write_formats(tmp_path, args, ROWS)
    text = (tmp_path / "1best_recog" / "srt" / "ann-1.srt").read_text()
    (cue,) = srt.parse(text, ignore_errors=False)
    times = cue.start.total_seconds(), cue.end.total_seconds()
    assert (cue.index, times, cue.content) == (1, (0.12, 1.25), "a <b> & {")


def test_a_parser_of_webvtt_reads_the_subtitles(args, tmp_path):
    write_formats(tmp_path, args, ROWS)
    folder = tmp_path / "1best_recog" / "vtt"
    for key, text in {"ann-1": "a &lt;b&gt; &amp; {", "bob-1": "--&gt;"}.items():
        (cue,) = webvtt.from_buffer(io.BytesIO((folder / f"{key}.vtt").read_bytes()))
        assert cue.raw_text == text
    assert (cue.start, cue.end) == ("01:00:01.500", "01:00:02.500")
    assert len(webvtt.read(folder / "ann-2.vtt")) == 0


@needs_sclite
@pytest.mark.parametrize("form", ["ctm", "trn"])
def test_sclite_counts_the_words_that_are_there(form, args, tmp_path):
    """Against the same texts with one word replaced and one left out."""
    rows = {
        "ann-1": row("a { b }", "0.1-0.2 0.3-0.4 0.5-0.6 0.7-0.8"),
        "bob-1": row(";; @ x", "0.1-0.2 0.3-0.4 0.5-0.6"),
    }
    wrong = {
        "ann-1": row("a { c }", "0.1-0.2 0.3-0.4 0.5-0.6 0.7-0.8"),
        "bob-1": row(";; @", "0.1-0.2 0.3-0.4"),
    }
    for name, of_one in (("ref", rows), ("hyp", wrong)):
        (tmp_path / name).mkdir()
        write_formats(tmp_path / name, args, of_one)
    paths = [tmp_path / n / "1best_recog" / f"text.{form}" for n in ("ref", "hyp")]
    command = [SCLITE, "-r", paths[0], form, "-h", paths[1], form]
    command += ["-i", "rm"] if form == "trn" else []
    done = subprocess.run([*command, "-o", "all", "stdout"], capture_output=True)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    summary = next(line for line in lines if "Sum " in line and "|" in line)
    # words: 7; 5 right, 1 substituted, 1 deleted
    counts = [int(x) for x in summary.replace("|", " ").split()[1:]]
    assert counts[1:7] == [7, 5, 1, 1, 0, 2]


# --- The option -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, asked",
    [
        (None, []),
        ("", []),
        ("json", ["json"]),
        ("trn, json,trn", ["trn", "json"]),
        (["json", "trn"], ["json", "trn"]),
    ],
)
def test_formats_are_a_list_or_a_text(given, asked):
    assert check_formats(given, {}) == asked


@pytest.mark.parametrize(
    "given, message",
    [
        ("jsn", "formats: there is no format jsn; did you mean json"),
        (["stm"], r"formats: there is no format stm.* \(one or more of: ctm, trn, "),
        (7, r"formats must be a list of names, such as \[ctm, json\], not 7"),
        ("json,ctm", "formats: ctm holds the time of each word, .* say times: true"),
        ("srt", "formats: srt holds the time"),
        ("vtt", "formats: vtt holds the time"),
    ],
)
def test_mistakes(given, message):
    with pytest.raises(ValueError, match=message):
        check_formats(given, {"times": False})


def test_a_mistake_in_a_config_names_it(wav_scp, tmp_path, capsys):
    config = tmp_path / "decode.yaml"
    config.write_text("search: explicit_length\nformats: [json, vtt]\n")
    options = ["--config", str(config), "--output_dir", str(tmp_path / "out")]
    options += ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
    with pytest.raises(SystemExit) as e:
        parse(get_parser(ASR.module), options)
    assert e.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"error: {config}: formats: vtt holds the time of each word" in last


# --- Runs -----------------------------------------------------------------------------


@pytest.fixture
def run(transformer_model, wav_scp, tmp_path):
    """Return what decodes five utterances into a folder of tmp_path."""

    def run(name: str, *options: str) -> Path:
        out = tmp_path / name
        options = ("--ctc_weight", "0.0", "--maxlenratio", "-6", *options)
        assert run_asr(transformer_model, wav_scp, out, *options) == 0
        return out

    return run


def test_a_mistake_in_utt2spk_is_told_before_decoding(
    run, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(drop_in, "decode_here", None)
    (tmp_path / "utt2spk").write_text("utt1 ann\nutt1 bob\n")
    with pytest.raises(SystemExit) as stop:
        run("out", "--formats", "json,trn")
    assert stop.value.code == 2
    said = f"error: {tmp_path}/utt2spk, lines 1 and 2 have the same key utt1"
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    (tmp_path / "utt2spk").write_text("utt1 ann\nutt2\n")
    with pytest.raises(SystemExit):
        run("out", "--formats", "trn")
    last = capsys.readouterr().err.splitlines()[-1]
    assert "utt2spk: utt2 has nothing as its speaker" in last
    (tmp_path / "utt2spk").write_text("utt1 ann\nutt2 bob lee\n")
    with pytest.raises(SystemExit):
        run("out", "--formats", "trn")
    last = capsys.readouterr().err.splitlines()[-1]
    assert "utt2spk: utt2 has several words as its speaker" in last
    (tmp_path / "utt2spk").unlink()
    (tmp_path / "utt2spk").symlink_to("gone")
    with pytest.raises(SystemExit):
        run("out", "--formats", "trn")
    assert "utt2spk is no file, and trn" in capsys.readouterr().err.splitlines()[-1]
    monkeypatch.undo()
    run("out", "--formats", "json")  # which tells of no speakers


def test_another_format_decodes_nothing(run, tmp_path, monkeypatch):
    out = run("out", "--confidence", "true", "--nbest", "2")
    before = files(out)
    monkeypatch.setattr(drop_in, "decode_here", None)
    run("out", "--confidence", "true", "--nbest", "2", "--formats", "json,trn")
    more = files(out)
    names = {"1best_recog/text.jsonl", "1best_recog/text.trn", "2best_recog/text.trn"}
    assert more.keys() - before.keys() == names
    for line in more["1best_recog/text.jsonl"].splitlines():
        found = json.loads(line)
        key = found["key"]
        for name, value in (
            ("text", found["text"]),
            ("word_confidence", [word["confidence"] for word in found["words"]]),
            ("score", found["nbest"][0]["score"]),
            ("posterior", found["nbest"][0]["posterior"]),
        ):
            lines = before[f"1best_recog/{name}"].splitlines()
            (written,) = [x.partition(" ")[2] for x in lines if x.startswith(f"{key} ")]
            if name == "word_confidence":
                assert list(map(float, written.split())) == value
            else:
                assert written == value or float(written) == value
        assert found["duration"] == pytest.approx(0.2 + 0.05 * int(key[-1]), abs=1e-3)


def test_a_run_without_them_leaves_none_of_older_results(run):
    out = run("out", "--formats", "json,trn")
    asked = {name for name in files(out) if "/text." in name}
    assert asked == {"1best_recog/text.jsonl", "1best_recog/text.trn"}
    run("out")
    assert not {name for name in files(out) if "/text." in name}


def test_an_interrupted_run_ends_with_the_same_files(run, tmp_path, interrupted_after):
    options = ["--formats", "json,trn", "--confidence", "true"]
    unbroken = files(run("unbroken", *options))
    with interrupted_after(3):
        run("out", *options)
    assert not (tmp_path / "out" / "1best_recog" / "text.jsonl").exists()
    resumed = files(run("out", *options))
    for name in ("1best_recog/text.jsonl", "1best_recog/text.trn"):
        assert resumed[name] == unbroken[name]
        assert len(resumed[name].splitlines()) == 5


@pytest.mark.parametrize("name", ["st_multi", "mt", "s2t", "slu"])
def test_every_tool_writes_them(name, model_of, data, tmp_path):
    model, out = model_of(name), tmp_path / "out"
    tool = importlib.import_module(tool_of(model).drop_in)
    options = ["--search", "explicit_length", "--formats", "json,trn"]
    assert tool.main(command(model, data, out, *options, "--maxlenratio", "-4")) == 0
    lines = (out / "1best_recog" / "text.jsonl").read_text().splitlines()
    found = {o["key"]: o for o in map(json.loads, lines)}
    file = "text_nospecial" if name == "s2t" else "text"
    texts = (out / "1best_recog" / file).read_text().splitlines()
    said = [[key, *one["text"].split()] for key, one in found.items()]
    assert said == [line.split() for line in texts]
    for key, one in found.items():
        wave = None if name == "mt" else str(data / f"{key}.wav")
        assert (one["audio"], one["steps"] > 0) == (wave, True)
        assert [w["word"] for w in one["words"]] == one["text"].split()
    trn = (out / "1best_recog" / "text.trn").read_text().splitlines()
    assert [line.rpartition("-")[2] for line in trn] == [f"{key})" for key in found]


def test_clock():
    assert clock(0.0) == "00:00:00.000"
    assert clock(59.9996) == "00:01:00.000"
    assert clock(360000.25, ",") == "100:00:00,250"


# --- Times, which are made up here ----------------------------------------------------


@pytest.fixture
def with_times(monkeypatch):
    """Have every word last 0.1 s, one after the other."""
    fields_of = result_rows._fields

    def timed(text, *more, second):
        times = [f"{i / 10:.2f}-{(i + 1) / 10:.2f}" for i in range(len(text.split()))]
        return {**fields_of(text, *more, second=second), "word_times": " ".join(times)}

    monkeypatch.setattr(result_rows, "_fields", timed)
    check = options_of_decoding.check_formats
    monkeypatch.setattr(
        options_of_decoding,
        "check_formats",
        lambda given, _: check(given, {"times": 1}),
    )


@pytest.fixture
def pieces(wav_scp, tmp_path):
    """Cut the fifth recording, of 0.45 s, into two pieces; the others stay whole."""
    keys = [line.split()[0] for line in wav_scp.read_text().splitlines()]
    lines = [f"{key} {key} 0 -1\n" for key in keys[:-1]]
    lines += ["utt5-b utt5 0.2 0.45\n", "utt5-a utt5 0 0.2\n"]
    (tmp_path / "segments").write_text("".join(lines))
    return "--segments", str(tmp_path / "segments")


def test_an_interrupted_run_of_pieces(run, with_times, pieces, interrupted_after):
    options = [*pieces, "--formats", ",".join(FORMATS), "--batch_size", "1"]
    unbroken = files(run("unbroken", *options))
    with interrupted_after(3):
        run("out", *options)
    resumed = files(run("out", *options))
    names = {name for name in unbroken if "/text." in name or name.endswith("srt")}
    place = "recordings/1best_recog"
    assert {f"{place}/text.{end}" for end in ("ctm", "trn", "jsonl")} < names
    assert {f"{place}/srt/utt{i}.srt" for i in range(1, 6)} < names
    assert "1best_recog/text.ctm" not in names
    for name in names:
        assert resumed[name] == unbroken[name], name
    # of the second piece, which comes first in `segments`
    words = dict(
        line.split(maxsplit=1) for line in unbroken["1best_recog/text"].splitlines()
    )
    ctm = [line.split() for line in unbroken[f"{place}/text.ctm"].splitlines()]
    found = [(float(start), word) for key, _, start, _, word in ctm if key == "utt5"]
    of_each = ((0.0, words["utt5-a"]), (0.2, words["utt5-b"]))
    assert found == [
        (pytest.approx(start + i / 10), word)
        for start, text in of_each
        for i, word in enumerate(text.split())
    ]
