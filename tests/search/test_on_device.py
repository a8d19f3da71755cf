"""Searches on a pretended accelerator: results, mixed devices, and waits.

What runs on a CPU alone would not show a tensor left on the host, or a wait too many.
"""

import copy

import pytest
import torch
from espnet2.asr.ctc import CTC
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.transformer_decoder import (
    DynamicConvolutionTransformerDecoder,
    TransformerDecoder,
)
from espnet2.lm.seq_rnn_lm import SequentialRNNLM
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.espnet_compat import CTCPrefixScorer, LengthBonus
from espnet_lenbias.scorers.precision import can_be_lowered, lowered
from espnet_lenbias.search.online import OnlineExplicitLengthBeamSearch
from tests.scorers.made import ATTENTIONS, sharpened
from tests.search.third_party import FirstEndBeamSearch
from tests.simulated_device import on_device, simulated_device
from tests.toys import build, padded

V, D, EOS = 12, 16, 11
FRAMES = [14, 9, 11, 10]
LIMITS = {"maxlenratio": -7, "minlenratio": -3}
SEARCHES = {
    "explicit": (ExplicitLengthBeamSearch, {}),
    "exact": (ExplicitLengthBeamSearch, {"exact_nbest": True, "nbest": 3}),
    "threshold": (ExplicitLengthBeamSearch, {"score_threshold": 3.0}),
    "simple": (SimpleBeamSearch, {}),
    "separate": (SimpleBeamSearch, {"keep_ended": "separate"}),
    "patience": (SimpleBeamSearch, {"keep_ended": "separate", "patience": 1.5}),
    "rectified": (ExplicitLengthBeamSearch, {"label_smoothing": 0.1}),
    "heuristics": (SimpleBeamSearch, {"eos_threshold": 1.5, "length_reward": 0.5}),
    "repeats": (ExplicitLengthBeamSearch, {"repeat_limit": 1, "stop_margin": 1.0}),
    "simple repeats": (SimpleBeamSearch, {"repeat_limit": {"times": 1, "labels": 3}}),
    "coverage": (SimpleBeamSearch, {"coverage": {"weight": 0.3, "threshold": 0.5}}),
    # its rule decides on the device
    "first end": (FirstEndBeamSearch, {}),
}


def transformer(**conf):
    torch.manual_seed(8)
    sizes = dict(attention_heads=2, linear_units=24, num_blocks=2)
    return sharpened(TransformerDecoder(V, D, **{**sizes, **conf}))


def rnn(atype="location", **conf):
    torch.manual_seed(8)
    att_conf = dict(atype=atype, num_att=1, adim=8, aheads=2, awin=3)
    att_conf |= dict(aconv_chans=3, aconv_filts=4)
    return sharpened(RNNDecoder(V, D, hidden_size=12, att_conf=att_conf, **conf))


def transformer_lm():
    return sharpened(
        TransformerLM(V, embed_unit=8, att_unit=16, head=2, unit=16, layer=2)
    )


def rnn_lm(**conf):
    return sharpened(SequentialRNNLM(V, unit=16, **conf))


def ctc():
    return CTCPrefixScorer(sharpened(CTC(V, D)), EOS)


SCORERS = {
    "transformer": lambda: {"decoder": transformer()},
    "options": lambda: {
        "decoder": transformer(concat_after=True, normalize_before=False, qk_norm=True)
    },
    "lstm": lambda: {"decoder": rnn(num_layers=2)},
    "gru": lambda: {"decoder": rnn(rnn_type="gru", context_residual=True)},
    "lm": lambda: {"decoder": transformer(), "lm": transformer_lm()},
    "rnn lm": lambda: {"decoder": rnn(), "lm": rnn_lm()},
    "gru lm": lambda: {"decoder": rnn(), "lm": rnn_lm(rnn_type="gru")},
    "ctc": lambda: {"decoder": transformer(), "ctc": ctc()},
    "bonus": lambda: {"decoder": transformer(), "length_bonus": LengthBonus(V)},
}


def moved(scorers):
    """The scorers on the device; CTC's model hangs on what is no module."""
    scorers = copy.deepcopy(scorers)
    for scorer in scorers.values():
        on_device(scorer.ctc if isinstance(scorer, CTCPrefixScorer) else scorer)
    return scorers


