"""The online search: block by block, and at the end as offline."""

import itertools
import math
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import soundfile
import torch
from espnet2.asr.ctc import CTC
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.lm.seq_rnn_lm import SequentialRNNLM
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias import ExplicitLengthBeamSearch, Speech2Text, scorers
from espnet_lenbias.errors import ScorerError
from espnet_lenbias.espnet_compat import (
    CTCPrefixScorer,
    LengthBonus,
)
from espnet_lenbias.options.registry import settings_of
from espnet_lenbias.scorers import fallback
from espnet_lenbias.search.online import OnlineExplicitLengthBeamSearch
from tests import reference, toys
from tests.bundled import bundled

MINI_LIBRISPEECH = Path(__file__).parents[2] / "recipes" / "mini_librispeech"
DIM = 8


class FramesSeen(toys.RandomScorer):
    """Depends on the number of frames that there are, and says so if that shrinks."""

    def utterance(self, x):
        return len(x)

    def check(self, state, asked, seen):
        (old, old_prefix), (frames, prefix) = state, asked
        assert old <= frames
        assert old_prefix == (() if len(prefix) == self.start else seen)


def online(scorers, weights=None, beam=4, vocab=6, primer=None, **conf):
    """An online search; all scorers weigh 1 unless told otherwise."""
    weights = weights or dict.fromkeys(scorers, 1.0)
    return toys.build(
        OnlineExplicitLengthBeamSearch, scorers, weights, beam, vocab, primer, **conf
    )


def offline(search):
    """The offline search with the scorers of an online one."""
    return ExplicitLengthBeamSearch(
        search.scorers,
        search.weights,
        search.beam_size,
        search.n_vocab,
        sos=search.sos,
        eos=search.eos,
        hyp_primer=search.hyp_primer,
        nbest=search.options.nbest,
        score_threshold=search.options.score_threshold,
    )


def feed(search, x, ends, **ratios):
    """The partial results after each block, and the final result."""
    search.reset()
    *starts, last = [0, *ends]
    blocks = [x[i:j] for i, j in zip(starts, ends)]
    partial = [search(block, is_final=False, **ratios) for block in blocks]
    return partial, search(x[last:], is_final=True, **ratios)


def same(results, others):
    """Whether two n-best lists are equal, to the last digit."""
    return [(h.yseq.tolist(), h.score, h.scores) for h in results] == [
        (h.yseq.tolist(), h.score, h.scores) for h in others
    ]


# --- Partial results, against the rule in plain Python --------------------------------


def blockwise(
    model, ends, beam_size, may_repeat, limit=None, maxlenratio=0.0, minlenratio=0.0
):
    """The hypotheses after each block: floats and lists, one hypothesis at a time."""
    result = reference.Result()
    hyps, before, n = [model.start()], None, 0
    for model.utterance in ends:
        longest, shortest = reference.length_bounds(
            model.utterance, maxlenratio, minlenratio
        )
        while n < longest:
            every = [
                new
                for hyp in hyps
                for new in reference.extend(
                    model, hyp, result, n + 1 > shortest, repeat_limit=limit
                )
            ]
            kept = result.best(every, beam_size, lambda h: h.q)
            old = len(model.start().prefix)
            repeats = any(h.prefix[-1] in h.prefix[old:-1] for h in kept)
            if not kept or any(h.ended for h in kept) or (repeats and not may_repeat):
                break
            before, hyps, n = hyps, kept, n + 1
        if before is not None:
            before, hyps, n = None, before, n - 1
        yield [] if n == 0 else hyps, result.gap


@pytest.mark.parametrize("seed", range(60))
def test_partial_results_against_plain_python(seed):
    draw = random.Random(seed)
    vocab = draw.randint(3, 12)
    primer = draw.choice([None, [vocab - 1, 0]])
    start = len(primer or [0])
    names = ["decoder", "lm"][: draw.choice([1, 2])]
    toy = {
        name: FramesSeen(draw.random(), vocab, end_bias=-2.5, start=start)
        for name in names
    }
    weights = {name: draw.uniform(0.3, 1.0) for name in names}
    beam = draw.choice([1, 2, 4, 20])
    may_repeat = draw.random() < 0.7
    ratios = draw.choice([{}, {"maxlenratio": 0.5}, {"minlenratio": 0.3}])
    frames = draw.randint(4, 16)
    ends = sorted(draw.sample(range(1, frames + 1), 3))
    limit = draw.choice([None, (1, 1), (1, 4), (2, 2)])

    search = online(
        toy,
        weights,
        beam,
        vocab,
        primer,
        disable_repetition_detection=may_repeat,
        repeat_limit=limit and dict(zip(("times", "labels"), limit)),
    )
    model = reference.Model(toy, weights, vocab, primer=primer)
    expected = blockwise(model, ends, beam, may_repeat, limit, **ratios)
    partial, _ = feed(search, torch.zeros(frames, 2), ends, **ratios)
    for hyps, (wanted, gap) in zip(partial, expected, strict=True):
        assert gap > 1e-5  # no tie, where either order would be right
        total = reference.log_sum([h.q for h in wanted])
        wanted.sort(key=lambda h: h.q, reverse=True)
        assert [h.yseq.tolist() for h in hyps] == [
            [*h.prefix, vocab - 1] for h in wanted
        ]
        for hyp, other in zip(hyps, wanted):
            assert hyp.original_score == pytest.approx(other.q, abs=1e-4)
            assert hyp.score == pytest.approx(other.q - total, abs=1e-4)
            assert hyp.scores == pytest.approx(other.scores, abs=1e-4)
            assert hyp.forced
            assert hyp.steps == other.N


