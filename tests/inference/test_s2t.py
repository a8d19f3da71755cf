"""Speech-to-text of many languages and tasks: primers, batches, timestamps, windows."""

import numpy as np
import pytest
import soundfile
import torch
from espnet2.bin import s2t_inference

from espnet_lenbias import use_search
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.inference import s2t
from espnet_lenbias.inference.s2t import Speech2Text
from tests.conftest import RATE
from tests.make_models import S2T_TOKENS, TIMES
from tests.releases import needs_batches, needs_s2t_of_ctc_alone

OPTIONS = {"beam_size": 4, "maxlenratio": -8}
SEARCHES = ["explicit_length", "simple"]


def ids(*tokens: str) -> list[int]:
    return [S2T_TOKENS.index(token) for token in tokens]


@pytest.fixture
def build(model_of):
    """Return what builds our object for the model with a decoder."""
    files = model_of("s2t").files
    return lambda **options: Speech2Text(**files, **{**OPTIONS, **options})


@pytest.mark.parametrize("search", ["espnet", *SEARCHES])
@pytest.mark.parametrize(
    "given, message",
    [
        (
            {"lang_sym": "<dau>"},
            "lang_sym: the model has no symbol <dau>; did you mean ",
        ),
        ({"lang_sym": "deu"}, "no symbol deu; did you mean <deu>?"),
        ({"task_sym": "<asrr>"}, "task_sym: .* no symbol <asrr>; did you mean <asr>?"),
        (
            {"lang_sym": "<@>"},
            r"\(it has <nolang>, <eng>, <deu>, <asr>, <st_deu>, <notimestamps>\)",
        ),
        (
            {"predict_time": True, "ctc_weight": 0.3},
            "predict_time: CTC, .* 0.3, .*: set ctc_weight to 0.0",
        ),
    ],
    ids=str,
)
def test_symbols_that_there_are_none_of(search, given, message, build, monkeypatch):
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(OptionError, match=message):
        build(search=search, **given)


@pytest.mark.parametrize("key", ["lang_sym", "task_sym"])
@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_symbols_that_come_with_the_audio(search, key, build, waves):
    model = build(search=search)
    with pytest.raises(OptionError, match="no symbol <dee>; did you mean <deu>?"):
        model(waves["utt4"], **{key: "<dee>"})
    assert model(waves["utt4"], **{key: "<deu>"})
    # what the model does not know in a text stays <unk>
    assert model(waves["utt4"], text_prev="A \u4f60 B")


@pytest.mark.parametrize(
    "text, kind, message",
    [
        (np.array([999]), ValueError, "text_prev holds token ids from 999 to 999"),
        (
            np.array([0.5]),
            TypeError,
            "text_prev is of type float64: give a text, or an",
        ),
        (["A"], TypeError, "text_prev is of type list: give a text, or an array"),
    ],
)
def test_previous_texts_that_are_none(text, kind, message, build, waves):
    model = build(search="explicit_length")
    for given in ((text,), {"text_prev": text}):
        args, kwargs = (given, {}) if isinstance(given, tuple) else ((), given)
        with pytest.raises(kind, match=message):
            model(waves["utt4"], *args, **kwargs)
    assert model(waves["utt4"], text_prev=np.array([5, 6]))


@needs_batches
def test_an_empty_previous_text(build, waves):
    """Alone, as text or as ids, and in a batch with one that is not."""
    model = build(search="explicit_length")
    alone = model(waves["utt4"], text_prev=np.zeros(0, dtype=int))
    texts, lengths = torch.tensor([[5, 6], [0, 0]]), torch.tensor([2, 0])
    waves = [waves["utt5"], waves["utt4"]]
    more = {"text_prev": texts, "text_prev_lengths": lengths}
    _, together = model.batch_decode(waves, **more)
    as_text = model(waves[1], text_prev="")
    assert alone[0][2] == together[0][2] == as_text[0][2]


