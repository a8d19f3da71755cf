import math
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from espnet2.bin.asr_inference import Speech2Text as EspnetSpeech2Text
from espnet2.main_funcs.pack_funcs import pack

from espnet_lenbias import (
    ExplicitLengthBeamSearch,
    SimpleBeamSearch,
    Speech2Text,
    espnet_compat,
    use_search,
)
from espnet_lenbias.errors import AudioError, OptionError, ScorerError
from espnet_lenbias.espnet_compat import BatchBeamSearch, BeamSearch
from tests.releases import needs_batches, needs_espnet3

WITHOUT_CTC = (
    Path(__file__).parents[2] / "recipes/mini_librispeech/pretrained/asr_rnn.zip"
)
DECODING = {"beam_size": 4, "ctc_weight": 0.3, "nbest": 2}


def _texts(results):
    return [[hypothesis[0] for hypothesis in nbest] for nbest in results]


def _spy(search, monkeypatch) -> list[int]:
    """Return the dimensions of the encoder outputs that the search will be given."""
    dims = []
    forward = search.forward

    def forward_and_note(x, **kwargs):
        dims.append(x.dim())
        return forward(x, **kwargs)

    monkeypatch.setattr(search, "forward", forward_and_note)
    return dims


def test_the_search_is_chosen_by_name(transformer_model, waves):
    model = Speech2Text(
        **transformer_model.files,
        **DECODING,
        search="simple",
        search_conf={"length_norm": True},
    )
    assert isinstance(model, EspnetSpeech2Text)
    assert type(model.beam_search) is SimpleBeamSearch
    assert model.beam_search.options.length_norm is True
    assert model.beam_search.options.nbest == 2
    assert not model.beam_search.training
    _, tokens, ids, hypothesis = model(waves["utt1"])[0]
    assert len(tokens) == len(ids)
    assert isinstance(hypothesis.original_score, float)


def test_numbers_that_are_text(transformer_model, waves):
    # as a config has them for which a tool would do the same
    text = {"beam_size": "4", "ctc_weight": "3e-1", "nbest": "2", "maxlenratio": "0"}
    options = {"search": "simple", "search_conf": {"length_reward": "5e-1"}}
    model = Speech2Text(**transformer_model.files, **text, **options)
    search = model.beam_search
    assert (search.beam_size, model.nbest, search.weights["ctc"]) == (4, 2, 0.3)
    assert search.options.length_reward == 0.5
    options["search_conf"] = {"length_reward": 0.5}
    same = Speech2Text(**transformer_model.files, **DECODING, **options)
    assert _texts([model(waves["utt1"])]) == _texts([same(waves["utt1"])])
    use_search(model, "explicit_length", beam_size="7", nbest="3", score_threshold="8")
    assert (model.beam_search.beam_size, model.nbest) == (7, 3)
    assert model.beam_search.options.score_threshold == 8.0
    with pytest.raises(ValueError, match="beam_size must be a whole number"):
        use_search(model, "simple", beam_size=True)


def test_the_score_of_explicit_length_is_a_probability(transformer_model, waves):
    model = Speech2Text(**transformer_model.files, **DECODING, search="explicit_length")
    assert type(model.beam_search) is ExplicitLengthBeamSearch
    results = model(waves["utt1"])
    assert len(results) == 2
    assert results[1][3].score <= results[0][3].score <= 0


@pytest.mark.parametrize("choice", [{}, {"search": "espnet"}], ids=str)
def test_without_a_search_the_model_is_espnets_own(choice, transformer_model, waves):
    ours = Speech2Text(**transformer_model.files, **DECODING, **choice)
    espnets = EspnetSpeech2Text(**transformer_model.files, **DECODING)
    assert type(ours.beam_search) is BatchBeamSearch
    for wave in waves.values():
        assert _texts([ours(wave)]) == _texts([espnets(wave)])