@pytest.mark.parametrize("may_repeat", [False, True])
def test_a_block_ends_in_front_of_what_was_not_heard(may_repeat):
    """Labels a b a c, then the end: "a" is repeated at N = 3, the end label is at N = 5.

    The search stops in front of that position and takes the one before back.
    """
    likely = [0, 1, 0, 2, 3]
    rows = [toys.logs(*(0.97 if v == w else 0.01 for v in range(4))) for w in likely]
    search = online(
        {"decoder": toys.TableScorer(rows)},
        beam=1,
        vocab=4,
        disable_repetition_detection=may_repeat,
    )
    partial, final = feed(search, torch.zeros(12, 2), [6, 9])
    wanted = [0, 1, 0] if may_repeat else [0]
    n = len(wanted)
    for hyps in partial:  # another block changes nothing
        [hyp] = hyps
        assert hyp.yseq.tolist() == [3, *wanted, 3]
        assert hyp.original_score == pytest.approx(n * math.log(0.97))
        assert hyp.score == 0.0  # the only one that is left
    [best] = final
    assert toys.labels(best) == (0, 1, 0, 2, 3)
    assert best.original_score == pytest.approx(5 * math.log(0.97))


def test_the_course_goes_on_over_the_blocks():
    toy = {"decoder": FramesSeen(1, 20)}  # often stopped by an end label
    search = online(toy, beam=3, vocab=20, disable_repetition_detection=True)
    x, steps, earlier = torch.zeros(40, 2), [], []
    for start in range(0, 32, 4):
        hyps = search(x[start : start + 4], is_final=False)
        [trace] = search.trace
        n = len(hyps[0].yseq) - 2 if hyps else 0
        assert trace.steps == len(trace.p_end) == n
        assert trace.stopped == "waiting"
        # no hypothesis ends before the last block, so none is accounted for
        assert trace.p_end == trace.log_not_ended == [0.0] * n
        assert trace.best_final == [-math.inf] * n
        assert trace.running[: len(earlier)] == earlier
        steps.append(n)
        earlier = trace.running
    assert steps == sorted(steps)
    assert steps[-1] > steps[0]
    search(x[32:])
    reference_search = offline(search)
    reference_search(x)
    assert search.trace == reference_search.trace


def test_before_the_first_label_there_are_no_partial_results():
    search = online({"decoder": toys.TableScorer([toys.logs(0.1, 0.9)])}, vocab=2)
    assert search(torch.zeros(3, 2), is_final=False) == []
    assert search.trace[0].steps == 0


def test_a_block_without_frames_changes_nothing():
    toy = {"decoder": FramesSeen(3, 12, end_bias=-3.0)}
    search = online(toy, vocab=12, disable_repetition_detection=True)
    assert search(torch.zeros(0, 2), is_final=False) == []
    hyps = search(torch.zeros(5, 2), is_final=False)
    assert hyps
    assert search(torch.zeros(0, 2), is_final=False) == hyps
    final = search(torch.zeros(0, 2))
    assert same(final, offline(search)(torch.zeros(5, 2)))


def test_no_frames_at_all():
    search = online({"decoder": FramesSeen(3, 5)}, vocab=5)
    search(torch.zeros(0, 2), is_final=False)
    [hyp] = search(torch.zeros(0, 2))
    assert hyp.yseq.tolist() == [4, 4]
    assert search.trace[0].stopped == "empty"


