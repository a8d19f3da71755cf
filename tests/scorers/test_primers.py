"""A primer, e.g. the text before an utterance, costs a step, however long it is."""

import pytest
import torch
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias.scorers import adapter_for
from espnet_lenbias.scorers.fallback import BatchFallback
from tests.scorers.made import EOS, D, V, make_memory, sharpened, walk

PRIMER = (EOS, *(1 + i % (V - 2) for i in range(199)))


def make_scorer(name):
    torch.manual_seed(3)
    if name == "lm":
        return sharpened(TransformerLM(V, embed_unit=6, att_unit=8, unit=10, layer=2))
    return sharpened(TransformerDecoder(V, D, 2, 24, 2))


@pytest.mark.parametrize("name", ["decoder", "lm"])
@torch.no_grad()
def test_all_labels_in_one_pass(name):
    scorer, memory = make_scorer(name), make_memory()
    layers = scorer.decoders if name == "decoder" else scorer.encoder.encoders
    calls = []
    for layer in layers:
        layer.norm1.register_forward_hook(lambda *_: calls.append(1))
    adapter = adapter_for(name, scorer, V, EOS)
    steps = list(walk(adapter, memory, primer=PRIMER, steps=3))
    assert len(calls) == 3 * len(layers)
    slow = BatchFallback(scorer, is_decoder=name == "decoder", return_hs=False)
    expected = walk(slow, memory, primer=PRIMER, steps=3)
    for (_, ours), (_, theirs) in zip(steps, expected, strict=True):
        torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-4, rtol=0)
