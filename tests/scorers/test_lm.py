"""The batched language models against ESPnet's."""

import pytest
import torch
from espnet2.lm.seq_rnn_lm import SequentialRNNLM
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias.espnet_compat import MultiHeadedAttention
from espnet_lenbias.scorers import Prefixes, Selection, adapter_for
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.scorers.fallback import BatchFallback
from espnet_lenbias.scorers.lm import BatchedRNNLM, CachedTransformerLM
from tests.scorers.made import (
    EOS,
    V,
    assert_same_scores,
    make_memory,
    sharpened,
    walk,
)

RNNS = [
    {"rnn_type": rnn_type, **conf}
    for rnn_type in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    for conf in ({"nlayers": 1}, {"nlayers": 2, "nhid": 9})
]
TRANSFORMERS = [{}, {"pos_enc": "sinusoidal"}, {"layer": 1, "head": 1}]


def make_rnn(**conf):
    torch.manual_seed(3)
    return sharpened(SequentialRNNLM(V, **{"unit": 12, **conf}))


def make_transformer(**conf):
    torch.manual_seed(3)
    conf = {"embed_unit": 6, "att_unit": 8, "unit": 10, "layer": 2, **conf}
    return sharpened(TransformerLM(V, **conf))


def fallback(lm):
    return BatchFallback(lm, is_decoder=False, return_hs=False)


@pytest.mark.parametrize("conf", [*RNNS, {"tie_weights": True}], ids=str)
def test_rnn_lm_gives_the_scores_of_the_fallback(conf):
    lm = make_rnn(**conf)
    adapter = adapter_for("lm", lm, V, EOS)
    assert isinstance(adapter, BatchedRNNLM)
    assert_same_scores(adapter, fallback(lm))


@pytest.mark.parametrize("conf", RNNS, ids=str)
def test_rnn_lm_hears_all_labels_of_a_long_primer(conf):
    lm = make_rnn(**conf)
    for prefixes, result in walk(BatchedRNNLM(lm), make_memory(), primer=(EOS, 3, 5)):
        expected = lm(prefixes.yseq, None)[0][:, -1].log_softmax(dim=-1)
        torch.testing.assert_close(result.scores, expected, atol=1e-4, rtol=0)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("primer", [(EOS,), (EOS, 3, 5)], ids=["sos", "long primer"])
@pytest.mark.parametrize("conf", TRANSFORMERS, ids=str)
def test_transformer_lm_gives_the_scores_of_the_fallback(conf, primer):
    lm = make_transformer(**conf)
    adapter = adapter_for("lm", lm, V, EOS)
    assert isinstance(adapter, CachedTransformerLM)
    # enough steps for the cache to grow
    assert_same_scores(adapter, fallback(lm), primer=primer, steps=12)


def test_transformer_lm_without_normalization_before_gives_the_same_scores():
    lm = make_transformer()
    lm.encoder.normalize_before = False
    for layer in lm.encoder.encoders:
        layer.normalize_before = False
    assert_same_scores(CachedTransformerLM(lm), fallback(lm))


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("primer", [[EOS], [0], [0, 0, 4]], ids=str)
def test_transformer_lm_attends_to_no_padding(primer):
    """ESPnet's LM takes label 0 for padding wherever it is, even all of a prefix."""
    lm, memory = make_transformer(), make_memory().take([0])
    adapters = [CachedTransformerLM(lm), fallback(lm)]
    states = [adapter.start(memory) for adapter in adapters]
    yseq, spans = torch.tensor([primer]), make_spans([0], [1])
    for label in (0, 3, 0, 0, 2):
        results = []
        for i, adapter in enumerate(adapters):
            results.append(adapter.step(states[i], Prefixes(yseq, spans, len(primer))))
            first = torch.tensor([0])
            chosen = Selection(first, first, torch.tensor([label]), spans)
            states[i] = adapter.select(results[i].state, chosen)
        ours, theirs = results
        torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-4, rtol=0)
        yseq = torch.cat([yseq, torch.tensor([[label]])], dim=1)


@pytest.mark.parametrize("make", [make_rnn, make_transformer])
def test_two_decodes_on_one_adapter_do_not_disturb_each_other(make):
    adapter = adapter_for("lm", make(), V, EOS)
    memory, primers = make_memory(), [(EOS,), (4,)]
    alone = [[r.scores for _, r in walk(adapter, memory, primer=p)] for p in primers]
    together = zip(*(walk(adapter, memory, primer=p) for p in primers))
    for n, results in enumerate(together):
        for expected, (_, result) in zip(alone, results):
            assert torch.equal(result.scores, expected[n])


def test_transformer_lm_of_other_layers_is_left_to_the_fallback():
    class OtherAttention(MultiHeadedAttention):
        pass

    lm = make_transformer()
    lm.encoder.encoders[0].self_attn = OtherAttention(2, 8, 0.0)
    assert isinstance(adapter_for("lm", lm, V, EOS), BatchFallback)
