"""The coverage terms: by hand, and with the attention of ESPnet's own decoders."""

import functools
import itertools
import math

import pytest
import torch
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder

from espnet_lenbias import SimpleBeamSearch
from espnet_lenbias.options.search_conf import Coverage
from espnet_lenbias.scorers import adapter_for
from espnet_lenbias.search import heuristics
from tests.scorers.made import EOS, D, V, make_memory, sharpened, walk
from tests.toys import RandomScorer, build, encoder_output, labels, padded

# two hypotheses of an utterance of three frames, one of an utterance of two
ATTENDED = torch.tensor([[1.2, 0.5, 0.1], [0.0, 0.6, 0.6], [0.5, 0.5, 9.0]])
FRAMES = torch.tensor([[True] * 3, [True] * 3, [True, True, False]])


def test_frames_above_a_threshold_by_hand():
    term = heuristics.coverage(ATTENDED, FRAMES, Coverage(weight=0.5, threshold=0.5))
    # 1.2 alone is above .5; .6 and .6; none but the padding
    assert term.tolist() == [0.5, 1.0, 0.0]


def test_sum_of_logs_by_hand():
    term = heuristics.coverage(ATTENDED, FRAMES, Coverage(weight=2.0))
    expected = [
        math.log(1.0) + math.log(0.5) + math.log(0.1),
        math.log(1e-10) + 2 * math.log(0.6),
        2 * math.log(0.5),
    ]
    assert term.tolist() == pytest.approx([2 * x for x in expected])


def make_decoder(kind):
    torch.manual_seed(4)
    if kind == "transformer":
        decoder = TransformerDecoder(
            V, D, attention_heads=2, linear_units=9, num_blocks=2
        )
    else:
        att_conf = dict(atype=kind, num_att=1, adim=8, aheads=2, awin=3, aconv_chans=3)
        att_conf["aconv_filts"] = 4
        decoder = RNNDecoder(V, D, hidden_size=12, att_conf=att_conf)
    return sharpened(decoder)


def espnets_attention(decoder, yseq, frames):
    """Return the attention to the frames at the last label of a prefix, (T,)."""
    if isinstance(decoder, TransformerDecoder):
        n = torch.tensor([len(yseq)])
        decoder(frames[None], torch.tensor([len(frames)]), yseq[None], n)
        layers = [layer.src_attn.attn[0, :, -1] for layer in decoder.decoders]
        return torch.cat(layers).mean(dim=0)
    state = decoder.init_state(frames)
    for n in range(1, len(yseq) + 1):
        _, state = decoder.score(yseq[:n], state, frames)
    weights = state["a_prev"]
    if isinstance(weights, tuple):  # location_recurrent: with the state of its LSTM
        weights = weights[0]
    if isinstance(weights, list):
        # coverage: of all positions; several heads: of each
        if type(decoder.att_list[0]).__name__.startswith("AttCov"):
            return weights[-1][0]
        return torch.stack(weights).mean(dim=0)[0]
    return weights[0, -1] if weights.dim() == 3 else weights[0]


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize(
    "kind",
    [
        "transformer",
        "noatt",
        "dot",
        "add",
        "location",
        "location2d",
        "location_recurrent",
        "coverage",
        "coverage_location",
        "multi_head_dot",
        "multi_head_loc",
    ],
)
def test_adapters_tell_espnets_attention(kind):
    decoder, memory = make_decoder(kind), make_memory()
    adapter = adapter_for("decoder", decoder, V, EOS, return_attention=True)
    compared = 0
    with torch.no_grad():
        for prefixes, result in walk(adapter, memory):
            assert result.attention.shape == (len(prefixes.yseq), max(memory.lengths))
            for utt, start, stop in prefixes.spans:
                frames = memory.frames(utt)
                for i in range(start, stop):
                    theirs = espnets_attention(decoder, prefixes.yseq[i], frames)
                    mine = result.attention[i]
                    torch.testing.assert_close(
                        mine[: len(frames)], theirs, atol=1e-5, rtol=0
                    )
                    assert not mine[len(frames) :].any()
                    compared += 1
    assert compared > 20


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("threshold", [None, 0.3])
@pytest.mark.parametrize("kind", ["transformer", "location"])
def test_unlimited_beam_finds_the_best_by_score_and_coverage(kind, threshold):
    """Every label sequence is scored by ESPnet's decoder and its attention."""
    decoder, weight, reward = make_decoder(kind), 0.7, 1.5
    memory = make_memory()
    frames, longest = memory.frames(1)[:4], 3
    conf = {"weight": weight}
    if threshold is not None:
        conf["threshold"] = threshold

    @functools.cache
    def asked(prefix):  # ESPnet's scores of the next label, state, attention
        yseq = torch.tensor([EOS, *prefix])
        state = asked(prefix[:-1])[1] if prefix else decoder.init_state(frames)
        scores, state = decoder.score(yseq, state, frames)
        return scores.tolist(), state, espnets_attention(decoder, yseq, frames)

    def rank(sequence):
        q, attended = 0.0, 0.0
        for n, label in enumerate([*sequence, EOS]):
            scores, _, attention = asked(sequence[:n])
            q += scores[label]
            attended = attended + attention
        if threshold is None:
            seen = attended.clamp(max=1.0).log().sum()
        else:
            seen = (attended > threshold).sum()
        return q + reward * (len(sequence) + 1) + weight * float(seen)

    others = [label for label in range(V) if label != EOS]
    with torch.no_grad():
        every = {
            sequence: rank(sequence)
            for n in range(longest)
            for sequence in itertools.product(others, repeat=n)
        }
    search = build(
        SimpleBeamSearch,
        {"decoder": decoder},
        {"decoder": 1.0},
        10**4,
        V,
        coverage=conf,
        length_reward=reward,
    )
    found = search(frames, maxlenratio=-longest)
    best = sorted(every, key=every.get, reverse=True)[:5]
    assert [labels(h)[:-1] for h in found[:5]] == best
    assert [h.score for h in found[:5]] == pytest.approx(
        [every[s] for s in best], abs=1e-3
    )


