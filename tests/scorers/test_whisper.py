"""The cached Whisper decoder against ESPnet's, of random weights."""

import runpy
import sys

import pytest
import torch
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.asr.decoder.whisper_decoder import OpenAIWhisperDecoder

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.scorers import adapter_for
from espnet_lenbias.scorers import whisper as cached_whisper
from espnet_lenbias.scorers.fallback import BatchFallback, SingleFallback
from espnet_lenbias.scorers.precision import lowered
from espnet_lenbias.scorers.transformer import CachedTransformer
from espnet_lenbias.scorers.whisper import CachedWhisper
from tests.scorers.made import (
    EOS,
    N_POSITIONS,
    D,
    V,
    is_laid_out,
    make_memory,
    needs_half,
    walk,
)
from tests.toys import build, labels, padded

PRIMER = (3, 0, 7, 5)


class Uncached(OpenAIWhisperDecoder):
    """ESPnet's decoder, left to the fallback for being of another type."""


def assert_same_scores(adapter, reference, memory=None, tolerance=1e-4, **kwargs):
    memory = make_memory() if memory is None else memory
    pairs = zip(
        walk(adapter, memory, **kwargs), walk(reference, memory, **kwargs), strict=True
    )
    for (_, ours), (_, theirs) in pairs:
        torch.testing.assert_close(ours.scores, theirs.scores, atol=tolerance, rtol=0)


