"""When words are said: the bundled models against the engines that spoke, and the rest."""

import logging
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from rapidfuzz.distance import Levenshtein

from espnet_lenbias import Speech2Text, mt, s2t, slu, st
from espnet_lenbias.compare.utterances import read_set
from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference import times as times_module
from espnet_lenbias.inference.asr_streaming import Speech2TextStreaming
from espnet_lenbias.inference.times import ctc_of
from espnet_lenbias.options.audio_files import read_audio
from tests.bundled import PRETRAINED, bundled
from tests.conftest import RATE
from tests.make_models import WINDOW
from tests.releases import needs_batches, needs_s2t_of_ctc_alone
from tests.whisper_files import ENGLISH, noise, write_checkpoint, write_config

SLICE = PRETRAINED.parent / "slice" / "LibriSpeech"
BUNDLED = {"beam_size": 8, "ctc_weight": 0.0, "lm_weight": 0.0}
OURS = {"search": "explicit_length", **BUNDLED}

# Lines of the file that `python recipes/mini_librispeech/word_times.py --sets dev-clean`
# leaves in recipes/mini_librispeech/exp/word_times/word_starts: s of each word.
SAID = {
    "2004-20040-0004": [0.054, 0.367, 0.752, 0.952],
    "2007-20070-0000": [
        *(0.000, 0.176, 0.553, 1.047, 1.240, 1.584),
        *(1.802, 2.183, 2.701, 3.027, 3.240),
    ],
    "2008-20080-0005": [0.000, 0.380, 0.642, 0.863, 1.033, 1.401],
}


@pytest.fixture(scope="module")
def said():
    return [u for u in read_set(SLICE, "dev-clean") if u.key in SAID]


def assert_times(result, duration: float) -> None:
    """Each word and label has a span, in order, within the audio."""
    text, _, ids, *_, hypothesis = result
    for times, n in (
        (hypothesis.word_times, len(text.split())),
        (hypothesis.label_times, len(ids)),
    ):
        assert len(times) == n
        flat = [value for span in times for value in span]
        assert flat == sorted(flat)
        assert not flat or (flat[0] >= 0 and flat[-1] <= duration + 1e-6)


@contextmanager
def saying(model, ids: list[int]):
    """Have the search of a model find these labels in the context."""
    old, search = model.beam_search.forward, model.beam_search

    def find(x, **_):
        yseq = torch.tensor([search.sos, *ids, search.eos])
        return [old(x, maxlenratio=-1)[0]._replace(yseq=yseq)]

    search.forward = find
    try:
        yield
    finally:
        search.forward = old


# --- Bundled models -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, times, within",
    [
        ("asr_transformer", "ctc", 0.1),
        ("asr_transformer", True, 0.1),
        ("asr_transformer", "attention", 0.2),
        ("asr_rnn", True, 0.2),
    ],
)
def test_words_start_when_they_are_said(name, times, within, said):
    """Of the words that are right at their place nine in ten are close."""
    model = Speech2Text.from_pretrained(str(bundled(name)), times=times, **OURS)
    late = []
    for utterance in said:
        wave = read_audio(utterance.audio)
        result = model(wave)[0]
        assert_times(result, len(wave) / 16000)
        words, reference = result[0].split(), utterance.reference.split()
        for tag, i, end, j, _ in Levenshtein.opcodes(words, reference):
            if tag == "equal":
                starts = result[-1].word_times[i:end]
                true = SAID[utterance.key][j:]
                late += [start - t for (start, _), t in zip(starts, true)]
    assert len(late) > 15
    assert np.mean(np.abs(late) <= within) >= 0.9


@pytest.fixture(scope="module")
def bundled_model():
    return Speech2Text.from_pretrained(
        str(bundled("asr_transformer")), times=True, nbest=3, **OURS
    )


@pytest.mark.parametrize("times", ["ctc", "attention"])
def test_what_is_said_a_second_later_has_times_a_second_later(
    times, bundled_model, said, monkeypatch
):
    """But for the first word, which the model has always heard at once in training."""
    options = replace(bundled_model.posterior_options, times=times)
    monkeypatch.setattr(bundled_model, "posterior_options", options)
    wave = read_audio(said[1].audio)
    _, _, ids, hypothesis = bundled_model(wave)[0]
    before = hypothesis.word_times[1:]
    with saying(bundled_model, ids):
        silence = np.zeros(16000, dtype=wave.dtype)
        [(_, _, _, found)] = bundled_model(np.concatenate([silence, wave]))
    for (start, _), (earlier, _) in zip(found.word_times[1:], before, strict=True):
        assert start == pytest.approx(earlier + 1.0, abs=0.06)


