"""The choice of a search, added to the inference classes of ESPnet."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import Hypothesis as EspnetHypothesis
from espnet_lenbias.inference.audio_checks import Samples
from espnet_lenbias.inference.ctc_checks import check_ctc, check_ctc_precision
from espnet_lenbias.inference.model_checks import (
    check_labels,
    check_place,
    check_quantisation,
    warn_of_integers,
)
from espnet_lenbias.inference.model_loading import (
    broken_files_named,
    check_named,
)
from espnet_lenbias.inference.nbest import Lengths, decided
from espnet_lenbias.inference.times import check_can_tell_times
from espnet_lenbias.inference.use_search import check_beam, check_has_nbest, use_search
from espnet_lenbias.inference.whisper import whisper_ready_for
from espnet_lenbias.inference.whisper_results import set_up_whisper
from espnet_lenbias.inference.word_pieces import check_word_pieces
from espnet_lenbias.options.espnet_checks import (
    check_espnet_options,
    check_lm_files,
    check_nbest,
)
from espnet_lenbias.options.espnet_tools import tool_of
from espnet_lenbias.options.fast_yaml import fast_yaml
from espnet_lenbias.options.packed_model import check_owner, model_files
from espnet_lenbias.options.posteriors import (
    POSTERIOR_OPTIONS,
    PosteriorOptions,
    check_posteriors,
    check_times,
)
from espnet_lenbias.options.precision import check_decoder_dtype, check_dtype
from espnet_lenbias.options.registry import ESPNET, check_keywords, check_search_conf
from espnet_lenbias.options.train_config import check_train_configs, letters_of
from espnet_lenbias.options.values import count
from espnet_lenbias.search.hypotheses import Score, nothing_heard

# For type checkers, the base that follows: a class of ESPnet's, of which they know
# nothing.
if TYPE_CHECKING:
    from espnet2.bin.asr_inference import Speech2Text as _EspnetClass
else:
    _EspnetClass = object


class SearchOptionMixin(Samples, _EspnetClass):
    """Adds the choice of a search to an inference class of ESPnet, its next base.

    The class takes all that ESPnet's takes, and:

    Args:
        search: One of :func:`espnet_lenbias.available_searches`; ESPnet's own by
            default.
        search_conf: The search's own options.
        decoder_dtype: "bfloat16": what decoder and language model compute in, where the
            rest of the model computes in `dtype`; see
            :func:`espnet_lenbias.use_search`.
        decide: "map": the hypothesis of the best score is the first of an n-best list;
            "mbr": that of which the fewest words are expected to be wrong.
        confidence: Whether hypotheses carry `word_confidence` and `label_confidence`,
            and which: see :class:`espnet_lenbias.options.posteriors.PosteriorOptions`.
        posterior_nbest: How many hypotheses are compared with one another for it.
        posterior_temperature: What scores are divided by to become probabilities.
        confidence_temperature: Confidences are raised to the power of 1 / this.
        times: Whether hypotheses carry `word_times` and `label_times`, and how they are
            found: "ctc", "attention", or True: by CTC where the model has it.

    Raises:
        ValueError: Names the option that is wrong, before any model is loaded.
        TypeError: Names the keyword that is unknown, and where it belongs.
        OptionError: See :func:`espnet_lenbias.use_search`.

    """

    # Not all of ESPnet's objects take the None that is their default for these.
    _filled_in: Mapping[str, Any] = {"transducer_conf": {}}

    # Texts that its results have beside the first.
    _more_texts: tuple[str, ...] = ()

    # Whether the class takes audio, and whether chunk by chunk.
    _hears = True
    _streams = False

    def __init__(
        self,
        *args: Any,
        search: str = ESPNET,
        search_conf: Mapping[str, Any] | None = None,
        decoder_dtype: str | None = None,
        decide: str = "map",
        confidence: bool | str = False,
        posterior_nbest: int | None = None,
        posterior_temperature: float = 1.0,
        confidence_temperature: float = 1.0,
        times: bool | str = False,
        **kwargs: Any,
    ):
        conf = {} if search_conf is None else search_conf
        own = {
            "decide": decide,
            "confidence": confidence,
            "posterior_nbest": posterior_nbest,
            "posterior_temperature": posterior_temperature,
            "confidence_temperature": confidence_temperature,
            "times": times,
        }
        given, self.posterior_options = self._verified(
            search, conf, decoder_dtype, own, args, kwargs
        )
        options = given.arguments
        batch_size = options.get("batch_size", 1)
        warn_of_integers(options)
        if search != ESPNET:
            # ESPnet refuses scorers that its own search cannot batch.
            options["batch_size"] = 1
        check_named(options, given.signature.parameters)
        for key, value in self._filled_in.items():
            if key in given.signature.parameters and options.get(key) is None:
                options[key] = value
        named = {**dict.fromkeys(given.signature.parameters), **options}
        with broken_files_named(named), whisper_ready_for(options), fast_yaml():
            super().__init__(*given.args, **given.kwargs)
        check_word_pieces(self)
        self._adapt()
        self.search = ESPNET
        self.batch_size = batch_size
        check_ctc(self)
        set_up_whisper(self)
        if search != ESPNET:
            use_search(self, search, decoder_dtype=decoder_dtype, **conf)
        else:
            check_ctc_precision(self.beam_search, self.dtype)
            check_beam(self.beam_search)
            if self.posterior_options.changes_results:
                check_has_nbest(self)
        check_can_tell_times(self, self.posterior_options.times)

    @property
    def nbest(self) -> int:
        """How many hypotheses are returned; as with ESPnet's it may be set at any time."""
        return self._nbest

    @nbest.setter
    def nbest(self, n: int) -> None:
        self._nbest = n = count("nbest", n)
        search: Any = vars(self).get("beam_search")
        options: Any = getattr(search, "options", None)
        if is_dataclass(options) and (getattr(options, "nbest", None) or n) < n:
            search.options = replace(options, nbest=n)  # type: ignore[type-var]

    @classmethod
    def from_pretrained(
        cls, model_tag: str | Path | None = None, **kwargs: Any
    ) -> Self:
        """Build an inference object from a packed ``.zip`` or a model-zoo tag.

        Args:
            model_tag: See :func:`espnet_lenbias.options.packed_model.model_files`;
                None: the files are in `kwargs`.
            **kwargs: What the constructor takes.
        """
        if cls.__init__ is SearchOptionMixin.__init__:  # a subclass's may take more
            options = dict(kwargs)
            search = options.pop("search", ESPNET)
            conf = options.pop("search_conf", None)
            conf = {} if conf is None else conf
            decoder_dtype = options.pop("decoder_dtype", None)
            own = {k: options.pop(k) for k in POSTERIOR_OPTIONS if k in options}
            cls._verified(search, conf, decoder_dtype, own, (), options)
        if model_tag is None:
            return cls(**kwargs)
        files, taken = model_files(model_tag), cls.espnet_options().parameters
        tool = tool_of(letters_of(taken))
        if cls.__init__ is SearchOptionMixin.__init__ and tool is not None:
            check_owner(model_tag, files, tool)
            unknown = files.keys() - taken.keys()
            if unknown:
                raise OptionError(
                    f"model_tag: {model_tag} holds {', '.join(sorted(unknown))}, which "
                    f"{tool.name} does not take"
                )
        for key in files:
            if kwargs.get(key) is not None:
                raise OptionError(
                    f"{key}: the model of model_tag {model_tag} brings its own: leave one "
                    "of the two out, or give all files of the model without model_tag"
                )
        return cls(**{**kwargs, **files})

    def __call__(self, source: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Decode one utterance as ESPnet's object does, and decide on its n-best list."""
        decode = partial(super().__call__, source, *args, **kwargs)
        return self._decided(decode, partial(self._n_samples, source))

    def _n_samples(self, source: Any) -> int:
        """Return of how many samples audio is."""
        return len(source)

    def _decided(
        self, decode: Callable[[], Any], lengths: Callable[[], Lengths]
    ) -> Any:
        """Return what ESPnet's code returns, with what is made of the n-best lists.

        Args:
            decode: Calls it; what it calls in turn may come here again.
            lengths: Says of how many samples the audio is.
        """
        return decided(self, decode, lengths)

    def _nothing_heard(self) -> list[tuple[Any, ...]]:
        """Return the n-best list of an utterance that cannot be decoded.

        It has no text, and the score -inf, with which it comes last.
        """
        text = None if self.tokenizer is None else ""
        search = self.beam_search
        no_labels = torch.zeros(0, dtype=torch.long)
        hypothesis = EspnetHypothesis(no_labels, Score(-math.inf))
        if self.search != ESPNET:
            yseq = torch.tensor([search.sos, search.eos])
            hypothesis = nothing_heard(yseq, search.scorers, -math.inf)
        return [(text, [], [], *self._more_texts, hypothesis)]

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
        decoder_dtype: str | None,
        posteriors: Mapping[str, Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[inspect.BoundArguments, PosteriorOptions]:
        """Verify all options, before any model is loaded.

        Returns:
            Those of ESPnet's, and those of `posteriors`.
        """
        espnets = cls.espnet_options()
        own = ["search", "search_conf", "decoder_dtype", *POSTERIOR_OPTIONS]
        check_keywords(kwargs, [*espnets.parameters, *own])
        given = espnets.bind_partial(*args, **kwargs)
        conf = check_search_conf(search, conf)
        checked = _checked_of(search, given.arguments)
        given.arguments.update(check_espnet_options(search, checked))
        check_nbest(conf, given.arguments)
        check_lm_files(given.arguments)
        check_dtype(given.arguments)
        check_decoder_dtype(search, decoder_dtype, given.arguments)
        read = check_posteriors(search, conf, posteriors, given.arguments)
        check_times(read.times, cls._streams, cls._hears)
        defaults = {
            name: parameter.default
            for name, parameter in espnets.parameters.items()
            if parameter.default is not parameter.empty
        }
        options = {**defaults, **given.arguments}
        check_place(options)
        check_quantisation(options)
        cls._check_search(search, options)
        check_train_configs(options)
        cls._check_model(search, options)
        check_labels(options)
        return given, read

    @classmethod
    def _check_search(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify what only this class's searches ask for, as :meth:`_check_model` does."""

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify what only this class's models ask for, before one is loaded.

        Args:
            search: The name of the search.
            options: ESPnet's. The model's files may not be known yet.

        Raises:
            OptionError: Names the option that is wrong.
        """

    def _adapt(self) -> None:
        """Change what only this class's models need changed, once they are loaded."""


def _checked_of(search: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what only ESPnet's own search looks at: `batch_size`, which may be 0."""
    if search != ESPNET:
        return options
    return {key: value for key, value in options.items() if key != "batch_size"}
