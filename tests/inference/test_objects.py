"""Another search in inference objects of ESPnet beside its speech recogniser's."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from espnet2.bin import (
    asr_inference,
    mt_inference,
    s2t_inference,
    slu_inference,
    st_inference,
)
from espnet2.tasks.slu import SLUTask
from espnet2.tasks.st import STTask

from espnet_lenbias import (
    ExplicitLengthBeamSearch,
    SimpleBeamSearch,
    mt,
    s2t,
    slu,
    st,
    use_search,
)
from espnet_lenbias.errors import AudioError, OptionError
from tests import make_models as models
from tests.bundled import bundled
from tests.make_models import make_model

# name -> ESPnet's class, ours
CLASSES = {
    "st": (st_inference.Speech2Text, st.Speech2Text),
    "mt": (mt_inference.Text2Text, mt.Text2Text),
    "s2t": (s2t_inference.Speech2Text, s2t.Speech2Text),
    "slu": (slu_inference.Speech2Understand, slu.Speech2Understand),
}
EXPLICIT = {"search": "explicit_length", "search_conf": {"score_threshold": 8.0}}


def source_of(name: str, waves) -> Any:
    return np.array([3, 4, 5, 6]) if name == "mt" else waves["utt3"]


def texts(results) -> list[str]:
    results = results[0] if isinstance(results, tuple) else results
    return [result[0] for result in results]


def scores_of(results) -> dict[tuple[int, ...], float]:
    """Return the original score of each hypothesis, by its labels."""
    hyps = [result[-1] for result in results]
    return {tuple(h.yseq.tolist()): h.original_score for h in hyps}


@pytest.mark.parametrize("name", CLASSES)
def test_the_search_is_chosen_by_name_or_put_into_espnets(name, model_of, waves):
    espnets, ours = CLASSES[name]
    options = {**model_of(name).files, "beam_size": 4, "ctc_weight": 0.0, "nbest": 2}
    chosen = ours.from_pretrained(**options, **EXPLICIT)
    assert isinstance(chosen, espnets)
    assert type(chosen.beam_search) is ExplicitLengthBeamSearch
    assert chosen.beam_search.options.score_threshold == 8.0
    assert chosen.beam_search.options.nbest == 2
    source = source_of(name, waves)
    results = chosen(source)
    assert len(results) == 2
    assert results[1][-1].score <= results[0][-1].score <= 0

    built = espnets(**options)
    before = texts(built(source))
    assert use_search(built, "explicit_length", score_threshold=8.0) is built
    assert texts(built(source)) == texts(results)
    assert type(use_search(built, "simple").beam_search) is SimpleBeamSearch
    assert texts(use_search(built, "espnet")(source)) == before
    untouched = ours(**options)
    assert texts(untouched(source)) == before


@pytest.mark.parametrize("name", CLASSES)
def test_mistakes_show_before_a_model_is_loaded(name):
    _, ours = CLASSES[name]
    with pytest.raises(ValueError, match="no search 'simpel'; did you mean simple"):
        ours("no-such.yaml", "no-such.pth", search="simpel")
    with pytest.raises(TypeError, match="say search_conf={'score_threshold': 8.0}"):
        ours.from_pretrained(
            "no-such.zip", search="explicit_length", score_threshold=8.0
        )


@pytest.mark.parametrize("name", CLASSES)
def test_decoder_in_bfloat16(name, model_of, waves):
    """Scores are near those of float32 and not the same; the model itself is untouched."""
    _, ours = CLASSES[name]
    options = {**model_of(name).files, "beam_size": 40, "ctc_weight": 0.0, "nbest": 40}
    source = source_of(name, waves)
    plain = ours(**options, search="explicit_length")
    lower = ours(**options, search="explicit_length", decoder_dtype="bfloat16")
    expected, found = (scores_of(model(source)) for model in (plain, lower))
    both = expected.keys() & found.keys()
    assert both
    for yseq in both:
        assert found[yseq] == pytest.approx(expected[yseq], abs=0.2)
        assert found[yseq] != expected[yseq]
    network = next(v for k, v in vars(lower).items() if k.endswith("_model"))
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert scores_of(use_search(lower, "explicit_length")(source)) == expected
    with pytest.raises(ValueError, match="decoder_dtype: ESPnet's own search"):
        ours("no-such.yaml", "no-such.pth", decoder_dtype="bfloat16")


@pytest.mark.parametrize("name", ["st", "slu", "s2t"])
def test_samples_of_another_scale_are_warned_of_once(name, model_of, waves, caplog):
    _, ours = CLASSES[name]
    options = {**model_of(name).files, "ctc_weight": 0.0, "maxlenratio": -3}
    model = ours(**options, search="explicit_length")
    model(waves["utt3"])
    model((waves["utt3"] * 32768).astype("int16"))
    assert "samples" not in caplog.text
    model(waves["utt3"] * 32768)
    model(waves["utt4"] * 32768)
    said = [m for m in caplog.messages if "samples go far beyond -1 to 1" in m]
    assert len(said) == 1
    assert "divide them by what is 1 there, such as 32768" in said[0]


TEXT = "A B C"  # the model has the tokens of 20 letters, and <space>


@pytest.fixture
def translator(model_of):
    return mt.Text2Text(**model_of("mt").files, ctc_weight=0.0, beam_size=3, **EXPLICIT)


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_a_text_is_its_token_ids(search, model_of):
    options = {"ctc_weight": 0.0, "beam_size": 3, "search": search}
    model = mt.Text2Text(**model_of("mt").files, **options)
    ids = [models.SRC_TOKENS.index(t) for t in ("A", "<space>", "B", "<space>", "C")]
    expected = texts(model(np.array(ids)))
    assert texts(model(TEXT)) == texts(model(torch.tensor(ids))) == expected
    assert [texts(r) for r in model([TEXT, np.array(ids)])] == [expected] * 2
    assert [texts(r) for r in model(("D", TEXT))] == [texts(model("D")), expected]
    assert model([]) == []


@pytest.mark.parametrize(
    "text, error, message",
    [
        (" ", ValueError, "the source text is empty"),
        (np.array([], int), ValueError, "the source text is empty"),
        (["A", ""], ValueError, "text 1 of the list is empty"),
        (7, TypeError, "the source text is of type int: give a text, or an array"),
        (None, TypeError, "the source text is of type NoneType"),
        ([3, 4], TypeError, "text 0 of the list is of type int: give a text"),
        ({"src_text": "A"}, TypeError, "the source text is of type dict"),
        (np.array([1.5]), TypeError, "the source text is of type float64"),
        (torch.tensor([True]), TypeError, "the source text is of type torch.bool"),
        (np.array(["A"]), TypeError, "the source text is of type <U1"),
        (np.array([[3, 4]]), ValueError, r"of shape \(1, 2\): give \(L,\) token ids"),
        (np.array([3, 24]), ValueError, "ids from 3 to 24, .* are from 0 to 23"),
        (np.array([-1, 3]), ValueError, "ids from -1 to 3, and those"),
    ],
    ids=str,
)
def test_what_is_no_source_text(text, error, message, translator):
    with pytest.raises(error, match=message) as e:
        translator(text)
    assert "typeguard" not in type(e.value).__module__


def test_a_text_for_a_model_without_preprocessing(translator):
    translator.mt_train_args.use_preprocessor = False
    with pytest.raises(TypeError, match="give the array of its token ids"):
        translator(TEXT)


@pytest.mark.parametrize("name", ["st", "slu", "s2t"])
@pytest.mark.parametrize(
    "audio", [np.zeros(0), np.full(4000, np.nan)], ids=["0", "NaN"]
)
@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_audio_that_cannot_be_decoded_is_named(search, name, audio, model_of):
    _, ours = CLASSES[name]
    model = ours(**model_of(name).files, ctc_weight=0.0, search=search)
    with pytest.raises(AudioError, match="the audio (is empty|holds NaN)"):
        model(audio)


@pytest.mark.parametrize("kind", [np.zeros, torch.zeros], ids=["numpy", "torch"])
def test_a_source_text_that_is_empty_is_named(kind, model_of):
    files = model_of("mt").files
    model = mt.Text2Text(**files, ctc_weight=0.0, search="explicit_length")
    with pytest.raises(ValueError, match="the source text is empty"):
        model(kind(0))


# --- Two searches in one object -------------------------------------------------------


@pytest.mark.parametrize("name", ["st_multi", "st_attention"])
def test_the_translation_is_of_what_the_first_search_has_found(name, model_of, waves):
    """Both steps done anew by ESPnet's modules, from the best source text."""
    model = st.Speech2Text(**model_of(name).files, asr_beam_size=5, nbest=3, **EXPLICIT)
    assert type(model.asr_beam_search) is ExplicitLengthBeamSearch
    translations, sources = model(waves["utt5"])
    *_, hypothesis, states = sources[0]

    module = model.st_model
    speech = torch.tensor(waves["utt5"], dtype=torch.float32).unsqueeze(0)
    lengths = torch.tensor([speech.size(1)])
    with torch.no_grad():
        x, _, source_x, _ = module.encode(speech, lengths, return_int_enc=True)
        wanted = []
        for n in range(1, len(hypothesis.yseq)):
            prefix = hypothesis.yseq[:n].unsqueeze(0)
            (_, state), _ = module.extra_asr_decoder.batch_score(
                prefix, [None], source_x, return_hs=True
            )
            wanted.append(state.squeeze(0))
        torch.testing.assert_close(states, torch.stack(wanted))
        y, _, _ = module.md_encoder(states.unsqueeze(0), torch.tensor([len(states)]))
    pre_x = x[0] if name == "st_attention" else None
    again = model.beam_search(x=y[0], pre_x=pre_x)
    assert len(again) == 3
    for hyp, (*_, found) in zip(again, translations, strict=True):
        assert hyp.yseq.tolist() == found.yseq.tolist()
        assert hyp.score == pytest.approx(found.score, abs=1e-4)


