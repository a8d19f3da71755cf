"""Every fast adapter against the fallback, which asks ESPnet's scorer as ESPnet does."""

from itertools import pairwise

import pytest
import torch
from espnet2.asr.ctc import CTC
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.transformer_decoder import (
    DynamicConvolutionTransformerDecoder,
    TransformerDecoder,
)

from espnet_lenbias.espnet_compat import (
    CTCPrefixScorer,
    LengthBonus,
    ScaledPositionalEncoding,
)
from espnet_lenbias.scorers import EncoderOutput, adapter_for
from espnet_lenbias.scorers.bonus import Bonus
from espnet_lenbias.scorers.ctc import CTCPrefix
from espnet_lenbias.scorers.fallback import BatchFallback, SingleFallback
from espnet_lenbias.scorers.transformer import CachedTransformer
from tests.scorers.made import (
    EOS,
    D,
    V,
    assert_same_scores,
    make_memory,
    sharpened,
    walk,
)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"normalize_before": False},
        {"concat_after": True},
        {"concat_after": True, "normalize_before": False},
        {"qk_norm": True},
        {"pos_enc_class": ScaledPositionalEncoding},
        {"num_blocks": 1, "attention_heads": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("primer", [(EOS,), (EOS, 3, 5)], ids=["sos", "long primer"])
def test_cached_transformer_gives_the_scores_of_the_fallback(conf, primer):
    torch.manual_seed(3)
    conf = {"attention_heads": 2, "linear_units": 24, "num_blocks": 2, **conf}
    decoder = sharpened(TransformerDecoder(V, D, **conf))
    adapter = adapter_for("decoder", decoder, V, EOS, return_hs=True)
    assert isinstance(adapter, CachedTransformer)
    reference = BatchFallback(decoder, is_decoder=True, return_hs=True)
    assert_same_scores(adapter, reference, primer=primer)


def test_decoder_of_other_layers_is_left_to_the_fallback():
    decoder = DynamicConvolutionTransformerDecoder(
        V, D, 2, 24, 1, conv_wshare=2, conv_kernel_length=[3]
    )
    assert isinstance(adapter_for("decoder", decoder, V, EOS), BatchFallback)


def test_batch_fallback_gives_the_scores_of_espnets_single_score():
    torch.manual_seed(3)
    decoder = sharpened(TransformerDecoder(V, D, 2, 24, 2))
    assert_same_scores(
        BatchFallback(decoder, is_decoder=True, return_hs=False),
        SingleFallback(decoder, is_decoder=True, return_hs=False),
    )


def test_batch_fallback_asks_scorers_without_mask_one_utterance_at_a_time():
    """A scorer that attends to all frames it is given must be given no padding."""

    class Mean(LengthBonus):
        def batch_score(self, ys, states, xs):
            return xs.mean(dim=(1, 2)).unsqueeze(1).expand(-1, V), None

    memory = make_memory()
    means = torch.stack([memory.frames(b).mean() for b in range(3)])
    adapter = BatchFallback(Mean(V), is_decoder=True, return_hs=False)
    for prefixes, result in walk(adapter, memory):
        utts = torch.tensor([u for u, lo, hi in prefixes.spans for _ in range(lo, hi)])
        torch.testing.assert_close(result.scores[:, 0], means[utts])


@pytest.mark.parametrize(
    "atype", ["dot", "add", "location", "coverage", "coverage_location"]
)
def test_single_fallback_is_reentrant_for_rnn_decoders(atype):
    """Attentions that keep their utterance on themselves see each with its own frames."""
    torch.manual_seed(3)
    att = dict(atype=atype, num_att=1, adim=8, aconv_chans=3, aconv_filts=2)
    decoder = sharpened(RNNDecoder(V, D, hidden_size=12, att_conf=att))
    memory = make_memory()
    together = SingleFallback(decoder, is_decoder=True, return_hs=False)
    for prefixes, result in walk(together, memory):
        for utt, start, stop in prefixes.spans:
            frames = memory.frames(utt)
            for i in range(start, stop):
                y = prefixes.yseq[i]
                state = decoder.init_state(frames)
                for n in range(1, len(y) + 1):
                    score, state = decoder.score(y[:n], state, frames)
                torch.testing.assert_close(result.scores[i], score, atol=1e-4, rtol=0)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("wanted", [None, 6])
@pytest.mark.parametrize("primer", [(EOS,), (EOS, 3, 5)], ids=["sos", "long primer"])
def test_ctc_gives_the_scores_of_espnets_exact_recursion(wanted, primer):
    """ESPnet's numpy implementation, one hypothesis at a time, is the reference."""
    torch.manual_seed(3)
    ctc = sharpened(CTC(V, D))
    adapter = adapter_for("ctc", CTCPrefixScorer(ctc, EOS), V, EOS)
    assert isinstance(adapter, CTCPrefix)
    memory = make_memory()
    compared = 0
    for prefixes, result in walk(adapter, memory, primer=primer, wanted=wanted):
        for utt, start, stop in prefixes.spans:
            for i in range(start, stop):
                y = prefixes.yseq[i, len(primer) - 1 :]
                expected = ctc_scores(ctc, memory.frames(utt), y)
                if expected is None:  # a search never keeps such a prefix
                    continue
                asked = result.scores[i] > -torch.inf
                assert asked[EOS] or expected[EOS] < -1e9
                most = V if wanted is None else wanted + 1
                impossible = int((expected < -1e9).sum())
                assert most - impossible <= int(asked.sum()) <= most
                close = torch.isclose(result.scores[i], expected, atol=1e-4, rtol=0)
                assert bool(close[asked].all())
                compared += int(asked.sum())
    assert compared > 50


def ctc_scores(ctc, frames, y):
    """Return ESPnet's CTC prefix scores after a prefix, (V,); None if it is impossible."""
    scorer = CTCPrefixScorer(ctc, EOS)
    state = scorer.init_state(frames)
    every = torch.arange(V)
    for n in range(1, len(y)):
        scores, states = scorer.score_partial(y[:n], every, state, frames)
        if scores[y[n]] < -1e9:
            return None
        state = scorer.select_state(states, int(y[n]))
    return scorer.score_partial(y, every, state, frames)[0].float()


@pytest.mark.usefixtures("layout")
def test_ctc_does_not_overflow_in_half_precision():
    torch.manual_seed(3)
    ctc = sharpened(CTC(V, D)).to(torch.bfloat16)
    memory = make_memory()
    memory = EncoderOutput(memory.x.to(torch.bfloat16), memory.lengths)
    adapter, sayable = adapter_for("ctc", CTCPrefixScorer(ctc, EOS), V, EOS), 0
    for prefixes, result in walk(adapter, memory):
        assert not result.scores.isnan().any()
        for utt, start, stop in prefixes.spans:
            for i in range(start, stop):
                y = prefixes.yseq[i, 1:].tolist()
                blanks_needed = sum(a == b for a, b in pairwise(y))
                if 0 not in y and len(y) + blanks_needed <= memory.lengths[utt]:
                    assert result.scores[i, EOS] > -1e5
                    sayable += 1
    assert sayable > 20


def test_length_bonus_is_one_for_every_label():
    adapter = adapter_for("length_bonus", LengthBonus(V), V, EOS)
    assert isinstance(adapter, Bonus)
    for prefixes, result in walk(adapter, make_memory()):
        assert torch.equal(result.scores, torch.ones(len(prefixes.yseq), V))
        assert adapter.final(result.state) is None