@needs_batches
@pytest.mark.parametrize("which", ["transformer_model", "rnn_model"])
@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_a_list_is_decoded_as_one_batch(which, search, waves, monkeypatch, request):
    files = request.getfixturevalue(which).files
    # ESPnet's own search cannot batch the RNN decoder and refuses this batch size.
    model = Speech2Text(**files, **DECODING, search=search, batch_size=2)
    assert model.batch_size == 2
    utterances = [waves["utt3"]] * 2  # no padding, which changes the encoder's output
    dims = _spy(model.beam_search, monkeypatch)
    batched = model(utterances)
    assert dims == [3]
    alone = model(waves["utt3"])
    assert dims == [3, 2]
    assert _texts(batched) == _texts([alone] * 2)
    scores = [hypothesis[3].score for hypothesis in alone]
    for nbest in batched:
        assert [hypothesis[3].score for hypothesis in nbest] == pytest.approx(
            scores, abs=1e-3
        )


def test_one_by_one_where_espnet_decodes_no_batches():
    class Echo(espnet_compat.OneByOne):
        def __call__(self, wave):
            return [wave]

    assert Echo().batch_decode([[1], [2, 3]]) == [[[1]], [[2, 3]]]
    assert Echo().batch_decode([[1, 0], [2, 3]], [1, 2]) == [[[1]], [[2, 3]]]


def test_use_search_keeps_what_espnet_has_set_up(transformer_model, waves):
    model = EspnetSpeech2Text(**transformer_model.files, **DECODING, penalty=0.1)
    own = model.beam_search
    own.set_hyp_primer([own.sos, 5])
    before = _texts([model(waves["utt2"])])

    assert use_search(model, "explicit_length", score_threshold=8.0) is model
    new = model.beam_search
    assert type(new) is ExplicitLengthBeamSearch
    assert new.options.score_threshold == 8.0
    assert new.options.nbest == 2
    assert new.weights == own.weights
    assert new.scorers == own.scorers
    for name in ("sos", "eos", "n_vocab", "beam_size", "pre_beam_size", "hyp_primer",
                 "token_list", "pre_beam_score_key", "do_pre_beam"):  # fmt: skip
        assert getattr(new, name) == getattr(own, name), name
    assert len(use_search(model, "simple", nbest=1)(waves["utt2"])) == 1

    use_search(model, "espnet")
    assert type(model.beam_search) is BatchBeamSearch
    assert _texts([model(waves["utt2"])]) == before


@pytest.mark.parametrize("beam_size", [3, 7, 60])
def test_use_search_keeps_the_pre_beam_size(transformer_model, beam_size):
    model = EspnetSpeech2Text(**transformer_model.files, beam_size=beam_size)
    own = model.beam_search.pre_beam_size
    assert use_search(model, "simple").beam_search.pre_beam_size == own


def test_use_search_can_change_the_beam(transformer_model):
    model = EspnetSpeech2Text(**transformer_model.files, beam_size=4, ctc_weight=0.3)
    search = use_search(model, "explicit_length", beam_size=10).beam_search
    assert (search.beam_size, search.pre_beam_size) == (10, 15)  # ratio 1.5, ESPnet's


def test_use_search_espnet_chooses_as_espnet_does(rnn_model):
    model = Speech2Text(**rnn_model.files, **DECODING, search="simple")
    assert type(use_search(model, "espnet").beam_search) is BeamSearch


