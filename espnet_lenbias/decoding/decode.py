"""Decoding a data set: batches in, result rows out; a failure costs one utterance."""

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import torch

from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.decoding.loading import Collate, Readable
from espnet_lenbias.decoding.log_markers import paired_markers
from espnet_lenbias.decoding.preprocessing import of_one
from espnet_lenbias.decoding.result_folder import Outcome
from espnet_lenbias.decoding.result_rows import result_row
from espnet_lenbias.decoding.utterances import Batch, Unreadable, reason


def decode(
    model: Any, batches: Iterable[Batch], collate: Collate
) -> Generator[Outcome, None, None]:
    """Decode batches of utterances.

    Args:
        model: ESPnet's or our inference object.
        batches: See :func:`espnet_lenbias.decoding.dataset.read_batches`.
        collate: ESPnet's, which pads the data of utterances into a batch.

    Yields:
        Every utterance's key with its result row or the reason why it has none, each as
        soon as it is there.
    """
    for batch in batches:
        readable, seconds = [], {}
        for key, data, warnings, second in batch:
            for kind, warning in warnings.items():
                logging.warning(f"Utterance {key}: {warning}", extra={kind: 1})
            if isinstance(data, Unreadable):
                yield key, data.reason
            else:
                readable.append((key, data))
                seconds[key] = second
        for alike in _alike(readable):
            yield from _recognise(model, alike, seconds, collate)


def _alike(batch: Readable) -> list[Readable]:
    """Divide a batch into what can be padded together: of as many channels."""
    parts: dict[Any, list[Any]] = {}
    for key, data in batch:
        shapes = tuple(sorted((name, x.shape[1:]) for name, x in data.items()))
        parts.setdefault(shapes, []).append((key, data))
    return list(parts.values())


def _recognise(
    model: Any, batch: Readable, seconds: Mapping[str, float], collate: Collate
) -> Iterator[Outcome]:
    """Yield the key of each utterance with its row, or with the reason of its failure.

    Where a batch fails its utterances are tried one by one.

    Args:
        model: See :func:`decode`.
        batch: What is decoded together.
        seconds: Of each utterance, see :attr:`Read.second`.
        collate: See :func:`decode`.
    """
    if not batch:
        return
    keys = [key for key, _ in batch]
    try:
        with paired_markers(keys):
            results = _call(model, collate(batch)[1], len(batch))
            rows = [
                _row(model, result, seconds[key])
                for key, result in zip(keys, results, strict=True)
            ]
    except Exception as e:  # whatever it is, it is this batch's alone
        why = reason(e)
    else:
        yield from zip(keys, rows)
        return
    # Out of the handler, the frames that held the batch's memory are gone.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(batch) == 1:
        logging.warning(f"Utterance {keys[0]}: {why}")
        yield keys[0], why
        return
    logging.warning(f"Utterances {keys}: {why}; retrying them one at a time")
    for utterance in batch:
        yield from _recognise(model, [utterance], seconds, collate)


def _row(model: Any, result: Any, second: float) -> ResultRow:
    """Return what the result of a model puts into each file."""
    several = getattr(model, "enh_s2t_task", False) or getattr(
        model, "multi_asr", False
    )
    n_source = getattr(model, "asr_nbest", 1)
    return result_row(result, model.nbest, several, n_source, second)


def _call(model: Any, batch: dict[str, torch.Tensor], size: int) -> list[Any]:
    """Call the model as ESPnet's own tool does: for one utterance, or for a batch."""
    if model.batch_size > 1 or size > 1:
        results: list[Any] = model.batch_decode(**batch)
        return results
    return [model(**of_one(batch))]
