"""The search with an explicit length model while the audio is still coming.

Two searches share the frames of a streaming encoder, which come block by block:

* In each block a search goes on, from where it has stopped in the block before, as far as
  what has been heard is good for. Its hypotheses are the partial results.
* When the last block has come, the offline search runs over all frames. So the final
  result is that of :class:`espnet_lenbias.ExplicitLengthBeamSearch` on the same encoder
  output, to the last digit, however the output was cut into blocks.

A decoder that attends to all frames scores a label otherwise when more of them are there.
The search of the blocks keeps the score that a label had in its block, as ESPnet's does;
none of these scores enters the final result.
"""

from typing import Any, cast

import torch

from espnet_lenbias.espnet_compat import BatchBeamSearchOnline
from espnet_lenbias.options.online import check_online
from espnet_lenbias.options.registry import ESPNET, settings_of
from espnet_lenbias.scorers import EncoderOutput
from espnet_lenbias.search.beam_search import ExplicitLengthBeamSearch
from espnet_lenbias.search.blocks import BlockDecoding
from espnet_lenbias.search.hypotheses import Hypothesis
from espnet_lenbias.search.input_checks import room_behind
from espnet_lenbias.search.length_limits import length_limits
from espnet_lenbias.search.primers import primers_of


class OnlineExplicitLengthBeamSearch(ExplicitLengthBeamSearch):
    """The search that ESPnet's ``Speech2TextStreaming`` calls with each block.

    Attributes:
        trace: How the search of the blocks has gone so far; after the last block, how
            the offline search has gone, until the first block of another utterance.
    """

    def __init__(
        self, *args: Any, disable_repetition_detection: bool = False, **kwargs: Any
    ):
        """Make a search.

        Args:
            *args: As for :class:`ExplicitLengthBeamSearch`.
            disable_repetition_detection: Let hypotheses repeat a label before the last
                block, as ESPnet's option of that name.
            **kwargs: As for :class:`ExplicitLengthBeamSearch`.
        """
        super().__init__(*args, **kwargs)
        self.disable_repetition_detection = disable_repetition_detection
        self.reset()

    def reset(self) -> None:
        """Forget the utterance: the next block is the first one of another."""
        self._frames: torch.Tensor | None = None
        self._decoding: BlockDecoding | None = None
        self._partial: list[Hypothesis] = []

    @torch.no_grad()
    def forward(  # type: ignore[override]  # as ESPnet's online search, one utterance
        self,
        x: torch.Tensor,
        maxlenratio: float = 0.0,
        minlenratio: float = 0.0,
        is_final: bool = True,
    ) -> list[Hypothesis]:
        """Take a block of the utterance.

        Args:
            x: (T_block, D) its frames, none of those of earlier blocks among them; there
                may be none at all.
            maxlenratio: See :class:`ExplicitLengthBeamSearch`; it counts the frames that
                have come.
            minlenratio: Likewise.
            is_final: Whether it is the last one; then `reset` comes next.

        Returns:
            Hypotheses, best first: the result of the utterance if the block is the last
            one, else the partial results, none if there is no label yet.
        """
        old = self._frames
        if old is None:
            self.trace = []
        frames = self._frames = x if old is None else torch.cat([old, x])
        if is_final:
            return cast(
                list[Hypothesis], super().forward(frames, maxlenratio, minlenratio)
            )
        if len(x):
            self._search_block(frames, maxlenratio, minlenratio)
        return self._partial

    def _search_block(
        self, frames: torch.Tensor, maxlenratio: float, minlenratio: float
    ) -> None:
        """Go on with the search of the blocks: (T, D) frames so far."""
        encoder_output = EncoderOutput(frames.unsqueeze(0), [len(frames)])
        [primer] = primers_of(self.hyp_primer, self.sos, 1)
        if self._decoding is None:
            allow_repetition = self.disable_repetition_detection
            self._decoding = BlockDecoding(
                self.setup(), encoder_output, primer, allow_repetition
            )
        room = room_behind(primer, self.scorers)
        limits = length_limits(len(frames), maxlenratio, minlenratio, room)
        self._decoding.search_block(encoder_output, limits)
        self._partial = self._decoding.partial_results()
        self.trace = [self._decoding.trace_so_far()]


# What ESPnet's online search is told beyond the settings of every search.
_ESPNETS = ("block_size", "hop_size", "look_ahead", "disable_repetition_detection")


def is_online(search: Any) -> bool:
    """Tell whether a search takes its frames block by block."""
    return isinstance(search, BatchBeamSearchOnline | OnlineExplicitLengthBeamSearch)


def build_online_search(
    name: str, like: Any, beam_size: int | None = None, **conf: Any
) -> BatchBeamSearchOnline | OnlineExplicitLengthBeamSearch:
    """Return an online search with the scorers and settings of another one.

    Args:
        name: Of the search to build.
        like: An online search, of ESPnet's or of this package.
        beam_size: K; None: as that search has it.
        **conf: The search's own options.

    Raises:
        OptionError: There is no such online search, or ESPnet's is set to something that
            this one cannot do.
    """
    check_online(name, vars(like))
    settings = settings_of(like, beam_size)
    espnets = {key: getattr(like, key) for key in _ESPNETS}
    if name == ESPNET:
        return BatchBeamSearchOnline(**settings, **espnets)
    search = OnlineExplicitLengthBeamSearch(**settings, **conf)
    # the search here takes blocks as they come; the rest is for a way back to ESPnet's
    for key, value in espnets.items():
        setattr(search, key, value)
    return search