# --- The final result, against the offline search -------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_final_result_is_the_offline_one(seed):
    draw = random.Random(seed)
    vocab = draw.randint(2, 9)
    toy = {"decoder": FramesSeen(seed, vocab, end_bias=draw.choice([-2.0, 0.0]))}
    beam = draw.choice([1, 3, 50])
    conf = draw.choice([{}, {"score_threshold": 2.0}, {"nbest": 2}])
    repeat = draw.random() < 0.5
    search = online(toy, None, beam, vocab, disable_repetition_detection=repeat, **conf)
    ratios = draw.choice([{}, {"maxlenratio": 0.4}, {"minlenratio": 0.3}])
    x = torch.zeros(draw.randint(1, 12), 2)
    n_blocks = draw.randint(0, min(3, len(x)))
    ends = sorted(draw.sample(range(1, len(x) + 1), n_blocks))
    _, final = feed(search, x, ends, **ratios)
    assert same(final, offline(search)(x, **ratios))


def test_utterances_do_not_see_each_other():
    toy = {"decoder": FramesSeen(5, 9, end_bias=-2.0)}
    search = online(toy, vocab=9, disable_repetition_detection=True)
    assert search(torch.zeros(5, 2), is_final=False)  # broken off
    search.reset()
    assert search(torch.zeros(0, 2), is_final=False) == []
    for n in (8, 11):
        partial, final = feed(search, torch.zeros(n, 2), [4, 6])
        alone = online(toy, vocab=9, disable_repetition_detection=True)
        wanted, wanted_final = feed(alone, torch.zeros(n, 2), [4, 6])
        assert all(map(same, partial, wanted))
        assert any(partial)
        assert same(final, wanted_final)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_in_a_block_is_an_error(value):
    search = online({"decoder": toys.NanScorer(3, 2, value)}, beam=1, vocab=3)
    with pytest.raises(
        ScorerError, match="scorer 'decoder' returned NaN .* position 2"
    ):
        search(torch.zeros(6, 2), is_final=False)


# --- ESPnet's scorers -----------------------------------------------------------------


def espnet_scorers(vocab, *names):
    """ESPnet's modules with random weights."""
    torch.manual_seed(1)
    ctc = CTC(vocab, DIM)
    made = {
        "decoder": TransformerDecoder(
            vocab, DIM, attention_heads=2, linear_units=16, num_blocks=2
        ),
        "lm": TransformerLM(
            vocab,
            pos_enc="sinusoidal",
            embed_unit=8,
            att_unit=8,
            head=2,
            unit=16,
            layer=1,
        ),
        "rnn_lm": SequentialRNNLM(vocab, unit=8, nlayers=1),
        "ctc": CTCPrefixScorer(ctc, vocab - 1),
        "length_bonus": LengthBonus(vocab),
    }
    for module in [*made.values(), ctc]:
        if isinstance(module, torch.nn.Module):
            module.eval()
            for parameter in module.parameters():
                parameter.data.mul_(3.0)
    return {name: made[name] for name in names}


def of_espnets(names, beam=5, vocab=14, **conf):
    """An online search over such modules."""
    scorers = espnet_scorers(vocab, *names)
    return online(scorers, None, beam, vocab, disable_repetition_detection=True, **conf)


def frames(n, seed=0):
    """Encoder output of random numbers, (T, D)."""
    return torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "names",
    [
        ["decoder"],
        ["decoder", "lm"],
        ["decoder", "rnn_lm", "length_bonus"],
        ["decoder", "ctc"],
        ["decoder", "lm", "ctc", "length_bonus"],
        ["ctc"],
    ],
    ids="+".join,
)
@pytest.mark.parametrize("beam", [1, 5, 40])
def test_espnets_scorers_end_as_offline(names, beam):
    search = of_espnets(names, beam)
    x = frames(20)
    partial, final = feed(search, x, [4, 5, 11, 16], minlenratio=0.2)
    assert any(partial)
    assert same(final, offline(search)(x, minlenratio=0.2))


@pytest.mark.parametrize("name", ["decoder", "lm", "rnn_lm"])
def test_partial_results_are_those_of_espnets_own_scoring(name, monkeypatch):
    """The fast adapters against ESPnet's `batch_score`, which is handed all frames."""
    names = dict.fromkeys(["decoder", name])
    x, ends = frames(24), [5, 6, 12, 20]
    fast, _ = feed(of_espnets(names), x, ends, minlenratio=-24)
    for test in ("is_cached_transformer", "is_transformer_lm", "is_rnn_lm"):
        monkeypatch.setattr(scorers, test, lambda _: False)
    slow, _ = feed(of_espnets(names), x, ends, minlenratio=-24)
    assert [len(hyps[0].yseq) - 2 for hyps in slow] == [4, 5, 11, 19]
    for hyps, others in zip(fast, slow, strict=True):
        assert [h.yseq.tolist() for h in hyps] == [h.yseq.tolist() for h in others]
        for hyp, other in zip(hyps, others):
            assert hyp.scores == pytest.approx(other.scores, abs=1e-4)


