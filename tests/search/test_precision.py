"""Half precision, and a GPU where there is one, against float32 on the CPU.

No mask overflows in float16 or bfloat16; results are those of float32 but for rounding.
"""

import copy

import pytest
import torch
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.lm.seq_rnn_lm import SequentialRNNLM
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests.toys import build, labels, padded

V, D, EOS = 12, 16, 11
FRAMES = [14, 9, 11]
CUDA = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
)
WEIGHTS = {"decoder": 1.0, "lm": 0.3}


def make_scorers(kind):
    torch.manual_seed(8)
    if kind == "transformer":
        decoder = TransformerDecoder(
            V, D, attention_heads=2, linear_units=24, num_blocks=2
        )
        lm = TransformerLM(V, embed_unit=8, att_unit=16, head=2, unit=16, layer=2)
    else:
        att_conf = {"atype": "location", "adim": 8, "aconv_chans": 3, "aconv_filts": 4}
        decoder = RNNDecoder(V, D, hidden_size=16, att_conf=att_conf)
        lm = SequentialRNNLM(V, unit=16)
    for module in (decoder, lm):
        for p in module.parameters():
            p.data.mul_(2.0)
        module.eval()
    return {"decoder": decoder, "lm": lm}


def score_of(scorers, yseq, frames):
    """Ask ESPnet's decoder and LM in float32 for q of a label sequence."""
    total = 0.0
    for name, scorer in scorers.items():
        state = scorer.init_state(frames)
        for n in range(1, len(yseq)):
            scores, state = scorer.score(yseq[:n], state, frames)
            total += WEIGHTS[name] * float(scores[yseq[n]])
    return total


@pytest.mark.parametrize("search", [ExplicitLengthBeamSearch, SimpleBeamSearch])
@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float32, 1e-3), (torch.float16, 0.05), (torch.bfloat16, 0.4)],
)
@torch.no_grad()
def test_scores_are_those_of_float32_but_for_rounding(
    search, kind, device, dtype, tolerance
):
    scorers = make_scorers(kind)
    half = {n: copy.deepcopy(s).to(device, dtype) for n, s in scorers.items()}
    made = build(search, half, WEIGHTS, 6, V)
    torch.manual_seed(3)
    utts = [torch.randn(n, D) for n in FRAMES]
    x, lengths = padded(utts)
    found = made(x.to(device, dtype), minlenratio=-3, x_lengths=lengths)
    for frames, hyps in zip(utts, found, strict=True):
        best = hyps[0]
        assert len(labels(best)) >= 3
        q = score_of(scorers, best.yseq.cpu(), frames)
        assert best.original_score == pytest.approx(q, abs=tolerance)
        for h in hyps:
            assert torch.isfinite(torch.tensor([h.score, h.original_score])).all()
