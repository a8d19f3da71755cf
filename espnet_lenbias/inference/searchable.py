"""The choice of a search, added to the inference classes of ESPnet."""

import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference.audio_checks import Audio, check_audio, short_audio_named
from espnet_lenbias.inference.use_search import check_ctc, no_ctc, use_search
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.registry import (
    ESPNET,
    check_espnet_options,
    check_keywords,
    check_nbest,
    check_search_conf,
)


class ChosenSearch:
    """What comes before an inference class of ESPnet in the bases of ours.

    Such a class takes all that ESPnet's takes, and:

    Args:
        search: One of :func:`espnet_lenbias.available_searches`; ESPnet's own by default.
        search_conf: The search's own options.

    Raises:
        ValueError: Names the option that is wrong, before any model is loaded.
        TypeError: Names the keyword that is unknown, and where it belongs.
        OptionError: See :func:`espnet_lenbias.use_search`.

    """

    def __init__(
        self,
        *args: Any,
        search: str = ESPNET,
        search_conf: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        conf = search_conf or {}
        given = self._verified(search, conf, args, kwargs)
        options = given.arguments
        batch_size = options.get("batch_size", 1)
        if search != ESPNET:
            # ESPnet refuses scorers that its own search cannot batch.
            options["batch_size"] = 1
        parameters = given.signature.parameters
        if "transducer_conf" in parameters and options.get("transducer_conf") is None:
            options["transducer_conf"] = {}  # not all of ESPnet's objects take None
        default = parameters["ctc_weight"].default
        with _missing_ctc_named(options.get("ctc_weight", default)):
            super().__init__(*given.args, **given.kwargs)
        self.search = ESPNET
        self.batch_size = batch_size
        check_ctc(self)
        if search != ESPNET:
            use_search(self, search, **conf)

    @classmethod
    def from_pretrained(cls, model_tag: str | None = None, **kwargs: Any):
        """Build an inference object from a packed ``.zip`` or a model-zoo tag.

        Args:
            model_tag: See :func:`espnet_lenbias.options.packed_model.model_files`; None: the
                files are in `kwargs`.
            **kwargs: What the constructor takes.
        """
        if cls.__init__ is ChosenSearch.__init__:  # a subclass's may take more
            options = dict(kwargs)
            search = options.pop("search", ESPNET)
            cls._verified(search, options.pop("search_conf", None) or {}, (), options)
        files = model_files(model_tag) if model_tag is not None else {}
        strange = files.keys() - cls.espnet_options().parameters.keys()
        if strange and cls.__init__ is ChosenSearch.__init__:
            raise OptionError(
                f"model_tag: {model_tag} is a model of another tool: it holds "
                f"{', '.join(sorted(strange))}, which {cls.__module__} does not take"
            )
        return cls(**{**kwargs, **files})

    @classmethod
    def espnet_options(cls) -> inspect.Signature:
        """Return what the constructor of ESPnet's class takes."""
        signature = inspect.signature(super().__init__)
        _, *parameters = signature.parameters.values()  # without self
        return signature.replace(parameters=parameters)

    @classmethod
    def _verified(
        cls,
        search: str,
        conf: Mapping[str, Any],
        args: tuple,
        kwargs: Mapping[str, Any],
    ) -> inspect.BoundArguments:
        """Verify all options, before any model is loaded; return those of ESPnet's."""
        espnets = cls.espnet_options()
        check_keywords(kwargs, [*espnets.parameters, "search", "search_conf"])
        given = espnets.bind_partial(*args, **kwargs)
        check_search_conf(search, conf)
        check_espnet_options(search, given.arguments)
        check_nbest(conf, given.arguments)
        return given


class ChosenSpeechSearch(ChosenSearch):
    """:class:`ChosenSearch` of what hears audio of any length."""

    def __call__(self, speech: Audio, *args: Any, **kwargs: Any) -> Any:
        """Decode one utterance.

        Args:
            speech: (samples,).
            *args: What ESPnet's object takes beside it.
            **kwargs: Likewise.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        if self.search == ESPNET:
            return super().__call__(speech, *args, **kwargs)
        check_audio(speech)
        with short_audio_named(len(speech)):
            return super().__call__(speech, *args, **kwargs)


@contextmanager
def _missing_ctc_named(ctc_weight: float) -> Iterator[None]:
    """Say so where ESPnet's translators stumble over a model without CTC."""
    try:
        yield
    except (AssertionError, AttributeError) as e:
        place = traceback.extract_tb(e.__traceback__)[-1].line
        asserted = isinstance(e, AssertionError) and "st_ctc" in place
        if not ctc_weight or not (asserted or getattr(e, "name", "") == "ctc"):
            raise
        raise OptionError(no_ctc("ctc_weight", ctc_weight)) from e