def test_where_one_of_two_searches_does_not_fit_both_stay(model_of):
    model = st_inference.Speech2Text(**model_of("st_multi").files)
    before = (model.asr_beam_search, model.beam_search, model.nbest)
    with pytest.raises(ValueError, match="decoder_dtype"):
        use_search(model, "explicit_length", decoder_dtype="int7")
    model.asr_beam_search.pre_beam_size = 0  # which no search of this package takes
    with pytest.raises(ValueError, match="pre_beam_ratio"):
        use_search(model, "explicit_length", nbest=3)
    assert (model.asr_beam_search, model.beam_search, model.nbest) == before


def test_without_an_extra_decoder_the_search_for_the_source_text_stays(model_of):
    model = st.Speech2Text(**model_of("st").files, **EXPLICIT)
    assert type(model.asr_beam_search) is not ExplicitLengthBeamSearch


def test_the_source_text_is_searched_in_the_dtype_of_the_model(model_of, waves):
    """Its decoder's states go through an encoder, which stays what it is."""
    conf = {"decoder_dtype": "bfloat16", **EXPLICIT}
    model = st.Speech2Text(**model_of("st_multi").files, **conf)
    kinds = []
    for search in (model.beam_search, model.asr_beam_search):
        decoder = search.setup().adapters["decoder"].decoder
        kinds.append(next(decoder.parameters()).dtype)
    assert kinds == [torch.bfloat16, torch.float32]
    translations, _ = model(waves["utt5"])
    assert translations