@pytest.mark.parametrize(
    "options, message",
    [
        ({"search": "simpel"}, "no search 'simpel'; did you mean simple"),
        ({"search_conf": {"eos_threshold": 1.5}}, "an option of search: simple"),
        ({"normalize_length": True}, "normalize_length does not go with"),
        ({"streaming": True}, "streaming: .* does not go with"),
        ({"time_sync": True}, "time_sync: .* does not go with"),
        ({"search_conf": ["nbest"]}, "search_conf must be a mapping"),
        ({"search_conf": {"nbest": 4}}, "asks for nbest 4, .* set nbest to 4 there"),
        ({"search_conf": {"nbest": 4}, "nbest": 3}, "set nbest to 4 there"),
        ({"beam_size": 0}, "beam_size must be a whole number of 1 or more, not 0"),
        ({"beam_size": 2**63}, "beam_size must be 2147483647 at most, not 9223372036"),
        ({"ctc_weight": -0.1}, "ctc_weight must be from 0 to 1"),
        ({"ctc_weight": 1.1}, "ctc_weight must be from 0 to 1"),
        ({"minlenratio": 0.5, "maxlenratio": 0.4}, "minlenratio 0.5 asks for a longer"),
        ({"minlenratio": 1.1}, "than maxlenratio 0.0 allows"),
        ({"minlenratio": -5, "maxlenratio": -4}, "than maxlenratio -4 allows"),
        ({"dtype": "f4"}, "dtype must be one of .*float32.*, not 'f4'"),
        ({"dtype": torch.float32}, "dtype must be one of .*, not torch.float32"),
        ({"device": "mars"}, "device 'mars' cannot be used here, but one of 'cpu'"),
        ({"device": "meta"}, "device 'meta' cannot be used here"),
        ({"device": None}, "device None cannot be used here"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here"),
        ({"normalize_length": "maybe"}, "normalize_length must be true or false"),
        ({"max_seq_len": "many"}, "max_seq_len must be a whole number, not 'many'"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_mistakes_show_before_a_model_is_loaded(options, message, packed):
    options = {"search": "explicit_length", **options}
    with pytest.raises(ValueError, match=message):
        if packed:
            Speech2Text.from_pretrained("no-such-model.zip", **options)
        else:
            Speech2Text("no-such-config.yaml", "no-such-model.pth", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"minlenratio": 0.4, "maxlenratio": 0.4},
        {"minlenratio": 1.0},
        {"minlenratio": -4, "maxlenratio": -4},
        {"minlenratio": -9, "maxlenratio": 0.1},  # which is longer depends on the audio
        {"ctc_weight": 1},
        {"search_conf": {"nbest": 2}, "nbest": 2},
    ],
)
def test_options_that_only_look_wrong(options):
    with pytest.raises(
        OptionError, match="^asr_train_config: there is no file no-such.yaml"
    ):
        Speech2Text("no-such.yaml", "no-such.pth", search="simple", **options)


@pytest.mark.parametrize("build", [Speech2Text, Speech2Text.from_pretrained])
def test_keywords_that_are_none(build):
    with pytest.raises(TypeError) as e:
        build("no-such-model.zip", search="explicit_length", score_threshold=8.0)
    assert str(e.value) == (
        "score_threshold is an option of search: explicit_length: say "
        "search_conf={'score_threshold': 8.0}"
    )
    with pytest.raises(TypeError, match="no option beamsize; did you mean beam_size?"):
        build("no-such-model.zip", beamsize=4)


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_a_model_without_ctc(search):
    """ESPnet's default ctc_weight is 0.5."""
    message = "ctc_weight is 0.5, and the model has no CTC: set ctc_weight: 0.0"
    with pytest.raises(OptionError, match=message):
        Speech2Text.from_pretrained(str(WITHOUT_CTC), search=search)


@pytest.mark.parametrize(
    "prompt",
    [{"lang_prompt_token": "<|en|>"}, {"nlp_prompt_token": "x"}, {"lid_prompt": True}],
)
def test_a_prompt_for_a_model_that_takes_none(prompt, transformer_model):
    with pytest.raises(OptionError, match=f"{next(iter(prompt))}: only Whisper models"):
        Speech2Text(**transformer_model.files, **prompt)


@pytest.mark.parametrize("key", ["quantize_asr_model", "quantize_lm"])
@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_quantized_weights_are_refused_before_a_model_is_loaded(key, search):
    for options in ({"dtype": "float64"}, {"device": "cuda"}):
        with pytest.raises(ValueError, match=f"{key}: torch multiplies quantized"):
            Speech2Text("no.yaml", "no.pth", search=search, **{key: True}, **options)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_ctc_in_any_precision_but_with_espnets_search(dtype, transformer_model, waves):
    options = {**transformer_model.files, "ctc_weight": 0.3, "beam_size": 2}
    options |= {"dtype": dtype, "maxlenratio": -3}
    model = Speech2Text(**options, search="explicit_length")
    assert model(waves["utt1"])
    if dtype == "float16":
        with pytest.raises(OptionError, match="CTC scores in float16: leave dtype out"):
            Speech2Text(**options)
    else:
        assert Speech2Text(**options)(waves["utt1"])
    assert Speech2Text(**{**options, "ctc_weight": 0.0})(waves["utt1"])


def test_use_search_on_a_model_without_ctc(transformer_model):
    model = EspnetSpeech2Text(**transformer_model.files, ctc_weight=0.3)
    model.beam_search.scorers["ctc"].ctc = None
    with pytest.raises(ValueError, match="ctc_weight is 0.3, and the model has no CTC"):
        use_search(model, "explicit_length")


def test_use_search_returns_as_many_as_it_is_told(transformer_model, waves):
    model = EspnetSpeech2Text(**transformer_model.files, ctc_weight=0.3)
    assert len(use_search(model, "simple")(waves["utt2"])) == 1
    assert len(use_search(model, "simple", nbest=3)(waves["utt2"])) == 3


def test_use_search_refuses_normalize_length(transformer_model):
    model = EspnetSpeech2Text(**transformer_model.files, normalize_length=True)
    with pytest.raises(ValueError, match="say length_norm: true in search_conf"):
        use_search(model, "simple")


@pytest.mark.parametrize("option", ["time_sync", "streaming"])
def test_use_search_refuses_other_kinds_of_decoding(transformer_model, option):
    files = transformer_model.files
    model = EspnetSpeech2Text(**files, ctc_weight=0.5, **{option: True})
    name = type(model.beam_search).__name__
    with pytest.raises(
        OptionError, match=f"its search is {name}; build the model without"
    ):
        use_search(model, "explicit_length")


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"beam_search_transducer": object()}, "it is a transducer"),
        ({"hugging_face_model": object()}, "Hugging Face generation"),
        ({}, "it has no beam search"),
    ],
)
def test_use_search_refuses_models_without_beam_search(attributes, message):
    model = SimpleNamespace(beam_search=None, nbest=1, **attributes)
    with pytest.raises(OptionError, match=message):
        use_search(model, "explicit_length")