@needs_batches
@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_what_cannot_be_decoded_has_no_times_and_costs_no_other(search, said):
    options = {**OURS, "search": search, "confidence": True, "times": True}
    model = Speech2Text.from_pretrained(str(bundled("asr_transformer")), **options)
    wave = read_audio(said[0].audio)
    found, *others = model([wave, np.zeros(0), np.full(9000, np.nan), np.zeros(50)])
    assert found[0][-1].word_times == model(wave)[0][-1].word_times
    for ((text, _, ids, hypothesis),) in others:
        assert (text, ids) == ("", [])
        assert hypothesis.word_times == hypothesis.label_times == []
        assert list(hypothesis.word_confidence) == []


@needs_batches
def test_a_batch_has_the_times_of_its_utterances(bundled_model, said):
    waves = [read_audio(u.audio) for u in said]
    for wave, nbest in zip(waves, bundled_model(waves), strict=True):
        alone = bundled_model(wave)
        assert len(alone) == 3
        for (_, _, ids, one), (_, _, same_ids, of_batch) in zip(alone, nbest):
            assert ids == same_ids
            np.testing.assert_allclose(one.word_times, of_batch.word_times, atol=1e-6)
            np.testing.assert_allclose(one.label_times, of_batch.label_times, atol=1e-6)


def test_espnets_own_search_has_them_too(bundled_model, said):
    wave = read_audio(said[0].audio)
    files = str(bundled("asr_transformer"))
    text, *_, hypothesis = Speech2Text.from_pretrained(files, times=True, **BUNDLED)(
        wave
    )[0]
    other, *_, ours = bundled_model(wave)[0]
    assert text == other
    assert hypothesis.word_times == ours.word_times


def test_nothing_is_kept_of_what_was_heard(bundled_model, said):
    """Frames are larger than texts, and hypotheses are often kept."""
    for *_, hypothesis in bundled_model(read_audio(said[0].audio)):
        assert not any(isinstance(v, torch.Tensor) for v in vars(hypothesis).values())
        assert not hasattr(hypothesis, "heard")
    assert not bundled_model.beam_search._forward_hooks


# --- Labels that cannot be aligned ----------------------------------------------------


@pytest.fixture
def build(transformer_model):
    """Return what builds a model of random weights, with CTC."""
    options = {"beam_size": 4, "ctc_weight": 0.0, "search": "explicit_length"}
    return lambda **more: Speech2Text(**transformer_model.files, **{**options, **more})


@pytest.mark.parametrize(
    "times, n, by, message",
    [
        (
            "ctc",
            7,
            None,
            "no times of 'CCCCCCC' by ctc (CTC takes a frame for each of 7 labels",
        ),
        (
            True,
            7,
            "attention",
            "6 blanks between equal ones, and there are 8 frames): ",
        ),
        (
            True,
            8,
            None,
            ", nor by attention (9 labels, the end counted, are more than ",
        ),
        (
            "attention",
            8,
            None,
            "no times of 'CCCCCCCC' by attention (9 labels, the end counted",
        ),
    ],
)
def test_more_labels_than_frames(times, n, by, message, build, waves, caplog):
    """utt3 has 35 + 1 frames of 10 ms, 8 behind the subsampling.

    Equal labels take 2 n - 1 frames of CTC; attention takes n + 1 with the end label.
    """
    model = build(times=times)
    caplog.set_level(logging.WARNING)
    with saying(model, [5] * n):
        text, _, ids, found = model(waves["utt3"])[0]
    assert (text, ids) == ("C" * n, [5] * n)  # the text is there whatever happens
    [said_why] = [m for m in caplog.messages if m.startswith("no times")]
    assert message in said_why
    if by is None:
        assert found.word_times is found.label_times is None
    else:
        assert said_why.endswith(f"found by {by}")
        assert len(found.label_times) == 7