@needs_half
@torch.no_grad()
def test_scores_with_numbers_of_half_precision(make_whisper):
    """As in OpenAI's checkpoints, which have a product of their own."""
    decoder, reference = make_whisper(), make_whisper(Uncached)
    for part in (decoder, reference):
        part.half().float()
    assert_same_scores(
        adapter_for("decoder", decoder, V, EOS),
        adapter_for("decoder", reference, V, EOS),
    )
    assert is_laid_out(decoder.decoders.token_embedding, as_halves=True)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"dropout_rate": 0.5},
        {"vocab_size": V + 3},
        {"vocab_size": V + 3, "load_origin_token_embedding": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("primer", [(EOS,), PRIMER], ids=["sos", "long primer"])
@pytest.mark.parametrize("fallback", [BatchFallback, SingleFallback])
@torch.no_grad()
def test_whisper_gives_the_scores_of_the_fallback(make_whisper, conf, primer, fallback):
    decoder = make_whisper(**conf)
    adapter = adapter_for("decoder", decoder, V, EOS)
    assert isinstance(adapter, CachedWhisper)
    reference = fallback(decoder, is_decoder=True, return_hs=False)
    # up to the last position that there is, and enough for the cache to grow
    steps = N_POSITIONS - len(primer) + 1
    assert_same_scores(adapter, reference, primer=primer, steps=steps)


@torch.no_grad()
def test_whisper_computes_in_the_dtype_of_its_weights(make_whisper):
    decoder, memory = make_whisper(), make_memory()
    reference = BatchFallback(decoder, is_decoder=True, return_hs=False)
    lower = CachedWhisper(lowered(decoder, torch.bfloat16))
    assert_same_scores(lower, reference, memory, tolerance=0.5)
    state = lower.start(memory)
    caches = [state.frames.layers[0][0].keys, state.labels.layer(0).keys]
    assert {cache.dtype for cache in caches} == {torch.bfloat16}


class LowRank(torch.nn.Linear):
    """A linear layer with LoRA beside it, as loralib's."""

    def __init__(self, linear):
        super().__init__(D, D, bias=linear.bias is not None)
        self.load_state_dict(linear.state_dict())
        self.down = torch.nn.Parameter(torch.randn(2, D))
        self.up = torch.nn.Parameter(0.1 * torch.randn(D, 2))

    def forward(self, x):
        return super().forward(x) + x @ self.down.T @ self.up.T


@torch.no_grad()
def test_whisper_with_lora_gives_the_scores_of_the_fallback(make_whisper):
    decoder = make_whisper()
    before = decoder.score(torch.tensor(PRIMER), None, make_memory().frames(0))[0]
    for block in decoder.decoders.blocks:
        for attention in (block.attn, block.cross_attn):
            for name in ("query", "key", "value", "out"):
                setattr(attention, name, LowRank(getattr(attention, name)))
    after = decoder.score(torch.tensor(PRIMER), None, make_memory().frames(0))[0]
    assert not torch.allclose(before, after, atol=0.1)
    adapter = adapter_for("decoder", decoder, V, EOS)
    assert isinstance(adapter, CachedWhisper)
    reference = BatchFallback(decoder, is_decoder=True, return_hs=False)
    assert_same_scores(adapter, reference, primer=PRIMER)


@pytest.mark.parametrize(
    "place", ["decoder", "network", "block", "attention", "mlp", "embedding"]
)
def test_whisper_of_other_modules_is_left_to_the_fallback(make_whisper, place):
    decoder = make_whisper()
    network = decoder.decoders
    changed = {
        "decoder": decoder,
        "network": network,
        "block": network.blocks[1],
        "attention": network.blocks[0].cross_attn,
        "mlp": network.blocks[1].mlp[1],
        "embedding": network.token_embedding,
    }[place]
    changed.__class__ = type("Other", (type(changed),), {})
    assert isinstance(adapter_for("decoder", decoder, V, EOS), BatchFallback)


def test_decoder_asked_for_hidden_states_is_left_to_the_fallback(make_whisper):
    adapter = adapter_for("decoder", make_whisper(), V, EOS, return_hs=True)
    assert isinstance(adapter, BatchFallback)


@pytest.mark.usefixtures("layout")
@torch.no_grad()
def test_two_decodes_on_one_adapter_do_not_disturb_each_other(make_whisper):
    adapter = CachedWhisper(make_whisper())
    memory, primers = make_memory(), [(EOS,), (4,)]
    alone = [[r.scores for _, r in walk(adapter, memory, primer=p)] for p in primers]
    together = zip(*(walk(adapter, memory, primer=p) for p in primers))
    for n, results in enumerate(together):
        for expected, (_, result) in zip(alone, results):
            assert torch.equal(result.scores, expected[n])


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("beam", [1, 4, 20])
@pytest.mark.parametrize("seed", range(3))
def test_search_finds_what_it_finds_with_the_fallback(make_whisper, beam, seed):
    memory = make_memory(seed)
    x, lengths = padded([memory.frames(b) for b in range(len(memory))])
    found = []
    for kind in (OpenAIWhisperDecoder, Uncached):
        scorers = {"decoder": make_whisper(kind)}
        search = build(
            ExplicitLengthBeamSearch, scorers, {"decoder": 1.0}, beam, V, primer=PRIMER
        )
        found.append(search(x, x_lengths=lengths, minlenratio=-3))
    for ours, theirs in zip(*found, strict=True):
        assert len(labels(ours[0], len(PRIMER))) >= 3
        assert [labels(h) for h in ours] == [labels(h) for h in theirs]
        for a, b in zip(ours, theirs):
            assert a.score == pytest.approx(b.score, abs=1e-3)
            assert a.original_score == pytest.approx(b.original_score, abs=1e-3)


@pytest.mark.parametrize("kind", [OpenAIWhisperDecoder, Uncached])
def test_output_is_cut_where_the_decoder_has_no_more_positions(
    make_whisper, kind, caplog
):
    """With `minlenratio` nothing may end before the last position."""
    search = build(
        ExplicitLengthBeamSearch,
        {"decoder": make_whisper(kind)},
        {"decoder": 1.0},
        2,
        V,
        primer=PRIMER,
    )
    frames, room = make_memory().frames(0), N_POSITIONS - len(PRIMER)
    # one label more than the limit: the end label of an output that was cut
    found = search(frames, maxlenratio=-room, minlenratio=-room)
    assert len(labels(found[0], len(PRIMER))) == room + 1
    assert "no positions" not in caplog.text
    longer = search(frames, maxlenratio=-room - 5, minlenratio=-room - 5)
    assert labels(longer[0], len(PRIMER)) == labels(found[0], len(PRIMER))
    assert longer[0].forced
    assert f"ended at position {room}: the decoder has no positions" in caplog.text


def test_a_primer_without_room_for_a_text(make_whisper):
    scorers = {"decoder": make_whisper()}
    primer = [EOS] * N_POSITIONS
    search = build(
        ExplicitLengthBeamSearch, scorers, {"decoder": 1.0}, 2, V, primer=primer
    )
    with pytest.raises(ValueError, match=f"of {N_POSITIONS} labels leaves no room"):
        search(make_memory().frames(0))


def test_everything_else_works_without_the_package_whisper(monkeypatch):
    for name in [*sys.modules, "whisper"]:
        if name.partition(".")[0] == "whisper":
            monkeypatch.setitem(sys.modules, name, None)  # its import fails
    fresh = runpy.run_path(cached_whisper.__file__)
    decoder = TransformerDecoder(V, D, 2, 24, 1)
    assert not fresh["supports"](decoder)
    assert isinstance(adapter_for("decoder", decoder, V, EOS), CachedTransformer)
