"""ESPnet's spoken language understanding with another search."""

from typing import Any

import torch
from espnet2.bin import slu_inference as espnet_slu

from espnet_lenbias.inference.audio_checks import Audio
from espnet_lenbias.inference.source_text import checked_ids
from espnet_lenbias.inference.speech_option import SpeechSearchOptionMixin


class Speech2Understand(SpeechSearchOptionMixin, espnet_slu.Speech2Understand):
    """ESPnet's spoken language understanding, with a search chosen by name.

    Takes all that ``espnet2.bin.slu_inference.Speech2Understand`` takes, and `search`
    and `search_conf` as
    :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin` tells.

    Examples:
        >>> speech2understand = Speech2Understand(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2understand(audio)[0]

    """

    def __call__(self, speech: Audio, transcript: Any = None) -> Any:
        """Decode one utterance.

        Args:
            speech: (samples,).
            transcript: (L,) token ids of what is said, for a model that was trained with
                such; None: not known.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
            TypeError: The transcript is no array of token ids.
            ValueError: It holds others than those of the model, which may have none.
        """
        if transcript is None:
            return super().__call__(speech)
        tokens = getattr(self.asr_train_args, "transcript_token_list", None)
        if tokens is None:
            raise ValueError(
                "transcript: the model was trained without transcripts, and takes none: "
                "leave it out"
            )
        ids = checked_ids(transcript, len(tokens), "transcript")
        return super().__call__(speech, torch.as_tensor(ids))