@pytest.mark.parametrize("times", ["ctc", "attention"])
def test_labels_by_hand(times, build, waves, monkeypatch):
    """CTC and attention that are certain of A, a space and B.

    utt5 has 0.45 s of audio in 10 frames, of 45 ms.
    """
    model, ids = build(times=times), [3, 2, 4]
    path = torch.tensor([0, 0, 3, 0, 2, 0, 0, 4, 0, 0])
    one_hot = torch.nn.functional.one_hot(path, len(model.asr_model.token_list))
    log_probs = (one_hot * 0.99 + 1e-4).log().unsqueeze(0)
    monkeypatch.setattr(ctc_of(model), "log_softmax", lambda x: log_probs)
    # A to frames 1 to 3, the space to 4 and 5, B to 6 and 7, the end to the last two
    rows = torch.zeros(4, 10)
    for row, (start, end) in zip(rows, [(1, 4), (4, 6), (6, 8), (8, 10)]):
        row[start:end] = 1 / (end - start)
    attention = rows.unsqueeze(0).numpy()
    monkeypatch.setattr(times_module, "attention_along", lambda *_: attention)
    with saying(model, ids):
        text, *_, found = model(waves["utt5"])[0]
    assert text == "A B"
    # a frame and a half before CTC's, until the next, to the end at the latest
    expected = {
        "ctc": ([(0.5, 2.5), (2.5, 5.5), (5.5, 10)], [(0.5, 2.5), (5.5, 10)]),
        "attention": ([(1, 4), (4, 6), (6, 8)], [(1, 4), (6, 8)]),
    }[times]
    for value, spans in zip((found.label_times, found.word_times), expected):
        np.testing.assert_allclose(value, 0.045 * np.array(spans), atol=1e-6)


def test_a_text_without_words(build, waves):
    model = build(times=True)
    with saying(model, []):
        text, *_, found = model(waves["utt1"])[0]
    assert text == ""
    assert found.word_times == found.label_times == []
    with saying(model, [2]):  # a space alone
        text, *_, found = model(waves["utt1"])[0]
    assert text.split() == found.word_times == []
    assert len(found.label_times) == 1


# --- Every object ---------------------------------------------------------------------

CLASSES = {
    "st": st.Speech2Text,
    "st_ctc": st.Speech2Text,
    "slu": slu.Speech2Understand,
    "s2t": s2t.Speech2Text,
}


@pytest.mark.parametrize("search", ["explicit_length", "simple", "espnet"])
@pytest.mark.parametrize("times", [True, "attention"])
@pytest.mark.parametrize("name", CLASSES)
def test_every_object_has_them(name, times, search, model_of, waves):
    options = {"search": search, "beam_size": 4, "ctc_weight": 0.0, "nbest": 2}
    model = CLASSES[name](
        **model_of(name).files, **options, maxlenratio=-6, times=times
    )
    wave = waves["utt4"]
    for result in model(wave):
        assert_times(result, len(wave) / RATE)


@needs_batches
@pytest.mark.parametrize("search", ["explicit_length", "espnet"])
def test_batches_of_utterances_of_other_lengths(search, model_of, build, waves):
    """Also as ESPnet's collation pads them."""
    some = [waves["utt5"], waves["utt2"]]
    windowed = s2t.Speech2Text(
        **model_of("s2t").files, search=search, beam_size=4, maxlenratio=-6, times=True
    )
    ours = build(times=True, search=search, maxlenratio=-3)
    padded = np.zeros((2, len(some[0])), dtype=np.float32)
    for row, wave in zip(padded, some):
        row[: len(wave)] = wave
    batch = torch.tensor(padded), torch.tensor([len(wave) for wave in some])
    for model, speech in (
        (windowed, (some,)),
        (windowed, batch),
        (ours, (some,)),
        (ours, batch),
    ):
        found = model.batch_decode(*speech)
        for wave, nbest in zip(some, found, strict=True):
            assert_times(nbest[0], len(wave) / RATE)