def make_search(scorers, kind="explicit", beam=6, primer=None, **more):
    search, conf = SEARCHES[kind]
    weights = {name: 1.0 if name == "decoder" else 0.3 for name in scorers}
    return build(search, scorers, weights, beam, V, primer, **conf, **more)


def batch(n_utts=4, seed=3):
    torch.manual_seed(seed)
    return padded([torch.randn(n, D) for n in FRAMES[:n_utts]])


def assert_same(found, expected):
    """Check an n-best list against that of the CPU."""
    assert [h.yseq.tolist() for h in found] == [h.yseq.tolist() for h in expected]
    for mine, other in zip(found, expected, strict=True):
        assert mine.score == pytest.approx(other.score, abs=1e-4)
        assert mine.original_score == pytest.approx(other.original_score, abs=1e-4)
        assert mine.scores == pytest.approx(other.scores, abs=1e-4)


def on_both(scorers, n_utts=4, **conf):
    """Search on the CPU and on the device; return what was asked of it, and the steps."""
    x, lengths = batch(n_utts)
    own = make_search(scorers, **conf)
    expected = own(x, x_lengths=lengths, **LIMITS)
    with simulated_device() as counts:
        there = make_search(moved(scorers), **conf)
        found = there(on_device(x), x_lengths=lengths, **LIMITS)
    for mine, others in zip(found, expected, strict=True):
        assert_same(mine, others)
    for mine, other in zip(there.trace, own.trace, strict=True):
        assert mine.stopped == other.stopped
        assert mine.kept == other.kept and mine.running == other.running
    return counts, max(trace.steps for trace in own.trace)


def waits_of_positions(counts):
    """The waits, without those at the end of a call, for what it returns."""
    at_end = ("search/ended.py", "search/trace.py")
    return {
        where: n for where, n in counts.waits.items() if not where[0].startswith(at_end)
    }


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("decoder", [transformer, rnn])
@pytest.mark.parametrize("n_utts", [1, len(FRAMES)])
def test_searches_wait_once_a_position(kind, decoder, n_utts):
    counts, steps = on_both({"decoder": decoder()}, n_utts, kind=kind)
    assert steps > 3
    assert [*waits_of_positions(counts).values()] == [steps]


@pytest.mark.parametrize("name", SCORERS)
def test_adapters_wait_once_a_position(name):
    counts, steps = on_both(SCORERS[name]())
    assert [*waits_of_positions(counts).values()] == [steps]


@pytest.mark.parametrize("atype", ATTENTIONS)
def test_every_attention_of_an_rnn_decoder(atype):
    counts, steps = on_both({"decoder": rnn(atype)})
    waits = waits_of_positions(counts)
    assert sum(n for (where, _), n in waits.items() if "search/fetch" in where) == steps


@pytest.mark.parametrize("pre_beam", ["full", "decoder"])
def test_ctc_under_a_pre_beam(pre_beam):
    scorers = {"decoder": transformer(), "ctc": ctc()}
    counts, steps = on_both(scorers, pre_beam_score_key=pre_beam)
    assert [*waits_of_positions(counts).values()] == [steps]


def test_ctc_launches_no_more_for_more_utterances():
    by_utterances = {}
    for n_utts in (1, 4):
        scorers = {"decoder": transformer(), "ctc": ctc()}
        counts, steps = on_both(scorers, n_utts)
        mine = sum(n for (where, _), n in counts.launches.items() if "ctc" in where)
        by_utterances[n_utts] = mine / steps
    assert by_utterances[1] == pytest.approx(by_utterances[4], rel=0.1)


def test_whisper_waits_once_a_position(make_whisper):
    counts, steps = on_both({"decoder": make_whisper(vocab_size=V)}, primer=(3, 0, 7))
    assert [*waits_of_positions(counts).values()] == [steps]


@pytest.mark.parametrize("name", ["transformer", "lstm", "lm", "rnn lm", "ctc"])
def test_bfloat16_waits_once_a_position(name):
    """The device sums in another order, so scores differ by the eps of what is summed."""
    scorers, (x, lengths) = SCORERS[name](), batch()
    scorers = {
        key: lowered(scorer, torch.bfloat16) if can_be_lowered(scorer) else scorer
        for key, scorer in scorers.items()
    }
    expected = make_search(scorers)(x, x_lengths=lengths, **LIMITS)
    with simulated_device() as counts:
        there = make_search(moved(scorers))
        found = there(on_device(x), x_lengths=lengths, **LIMITS)
    steps = max(trace.steps for trace in there.trace)
    assert [*waits_of_positions(counts).values()] == [steps]
    eps = torch.finfo(torch.bfloat16).eps
    for mine, others in zip(found, expected, strict=True):
        # up to 8 labels, each with a log-prob from logits of a size around 10
        assert mine[0].score == pytest.approx(others[0].score, abs=8 * 10 * eps)


