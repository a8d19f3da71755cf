"""An inference object that nobody needs any more is freed, with its model."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from espnet2.bin.asr_inference import Speech2Text as EspnetSpeech2Text
from espnet2.tasks.asr import ASRTask

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch, Speech2Text
from espnet_lenbias import use_search as put_search
from espnet_lenbias.inference.asr_streaming import Speech2TextStreaming
from espnet_lenbias.inference.streaming import ChunkedRecognizer
from espnet_lenbias.report.explanation import explain
from tests.make_models import SPEECH, TOKENS, make_model

pytestmark = pytest.mark.slow

BLOCKS = {"block_size": 8, "hop_size": 4, "look_ahead": 2}
EXPLICIT = {"search": "explicit_length", "ctc_weight": 0.3, "beam_size": 3}


@pytest.fixture(scope="module")
def streaming_files(tmp_path_factory) -> dict[str, str]:
    """Write a model whose encoder takes audio block by block."""
    options = {
        **SPEECH,
        "encoder": "contextual_block_transformer",
        "encoder_conf": {**SPEECH["encoder_conf"], **BLOCKS},
    }
    folder = tmp_path_factory.mktemp("streaming") / "model"
    return make_model(folder, "asr", ASRTask, TOKENS, **options).files


def built(files: dict[str, str]) -> Speech2Text:
    return Speech2Text(**files, **EXPLICIT)


def references(model: EspnetSpeech2Text) -> list[weakref.ref]:
    """Return weak ones to an inference object and what it is made of."""
    parts = (model.asr_model, model.asr_model.decoder, model.beam_search)
    return [weakref.ref(x) for x in (model, *parts)]


def after_use_search(files, waves):
    model = EspnetSpeech2Text(**files, ctc_weight=0.3, beam_size=3)
    put_search(model, "explicit_length")(waves["utt1"])
    put_search(model, "simple")(waves["utt1"])
    return put_search(model, "espnet")


def after_a_batch(files, waves):
    model = built(files)
    model([waves["utt1"], waves["utt2"]])
    return model


def after_explain(files, waves):
    model = built(files)
    speech = torch.from_numpy(waves["utt1"].astype("float32"))
    explain(model, {"speech": speech}, "utt1")
    return model


@pytest.mark.parametrize("use", [after_use_search, after_a_batch, after_explain])
@pytest.mark.parametrize("kind", ["transformer_model", "rnn_model"])
def test_it_is_freed(use: Callable, kind: str, waves, request):
    model = use(request.getfixturevalue(kind).files, waves)
    gone = references(model)
    del model
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def test_it_is_freed_after_streaming(streaming_files, waves):
    model = Speech2TextStreaming(**streaming_files, **EXPLICIT)
    recognizer = ChunkedRecognizer(model, 800)
    recognizer(waves["utt5"])
    gone = references(model)
    del model, recognizer
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def test_searches_that_were_replaced_are_freed(transformer_model):
    """A server that changes the search with each request must not grow."""
    model = EspnetSpeech2Text(**transformer_model.files, ctc_weight=0.3, beam_size=3)
    for i in range(1000):
        put_search(model, "explicit_length", beam_size=2 + i % 7)
        put_search(model, "simple", beam_size=2 + i % 7)
    gc.collect()
    ours = (ExplicitLengthBeamSearch, SimpleBeamSearch)
    searches = [x for x in gc.get_objects() if type(x) in ours]
    scorers = {id(scorer) for scorer in model.beam_search.scorers.values()}
    mine = [
        search
        for search in searches
        if {id(scorer) for scorer in search.scorers.values()} & scorers
    ]
    assert mine == [model.beam_search]
