"""Where a release of ESPnet keeps things: the only module here that knows.

``from espnet_lenbias.espnet_compat import BeamSearch`` works with every supported
release. Nothing is imported before it is asked for, so importing this module costs
nothing, and command lines can read ESPnet's options without loading torch.
"""

import importlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The names below for type checkers, which then know that there are no others.
if TYPE_CHECKING:
    from espnet2.asr.decoder.rnn_decoder import RNNDecoder as RNNDecoder
    from espnet2.asr.decoder.transformer_decoder import (
        BaseTransformerDecoder as BaseTransformerDecoder,
    )
    from espnet2.asr.decoder.transformer_decoder import (
        TransformerDecoder as TransformerDecoder,
    )
    from espnet2.asr.decoder.whisper_decoder import (
        ExpandedTokenEmbedding as ExpandedTokenEmbedding,
    )
    from espnet2.asr.decoder.whisper_decoder import (
        OpenAIWhisperDecoder as OpenAIWhisperDecoder,
    )
    from espnet2.asr.encoder.whisper_encoder import (
        OpenAIWhisperEncoder as OpenAIWhisperEncoder,
    )
    from espnet2.asr.frontend.whisper import WhisperFrontend as WhisperFrontend
    from espnet2.bin.asr_inference_streaming import (
        Speech2TextStreaming as Speech2TextStreaming,
    )
    from espnet2.legacy.nets.batch_beam_search import BatchBeamSearch as BatchBeamSearch
    from espnet2.legacy.nets.batch_beam_search_online import (
        BatchBeamSearchOnline as BatchBeamSearchOnline,
    )
    from espnet2.legacy.nets.beam_search import BeamSearch as BeamSearch
    from espnet2.legacy.nets.beam_search import Hypothesis as Hypothesis
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import AttAdd as AttAdd
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import AttCov as AttCov
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttCovLoc as AttCovLoc,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import AttDot as AttDot
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import AttLoc as AttLoc
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import AttLoc2D as AttLoc2D
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttLocRec as AttLocRec,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttMultiHeadAdd as AttMultiHeadAdd,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttMultiHeadDot as AttMultiHeadDot,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttMultiHeadLoc as AttMultiHeadLoc,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import (
        AttMultiHeadMultiResLoc as AttMultiHeadMultiResLoc,
    )
    from espnet2.legacy.nets.pytorch_backend.rnn.attentions import NoAtt as NoAtt
    from espnet2.legacy.nets.pytorch_backend.transformer.attention import (
        MultiHeadedAttention as MultiHeadedAttention,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.decoder_layer import (
        DecoderLayer as DecoderLayer,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.embedding import (
        PositionalEncoding as PositionalEncoding,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.embedding import (
        ScaledPositionalEncoding as ScaledPositionalEncoding,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.encoder_layer import (
        EncoderLayer as EncoderLayer,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.positionwise_feed_forward import (
        PositionwiseFeedForward as PositionwiseFeedForward,
    )
    from espnet2.legacy.nets.pytorch_backend.transformer.subsampling import (
        TooShortUttError as TooShortUttError,
    )
    from espnet2.legacy.nets.scorer_interface import (
        BatchPartialScorerInterface as BatchPartialScorerInterface,
    )
    from espnet2.legacy.nets.scorer_interface import (
        BatchScorerInterface as BatchScorerInterface,
    )
    from espnet2.legacy.nets.scorer_interface import (
        PartialScorerInterface as PartialScorerInterface,
    )
    from espnet2.legacy.nets.scorer_interface import ScorerInterface as ScorerInterface
    from espnet2.legacy.nets.scorers.ctc import CTCPrefixScorer as CTCPrefixScorer
    from espnet2.legacy.nets.scorers.length_bonus import LengthBonus as LengthBonus
    from espnet2.lm.seq_rnn_lm import SequentialRNNLM as SequentialRNNLM
    from espnet2.lm.transformer_lm import TransformerLM as TransformerLM
    from espnet2.main_funcs.calculate_all_attentions import (
        calculate_all_attentions as calculate_all_attentions,
    )
    from espnet2.tasks.asr import ASRTask as ASRTask
    from espnet2.tasks.mt import MTTask as MTTask
    from espnet2.tasks.s2t import S2TTask as S2TTask
    from espnet2.tasks.slu import SLUTask as SLUTask
    from espnet2.tasks.st import STTask as STTask
    from espnet2.text.whisper_token_id_converter import (
        OpenAIWhisperTokenIDConverter as OpenAIWhisperTokenIDConverter,
    )
    from espnet2.text.whisper_tokenizer import (
        LANGUAGES_CODE_MAPPING as LANGUAGES_CODE_MAPPING,
    )
    from espnet2.torch_utils.set_all_random_seed import (
        set_all_random_seed as set_all_random_seed,
    )
    from espnet2.train.abs_espnet_model import AbsESPnetModel as AbsESPnetModel
    from espnet2.train.dataset import ESPnetDataset as ESPnetDataset

# Where ESPnet's decoding modules are: 202611 and later, 202511.
_LAYOUTS = ("espnet2.legacy.nets", "espnet.nets")

# Name -> its module below the layout.
_DECODING = {
    "BeamSearch": "beam_search",
    "Hypothesis": "beam_search",
    "BatchBeamSearch": "batch_beam_search",
    "BatchBeamSearchOnline": "batch_beam_search_online",
    "ScorerInterface": "scorer_interface",
    "BatchScorerInterface": "scorer_interface",
    "PartialScorerInterface": "scorer_interface",
    "BatchPartialScorerInterface": "scorer_interface",
    "CTCPrefixScorer": "scorers.ctc",
    "LengthBonus": "scorers.length_bonus",
    "TooShortUttError": "pytorch_backend.transformer.subsampling",
    "AttAdd": "pytorch_backend.rnn.attentions",
    "AttCov": "pytorch_backend.rnn.attentions",
    "AttCovLoc": "pytorch_backend.rnn.attentions",
    "AttDot": "pytorch_backend.rnn.attentions",
    "AttLoc": "pytorch_backend.rnn.attentions",
    "AttLoc2D": "pytorch_backend.rnn.attentions",
    "AttLocRec": "pytorch_backend.rnn.attentions",
    "AttMultiHeadAdd": "pytorch_backend.rnn.attentions",
    "AttMultiHeadDot": "pytorch_backend.rnn.attentions",
    "AttMultiHeadLoc": "pytorch_backend.rnn.attentions",
    "AttMultiHeadMultiResLoc": "pytorch_backend.rnn.attentions",
    "NoAtt": "pytorch_backend.rnn.attentions",
    "DecoderLayer": "pytorch_backend.transformer.decoder_layer",
    "EncoderLayer": "pytorch_backend.transformer.encoder_layer",
    "MultiHeadedAttention": "pytorch_backend.transformer.attention",
    "PositionalEncoding": "pytorch_backend.transformer.embedding",
    "PositionwiseFeedForward": "pytorch_backend.transformer.positionwise_feed_forward",
    "ScaledPositionalEncoding": "pytorch_backend.transformer.embedding",
}

# Name -> its module, the same in every supported release.
_ELSEWHERE = {
    "ExpandedTokenEmbedding": "espnet2.asr.decoder.whisper_decoder",
    "OpenAIWhisperDecoder": "espnet2.asr.decoder.whisper_decoder",
    "OpenAIWhisperEncoder": "espnet2.asr.encoder.whisper_encoder",
    "OpenAIWhisperTokenIDConverter": "espnet2.text.whisper_token_id_converter",
    "LANGUAGES_CODE_MAPPING": "espnet2.text.whisper_tokenizer",
    "WhisperFrontend": "espnet2.asr.frontend.whisper",
    "RNNDecoder": "espnet2.asr.decoder.rnn_decoder",
    "BaseTransformerDecoder": "espnet2.asr.decoder.transformer_decoder",
    "TransformerDecoder": "espnet2.asr.decoder.transformer_decoder",
    "calculate_all_attentions": "espnet2.main_funcs.calculate_all_attentions",
    "SequentialRNNLM": "espnet2.lm.seq_rnn_lm",
    "TransformerLM": "espnet2.lm.transformer_lm",
    "ASRTask": "espnet2.tasks.asr",
    "MTTask": "espnet2.tasks.mt",
    "S2TTask": "espnet2.tasks.s2t",
    "SLUTask": "espnet2.tasks.slu",
    "STTask": "espnet2.tasks.st",
    "AbsESPnetModel": "espnet2.train.abs_espnet_model",
    "ESPnetDataset": "espnet2.train.dataset",
    "Speech2TextStreaming": "espnet2.bin.asr_inference_streaming",
    "set_all_random_seed": "espnet2.torch_utils.set_all_random_seed",
}


def _load(name: str) -> Any:
    """Import an object of ESPnet's."""
    decoding = _DECODING.get(name)
    module = _ELSEWHERE[name] if decoding is None else f"{_layout()}.{decoding}"
    return getattr(importlib.import_module(module), name)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import an object of ESPnet's at its first use (PEP 562)."""
        if name not in _DECODING and name not in _ELSEWHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = _load(name)
        return value


def _layout() -> str:
    """Return the package that holds ESPnet's decoding modules in this release."""
    for package in _LAYOUTS:
        try:
            if importlib.util.find_spec(f"{package}.beam_search"):
                return package
        except ModuleNotFoundError:  # a parent package is missing
            continue
    raise ImportError(
        f"no ESPnet with {' or '.join(_LAYOUTS)} is installed: "
        "pip install 'espnet[asr]>=202611'"
    )


def decodes_batches() -> bool:
    """Tell whether this release has tools that decode several utterances at once."""
    return _layout() == _LAYOUTS[0]


class OneByOne:
    """The last base of an inference class: ``batch_decode`` where ESPnet's has none."""

    def batch_decode(self: Any, speech: Any, speech_lengths: Any = None) -> list[Any]:
        """Decode one utterance after the other; see ``Speech2Text.batch_decode``."""
        if speech_lengths is not None:
            speech = [
                wave[:n_samples] for wave, n_samples in zip(speech, speech_lengths)
            ]
        return [self(wave) for wave in speech]


def espnet_search(*args: Any, **kwargs: Any) -> Any:
    """Build ESPnet's own search, batched where its scorers allow, as ESPnet chooses.

    Takes the arguments of ESPnet's ``BeamSearch``.
    """
    search = _load("BeamSearch")(*args, **kwargs)
    can_batch = _load("BatchScorerInterface")
    if all(isinstance(scorer, can_batch) for scorer in search.full_scorers.values()):
        search = _load("BatchBeamSearch")(*args, **kwargs)
    return search


def download_pretrained(model_tag: str) -> dict[str, str]:
    """Fetch a model of the ESPnet model zoo; return constructor arguments (files)."""
    try:
        from espnet2.utils.pretrained import download_pretrained as download
    except ImportError:  # 202511 has this inside each inference class
        from espnet_model_zoo.downloader import ModelDownloader

        download = ModelDownloader().download_and_unpack
    files: dict[str, str] = download(model_tag)
    return files


def model_variant() -> str:
    """Return what sets the models unpacked for this release apart; "" for 202611."""
    return "" if _layout() == _LAYOUTS[0] else "-202511"


def older_name(name: str) -> str:
    """Return what 202511 calls a parameter of 202611."""
    return re.sub(r"(\bembed\.out)\.(weight|bias)$", r"\1.0.\2", name)


def add_older_names(model_file: Path) -> None:
    """Have the parameters of a model go by the names of the release that is here, too.

    202611 has renamed those of the layer behind the subsampling. 202511 silently leaves
    a layer that it does not find randomly initialised.
    """
    if not model_variant():
        return
    import torch  # here, not above: see the module's docstring

    try:
        parameters = torch.load(model_file, map_location="cpu", weights_only=True)
    except Exception:  # whoever loads the model says what is wrong with its file
        return
    older = {older_name(name): value for name, value in parameters.items()}
    if older.keys() - parameters.keys():
        torch.save({**parameters, **older}, model_file)


def commandline() -> str:
    """Return this process's command line, quoted as ESPnet's logs show it."""
    try:
        from espnet2.legacy.utils.cli_utils import get_commandline_args
    except ImportError:
        from espnet.utils.cli_utils import get_commandline_args
    line: str = get_commandline_args()
    return line
