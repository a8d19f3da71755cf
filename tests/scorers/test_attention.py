"""The cache of the labels against one that copies everything at every position."""

import pytest
import torch

from espnet_lenbias.espnet_compat import MultiHeadedAttention
from espnet_lenbias.scorers import Selection
from espnet_lenbias.scorers.attention import by_rows
from espnet_lenbias.scorers.label_cache import GatheredLabels, LabelCache, take_rows

N_HEADS, D = 2, 6


def test_rows_of_children_by_hand():
    # parents 0, 1, 2 in rows 2, 0, 1. Of the children 1 1 2 0 0, the first of each
    # takes over its parent's row; the second of 1 and of 0 get rows 3 and 4.
    rows, copied, sources = take_rows(
        torch.tensor([2, 0, 1]), torch.tensor([1, 1, 2, 0, 0])
    )
    assert rows.tolist() == [0, 3, 1, 2, 4]
    assert copied.tolist() == [3, 4]
    assert sources.tolist() == [0, 2]


def test_what_lies_behind_the_last_row_moves_up():
    # of three only the one in row 2 has a child, and one child has row 0
    rows, copied, sources = take_rows(torch.tensor([1, 2, 0]), torch.tensor([1]))
    assert (rows.tolist(), copied.tolist(), sources.tolist()) == ([0], [0], [2])


def test_nothing_is_copied_where_each_has_one_child():
    rows, copied, _ = take_rows(torch.tensor([1, 0, 2]), torch.tensor([2, 0, 1]))
    assert rows.tolist() == [2, 1, 0]
    assert not len(copied)


@pytest.mark.parametrize("kind", [LabelCache, GatheredLabels])
@pytest.mark.parametrize("seed", range(20))
def test_cache_holds_the_past_of_each_hypothesis(seed, kind):
    """The twin keeps a plain list of what each hypothesis has seen."""
    rng = torch.Generator().manual_seed(seed)
    attentions = [MultiHeadedAttention(N_HEADS, D, 0.0) for _ in range(2)]
    cache = kind.empty(attentions, torch.zeros(1))
    n, twin = 1, [[]]
    for position in range(20):
        cache = cache.with_room()
        new = torch.randn(n, N_HEADS, D // N_HEADS, generator=rng)
        order = torch.arange(n) if cache.to_rows is None else cache.to_rows
        for i, layer in enumerate(map(cache.layer, range(2))):
            layer.keys[:n, position] = new[order] + i
            layer.values[:n, position] = new[order] - i
        cache = cache.filled()
        twin = [past + [new[i]] for i, past in enumerate(twin)]

        m = int(torch.randint(1, 9, (), generator=rng))
        parents = torch.randint(n, (m,), generator=rng)
        cache = cache.select(Selection(parents, parents, parents, []))
        twin = [twin[p] for p in parents.tolist()]
        n = m
        expected = torch.stack([torch.stack(past) for past in twin])
        rows = cache.rows if kind is LabelCache else torch.arange(n)
        for i, layer in enumerate(map(cache.layer, range(2))):
            keys, values = (v[rows, : position + 1] for v in layer)
            assert torch.equal(keys, expected + i)
            assert torch.equal(values, expected - i)


@pytest.mark.parametrize("n", [1, 1024, 1025, 1280, 1500])
def test_rows_taken_some_at_a_time_give_the_same(n):
    torch.manual_seed(0)
    layer, x, seen = torch.nn.Linear(3, 5), torch.randn(n, 3), []

    def function(part):
        seen.append(len(part))
        return layer(part)

    torch.testing.assert_close(by_rows(function, x), layer(x))
    assert sum(seen) == n
    assert max(seen) <= 1024