@pytest.mark.parametrize(
    "coverage", [{"weight": 0.5, "threshold": 0.2}, {"weight": 0.1}]
)
@pytest.mark.parametrize("kind", ["transformer", "location"])
def test_batch_with_coverage_equals_its_utterances(kind, coverage):
    decoder, memory = make_decoder(kind), make_memory()
    conf = {"coverage": coverage}
    search = build(
        SimpleBeamSearch, {"decoder": decoder}, {"decoder": 1.0}, 4, V, **conf
    )
    utts = [memory.frames(b) for b in range(len(memory))]
    x, lengths = padded(utts)
    for alone, batched in zip(
        map(search, utts), search(x, x_lengths=lengths), strict=True
    ):
        assert labels(alone[0]) == labels(batched[0])
        assert alone[0].score == pytest.approx(batched[0].score, abs=1e-4)


def test_scorer_that_does_not_tell_its_attention():
    search = build(
        SimpleBeamSearch,
        {"decoder": RandomScorer(0, 4)},
        {"decoder": 1.0},
        2,
        4,
        coverage={"weight": 0.5},
    )
    with pytest.raises(
        ValueError, match="'decoder': 'RandomScorer'.*leave coverage out"
    ):
        search(encoder_output(0, 3))


@pytest.mark.parametrize(
    "value, message",
    [
        ({"threshold": 0.5}, "coverage needs a weight"),
        ({"weight": 0.5, "treshold": 0.5}, "did you mean threshold"),
        (0.5, "coverage must be a mapping"),
        ({"weight": "much"}, "coverage.weight must be a number"),
        ({"weight": 0.5, "threshold": -1}, "coverage.threshold must be a number of 0"),
    ],
)
def test_mistakes_show_at_the_door(value, message):
    with pytest.raises(ValueError, match=message):
        build(
            SimpleBeamSearch,
            {"decoder": RandomScorer(0, 4)},
            {"decoder": 1.0},
            2,
            4,
            coverage=value,
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_in_half_precision_is_summed_in_float32(dtype):
    """In float16 1e-10 is 0, whose logarithm is no coverage."""
    search = build(
        SimpleBeamSearch,
        {"decoder": make_decoder("transformer").to(dtype)},
        {"decoder": 1.0},
        3,
        V,
        coverage={"weight": 0.1},
    )
    x = 30 * torch.randn(9, D, generator=torch.Generator().manual_seed(0))
    hyps = search(x.to(dtype), maxlenratio=-6)  # most frames get no attention at all
    assert all(math.isfinite(hyp.score) for hyp in hyps)
