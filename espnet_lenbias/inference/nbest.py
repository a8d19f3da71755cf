"""What is made of the n-best lists that ESPnet's objects return.

They are asked for more hypotheses than are returned where these are compared with one
another; then one of them is chosen, and the words of those that are left get confidences
and times.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from espnet_lenbias.inference.heard import heard_by
from espnet_lenbias.inference.model_checks import train_args_of
from espnet_lenbias.inference.times import tell_times
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
    products_of_words,
    without_smoothing,
    word_probabilities,
)
from espnet_lenbias.posteriors.labels import words_of_labels
from espnet_lenbias.posteriors.results import (
    Result,
    label_confidence,
    minimum_bayes_risk,
    posteriors_of,
    word_confidence,
)
from espnet_lenbias.posteriors.temperature import at_temperature
from espnet_lenbias.search.hypotheses import as_rated
from espnet_lenbias.search.primers import primer_length

_BONUS = "length_bonus"  # the scorer of ESPnet's that gives all labels the same

# Samples of the audio, or of each utterance of a batch.
Lengths = int | Sequence[int]


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
        search.keep_label_scores = options_of(model).uses_labels(name)


def decided(
    model: Any, decode: Callable[[], Any], lengths: Callable[[], Lengths]
) -> Any:
    """Call ESPnet's code, and choose from the n-best lists that it returns.

    Args:
        model: An inference object with `posterior_options`.
        decode: What is called; it may come here again for parts of what it decodes.
        lengths: Says of how many samples the audio is; asked for times only.

    Returns:
        What it returns: an n-best list, one with what else ESPnet returns, or a list of
        these for a batch, or for several speakers. Each is as long as `model.nbest`.
    """
    options = options_of(model)
    if not options.changes_results or vars(model).get("_gives_all"):
        return decode()
    nbest = model.nbest
    n_compared = options.n_compared(model.search, model.beam_search.beam_size, nbest)
    model._gives_all = True
    if n_compared > nbest:
        model.nbest = n_compared
    try:
        with heard_by(model.beam_search) if options.times else nullcontext():
            results = decode()
    finally:
        # else untouched: the search may have an `nbest` of its own, below
        if n_compared > nbest:
            model.nbest = nbest
        model._gives_all = False
    n_samples = lengths() if options.times else 0
    return _each_list(
        results, n_samples, lambda results, n: _chosen(model, results, n)[:nbest]
    )


def _each_list(
    results: Any,
    n_samples: Lengths,
    choose: Callable[[list[Result], int], list[Result]],
) -> Any:
    """Return what ESPnet has returned, each n-best list in it chosen from.

    Args:
        results: What ESPnet has returned.
        n_samples: Of the audio of all of it, or of each part.
        choose: Takes an n-best list and the number of samples of its audio.
    """
    if not results:  # of no utterance
        return results
    if isinstance(results, tuple):  # with predictions of the encoder, or a source text
        first, *more = results
        return (_each_list(first, n_samples, choose), *more)
    if isinstance(results[0], list) or isinstance(results[0][0], list):
        if isinstance(n_samples, int):
            n_samples = [n_samples] * len(results)
        parts = zip(results, n_samples, strict=True)
        return [_each_list(part, n, choose) for part, n in parts]
    return choose(results, n_samples if isinstance(n_samples, int) else 0)


def _chosen(model: Any, results: list[Result], n_samples: int) -> list[Result]:
    """Return an n-best list with the result first, and all that is asked for on it."""
    options = options_of(model)
    temperature = options.posterior_temperature
    results = [(*result[:-1], as_rated(result[-1])) for result in results]
    if options.uses_posteriors(model.search):
        for result, share in zip(results, posteriors_of(results, temperature)):
            result[-1].posterior = float(share)
    if options.decide == MBR:
        results = minimum_bayes_risk(results, temperature)
    measure = options.measure(model.search)
    if measure is not None:
        for rank, (text, *_, hypothesis) in enumerate(results[: model.nbest], 1):
            words, labels = (
                at_temperature(values, options.confidence_temperature).tolist()
                for values in confidence_of(model, results, rank, measure)
            )
            hypothesis.word_confidence = None if text is None else words
            hypothesis.label_confidence = labels
    if options.times:
        for result in results[: model.nbest]:
            tell_times(model, result, n_samples, options.times)
    return results


def confidence_of(
    model: Any, nbest: Sequence[Result], rank: int, measure: str
) -> tuple[Floats, Floats]:
    """Return how sure the words and the labels of a hypothesis are.

    Args:
        model: The inference object that the n-best list is of. Where `measure` looks at
            labels it should be one with `confidence`, whose hypotheses carry scores of
            labels; without, all labels have their geometric mean.
        nbest: The list.
        rank: Of the hypothesis.
        measure: One of `CONFIDENCES` of :mod:`espnet_lenbias.options.posteriors`.

    Returns:
        A number from 0 to 1 for each word, and one for each label.
    """
    result = nbest[rank - 1]
    if measure == LABEL_PROBABILITY:
        return _probabilities(model, result, 0.0, word_probabilities)
    temperature = options_of(model).posterior_temperature
    words = np.array(word_confidence(nbest, rank, temperature))
    labels = np.array(label_confidence(nbest, rank, temperature))
    if measure == POSTERIOR:
        return words, labels
    probable = _probabilities(model, result, label_smoothing(model), products_of_words)
    return np.sqrt(words * probable[0]), np.sqrt(labels * probable[1])


def label_smoothing(model: Any) -> float:
    """Return the label smoothing that is still in the scores of a model's decoder.

    It counts where the decoder alone scores: what it does to a sum with other scores is
    not known. A search with the option `label_smoothing` has taken it out already.
    """
    search = model.beam_search
    taken_out: float = getattr(search, "label_smoothing", 0.0)
    if {*search.scorers} - {_BONUS} != {"decoder"} or taken_out:
        return 0.0
    conf = getattr(train_args_of(model), "model_conf", None) or {}
    return float(conf.get("lsm_weight", 0.0))


def _probabilities(
    model: Any,
    result: Result,
    smoothing: float,
    of_words: Callable[[Floats, Sequence[int] | None, int], Floats],
) -> tuple[Floats, Floats]:
    """Return the probability of each word of a result, and of each label.

    Args:
        model: An inference object.
        result: One line of an n-best list.
        smoothing: The label smoothing whose effect is taken away; 0: none.
        of_words: What makes probabilities of words of those of labels.
    """
    text, tokens, token_ids, *_, hypothesis = result
    search = model.beam_search
    labels = _of_labels(search, hypothesis, token_ids) ** (1 / _total_weight(search))
    if smoothing:
        labels = without_smoothing(labels, smoothing, search.n_vocab)
    if text is None:  # its words are its labels
        return labels, labels
    n_words = len(text.split())
    places = words_of_labels(tokens, n_words, model.tokenizer.tokens2text)
    return of_words(labels, places, n_words), labels


def _weights(search: Any) -> dict[str, float]:
    """Return the weight of each scorer of a search."""
    weights: Mapping[str, float] = getattr(search, "weights", {})
    return {name: weights.get(name, 0.0) for name in search.scorers}


def _total_weight(search: Any) -> float:
    """Return the weights of all that tell labels apart in a search together.

    Scores are sums of log-probs by these weights. Divided by their total they are the
    logarithm of a mean of probabilities, the geometric one.
    """
    total = sum(w for name, w in _weights(search).items() if name != _BONUS)
    return total if total > 0 else 1.0


def _of_labels(search: Any, hypothesis: Any, token_ids: Sequence[int]) -> Floats:
    """Return the probability of each label of a result, as well as it is known.

    What `penalty` has added to the score of each label is no probability: it is taken
    away.
    """
    bonus = _weights(search).get(_BONUS, 0.0)
    scores = getattr(hypothesis, "label_scores", None)
    yseq = [int(label) for label in hypothesis.yseq]
    if scores is not None:
        return label_probabilities(yseq, [s - bonus for s in scores], token_ids)
    n_labels = len(yseq) - primer_length(getattr(search, "hyp_primer", None), yseq)
    total = float(getattr(hypothesis, "original_score", hypothesis.score))
    return mean_probability(total - bonus * n_labels, n_labels, len(token_ids))