def test_symbols_of_owsm_take_no_time(model_of, waves):
    """The window is a second; nothing is said behind the audio of 0.4 s."""
    model = s2t.Speech2Text(
        **model_of("s2t").files,
        search="explicit_length",
        beam_size=4,
        maxlenratio=-9,
        minlenratio=-9,
        times=True,
    )
    _, tokens, _, _, found = model(waves["utt4"])[0]
    assert tokens[:3] == ["<eng>", "<asr>", "<notimestamps>"]
    assert WINDOW == 1.0
    for token, (start, end) in zip(tokens, found.label_times, strict=True):
        if token.startswith("<"):
            assert start == end
        assert end <= len(waves["utt4"]) / RATE
    assert any(end > start for start, end in found.label_times)


def test_whisper_has_them_within_the_audio(tmp_path):
    """Its window is 30 s; tokens are bytes, and words end where white space is."""
    whisper = pytest.importorskip("whisper", reason="needs Whisper")
    assert whisper.audio.N_SAMPLES == 480000
    checkpoint = write_checkpoint(tmp_path / "tiny.pt", ENGLISH)
    config = write_config(
        tmp_path / "config.yaml", ENGLISH, str(checkpoint), do_pad_trim=True
    )
    model = Speech2Text(
        str(config),
        search="simple",
        times=True,
        confidence=True,
        maxlenratio=-8,
        minlenratio=-8,
        **BUNDLED,
    )
    [result] = model(noise(2.0))
    assert_times(result, 2.0)
    assert len(result[-1].label_times) == len(result[-1].label_confidence) == 8


# --- At the door ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "build_refused, message",
    [
        (lambda **o: mt.Text2Text("no.yaml", **o), "times: true: a text has no times"),
        (
            lambda **o: Speech2TextStreaming("no.yaml", "no.pth", **o),
            "times: true: in streaming the audio of a word may be gone",
        ),
    ],
)
def test_what_has_no_times_says_so_before_a_model_is_loaded(build_refused, message):
    with pytest.raises(OptionError, match=message):
        build_refused(search="explicit_length", times=True)


def test_a_model_without_ctc(model_of, build):
    for times in (True, "attention"):
        assert build(times=times).posterior_options.times == times
    with pytest.raises(
        OptionError, match="times: ctc: the model has no CTC: say times"
    ):
        Speech2Text.from_pretrained(str(bundled("asr_rnn")), times="ctc", **OURS)
    with pytest.raises(OptionError, match="times: ctc: the model has no CTC"):
        st.Speech2Text(**model_of("st").files, ctc_weight=0.0, times="ctc")


@needs_s2t_of_ctc_alone
def test_a_model_without_decoder(model_of):
    message = "times: attention: the model has no decoder: say times: ctc"
    with pytest.raises(OptionError, match=message):
        s2t.Speech2Text(**model_of("s2t_ctc").files, times="attention")


@pytest.mark.parametrize("name", ["st_multi", "st_attention"])
def test_a_translator_of_what_it_has_recognised(name, model_of):
    with pytest.raises(OptionError, match="times: true: this model translates what it"):
        st.Speech2Text(**model_of(name).files, ctc_weight=0.0, times=True)


def test_frames_that_are_of_no_audio(model_of):
    """Those of a transcript, which BERT puts behind the frames of the audio."""
    model = slu.Speech2Understand(**model_of("slu").files, ctc_weight=0.0)
    model.asr_model.postdecoder = torch.nn.Identity()
    with pytest.raises(
        OptionError, match="times: true: behind the frames of the audio"
    ):
        times_module.check_can_tell_times(model, True)
    times_module.check_can_tell_times(model, False)


def test_a_model_without_a_tokenizer_has_times_of_labels(build, waves):
    """ESPnet has no text then, and no words."""
    model = build(times=True)
    model.tokenizer = None
    with saying(model, [3, 4]):
        text, *_, found = model(waves["utt1"])[0]
    assert text is found.word_times is None
    assert "word_times" not in vars(found)
    assert len(found.label_times) == 2


def test_a_decoder_whose_attention_is_not_known(build, monkeypatch):
    monkeypatch.setattr(times_module, "has_known_attention", lambda decoder: False)
    assert build(times=True)  # by CTC
    with pytest.raises(OptionError, match="the attention of a TransformerDecoder noth"):
        build(times="attention")
    monkeypatch.setattr(times_module, "ctc_of", lambda model: None)
    with pytest.raises(OptionError, match="times: true: the model has neither CTC nor"):
        build(times=True)
