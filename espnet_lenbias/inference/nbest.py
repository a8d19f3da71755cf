"""What is made of the n-best lists that ESPnet's objects return.

They are asked for more hypotheses than are returned where these are compared with one
another; then one of them is chosen, and the words of those that are left get a
confidence.
"""

from collections.abc import Callable, Sequence
from typing import Any

from espnet_lenbias.espnet_compat import Hypothesis as EspnetHypothesis
from espnet_lenbias.options.posteriors import (
    LABEL_PROBABILITY,
    MBR,
    POSTERIOR,
    PosteriorOptions,
)
from espnet_lenbias.posteriors.distribution import Floats
from espnet_lenbias.posteriors.label_probability import (
    label_probabilities,
    mean_probability,
    word_probabilities,
    words_of_labels,
)
from espnet_lenbias.posteriors.results import (
    label_confidence,
    minimum_bayes_risk,
    posteriors_of,
    word_confidence,
)
from espnet_lenbias.search.hypotheses import RatedHypothesis

# (text, tokens, token ids, hypothesis); of s2t with one more text before the hypothesis.
Result = tuple[Any, ...]


def options_of(model: Any) -> PosteriorOptions:
    """Return what is to be made of a model's n-best lists: nothing of ESPnet's own's."""
    options: PosteriorOptions = getattr(model, "posterior_options", PosteriorOptions())
    return options


def keep_what_is_needed(model: Any, name: str, search: Any) -> None:
    """Have a search keep what a model's confidences are made of.

    Args:
        model: An inference object.
        name: The name of the search.
        search: The search; those of other packages, and ESPnet's, keep nothing.
    """
    if hasattr(search, "keep_label_scores"):
        measure = options_of(model).measure(name)
        search.keep_label_scores = measure == LABEL_PROBABILITY


def decided(model: Any, decode: Callable[[], Any]) -> Any:
    """Call ESPnet's code, and choose from the n-best lists that it returns.

    Args:
        model: An inference object with `posterior_options`.
        decode: What is called; it may come here again for parts of what it decodes.

    Returns:
        What it returns: an n-best list, one with what else ESPnet returns, or a list of
        these for a batch, or for several speakers. Each is as long as `model.nbest`.
    """
    options = options_of(model)
    if not options.changes_results or vars(model).get("_gives_all"):
        return decode()
    nbest = model.nbest
    model._gives_all = True
    model.nbest = options.n_compared(model.search, model.beam_search.beam_size, nbest)
    try:
        results = decode()
    finally:
        model.nbest = nbest
        model._gives_all = False
    return _each_list(results, lambda results: _chosen(model, results)[:nbest])


def _each_list(results: Any, choose: Callable[[list[Result]], list[Result]]) -> Any:
    """Return what ESPnet has returned, each n-best list in it chosen from."""
    if isinstance(results, tuple):  # with predictions of the encoder, or a source text
        first, *more = results
        return (_each_list(first, choose), *more)
    if results and (isinstance(results[0], list) or isinstance(results[0][0], list)):
        return [_each_list(part, choose) for part in results]
    return choose(results)


def _chosen(model: Any, results: list[Result]) -> list[Result]:
    """Return an n-best list with the result first and confidences on what is returned."""
    options = options_of(model)
    temperature = options.posterior_temperature
    results = [(*result[:-1], _rated(result[-1])) for result in results]
    if options.uses_posteriors(model.search):
        for result, share in zip(results, posteriors_of(results, temperature)):
            result[-1].posterior = float(share)
    if options.decide == MBR:
        results = minimum_bayes_risk(results, temperature)
    measure = options.measure(model.search)
    for rank, (text, *_, hypothesis) in enumerate(results[: model.nbest], 1):
        words: list[float] = []
        if measure == POSTERIOR:
            words = word_confidence(results, rank, temperature)
            labels = label_confidence(results, rank, temperature)
        elif measure == LABEL_PROBABILITY:
            words, labels = _probabilities(model, results[rank - 1])
        else:
            continue
        hypothesis.word_confidence = None if text is None else words
        hypothesis.label_confidence = labels
    return results


def _rated(hypothesis: Any) -> Any:
    """Return a hypothesis that can carry its confidence."""
    if isinstance(hypothesis, RatedHypothesis):
        return hypothesis
    if isinstance(hypothesis, EspnetHypothesis):
        return RatedHypothesis(*hypothesis)
    raise TypeError(f"a {type(hypothesis).__name__} carries no confidence")


def _probabilities(model: Any, result: Result) -> tuple[list[float], list[float]]:
    """Return the mean label probability of each word of a result, and of each label."""
    text, tokens, token_ids, *_, hypothesis = result
    labels = _of_labels(hypothesis, token_ids)
    if text is None:
        return [], labels.tolist()
    n_words = len(text.split())
    places = words_of_labels(tokens, n_words, model.tokenizer.tokens2text)
    return word_probabilities(labels, places, n_words).tolist(), labels.tolist()


def _of_labels(hypothesis: Any, token_ids: Sequence[int]) -> Floats:
    """Return the probability of each label of a result, as well as it is known."""
    scores = getattr(hypothesis, "label_scores", None)
    yseq = [int(label) for label in hypothesis.yseq]
    if scores is not None:
        return label_probabilities(yseq, scores, token_ids)
    total = getattr(hypothesis, "original_score", hypothesis.score)
    return mean_probability(float(total), len(yseq) - 1, len(token_ids))