@needs_batches
def test_previous_texts_of_a_batch_that_are_none(build, waves):
    """What stands behind the length of a row does not count."""
    model = build(search="explicit_length")
    two = [waves["utt5"], waves["utt4"]]
    for texts, lengths, kind, message in (
        (
            [[5, 999], [0, 0]],
            None,
            ValueError,
            "text_prev of utterance 0 holds token i",
        ),
        ([[5, 6], [-1, 0]], [1, 1], ValueError, "utterance 1 holds token ids from -1"),
        ([[0.5, 6]] * 2, None, TypeError, "text_prev of utterance 0 is of type"),
        ([[5, 6]], None, ValueError, "text_prev has 1 rows, of 1 lengths, and there a"),
        ([[5, 6]] * 2, [2], ValueError, "text_prev has 2 rows, of 1 lengths, and ther"),
        ([5, 6], None, TypeError, r"text_prev is \(2,\): give an array \(B, L\) of"),
    ):
        counts = None if lengths is None else torch.tensor(lengths)
        with pytest.raises(kind, match=message):
            model.batch_decode(two, None, torch.tensor(texts), counts)
    padded, counts = torch.tensor([[5, 6], [5, -1]]), torch.tensor([2, 1])
    assert len(model.batch_decode(two, None, padded, counts)) == 2


@needs_batches
def test_a_recording_of_two_channels_is_no_batch(build):
    model = build(search="explicit_length")
    with pytest.raises(
        AudioError, match=r"of shape \(30000, 2\): give \(utterances, sam"
    ):
        model.batch_decode(np.zeros((30000, 2)))


@needs_batches
def test_symbols_that_come_with_a_batch(build, waves):
    model = build(search="explicit_length")
    for decode in (
        lambda: model.batch_decode([waves["utt4"]] * 2, lang_sym="<dee>"),
        lambda: model.decode_long(waves["utt4"], lang_sym="<dee>"),
    ):
        with pytest.raises(OptionError, match="no symbol <dee>; did you mean <deu>?"):
            decode()


@pytest.mark.parametrize(
    "given, primer",
    [
        ({}, ids("<sos>", "<eng>", "<asr>", "<notimestamps>")),
        (
            {"lang_sym": "<deu>", "task_sym": "<st_deu>"},
            ids("<sos>", "<deu>", "<st_deu>", "<notimestamps>"),
        ),
        ({"predict_time": True}, ids("<sos>", "<eng>", "<asr>")),
        (
            {"text_prev": "A B"},
            ids("<sop>", "A", "B", "<sos>", "<eng>", "<asr>", "<notimestamps>"),
        ),
        ({"text_prev": "<na>"}, ids("<sos>", "<eng>", "<asr>", "<notimestamps>")),
    ],
    ids=str,
)
@pytest.mark.parametrize("search", SEARCHES)
def test_hypotheses_start_with_the_primer(search, given, primer, build, waves):
    model = build(search=search, nbest=3)
    [espnets] = build()(waves["utt4"], **given)
    assert espnets[4].yseq[: len(primer)].tolist() == primer
    results = model(waves["utt4"], **given)
    assert len(results) == 3
    for text, _, token_ids, plain, hypothesis in results:
        yseq = hypothesis.yseq.tolist()
        assert yseq[: len(primer)] == primer
        assert yseq.count(ids("<eos>")[0]) == 1 and yseq[-1] == ids("<eos>")[0]
        # what follows the start label, as in ESPnet's results
        start = primer.index(ids("<sos>")[0]) + 1
        labels = [i for i in yseq[start:-1] if i != 0]
        assert token_ids == labels
        assert text == " ".join(S2T_TOKENS[i] for i in labels)
        special = {*ids("<sop>", "<sos>"), *range(len(S2T_TOKENS) - 29)}
        assert plain == " ".join(S2T_TOKENS[i] for i in labels if i not in special)
        # the primer does not count as output
        assert len(yseq) - len(primer) <= 8 + 1


