"""What decoders attend to along a text, against what else tells of it."""

import base64
import gzip

import numpy as np
import pytest
import torch
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder

from espnet_lenbias.inference.decoder_attention import (
    attention_along,
    has_known_attention,
)
from tests.scorers.made import ATTENTIONS, EOS, D, V, make_rnn, sharpened

T = 7
LABELS = [EOS, 2, 3, 2]
CONF = {"attention_heads": 2, "linear_units": 8, "num_blocks": 2}


def make_transformer(**conf):
    torch.manual_seed(0)
    return sharpened(TransformerDecoder(V, D, **CONF, **conf)).eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(T, D, generator=torch.Generator().manual_seed(1))


def first_layer(decoder, x: torch.Tensor, labels) -> torch.Tensor:
    """Return the attention of the first layer to the frames, written out."""
    layer, ys = decoder.decoders[0], torch.tensor([labels])
    y = decoder.embed(ys)
    future = torch.ones(len(labels), len(labels)).tril()[None].bool()
    y = y + layer.self_attn(*[layer.norm1(y)] * 3, future)
    attention = layer.src_attn
    q = attention.linear_q(layer.norm2(y)[0]).view(len(labels), 2, D // 2)
    k = attention.linear_k(x).view(len(x), 2, D // 2)
    return (torch.einsum("nhd,thd->hnt", q, k) / (D // 2) ** 0.5).softmax(-1)


@torch.no_grad()
def test_a_transformer_has_all_heads_of_all_layers(x):
    decoder = make_transformer()
    found = attention_along(decoder, x, LABELS)
    assert found.shape == (4, len(LABELS), T)
    np.testing.assert_allclose(found[:2], first_layer(decoder, x, LABELS), atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-5)


def test_attention_in_one_kernel_is_asked_for_weights(x):
    """And computes as before afterwards."""
    decoder = make_transformer()
    expected = attention_along(decoder, x, LABELS)
    fused = [m for m in decoder.modules() if hasattr(m, "use_sdpa")]
    if not fused:
        pytest.skip("this release of ESPnet has no such kernel")
    for module in fused:
        module.use_sdpa = True
    np.testing.assert_allclose(attention_along(decoder, x, LABELS), expected, atol=1e-5)
    assert all(module.use_sdpa for module in fused)


@pytest.mark.parametrize("atype", [name for name in ATTENTIONS if name != "noatt"])
@torch.no_grad()
def test_an_rnn_has_what_it_attends_to_label_by_label(x, atype):
    """ESPnet's scorer keeps the attention of the last label in its state."""
    decoder = make_rnn(atype)
    assert has_known_attention(decoder)
    found = attention_along(decoder, x, LABELS)
    n_heads = 2 if atype.startswith("multi_head") else 1
    assert found.shape == (n_heads, len(LABELS), T)
    state = decoder.init_state(x)
    for n in range(len(LABELS)):
        _, state = decoder.score(torch.tensor(LABELS[: n + 1]), state, x)
        last = state["a_prev"]
        if atype == "location_recurrent":
            last = last[0]
        elif atype == "location2d":
            last = last[:, -1]
        elif atype.startswith("coverage"):
            last = last[-1]
        last = torch.stack(list(last)) if isinstance(last, list) else last
        np.testing.assert_allclose(found[:, n], last.view(n_heads, T), atol=1e-5)


@torch.no_grad()
def test_labels_are_those_that_are_given(x):
    """Also to a decoder that was trained on labels of its own."""
    expected = attention_along(make_rnn(), x, LABELS)
    sampling = make_rnn(sampling_probability=1.0)
    found = attention_along(sampling, x, LABELS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert sampling.sampling_probability == 1.0


def test_whose_attention_is_known():
    assert has_known_attention(make_transformer())
    assert not has_known_attention(make_rnn("noatt"))
    assert not has_known_attention(RNNDecoder(V, D, num_encs=2, att_conf=TWO_ENCODERS))
    assert not has_known_attention(torch.nn.Linear(2, 2))
    assert not has_known_attention(None)


TWO_ENCODERS = {
    "num_encs": 2,
    "atype": ["dot", "dot"],
    "adim": [8, 8],
    "awin": [3, 3],
    "aheads": [2, 2],
    "aconv_chans": [2, 2],
    "aconv_filts": [3, 3],
    "han_type": "dot",
    "han_dim": 8,
    "han_heads": 2,
    "han_conv_chans": 2,
    "han_conv_filts": 3,
    "han_win": 3,
}


# --- Whisper --------------------------------------------------------------------------


@pytest.fixture
def whisper_decoder(monkeypatch):
    whisper = pytest.importorskip("whisper", reason="needs Whisper")
    dims = whisper.model.ModelDimensions(
        n_mels=80,
        n_audio_ctx=T,
        n_audio_state=D,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=V,
        n_text_ctx=9,
        n_text_state=D,
        n_text_head=2,
        n_text_layer=2,
    )
    torch.manual_seed(0)
    model = whisper.model.Whisper(dims)
    torch.nn.init.normal_(model.decoder.positional_embedding)
    monkeypatch.setattr(whisper, "load_model", lambda *_, **__: model)
    from espnet_lenbias.espnet_compat import OpenAIWhisperDecoder

    decoder = sharpened(OpenAIWhisperDecoder(V, D, whisper_model="tiny")).eval()
    assert has_known_attention(decoder)
    return decoder


@torch.no_grad()
def whispers_own(decoder, x: torch.Tensor) -> np.ndarray:
    """Return what openai-whisper's own attention gives where it does not fuse it."""
    from whisper.model import disable_sdpa

    found = []
    hooks = [
        block.cross_attn.register_forward_hook(lambda _, __, out: found.append(out[1]))
        for block in decoder.decoders.blocks
    ]
    with disable_sdpa():
        n = torch.tensor([len(LABELS)])
        decoder(x[None], torch.tensor([T]), torch.tensor([LABELS]), n)
    for hook in hooks:
        hook.remove()
    return torch.cat(found).softmax(-1).numpy()  # (layers, heads, N, T)


def test_whisper_has_the_upper_half_of_its_layers(whisper_decoder, x):
    found = attention_along(whisper_decoder, x, LABELS, "of/somebody.pt")
    expected = whispers_own(whisper_decoder, x)[1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_openai_says_which_heads_follow_the_audio(whisper_decoder, x, monkeypatch):
    import whisper

    heads = np.array([[False, True], [True, False]])
    packed = base64.b85encode(gzip.compress(heads.tobytes()))
    monkeypatch.setitem(whisper._ALIGNMENT_HEADS, "tiny", packed)
    found = attention_along(whisper_decoder, x, LABELS, "tiny")
    expected = whispers_own(whisper_decoder, x)[[0, 1], [1, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_heads_of_another_size_say_nothing(whisper_decoder, x):
    """OpenAI's tiny has 4 layers of 6 heads."""
    found = attention_along(whisper_decoder, x, LABELS, "tiny")
    np.testing.assert_allclose(found, whispers_own(whisper_decoder, x)[1], atol=1e-5)
