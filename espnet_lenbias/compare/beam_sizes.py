"""The figure of a comparison: word error rate and length ratio against beam size."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from espnet_lenbias.compare.compare import Result
from espnet_lenbias.compare.summary import by_row, errors_of
from espnet_lenbias.report.bootstrap import interval, resampled_totals
from espnet_lenbias.report.figures.beam_size import bands_note, draw_errors
from espnet_lenbias.report.figures.drawing import Curve
from espnet_lenbias.report.figures.looks import Kind, looks
from espnet_lenbias.report.figures.panels import panels, references
from espnet_lenbias.report.scoring import ResampledErrors, align


def beam_size_figure(
    results: Sequence[Result], kinds: Mapping[str, Kind], dataset: str
) -> Figure:
    """Plot how each search does as the beam grows.

    Args:
        results: Of all searches and beam sizes, on the same utterances.
        kinds: The kind of each search, by its label, in order.
        dataset: What the figure calls the utterances.
    """
    shown = panels(kinds)
    banded = references(shown)
    rows = by_row(results)
    wers, ratios = (
        _curves(rows, measure, kinds, banded) for measure in ("wer", "length_ratio")
    )
    count = len({(r.dataset, r.utterance) for r in results})
    note = bands_note(kinds[label].search for label in banded)
    return draw_errors(shown, wers, ratios, f"{dataset}, {count} utterances", note)


def _curves(
    rows: Mapping[tuple[str, int], Sequence[Result]],
    measure: str,
    kinds: Mapping[str, Kind],
    banded: Sequence[str],
) -> dict[str, Curve]:
    """Return a curve for each search, with intervals for those that are `banded`."""
    look = looks(kinds)
    curves = {}
    for label in kinds:
        beams = sorted(beam for search, beam in rows if search == label)
        own = [rows[label, beam] for beam in beams]
        ends = (
            [_interval(results, measure) for results in own] if label in banded else []
        )
        curves[label] = Curve(
            label,
            look[label],
            beams,
            [getattr(errors_of(results), measure) for results in own],
            [len(results) for results in own],
            [low for low, _ in ends],
            [high for _, high in ends],
        )
    return curves


def _interval(results: Sequence[Result], measure: str) -> tuple[float, float]:
    """Return the bootstrap interval of a measure over utterances."""
    counts = align([r.reference for r in results], [r.text for r in results])
    resampled = ResampledErrors(len(results), *resampled_totals(counts).T)
    return interval(getattr(resampled, measure))