def test_the_search_sees_the_primer(build, waves):
    """Scores are those of ESPnet's own search for the same output after this primer."""
    given = {"lang_sym": "<deu>", "text_prev": "A B C"}
    wide = {"beam_size": 20, "nbest": 20}
    ours, espnets = build(search="simple", **wide), build(**wide)
    theirs = {
        tuple(hyp.yseq.tolist()): float(hyp.score)
        for *_, hyp in espnets(waves["utt2"], **given)
    }
    found = {
        tuple(hyp.yseq.tolist()): hyp.score for *_, hyp in ours(waves["utt2"], **given)
    }
    limit = len(ids("<sop>", *"ABC", "<sos>", "<deu>", "<asr>", "<notimestamps>")) + 8
    # at the limit ESPnet does not score the end label
    both = {yseq for yseq in theirs.keys() & found.keys() if len(yseq) <= limit}
    assert len(both) >= 2
    for yseq in both:
        assert found[yseq] == pytest.approx(theirs[yseq], abs=1e-3)
    other = ours(waves["utt2"], lang_sym="<deu>", text_prev="D")
    assert not {round(hyp.score, 3) for *_, hyp in other} & {
        round(score, 3) for score in found.values()
    }


@needs_batches
@pytest.mark.parametrize("search", SEARCHES)
def test_a_batch_gives_what_its_utterances_give(search, build, waves, monkeypatch):
    model = build(search=search, batch_size=3)
    speech = [waves["utt1"], waves["utt3"], waves["utt5"]]
    alone = [model(wave) for wave in speech]
    shapes = []
    forward = model.beam_search.forward
    monkeypatch.setattr(
        model.beam_search,
        "forward",
        lambda x, **more: (shapes.append(x.dim()), forward(x, **more))[1],
    )
    batch = model.batch_decode(speech)
    assert shapes == [3]
    for one, among_others in zip(alone, batch, strict=True):
        assert among_others[0][:4] == one[0][:4]
        assert among_others[0][4].score == pytest.approx(one[0][4].score, abs=1e-3)


@needs_batches
@pytest.mark.parametrize("search", ["espnet", *SEARCHES])
def test_an_utterance_of_a_batch_that_cannot_be_decoded(search, build, waves, caplog):
    model = build(search=search)
    good, nan = waves["utt1"], np.full(4000, np.nan)
    alone = model(good)
    # other arguments still belong to their utterances
    texts = torch.tensor([ids("A"), ids("B"), ids("<unk>")])
    for more in ({}, {"text_prev": texts}):
        empty, found, broken = model.batch_decode([np.zeros(0), good, nan], **more)
        for (nothing,) in (empty, broken):
            assert nothing[:4] == ("", [], [], "")
        if not more:
            assert found[0][:4] == alone[0][:4]
    assert "utterance 0 of the list is empty; its text is empty" in caplog.text
    assert "utterance 2 of the list holds NaN or infinity" in caplog.text
    with pytest.raises(AudioError, match="utterance 1 of the batch holds NaN"):
        model.batch_decode(np.stack([good[:2000], nan[:2000]]))
    assert model.batch_decode([]) == []
    with pytest.raises(TypeError, match="the audio is a list: .* call batch_decode"):
        model([good, good])


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_integers_are_scaled_in_all_that_decodes(search, build, waves, monkeypatch):
    model = build(search=search)
    integers = np.round(np.asarray(waves["utt1"]) * 2**15).astype(np.int16)
    largest = np.abs(integers).max() / 2**15
    heard = []
    encode = model.s2t_model.encode
    monkeypatch.setattr(
        model.s2t_model,
        "encode",
        lambda speech, **more: (
            heard.append(float(speech.abs().amax())),
            encode(speech, **more),
        )[1],
    )
    model(integers)
    model.decode_long(integers, end_time_threshold=TIMES[-1])
    if hasattr(model, "iter_long"):
        list(model.iter_long(integers))
        model.batch_decode([integers])
        model.batch_decode(integers[None])
    assert len(heard) >= 2
    assert heard == pytest.approx([largest] * len(heard), rel=1e-6)


def test_a_long_recording_that_cannot_be_decoded(build):
    model = build(search="explicit_length")
    with pytest.raises(AudioError, match="the audio is empty"):
        model.decode_long(np.zeros(0))
    with pytest.raises(AudioError, match="2 channels"):
        model.decode_long(np.zeros((4000, 2)))