def test_a_translator_without_ctc_for_the_source_text(model_of):
    model = st_inference.Speech2Text(**model_of("st_multi").files)
    model.asr_beam_search.scorers["ctc"].ctc = None
    with pytest.raises(
        OptionError, match="asr_ctc_weight is 0.3, .* asr_ctc_weight: 0"
    ):
        use_search(model, "explicit_length")


@pytest.mark.parametrize("search", ["explicit_length", "espnet"])
def test_the_decoder_of_the_source_text_takes_part(search, model_of):
    """ESPnet's own tool ends in a traceback."""
    conf = {"search": search, "asr_ctc_weight": 1.0}
    with pytest.raises(OptionError, match="translated are the hidden states .* below"):
        st.Speech2Text(**model_of("st_multi").files, **conf)


# --- What the search cannot serve -----------------------------------------------------


@pytest.fixture
def transducer_loss(monkeypatch):
    """Stand in for the package whose loss transducers are trained with."""
    module = ModuleType("warprnnt_pytorch")
    module.RNNTLoss = lambda **_: None
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.parametrize("name", ["st", "slu"])
def test_a_transducer_says_so(name, transducer_loss, tmp_path, waves):
    task = {"st": STTask, "slu": SLUTask}[name]
    options = {**models.SPEECH, **models.TRANSDUCER}
    joint = "st_joint_net_conf" if name == "st" else "joint_net_conf"
    options[joint] = models.JOINT_NETWORK
    options |= models.SOURCE if name == "st" else {}
    model = make_model(tmp_path / "model", name, task, models.TOKENS, **options)
    _, ours = CLASSES[name]
    with pytest.raises(
        OptionError, match="it is a transducer; search: espnet keeps it"
    ):
        ours(**model.files, **EXPLICIT)
    with pytest.raises(
        OptionError, match="decide, confidence and times: .* a transducer"
    ):
        ours(**model.files, decide="mbr")
    assert ours(**model.files, search="espnet")(waves["utt1"])