class OtherRNN(RNNDecoder):
    """ESPnet's decoder, left to the fallback for being of another type."""


def convolutional():
    torch.manual_seed(8)
    conf = dict(conv_wshare=2, conv_kernel_length=[3])
    return sharpened(DynamicConvolutionTransformerDecoder(V, D, 2, 24, 1, **conf))


def other_rnn():
    decoder = rnn()
    decoder.__class__ = OtherRNN
    return decoder


@pytest.mark.parametrize("make", [convolutional, other_rnn])
def test_a_decoder_that_is_left_to_the_fallback(make):
    """It waits as often as ESPnet's code does; our part of it waits once."""
    counts, steps = on_both({"decoder": make()}, 2)
    waits = waits_of_positions(counts)
    assert sum(n for (where, _), n in waits.items() if "search/" in where) == steps


def test_hidden_states():
    scorers = {"decoder": transformer()}
    x, lengths = batch()
    own = make_search(scorers, return_hs=True)(x, x_lengths=lengths)
    with simulated_device():
        there = make_search(moved(scorers), return_hs=True)
        found = there(on_device(x), x_lengths=lengths)
        hs = [[torch.stack(h.hs).cpu() for h in hyps] for hyps in found]
    for mine, others in zip(hs, own, strict=True):
        for values, hyp in zip(mine, others, strict=True):
            torch.testing.assert_close(values, torch.stack(hyp.hs), atol=1e-4, rtol=0)


def test_nothing_of_the_end_takes_longer_with_more_positions():
    short, steps = on_both({"decoder": transformer()}, 1)
    few = short.of("waits") - steps
    long, steps = on_both({"decoder": transformer()})
    assert long.of("waits") - steps == few <= 3


@pytest.mark.parametrize("name", ["transformer", "lm", "ctc", "bonus"])
def test_streaming(name):
    scorers, x = SCORERS[name](), batch(1)[0][0]

    def blocks(scorers, x):
        weights = {name: 1.0 if name == "decoder" else 0.3 for name in scorers}
        search = build(OnlineExplicitLengthBeamSearch, scorers, weights, 4, V)
        for start in (0, 4, 8):
            yield search(x[start : start + 4], is_final=False)
        yield search(x[12:])

    expected = list(blocks(scorers, x))
    with simulated_device() as counts:
        steps = list(blocks(moved(scorers), on_device(x)))
    for found, wanted in zip(steps, expected, strict=True):
        assert_same(found, wanted)
    assert {where.partition(":")[0] for where, _ in waits_of_positions(counts)} == {
        "search/fetch.py"
    }


@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_a_batch_too_large_for_the_memory_is_halved(name, caplog):
    """What four utterances need together is a little too much, and two need less."""
    scorers, (x, lengths) = SCORERS[name](), batch()
    x, lengths = x[:, : min(FRAMES)], lengths.clamp(max=min(FRAMES))
    beam, limits = 200, {"maxlenratio": -5, "minlenratio": -3}
    with simulated_device() as counts:
        there = make_search(moved(scorers), beam=beam)
        there(on_device(x), x_lengths=lengths, **limits)
    expected = make_search(scorers, beam=beam)(x, x_lengths=lengths, **limits)
    with simulated_device(largest=counts.largest - 1):
        found = there(on_device(x), x_lengths=lengths, **limits)
    for mine, others in zip(found, expected, strict=True):
        assert_same(mine, others)
    assert "out of memory with 4 utterances at once: going on in halves" in caplog.text
    assert caplog.text.count("going on in halves") == 1


def test_one_utterance_too_large_for_the_memory():
    scorers, (x, lengths) = SCORERS["transformer"](), batch(2)
    with simulated_device(largest=300):
        search = make_search(moved(scorers), beam=50)
        with pytest.raises(MemoryError, match="beam_size 50 and 14 encoder frames"):
            search(on_device(x), x_lengths=lengths)