def test_use_search_refuses_what_is_no_model():
    with pytest.raises(TypeError, match="takes an inference object .*, not NoneType"):
        use_search(None, "explicit_length")


# --- Audio that cannot be decoded -----------------------------------------------------

BROKEN = {
    "empty": np.zeros(0),
    "one sample": np.ones(1),
    "too short for the subsampling": np.ones(400),  # 6 frames of the 7 it needs
    "NaN": np.array([0.1] * 2000 + [np.nan]),
    "infinity": np.array([np.inf] + [0.1] * 2000),
}
MESSAGES = {
    "empty": "the audio is empty",
    "one sample": "the audio is too short for the encoder: 1 samples",
    "too short for the subsampling": "too short for the encoder: 400 samples",
    "NaN": "the audio holds NaN or infinity",
    "infinity": "the audio holds NaN or infinity",
}


OURS = [
    ("transformer_model", "explicit_length"),
    ("rnn_model", "explicit_length"),
]

# ESPnet's search takes NaN for a score.
ours_alone = pytest.mark.parametrize("recogniser", OURS, ids="-".join, indirect=True)


@pytest.fixture(
    scope="module", params=[*OURS, ("transformer_model", "espnet")], ids="-".join
)
def recogniser(request):
    model, search = request.param
    files = request.getfixturevalue(model).files
    return Speech2Text(**files, **DECODING, search=search)


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_one_utterance_is_an_error_that_says_what_it_is(recogniser, what, kind):
    with pytest.raises(AudioError, match=MESSAGES[what]):
        recogniser(kind(BROKEN[what]))


@pytest.mark.parametrize(
    "what, kind, message",
    [
        ("a.flac", TypeError, "is a str: give its samples, an array or a tensor"),
        (None, TypeError, "is a NoneType: "),
        (np.float32(0.1), TypeError, "is a float32: "),
        (
            torch.zeros(1, 4000),
            AudioError,
            r"is of shape \(1, 4000\): give \(samples,\)",
        ),
    ],
    ids=["a name", "nothing", "a sample", "a row"],
)
def test_what_is_no_audio(what, kind, message, transformer_model):
    speech2text = Speech2Text(**transformer_model.files, search="simple", beam_size=2)
    with pytest.raises(kind, match=f"^the audio {message}"):
        speech2text(what)
    with pytest.raises(kind, match=f"^utterance 1 of the list {message}"):
        speech2text([np.zeros(4000), what])


