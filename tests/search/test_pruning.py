"""The choice of the best extensions."""

import math

import pytest
import torch

from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search import pruning
from espnet_lenbias.search.pruning import Grid


@pytest.fixture(params=[0, 2**62], ids=["by parts", "at once"])
def ways(request, monkeypatch):
    """Small numbers take the way of large ones, and their own."""
    monkeypatch.setattr(pruning, "_MANY", request.param)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("k", [1, 7, 40, 130])
@pytest.mark.parametrize("impossible", [0.3, 0.99])
@pytest.mark.parametrize("seed", range(10))
def test_best_of_many_are_the_best_of_all(seed, impossible, k, ways):
    """Sorting says what is right."""
    rng = torch.Generator().manual_seed(seed)
    values = torch.randint(300, (42, 51), generator=rng).float()  # with ties
    values[torch.rand(42, 51, generator=rng) < impossible] = -math.inf
    found = Grid(make_spans([0], [42]), values.device).top(values, k)
    expected = sorted(values.flatten().tolist(), reverse=True)[:k]
    assert found.values[0].tolist() == expected
    assert values[found.parents[0], found.labels[0]].tolist() == expected
    chosen = list(zip(found.parents[0].tolist(), found.labels[0].tolist()))
    assert len(set(chosen)) == k


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("counts", [[3, 3], [1, 4, 2], [4, 1]], ids=str)
@pytest.mark.parametrize("k", [1, 5, 40])
def test_best_of_each_slot(counts, k):
    """Sorting says what is right, slot by slot; what is short is filled with -inf."""
    rng = torch.Generator().manual_seed(k)
    values = torch.randn(sum(counts), 6, generator=rng)
    values[torch.rand(values.shape, generator=rng) < 0.4] = -math.inf
    spans = make_spans([*range(len(counts))], counts)
    grid = Grid(spans, values.device)
    found = grid.top(values, k)
    for slot, span in enumerate(spans):
        mine = values[span.rows].flatten()
        expected = [v for v in sorted(mine.tolist(), reverse=True)[:k] if v > -math.inf]
        best = found.values[slot]
        assert best[: len(expected)].tolist() == expected
        assert (best[len(expected) :] == -math.inf).all()
        parents, labels = found.parents[slot], found.labels[slot]
        assert values[parents, labels][: len(expected)].tolist() == expected
        assert parents[: len(expected)].tolist() == [
            p for p in parents[: len(expected)].tolist() if span.start <= p < span.stop
        ]
    assert found.parents.max() < len(values)
    assert grid.repeat([*range(len(counts))]).tolist() == [
        slot for slot, count in enumerate(counts) for _ in range(count)
    ]


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("where", [(0, 0), (1, 1), (39, 4)])
def test_nan_is_not_lost_among_many(where, ways):
    values = torch.arange(200.0).view(40, 5)
    values[where] = math.nan
    found = Grid(make_spans([0], [40]), values.device).top(values, 3)
    assert math.isnan(found.values[0, 0])
    best = [198.0, 197.0] if where == (39, 4) else [199.0, 198.0]
    assert found.values[0, 1:].tolist() == best