@pytest.mark.parametrize("name, option", [("slu", "streaming"), ("s2t", "partial_ar")])
def test_other_searches_of_espnet_say_so(name, option, model_of):
    espnets, _ = CLASSES[name]
    model = espnets(**model_of(name).files, **{option: True})
    kind = type(model.beam_search).__name__
    with pytest.raises(OptionError, match=f"has another one: its search is {kind}; "):
        use_search(model, "explicit_length")


def test_mask_ctc_and_the_tool_for_transducers_say_so():
    """As objects of those tools are made: the first has no `beam_search`."""
    masked = asr_inference.Speech2Text.__new__(asr_inference.Speech2Text)
    masked.s2t = type("MaskCTCInference", (), {})()
    with pytest.raises(OptionError, match=r"it refines the output of CTC \(mask-CTC\)"):
        use_search(masked, "explicit_length")
    transducer = asr_inference.Speech2Text.__new__(asr_inference.Speech2Text)
    transducer.beam_search = type("BeamSearchTransducer", (), {})()
    with pytest.raises(OptionError, match="it is a transducer"):
        use_search(transducer, "explicit_length")


def test_a_packed_model_of_another_tool():
    with pytest.raises(OptionError, match="is a model of asr_inference, not of st_"):
        st.Speech2Text.from_pretrained(str(bundled("asr_transformer")), ctc_weight=0.0)


# --- Transcripts ----------------------------------------------------------------------


def test_a_transcript_beside_the_audio(model_of, waves):
    model = slu.Speech2Understand(
        **model_of("slu_transcript").files, search="explicit_length", beam_size=2
    )
    found = texts(model(waves["utt3"], torch.tensor([2, 3])))
    assert texts(model(waves["utt3"], transcript=np.array([2, 3]))) == found
    for transcript, kind, message in (
        ("A B", TypeError, "transcript is of type str: give"),
        ([2, 3], TypeError, "transcript is of type list"),
        (np.array([0.5]), TypeError, "transcript is of type float64"),
        (torch.tensor([10**6]), ValueError, "transcript holds token ids from 1000000"),
    ):
        with pytest.raises(kind, match=message):
            model(waves["utt3"], transcript)


def test_a_transcript_for_a_model_without(model_of, waves):
    model = slu.Speech2Understand(**model_of("slu").files, beam_size=2)
    with pytest.raises(ValueError, match="trained without transcripts, and takes none"):
        model(waves["utt3"], torch.tensor([2]))