@pytest.mark.parametrize("what", BROKEN)
def test_in_a_list_it_has_the_empty_text(recogniser, what, waves):
    # of the same length, so that no padding changes the encoder's output
    sound = [waves["utt3"], waves["utt3"]]
    alone = recogniser(sound[0])
    for place in (0, 1, 2):
        results = recogniser([*sound[:place], BROKEN[what], *sound[place:]])
        (nothing,) = results.pop(place)
        assert nothing[:3] == ("", [], [])
        assert getattr(nothing[3], "steps", 0) == 0
        assert nothing[3].score.item() == -math.inf  # none is better, and it comes last
        for score in nothing[3].scores.values():  # as published code reads them
            assert float(score.cpu()) == -math.inf
        traces = getattr(recogniser.beam_search, "trace", None)
        if traces is not None:
            assert [t.stopped == "empty" for t in traces] == [
                i == place for i in range(3)
            ]
        assert _texts(results) == _texts([alone, alone])


def test_integers_are_scaled_whatever_searches(recogniser, waves, caplog):
    """As the audio files of 16 bits that they come from, alone, in lists and arrays."""
    floats = waves["utt3"]
    integers = np.round(np.asarray(floats) * 2**15).astype(np.int16)
    expected = _texts([recogniser(integers / np.float32(2**15))])
    assert _texts([recogniser(integers)]) == expected
    assert _texts(recogniser([integers, integers])) == 2 * expected
    padded = torch.tensor(np.stack([integers, integers]))
    assert _texts(recogniser.batch_decode(padded, [len(integers)] * 2)) == 2 * expected
    assert not caplog.messages or "beyond -1 to 1" not in "".join(caplog.messages)


@ours_alone
def test_audio_that_the_encoder_makes_nothing_of(recogniser, waves, caplog):
    """Too large for its numbers: in a list it costs no other its text."""
    huge = np.asarray(waves["utt3"]) * 1e30
    nothing, something = recogniser([huge, waves["utt3"]])
    assert nothing[0][:3] == ("", [], [])
    assert _texts([something]) == _texts([recogniser(waves["utt3"])])
    assert "utterance 0 of the list: the encoder makes NaN or infinity" in caplog.text


def test_a_list_of_nothing_else(recogniser, caplog):
    results = recogniser(list(BROKEN.values()))
    assert [nbest[0][0] for nbest in results] == [""] * len(BROKEN)
    said = "\n".join(caplog.messages)
    for place, message in enumerate(MESSAGES.values()):
        assert f"utterance {place} of the list: " in said and message in said


@pytest.mark.parametrize("what", BROKEN)
def test_in_a_padded_array_it_is_an_error(recogniser, what, waves):
    good, broken = torch.tensor(waves["utt3"]), torch.tensor(BROKEN[what])
    if what in ("empty", "NaN", "infinity"):
        padded = torch.nn.utils.rnn.pad_sequence([good, broken], batch_first=True)
        lengths = [len(good), len(broken)]
        message = "utterance 1 of the batch " + MESSAGES[what].removeprefix(
            "the audio "
        )
    else:
        padded, lengths, message = broken[None], [len(broken)], MESSAGES[what]
    with pytest.raises(AudioError, match=message):
        recogniser.batch_decode(padded, lengths)
    for result in recogniser.batch_decode(torch.stack([good, good]), [len(good)] * 2):
        assert _texts([result]) == _texts([recogniser(waves["utt3"])])


def test_an_empty_list(recogniser):
    assert recogniser([]) == []


@pytest.mark.parametrize(
    "n_samples, error", [(400, ScorerError), (7000, ScorerError), (7000, RuntimeError)]
)
def test_other_errors_are_not_put_down_to_the_audio(
    recogniser, n_samples, error, monkeypatch
):
    def break_down(*batch, **more):
        raise error("something else")

    monkeypatch.setattr(recogniser.asr_model, "encode", break_down)
    for speech in (np.ones(n_samples), [np.ones(n_samples)] * 2):
        with pytest.raises(error, match="something else"):
            recogniser(speech)


@ours_alone
def test_nan_from_the_encoder_is_not_put_down_to_a_scorer(recogniser):
    search = recogniser.beam_search
    x = torch.zeros(2, 4, 16)
    x[1, 2, 5] = torch.nan
    with pytest.raises(ScorerError, match="encoder output of utterance 1 .* the audio"):
        search(x, x_lengths=torch.tensor([4, 4]))


