"""The batched RNN decoder against ESPnet's, asked for one hypothesis at a time."""

import pytest
import torch
from espnet2.asr.decoder.rnn_decoder import RNNDecoder

from espnet_lenbias.scorers import EncoderOutput, adapter_for, rnn_attention
from espnet_lenbias.scorers.fallback import SingleFallback
from espnet_lenbias.scorers.rnn import BatchedRNN
from tests.scorers.made import (
    ATTENTIONS,
    EOS,
    D,
    V,
    assert_same_scores,
    make_memory,
    make_rnn,
    walk,
)


def make_adapter(decoder):
    adapter = adapter_for("decoder", decoder, V, EOS)
    assert isinstance(adapter, BatchedRNN)
    return adapter


def scores_of(decoder, yseq, frames):
    """Return ESPnet's scores after a prefix, all of it run through from the start."""
    state = decoder.init_state(frames)
    for n in range(1, len(yseq) + 1):
        scores, state = decoder.score(yseq[:n], state, frames)
    return scores


def assert_espnets_scores(decoder, memory, steps):
    compared = 0
    for prefixes, result in steps:
        for utt, start, stop in prefixes.spans:
            for i in range(start, stop):
                theirs = scores_of(decoder, prefixes.yseq[i], memory.frames(utt))
                torch.testing.assert_close(result.scores[i], theirs, atol=1e-4, rtol=0)
                compared += 1
    assert compared > 20


@pytest.mark.parametrize("conf", [{}, {"rnn_type": "gru", "num_layers": 2}], ids=str)
@pytest.mark.parametrize("atype", ATTENTIONS)
def test_every_attention_gives_espnets_scores(atype, conf):
    decoder, memory = make_rnn(atype, **conf), make_memory()
    steps = walk(make_adapter(decoder), memory)
    assert_espnets_scores(decoder, memory, steps)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("aconv_filts", [0, 1, 2, 3, 30])
def test_filters_of_any_width(aconv_filts):
    """Those of frames few and many, beside the width of the filter."""
    decoder, memory = make_rnn(aconv_filts=aconv_filts), make_memory()
    width = 2 * aconv_filts + 1
    by_matrix = [n <= 2 * width for n in memory.lengths]
    assert any(by_matrix) == (aconv_filts > 0) and all(by_matrix) == (aconv_filts > 1)
    assert_espnets_scores(decoder, memory, walk(make_adapter(decoder), memory))


def test_a_convolution_as_a_matrix():
    # out[t] = w[0] x[t - 1] + w[1] x[t] + w[2] x[t + 1], for two filters
    weight = torch.tensor([[1.0, 2.0, 3.0], [5.0, 7.0, 11.0]])[:, None, None]
    assert rnn_attention.band_matrix(weight, 3).tolist() == [
        # each frame x reaches: channels of frame 0, of frame 1, of frame 2
        [2, 7, 1, 5, 0, 0],
        [3, 11, 2, 7, 1, 5],
        [0, 0, 3, 11, 2, 7],
    ]


@pytest.mark.parametrize("atype", ATTENTIONS)
def test_a_few_hypotheses_at_a_time_are_as_good_as_all(atype, monkeypatch):
    decoder, memory = make_rnn(atype), make_memory()
    monkeypatch.setitem(rnn_attention._ELEMENTS, "cpu", 2 * D * max(memory.lengths))
    steps = list(walk(make_adapter(decoder), memory))
    assert any(s.stop - s.start > 2 for prefixes, _ in steps for s in prefixes.spans)
    assert_espnets_scores(decoder, memory, steps)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("context_residual", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("rnn_type", ["lstm", "gru"])
def test_layers_give_the_scores_of_the_fallback(rnn_type, num_layers, context_residual):
    decoder = make_rnn(
        rnn_type=rnn_type, num_layers=num_layers, context_residual=context_residual
    )
    reference = SingleFallback(decoder, is_decoder=True, return_hs=False)
    assert_same_scores(make_adapter(decoder), reference)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("atype", ["noatt", "location", "coverage", "multi_head_loc"])
def test_all_labels_of_a_long_primer_are_heard(atype):
    decoder, memory = make_rnn(atype, num_layers=2), make_memory()
    steps = walk(make_adapter(decoder), memory, primer=(EOS, 3, 5))
    assert_espnets_scores(decoder, memory, steps)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("atype", ATTENTIONS)
def test_two_decodes_on_one_adapter_do_not_disturb_each_other(atype):
    adapter = make_adapter(make_rnn(atype))
    memories = [make_memory(seed) for seed in (0, 1)]
    alone = [[scores for _, (scores, *_) in walk(adapter, m)] for m in memories]
    together = zip(*(walk(adapter, m) for m in memories))
    for n, results in enumerate(together):
        for expected, (_, result) in zip(alone, results):
            assert torch.equal(result.scores, expected[n])
    assert not torch.allclose(alone[0][0], alone[1][0])


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("atype", ATTENTIONS)
def test_nothing_is_left_on_the_decoder(atype):
    decoder = make_rnn(atype)
    attention = decoder.att_list[0]
    before = dict(vars(attention))
    for _ in walk(make_adapter(decoder), make_memory()):
        pass
    assert all(vars(attention)[name] is value for name, value in before.items())
    assert vars(attention).keys() == before.keys()


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("atype", ["location", "coverage", "location_recurrent"])
def test_a_state_can_be_continued_twice(atype):
    """Some attentions change what they are given; the state must not be."""
    adapter, memory = make_adapter(make_rnn(atype)), make_memory()
    calls = []
    step = adapter.step
    adapter.step = lambda *args: calls.append(args) or step(*args)
    first = [result.scores for _, result in walk(adapter, memory)]
    for args, scores in zip(calls, first, strict=True):
        assert torch.equal(step(*args).scores, scores)


@pytest.mark.usefixtures("layout")
def test_frames_behind_an_utterance_do_not_count():
    adapter, memory = make_adapter(make_rnn()), make_memory()
    padding = torch.full((len(memory), 3, D), -7.0)
    longer = EncoderOutput(torch.cat([memory.x, padding], dim=1), memory.lengths)
    for (_, ours), (_, theirs) in zip(
        walk(adapter, memory), walk(adapter, longer), strict=True
    ):
        assert torch.equal(ours.scores, theirs.scores)


def test_decoder_of_several_encoders_is_left_to_the_fallback():
    n = 2
    att_conf = dict(
        atype=["dot"] * n,
        num_encs=n,
        aheads=[2] * n,
        adim=[8] * n,
        awin=[3] * n,
        aconv_chans=[3] * n,
        aconv_filts=[2] * n,
    )
    decoder = RNNDecoder(V, D, hidden_size=12, num_encs=n, att_conf=att_conf)
    assert isinstance(adapter_for("decoder", decoder, V, EOS), SingleFallback)


def test_hidden_states_are_left_to_the_fallback():
    adapter = adapter_for("decoder", make_rnn(), V, EOS, return_hs=True)
    assert isinstance(adapter, SingleFallback)
