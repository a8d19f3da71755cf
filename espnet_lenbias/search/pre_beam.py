"""ESPnet's pre-beam: partial scorers are asked for the best labels of the others."""

from typing import NamedTuple

from espnet_lenbias.espnet_compat import BeamSearch, LengthBonus


class PreBeam(NamedTuple):
    """The pre-beam of a search, as its loop needs it."""

    part_scorers: frozenset[str]  # the scorers that are asked for these labels alone
    size: int  # how many labels
    key: str  # the scorer that chooses them; "full": the weighted sum of all full ones


class PreBeamSize:
    """Keeps the pre-beam of a search at a ratio of its beam size, which may be set."""

    def __init__(self, search: BeamSearch, ratio: float):
        """Take over from ESPnet's constructor, which reads the beam size once.

        Args:
            search: As that constructor has left it.
            ratio: Labels of the pre-beam over K.

        Raises:
            ValueError: There would be no label in it.
        """
        self._ratio = ratio
        self._beam_size = search.beam_size
        self._check(search)

    def now(self, search: BeamSearch) -> PreBeam | None:
        """Return which labels partial scorers are asked for; None: all.

        So many as if the search had been built with the beam size that it has now.

        Raises:
            ValueError: There would be none.
        """
        if search.beam_size != self._beam_size:  # else their number may have been set
            search.pre_beam_size = int(self._ratio * search.beam_size)
            search.do_pre_beam = (
                search.pre_beam_score_key is not None
                and search.pre_beam_size < search.n_vocab
                and len(search.part_scorers) > 0
            )
            self._check(search)
            self._beam_size = search.beam_size
        # a bonus is the same for all labels: none would be the best by it
        full = search.full_scorers.values()
        choosing = [s for s in full if not isinstance(s, LengthBonus)]
        if not (choosing and search.part_scorers and search.do_pre_beam):
            return None
        return PreBeam(
            frozenset(search.part_scorers),
            search.pre_beam_size,
            search.pre_beam_score_key,
        )

    def _check(self, search: BeamSearch) -> None:
        if search.do_pre_beam and search.pre_beam_size < 1:
            raise ValueError(
                f"pre_beam_ratio is {self._ratio}, so the pre-beam would hold "
                f"{search.pre_beam_size} labels: it must hold one or more"
            )