def prefix_log_prob(log_probs, labels):
    """log p(the labels are the first that CTC puts out), over all paths of frames."""
    n_frames, vocab = log_probs.shape
    total = []
    for path in itertools.product(range(vocab), repeat=n_frames):
        out = [v for v, _ in itertools.groupby(path) if v != 0]
        if out[: len(labels)] == labels:
            total.append(sum(log_probs[t, v].item() for t, v in enumerate(path)))
    return reference.log_sum(total)


def test_ctc_counts_all_frames_that_have_come():
    """The accumulated score of labels is their prefix probability over all frames.

    Over all that there were when the last label was scored, those of earlier blocks too.
    """
    vocab, ends = 4, [3, 5, 7]
    search = of_espnets(["ctc"], beam=3, vocab=vocab)
    x = frames(7, seed=3)
    ctc = search.scorers["ctc"].ctc
    log_probs = ctc.log_softmax(x.unsqueeze(0))[0].detach()
    # fewer labels than frames, so that many paths lead to them, in earlier blocks too
    partial, _ = feed(search, x, ends, minlenratio=-7, maxlenratio=0.6)
    n_before, compared = 0, set()
    for n_frames, hyps in zip(ends, partial):
        n_labels = len(hyps[0].yseq) - 2 if hyps else 0
        if n_labels > n_before:
            for hyp in hyps:
                wanted = prefix_log_prob(log_probs[:n_frames], hyp.yseq[1:-1].tolist())
                assert hyp.scores["ctc"] == pytest.approx(wanted, abs=1e-4)
            compared.add(n_frames)
        n_before = n_labels
    assert len(compared) > 1


def test_a_scorer_that_takes_no_more_frames_is_named(monkeypatch):
    search = online({"decoder": FramesSeen(3, 12, end_bias=-3.0)}, vocab=12)
    monkeypatch.setattr(
        fallback.BatchFallback, "start", lambda self, memory: SimpleNamespace()
    )
    with pytest.raises(
        TypeError, match="BatchFallback cannot take frames block by block"
    ):
        search(torch.zeros(5, 2), is_final=False)


def test_a_partial_scorer_that_has_made_its_state_of_the_first_block_is_named():
    search = online({"ctc": toys.BatchPartialScorer(0, 12)}, vocab=12)
    with pytest.raises(TypeError, match="BatchPartialFallback cannot take frames"):
        for block in frames(20).split(10):
            search(block, is_final=False)


class Keeper(toys.PlainRandomScorer):
    """Keeps what it has made of the frames on itself, and adds to its state in place.

    As ESPnet's RNN decoder with a coverage attention does.
    """

    def init_state(self, x):
        self.n_frames = len(x)
        return []

    def score(self, y, state, x):
        assert self.n_frames == len(x)
        assert state == y[:-1].tolist()  # each label has been added once
        state.append(int(y[-1]))
        return torch.tensor(self.log_probs(0, tuple(y.tolist()))), state

    def final_score(self, state):
        return 0.0


def test_a_scorer_that_keeps_frames_on_itself_is_told_of_more():
    search = online({"decoder": Keeper(3, 12, end_bias=-3.0)}, vocab=12)
    steps = 0
    for block in frames(40).split(8):
        search(block, is_final=False)
        steps += search.trace[0].steps
    assert steps > 3


# --- A trained model ------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    """The bundled model, and the encoder output of some bundled audio.

    Its encoder sees all audio at once; the decoder gets the frames block by block.
    """
    model = Speech2Text.from_pretrained(
        str(bundled("asr_transformer")), beam_size=8, ctc_weight=0.3, lm_weight=0.0
    )
    audio = sorted((MINI_LIBRISPEECH / "slice").rglob("*.flac"))[:2]
    waves = [torch.tensor(soundfile.read(a, dtype="float32")[0])[None] for a in audio]
    with torch.no_grad():
        return model.beam_search, [
            model.asr_model.encode(wave, torch.tensor([wave.size(1)]))[0][0]
            for wave in waves
        ]


@pytest.mark.parametrize("may_repeat", [False, True])
def test_a_trained_model(trained, may_repeat):
    own, encoded = trained
    settings = settings_of(own)
    search = OnlineExplicitLengthBeamSearch(
        **settings, nbest=3, disable_repetition_detection=may_repeat
    )
    steps = 0
    for x in encoded:
        # as ESPnet's contextual block encoders give them: 24 frames, then 16 each
        partial, final = feed(search, x, [*range(24, len(x), 16)])
        assert same(final, ExplicitLengthBeamSearch(**settings, nbest=3)(x))
        best = final[0].yseq.tolist()
        texts = [hyps[0].yseq.tolist()[:-1] for hyps in partial if hyps]
        assert texts
        steps += sum(map(len, texts))
        if not may_repeat:  # the sure way: what is told is not taken back
            assert all(best[: len(text)] == text for text in texts)
    assert steps > 30
