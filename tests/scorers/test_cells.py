"""The grid of (utterances, places), and what is computed in it against the slow twin."""

import pytest
import torch
from espnet2.asr.ctc import CTC
from espnet2.asr.decoder.transformer_decoder import TransformerDecoder
from espnet2.lm.transformer_lm import TransformerLM

from espnet_lenbias.espnet_compat import CTCPrefixScorer
from espnet_lenbias.scorers import Selection, adapter_for, cells
from espnet_lenbias.scorers import rnn_frames as rnn_frames_module
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.scorers.cells import Cells, padded_frames, prefers_grid
from tests.scorers.made import EOS, LENGTHS, D, V, make_memory, make_rnn, walk


def select(grid, utts, counts, parents):
    parents = torch.tensor(parents)
    spans = make_spans(utts, counts)
    return grid.select(Selection(parents, parents, parents, spans))


def test_a_cpu_keeps_its_own_way():
    assert not prefers_grid(torch.device("cpu"))
    assert prefers_grid(torch.device("cuda"))


def test_cells_by_hand():
    grid = Cells.first(3)
    # hypotheses 0 1 | 2 | 3 4 5 of three utterances, in a grid of three places each
    grid, parents, rows = select(grid, [0, 1, 2], [2, 1, 3], [0, 0, 1, 2, 2, 2])
    assert (grid.utts, grid.width, rows) == ([0, 1, 2], 3, None)
    assert grid.places.tolist() == [0, 1, 3, 6, 7, 8]
    # a spare cell takes the place of the first hypothesis
    assert grid.hypotheses.tolist() == [0, 1, 0, 2, 0, 0, 3, 4, 5]
    assert parents.tolist() == [0, 0, 0, 1, 0, 0, 2, 2, 2]
    values = torch.arange(6.0) * 10
    assert grid.spread(values).tolist() == [0, 10, 0, 20, 0, 0, 30, 40, 50]
    assert grid.collect(grid.spread(values)).tolist() == values.tolist()

    # the second utterance has finished: its row stays, and so does the width
    grid, parents, rows = select(grid, [0, 2], [1, 2], [1, 3, 5])
    assert (grid.utts, grid.width, rows) == ([0, 1, 2], 3, None)
    assert grid.places.tolist() == [0, 6, 7]
    assert parents[grid.places].tolist() == [1, 6, 8]

    # half of the rows would do, and half of the places
    grid, parents, rows = select(grid, [2], [1], [2])
    assert (grid.utts, grid.width, rows.tolist()) == ([2], 1, [2])
    assert parents.tolist() == [7]
    assert grid.hypotheses is None


def test_a_full_grid_is_not_laid_out():
    grid, parents, _ = select(Cells.first(2), [0, 1], [2, 2], [0, 0, 1, 1])
    assert grid.cells is None and grid.hypotheses is None
    assert parents.tolist() == [0, 0, 1, 1]


def test_padding_is_zero_whatever_it_was():
    x = torch.tensor([[[1.0], [2.0], [torch.nan]], [[3.0], [torch.inf], [torch.nan]]])
    frames, inside = padded_frames(x, [2, 1])
    assert frames.tolist() == [[[1.0], [2.0]], [[3.0], [0.0]]]
    assert inside.tolist() == [[True, True], [True, False]]


def both_ways(adapter, monkeypatch, **kwargs):
    """What an adapter says by utterance, and in the grid."""
    slow = [result for _, result in walk(adapter, make_memory(), **kwargs)]
    monkeypatch.setattr(cells, "_WITHOUT_LAUNCHES", frozenset())
    fast = [result for _, result in walk(adapter, make_memory(), **kwargs)]
    return zip(slow, fast, strict=True)


@pytest.mark.parametrize("name", ["transformer", "lstm", "gru", "lm"])
@pytest.mark.parametrize("primer", [(EOS,), (EOS, 3, 5)], ids=["sos", "long primer"])
@torch.no_grad()
def test_scores_are_those_of_the_slow_twin(name, primer, monkeypatch):
    scorer = plain(name)
    attends = {} if name == "lm" else {"return_attention": True}
    adapter = adapter_for("decoder", scorer, V, EOS, **attends)
    for slow, fast in both_ways(adapter, monkeypatch, primer=primer, steps=12):
        torch.testing.assert_close(fast.scores, slow.scores, atol=1e-5, rtol=0)
        if attends:
            assert fast.attention.shape[1] == max(LENGTHS)
            close = torch.testing.assert_close
            close(fast.attention, slow.attention, atol=1e-5, rtol=0)


def plain(name):
    """A scorer whose scores are of ordinary size, so that 1e-5 means something."""
    torch.manual_seed(5)
    if name == "transformer":
        return TransformerDecoder(V, D, 2, 24, 2).eval()
    if name == "lm":
        return TransformerLM(V, embed_unit=6, att_unit=8, unit=10, layer=2).eval()
    return make_rnn(rnn_type=name, num_layers=2)


@pytest.mark.parametrize("wanted", [None, 6])
@torch.no_grad()
def test_ctc_scores_are_those_of_the_slow_twin(wanted, monkeypatch):
    torch.manual_seed(5)
    adapter = adapter_for("ctc", CTCPrefixScorer(CTC(V, D).eval(), EOS), V, EOS)
    compared = 0
    for slow, fast in both_ways(adapter, monkeypatch, wanted=wanted, steps=8):
        # behind a prefix that is impossible every score is one of rounding
        likely = slow.scores > -1e4
        close = torch.testing.assert_close
        close(fast.scores[likely], slow.scores[likely], atol=1e-5, rtol=1e-6)
        assert torch.equal(fast.scores == -torch.inf, slow.scores == -torch.inf)
        compared += int(likely.sum())
    assert compared > 100


@torch.no_grad()
def test_a_few_places_at_a_time_are_as_good_as_all(monkeypatch):
    monkeypatch.setattr(rnn_frames_module, "_ELEMENTS", 2 * 8 * sum(LENGTHS))
    adapter = adapter_for("decoder", make_rnn(), V, EOS)
    for slow, fast in both_ways(adapter, monkeypatch):
        torch.testing.assert_close(fast.scores, slow.scores, atol=1e-5, rtol=0)