@pytest.mark.skipif(
    not hasattr(s2t_inference.Speech2Text, "read_audio"), reason="it reads no files"
)
def test_a_long_recording_whose_file_is_damaged(build, tmp_path):
    model = build(search="explicit_length")
    samples = 0.1 * np.random.default_rng(0).standard_normal(32000)
    soundfile.write(tmp_path / "a.flac", samples, RATE)
    content = (tmp_path / "a.flac").read_bytes()
    half = len(content) // 2
    (tmp_path / "a.flac").write_bytes(
        content[:half] + bytes(900) + content[half + 900 :]
    )
    soundfile.write(tmp_path / "b.wav", samples[:0], RATE)
    with pytest.raises(AudioError, match=r"a\.flac cannot be read to its end"):
        model.decode_long(tmp_path / "a.flac")
    with pytest.raises(AudioError, match=r"b\.wav holds no samples"):
        model.decode_long(tmp_path / "b.wav")


def test_a_release_that_decodes_no_batches(build, waves, monkeypatch):
    monkeypatch.setattr(s2t, "decodes_batches", lambda: False)
    with pytest.raises(NotImplementedError, match="call the model for each"):
        build(search="explicit_length").batch_decode([waves["utt1"]])


@pytest.mark.parametrize("search", SEARCHES)
def test_timestamps_follow_the_rules(search, build, waves):
    """ESPnet's rules as a scorer: -inf for labels that may not be."""
    model = build(search=search, nbest=5, predict_time=True)
    first, last, end = ids(TIMES[0], TIMES[-1], "<eos>")
    bias = model.s2t_model.decoder.output_layer.bias.data
    bias[first : last + 1] += 3.0  # else it would run on until it is cut
    bias[end] += 6.0
    results = model(waves["utt3"])
    assert results and not any(hyp.forced for *_, hyp in results)
    for *_, hyp in results:
        labels = hyp.yseq[3:-1].tolist()
        times = [label for label in labels if first <= label <= last]
        assert len(times) >= 2 and len(times) % 2 == 0
        assert times == sorted(times)
        assert labels[0] == times[0] and labels[-1] == times[-1]


@pytest.mark.parametrize("condition", [False, True])
def test_long_recordings(condition, build, model_of):
    """Window by window as ESPnet reads them, each found by the search."""
    recording = 0.1 * np.random.default_rng(1).standard_normal(int(2.6 * RATE))
    # the default of 202611; 202511's is 29 s, whatever the window
    how = {"condition_on_prev_text": condition, "end_time_threshold": TIMES[0]}
    model = build(search="explicit_length", predict_time=True)
    primers = []
    forward = model.beam_search.forward
    model.beam_search.forward = lambda **more: (
        primers.append(model.beam_search.hyp_primer),
        forward(**more),
    )[1]
    utterances = model.decode_long(recording, **how)
    assert len(primers) >= 3
    assert all(primer[-3:] == ids("<sos>", "<eng>", "<asr>") for primer in primers)
    assert {primer[0] for primer in primers[1:]} == set(
        ids("<sop>" if condition else "<sos>")
    )
    starts = [start for start, _, _ in utterances]
    assert starts == sorted(starts)

    theirs = s2t_inference.Speech2Text(**model_of("s2t").files, **OPTIONS)
    use_search(theirs, "explicit_length")
    again = theirs.decode_long(recording, **how)
    assert again == utterances


@needs_s2t_of_ctc_alone
def test_a_model_without_decoder_is_searched_by_ctc_alone(model_of, waves):
    files = model_of("s2t_ctc").files
    model = Speech2Text(**files, beam_size=30, nbest=3, search="explicit_length")
    results = model(waves["utt1"], text_prev="A B")
    scores = [hyp.score for *_, hyp in results]
    assert scores == sorted(scores, reverse=True) and scores[0] <= 0
    assert model.beam_search.weights["ctc"] == 1.0
    alone, [batched] = model(waves["utt1"]), model.batch_decode([waves["utt1"]])
    assert len(alone) == len(batched) == 3
    assert all(result[4].score <= 0 for result in [*alone, *batched])
    # the best path needs no search
    espnets = s2t_inference.Speech2Text(**files)
    assert model.best_path(waves["utt1"]) == espnets.best_path(waves["utt1"])
