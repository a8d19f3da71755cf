"""Both kinds of search, with the options that change how hypotheses end."""

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests.tables import near
from tests.toys import build

SIMPLE = [
    {},
    {"length_norm": True},
    {"keep_ended": "separate"},
    {"eos_threshold": 1.5},
    {"length_reward": 0.5},
]
SEARCHES = [
    (ExplicitLengthBeamSearch, {}),
    *[(SimpleBeamSearch, options) for options in SIMPLE],
]
both = pytest.mark.parametrize("kind", [ExplicitLengthBeamSearch, SimpleBeamSearch])
every = pytest.mark.parametrize("kind, options", SEARCHES)


def searching(kind, scorer, beam, **options):
    """Return a search by one scorer of weight 1."""
    return build(
        kind, {"decoder": scorer}, {"decoder": 1.0}, beam, scorer.vocab, **options
    )


def assert_alike(hyps, others):
    """Compare labels, and scores but for rounding."""
    assert [h.yseq.tolist() for h in hyps] == [h.yseq.tolist() for h in others]
    assert [h.score for h in hyps] == near([h.score for h in others])
    assert [h.original_score for h in hyps] == near([h.original_score for h in others])
