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
from espnet_lenbias.scorers import EncoderOutput, Prefixes, adapter_for, precision
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.scorers.fallback import BatchFallback, SingleFallback
from espnet_lenbias.scorers.precision import can_be_lowered, lowered
from tests.toys import RandomScorer, build, labels, padded

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


@pytest.mark.parametrize("search", [ExplicitLengthBeamSearch, SimpleBeamSearch])
@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@torch.no_grad()
def test_float64_stays_float64_to_the_end(search, kind):
    """A sum in float32 would be off by a millionth."""
    scorers = {n: s.double() for n, s in make_scorers(kind).items()}
    torch.manual_seed(3)
    frames = torch.randn(9, D, dtype=torch.float64)
    best = build(search, scorers, WEIGHTS, 6, V)(frames, minlenratio=-3)[0]
    q = score_of(scorers, best.yseq, frames)
    assert best.original_score == pytest.approx(q, abs=1e-9, rel=0)


@pytest.mark.parametrize("search", [ExplicitLengthBeamSearch, SimpleBeamSearch])
@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@torch.no_grad()
def test_decoder_and_lm_alone_in_bfloat16(search, kind):
    scorers = make_scorers(kind)
    before = {n: copy.deepcopy(s.state_dict()) for n, s in scorers.items()}
    torch.manual_seed(3)
    utts = [torch.randn(n, D) for n in FRAMES]
    x, lengths = padded(utts)
    made = build(search, scorers, WEIGHTS, 6, V)
    assert made.compute_in(torch.bfloat16) == ["decoder", "lm"]
    adapters = made.setup().adapters
    computing = [adapters["decoder"].decoder, adapters["lm"].lm]
    assert {p.dtype for m in computing for p in m.parameters()} == {torch.bfloat16}
    found = made(x, minlenratio=-3, x_lengths=lengths)
    for frames, hyps in zip(utts, found, strict=True):
        q = score_of(scorers, hyps[0].yseq, frames)
        assert hyps[0].original_score == pytest.approx(q, abs=0.4)
        assert hyps[0].original_score != q
    # the model that they are copies of is what it was
    for name, scorer in scorers.items():
        for key, value in scorer.state_dict().items():
            assert torch.equal(value, before[name][key])
            assert value.dtype == before[name][key].dtype


@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@torch.no_grad()
def test_log_probs_of_bfloat16_networks_sum_to_one(kind):
    """In bfloat16 itself a sum of probabilities is off by up to a hundredth."""
    torch.manual_seed(3)
    memory = EncoderOutput(torch.randn(2, 9, D), [9, 7])
    prefixes = Prefixes(torch.full((2, 1), EOS), make_spans([0, 1], [1, 1]), 1)
    for name, scorer in make_scorers(kind).items():
        adapter = adapter_for(name, lowered(scorer, torch.bfloat16), V, EOS)
        scores = adapter.step(adapter.start(memory), prefixes).scores
        assert scores.dtype == torch.float32
        assert scores.exp().sum(dim=1).tolist() == pytest.approx([1, 1], abs=1e-5)


def test_scorers_of_other_kinds_stay_as_they_are():
    torch.manual_seed(3)
    scorers = {**make_scorers("transformer"), "toy": RandomScorer(0, V)}
    made = build(ExplicitLengthBeamSearch, scorers, {**WEIGHTS, "toy": 0.1}, 2, V)
    assert made.compute_in(torch.bfloat16) == ["decoder", "lm"]


@pytest.mark.filterwarnings("ignore:.*quantiz", "ignore:.*torch.ao")
@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@torch.no_grad()
def test_products_of_integers_go_through_the_adapters(kind):
    """As ESPnet's `quantize_asr_model` and `quantize_lm` make them."""
    scorers = {
        name: torch.ao.quantization.quantize_dynamic(
            scorer, {torch.nn.Linear}, torch.qint8
        )
        for name, scorer in make_scorers(kind).items()
    }
    assert not any(map(can_be_lowered, scorers.values()))
    made = build(ExplicitLengthBeamSearch, scorers, WEIGHTS, 6, V)
    adapters = made.setup().adapters.values()
    assert not any(isinstance(a, SingleFallback | BatchFallback) for a in adapters)
    torch.manual_seed(3)
    frames = torch.randn(9, D)
    hyps = made(frames, minlenratio=-3)
    q = score_of(scorers, hyps[0].yseq, frames)
    # the range of the integers is that of the rows that are computed together
    assert hyps[0].original_score == pytest.approx(q, abs=0.3)


@pytest.mark.parametrize(
    "amx, avx512, intel, faster",
    [
        (True, True, True, True),
        (False, True, True, False),  # measured: float32 is as fast there
        (False, True, False, True),
        (False, False, False, False),
    ],
)
def test_where_bfloat16_is_faster(amx, avx512, intel, faster, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(precision, "is_intel", lambda: intel)
    assert precision.has_bfloat16_products(torch.device("cpu")) is faster
