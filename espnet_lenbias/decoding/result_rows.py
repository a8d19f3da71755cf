"""What an utterance's result puts into each result file."""

from collections.abc import Sequence
from typing import Any

from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.decoding.result_folder import empty_value
from espnet_lenbias.search.hypotheses import Hypothesis, RatedHypothesis

# ESPnet's result for one utterance, best first: (text, tokens, token ids, hypothesis),
# or of s2t (text, tokens, token ids, text without special symbols, hypothesis).
NBest = Sequence[tuple[Any, ...]]


def result_row(
    results: Any,
    nbest: int,
    multi_speaker: bool = False,
    source_nbest: int = 1,
    second: float = 1.0,
) -> ResultRow:
    """Return what an utterance's result puts into each file.

    Args:
        results: What ESPnet's inference object returns for it.
        nbest: How many ranks have files.
        multi_speaker: Whether there is an n-best list for each speaker.
        source_nbest: How many ranks of the source text of a translation have files.
        second: How long what the model takes for a second of the audio lasts, s.
    """
    if multi_speaker:
        rows = (
            _nbest_row(nbest_list, nbest, f"_spk{speaker}", second)
            for speaker, nbest_list in enumerate(results, 1)
        )
        return {name: value for row in rows for name, value in row.items()}
    more: Any = {}
    if isinstance(results, tuple):
        results, more = results
    row = _nbest_row(results, nbest, "", second)
    if isinstance(more, dict):  # the encoder's intermediate predictions
        for layer, tokens in more.items():
            row[f"1best_recog/encoder_interctc_layer{layer}.txt"] = " ".join(tokens)
    else:
        row |= _source_row(more, source_nbest)
    return row


def _source_row(results: NBest, nbest: int) -> ResultRow:
    """Return the fields of the source text of a translation, where it is searched too.

    Args:
        results: (text, tokens, token ids, hypothesis, hidden states), best first.
        nbest: How many ranks have files.
    """
    row = _nbest_row([result[:4] for result in results], nbest, "")
    return {
        name.replace("best_recog/", "asr_best_recog/asr_"): value
        for name, value in row.items()
    }


def _nbest_row(
    results: NBest, nbest: int, suffix: str, second: float = 1.0
) -> dict[str, str]:
    """Return the fields of ranks 1 to `nbest`, empty ones where hypotheses run out."""
    if not results:
        raise ValueError("the search found no hypothesis; lower minlenratio")
    ranks = [_fields(*result, second=second) for result in results[:nbest]]
    blank = {name: empty_value(name) for name in ranks[0]}
    ranks += [blank] * (nbest - len(ranks))
    return {
        f"{n}best_recog/{name}{suffix}": value
        for n, fields in enumerate(ranks, 1)
        for name, value in fields.items()
    }


def _fields(
    text: str | None,
    tokens: list[str],
    token_ids: list[int],
    *more: Any,
    second: float,
) -> dict[str, str]:
    """Return the values that ESPnet writes for a hypothesis, and ours if it is ours."""
    *plain_text, hypothesis = more
    fields = {
        "token": " ".join(tokens),
        "token_int": " ".join(map(str, token_ids)),
        "score": str(hypothesis.score),
    }
    if text is not None:
        fields["text"] = text
    if plain_text and plain_text[0] is not None:
        fields["text_nospecial"] = plain_text[0]
    if isinstance(hypothesis, Hypothesis):
        fields["original_score"] = str(hypothesis.original_score)
        fields["steps"] = str(hypothesis.steps)
        fields["stopped"] = hypothesis.stopped
    if isinstance(hypothesis, RatedHypothesis):
        if hypothesis.posterior is not None:
            fields["posterior"] = f"{hypothesis.posterior:.6f}"
        for name in ("word_confidence", "label_confidence"):
            values = getattr(hypothesis, name)
            if values is not None:
                fields[name] = " ".join(f"{value:.6f}" for value in values)
        for name in ("word_times", "label_times"):
            if name in vars(hypothesis):  # asked for: an empty line where not known
                spans = getattr(hypothesis, name) or []
                fields[name] = " ".join(
                    f"{second * a:.3f}-{second * b:.3f}" for a, b in spans
                )
    return fields
