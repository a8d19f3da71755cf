"""Scorers of a few units, and random prefixes for them."""

import pytest
import torch
from espnet2.asr.decoder.rnn_decoder import RNNDecoder
from espnet2.asr.decoder.whisper_decoder import OpenAIWhisperDecoder

from espnet_lenbias.scorers import EncoderOutput, Prefixes, Selection, products
from espnet_lenbias.scorers.base import make_spans

V, D, EOS = 11, 16, 10
LENGTHS = [7, 9, 4]
N_POSITIONS = 14

ATTENTIONS = [
    "noatt",
    "dot",
    "add",
    "location",
    "location2d",
    "location_recurrent",
    "coverage",
    "coverage_location",
    "multi_head_dot",
    "multi_head_add",
    "multi_head_loc",
    "multi_head_multi_res_loc",
]

needs_half = pytest.mark.skipif(
    torch.backends.quantized.engine not in products._HALF_ENGINES,
    reason="torch has no such product for this processor",
)


def make_memory(seed=0):
    torch.manual_seed(seed)
    x = torch.randn(len(LENGTHS), max(LENGTHS), D)
    for b, n in enumerate(LENGTHS):
        x[b, n:] = 1e3  # what is behind an utterance must play no part
    return EncoderOutput(x, LENGTHS)


def sharpened(module):
    """Make a random module's outputs differ clearly from label to label."""
    for p in module.parameters():
        p.data.mul_(2.0)
    return module.eval()


def walk(adapter, memory, primer=(EOS,), steps=5, wanted=None):
    """Score random prefixes: ragged, reordered, one utterance leaving half way.

    Yields (prefixes, scores) of each position; the same for whatever adapter.
    """
    rng = torch.Generator().manual_seed(1)
    n = len(memory)
    yseq = torch.tensor([primer] * n)
    spans = make_spans(list(range(n)), [1] * n)
    state = adapter.start(memory)
    for step in range(steps):
        prefixes = Prefixes(yseq, spans, len(primer))
        labels_wanted = None
        if wanted is not None:
            rows = [torch.randperm(V - 1, generator=rng)[:wanted] for _ in yseq]
            labels_wanted = torch.stack(rows)
        result = adapter.step(state, prefixes, labels_wanted)
        yield prefixes, result
        parents, labels, utts, counts = [], [], [], []
        for utt, start, stop in spans:
            if step == 2 and utt == 1:
                continue
            count = int(torch.randint(1, 5, (), generator=rng))
            for _ in range(count):
                row = int(torch.randint(start, stop, (), generator=rng))
                parents.append(row)
                pick = torch.randint(V - 1, (), generator=rng)
                if labels_wanted is not None:
                    pick = labels_wanted[row, pick % wanted]
                labels.append(int(pick))
            utts.append(utt)
            counts.append(count)
        spans = make_spans(utts, counts)
        parents, labels = torch.tensor(parents), torch.tensor(labels)
        yseq = torch.cat([yseq[parents], labels.unsqueeze(1)], dim=1)
        state = adapter.select(result.state, Selection(parents, parents, labels, spans))


def assert_same_scores(adapter, reference, **kwargs):
    memory = make_memory()
    pairs = zip(walk(adapter, memory, **kwargs), walk(reference, memory, **kwargs))
    for (_, ours), (_, theirs) in pairs:
        torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-4, rtol=0)
        if theirs.hs is not None:
            torch.testing.assert_close(ours.hs, theirs.hs, atol=1e-4, rtol=0)


def make_rnn(atype="location", seed=3, aconv_filts=4, **conf):
    torch.manual_seed(seed)
    att_conf = dict(atype=atype, num_att=1, adim=8, aheads=2, awin=3)
    att_conf |= dict(aconv_chans=3, aconv_filts=aconv_filts)
    decoder = RNNDecoder(V, D, hidden_size=12, att_conf=att_conf, **conf)
    return sharpened(decoder)


def whisper_maker(monkeypatch):
    """Return what builds ESPnet's decoder, with random weights in the place of OpenAI's."""
    whisper = pytest.importorskip(
        "whisper", reason="needs Whisper: pip install 'espnet_lenbias[whisper]'"
    )

    def load_model(name, download_root, device):
        dims = whisper.model.ModelDimensions(
            n_mels=4,
            n_audio_ctx=6,
            n_audio_state=D,
            n_audio_head=2,
            n_audio_layer=1,
            n_vocab=V,
            n_text_ctx=N_POSITIONS,
            n_text_state=D,
            n_text_head=2,
            n_text_layer=2,
        )
        model = whisper.model.Whisper(dims)
        torch.nn.init.normal_(model.decoder.positional_embedding)
        return model

    def make(kind=OpenAIWhisperDecoder, vocab_size=V, **conf):
        torch.manual_seed(3)
        decoder = sharpened(kind(vocab_size, D, whisper_model="tiny", **conf))
        # scores of moderate size, so that rounding stays far below the tolerances
        decoder.decoders.ln.weight.data /= 5
        return decoder

    monkeypatch.setattr(whisper, "load_model", load_model)
    return make


def is_laid_out(module: torch.nn.Module, as_halves: bool = False) -> bool:
    found = products._laid_out.get(module, {}).values()
    return bool(found) and all(matrix.is_half == as_halves for matrix in found)
