"""What a search's scorers say of a given text, label by label: teacher forcing.

Nothing is searched. The scores are those of the search (eq. 1), whatever scorers and
weights it has, so a text can be compared with what the search has found.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from espnet_lenbias.scorers import EncoderOutput, Selection
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search.beam import first_beam
from espnet_lenbias.search.label_synchronous import LabelSynchronousSearch
from espnet_lenbias.search.primers import primers_of
from espnet_lenbias.search.scoring import check_scores, extension_scores, score_labels


@torch.no_grad()
def scores_along(
    search: LabelSynchronousSearch, x: torch.Tensor, labels: Sequence[int]
) -> torch.Tensor:
    """Return what every label would score at each position of a text.

    Args:
        search: Whose scorers are asked, all of them for all labels.
        x: (T, D) encoder output of an utterance, T >= 1.
        labels: The n labels of the text, without primer and end label.

    Returns:
        (n + 1, V) weighted log-probs, in float32 or better; the last row is that of the
        position behind the text.

    Raises:
        ScorerError: A scorer returned NaN or plus infinity.
    """
    setup = replace(search.setup(), pre_beam=None)
    encoder_output = EncoderOutput(x.unsqueeze(0), [len(x)])
    [primer] = primers_of(search.hyp_primer, search.sos, 1)
    primers = torch.tensor([primer], device=x.device)
    beam = first_beam(setup.adapters, encoder_output.x, primers)
    states = {name: a.start(encoder_output) for name, a in setup.adapters.items()}
    the_one = torch.tensor([0])
    rows = []
    for length, label in enumerate([*labels, setup.eos], 1):
        scores = score_labels(setup, beam, states, len(primer), None)
        check_scores(scores, beam, length)
        rows.append(scores.weighted[0].clone())  # some scorers use a buffer again
        chosen = Selection(
            the_one.to(x.device),
            the_one,
            torch.tensor([label], device=x.device),
            make_spans([0], [1]),
        )
        q = extension_scores(beam, scores.weighted, setup.eos, None, None)
        beam = beam.extend(chosen, q, *scores.of_extensions)
        states = {
            name: adapter.select(scores.states[name], chosen)
            for name, adapter in setup.adapters.items()
        }
    return torch.stack(rows)