@pytest.fixture
def packed_model(transformer_model, tmp_path, monkeypatch):
    """Pack the model as ESPnet does, with a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(transformer_model.config.parent)
    archive = tmp_path / "packed.zip"
    pack(
        files={"asr_model_file": transformer_model.weights},
        yaml_files={"asr_train_config": transformer_model.config},
        outpath=archive,
    )
    monkeypatch.chdir(tmp_path)
    return archive


def test_from_pretrained_takes_a_packed_zip(packed_model, transformer_model, waves):
    model = Speech2Text.from_pretrained(str(packed_model), **DECODING, search="simple")
    assert type(model) is Speech2Text
    assert type(model.beam_search) is SimpleBeamSearch
    direct = Speech2Text(**transformer_model.files, **DECODING, search="simple")
    assert _texts([model(waves["utt1"])]) == _texts([direct(waves["utt1"])])


def test_a_packed_zip_is_unpacked_once(packed_model, tmp_path):
    from espnet_lenbias.options.packed_model import unpack_model

    files = unpack_model(packed_model)
    assert set(files) == {"asr_train_config", "asr_model_file"}
    (weights,) = (tmp_path / "cache").rglob("model.pth")
    written = weights.stat().st_mtime_ns
    moved = packed_model.rename(tmp_path / "renamed.zip")  # the content counts
    assert unpack_model(moved) == files
    assert weights.stat().st_mtime_ns == written
    # a folder that was left half unpacked is not trusted
    (listing,) = (tmp_path / "cache").rglob(".files.json")
    listing.unlink()
    weights.write_bytes(b"half")
    assert unpack_model(moved) == files
    assert weights.stat().st_size > 4
    weights.unlink()  # nor one that has lost a file
    assert unpack_model(moved) == files
    assert weights.is_file()


@pytest.mark.parametrize(
    "layout, more",
    [("espnet2.legacy.nets", []), ("espnet.nets", ["encoder.embed.out.0.weight"])],
)
def test_layers_have_the_names_of_an_older_release_too(
    layout, more, tmp_path, monkeypatch
):
    monkeypatch.setattr(espnet_compat, "_layout", lambda: layout)
    model = tmp_path / "model.pth"
    names = ["encoder.embed.out.weight", "decoder.embed.0.weight"]
    torch.save(dict.fromkeys(names, torch.ones(2)), model)
    espnet_compat.add_older_names(model)
    assert set(torch.load(model)) == {*names, *more}


def test_releases_share_no_unpacked_model(packed_model, monkeypatch):
    """Else one would change it under the hands of the other."""
    from espnet_lenbias.options.packed_model import unpack_model

    here = Path(unpack_model(packed_model)["asr_model_file"])
    content = here.read_bytes()
    monkeypatch.setattr(espnet_compat, "_layout", lambda: "espnet.nets")
    there = Path(unpack_model(packed_model)["asr_model_file"])
    assert "encoder.embed.out.0.weight" in torch.load(there)
    assert here.read_bytes() == content


def test_from_pretrained_without_a_tag_takes_the_files(rnn_model):
    model = Speech2Text.from_pretrained(**rnn_model.files, **DECODING)
    assert type(model) is Speech2Text


def test_from_pretrained_hands_a_tag_to_the_model_zoo(rnn_model, monkeypatch):
    asked = []

    def download(tag):
        asked.append(tag)
        return rnn_model.files

    monkeypatch.setattr("espnet_lenbias.espnet_compat.download_pretrained", download)
    assert type(Speech2Text.from_pretrained("someone/some_model")) is Speech2Text
    assert asked == ["someone/some_model"]


@pytest.mark.parametrize(
    "tag, message",
    [
        ("", "model_tag: '' is no name of a model: give the name"),
        (3, "model_tag: 3 is no name of a model"),
        (b"a", "model_tag: b'a' is no name of a model"),
        (
            "/",
            "model_tag: / is a folder: .* named by its files, such as asr_train_confi",
        ),
        (Path("/"), "model_tag: / is a folder"),
        ("/dev/null", "model_tag: /dev/null is a pipe or a device"),
        (
            "https://a.invalid/b.zip",
            "no model https://a.invalid/b.zip .OSError: no net",
        ),
        (
            "a/b",
            r"model_tag: the model zoo gives no model a/b \(OSError: no net\): give",
        ),
    ],
)
def test_names_of_no_model(tag, message, monkeypatch):
    def download(tag):
        raise OSError("no\nnet")

    monkeypatch.setattr(espnet_compat, "download_pretrained", download)
    with pytest.raises(OptionError, match=message) as e:
        Speech2Text.from_pretrained(tag, search="simple")
    assert "\n" not in str(e.value)


def test_unusable_archives_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*gone.zip"):
        Speech2Text.from_pretrained(str(tmp_path / "gone.zip"))
    (tmp_path / "text.zip").write_text("not a zip")
    with pytest.raises(ValueError, match="text.zip is not a zip archive"):
        Speech2Text.from_pretrained(str(tmp_path / "text.zip"))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="other.zip holds no meta.yaml"):
        Speech2Text.from_pretrained(str(tmp_path / "other.zip"))


@needs_espnet3
def test_espnet3_builds_it_from_a_recipe_config(transformer_model, waves):
    from espnet3.systems.base.inference_provider import InferenceProvider

    config = yaml.safe_load(
        """
        device: cpu
        model:
          _target_: espnet_lenbias.Speech2Text
          search: explicit_length
          search_conf: {score_threshold: 8.0}
          beam_size: 4
          ctc_weight: 0.3
        """
    )
    config["model"] |= transformer_model.files
    model = InferenceProvider.build_model(config)
    assert type(model) is Speech2Text
    assert model.beam_search.options.score_threshold == 8.0
    # its runner hands over lists
    assert len(model(speech=[waves["utt1"], waves["utt2"]])) == 2


def test_dtype_is_the_models(transformer_model):
    model = Speech2Text(
        **transformer_model.files, dtype="float64", search="explicit_length"
    )
    assert {p.dtype for p in model.beam_search.parameters()} == {torch.float64}


@pytest.mark.parametrize("search", ["espnet", "simple", "explicit_length"])
def test_beam_size_and_nbest_may_be_set_at_any_time(search, transformer_model, waves):
    """As in ESPnet's objects, where user code sets them."""
    options = {"ctc_weight": 0.0, "maxlenratio": -6.0, "search": search}
    wanted = Speech2Text(**transformer_model.files, **options, beam_size=8, nbest=3)
    model = Speech2Text(**transformer_model.files, **options, beam_size=2)
    assert len(model(waves["utt1"])) == 1
    for wrong in (0, -1, None, 1.5, "many"):
        with pytest.raises(
            ValueError, match="nbest must be a whole number of 1 or more"
        ):
            model.nbest = wrong
    model.nbest = "3"
    model.beam_search.beam_size = 8
    found = model(waves["utt1"])
    assert len(found) == 3
    assert [x[2] for x in found] == [x[2] for x in wanted(waves["utt1"])]
    if search != "espnet":
        model.beam_search.beam_size = "8"
        assert [x[2] for x in model(waves["utt1"])] == [x[2] for x in found]


@pytest.mark.parametrize("beam_size", [2, 8, 20])
def test_a_beam_size_that_is_set_has_its_own_pre_beam(
    beam_size, transformer_model, waves
):
    """Where ESPnet's objects keep that of the beam size that they are built with."""
    options = {"ctc_weight": 0.3, "maxlenratio": -6.0, "search": "explicit_length"}
    wanted = Speech2Text(**transformer_model.files, **options, beam_size=beam_size)
    model = Speech2Text(**transformer_model.files, **options, beam_size=4)
    model.beam_search.beam_size = beam_size
    for wave in waves.values():
        [(_, _, ids, hyp)], [(_, _, found, other)] = wanted(wave), model(wave)
        assert (ids, hyp.score) == (found, pytest.approx(other.score))
    search, like = model.beam_search, wanted.beam_search
    assert search.pre_beam_size == like.pre_beam_size
    assert search.do_pre_beam == like.do_pre_beam


def test_a_penalty_changes_no_text_of_explicit_length(transformer_model, waves, caplog):
    """It is the same for all hypotheses of a position; simple search compares others."""
    options = {"ctc_weight": 0.0, "maxlenratio": -6.0, "beam_size": 30}
    for search, warns in (("simple", False), ("explicit_length", True)):
        texts = []
        for penalty in (0.0, -7.0):
            caplog.clear()
            model = Speech2Text(
                **transformer_model.files, **options, search=search, penalty=penalty
            )
            said = "penalty adds the same to all hypotheses" in caplog.text
            assert said == (warns and penalty != 0)
            texts.append([model(wave)[0][2] for wave in waves.values()])
        assert (texts[0] == texts[1]) == warns
