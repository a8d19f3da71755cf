"""Where a release of ESPnet keeps things: the only module here that knows.

``from espnet_lenbias.espnet_compat import BeamSearch`` works with every supported
release. Nothing is imported before it is asked for, so importing this module costs
nothing, and command lines can read ESPnet's options without loading torch.
"""

import argparse
import ast
import builtins
import functools
import importlib
import importlib.util
import re
from pathlib import Path
from types import CodeType
from typing import Any

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
    "RNNDecoder": "espnet2.asr.decoder.rnn_decoder",
    "TransformerDecoder": "espnet2.asr.decoder.transformer_decoder",
    "SequentialRNNLM": "espnet2.lm.seq_rnn_lm",
    "TransformerLM": "espnet2.lm.transformer_lm",
    "ASRTask": "espnet2.tasks.asr",
    "MTTask": "espnet2.tasks.mt",
    "S2TTask": "espnet2.tasks.s2t",
    "SLUTask": "espnet2.tasks.slu",
    "STTask": "espnet2.tasks.st",
    "ESPnetDataset": "espnet2.train.dataset",
    "Speech2TextStreaming": "espnet2.bin.asr_inference_streaming",
    "set_all_random_seed": "espnet2.torch_utils.set_all_random_seed",
    "unpack": "espnet2.main_funcs.pack_funcs",
}


def __getattr__(name: str):
    """Import an ESPnet object at its first use (PEP 562)."""
    if name in _DECODING:
        module = f"{_layout()}.{_DECODING[name]}"
    elif name in _ELSEWHERE:
        module = _ELSEWHERE[name]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
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

    def batch_decode(self, speech: Any, speech_lengths: Any = None) -> list[Any]:
        """Decode one utterance after the other; see ``Speech2Text.batch_decode``."""
        if speech_lengths is not None:
            speech = [
                wave[:n_samples] for wave, n_samples in zip(speech, speech_lengths)
            ]
        return [self(wave) for wave in speech]


def espnet_search(*args, **kwargs):
    """Build ESPnet's own search, batched where its scorers allow, as ESPnet chooses.

    Takes the arguments of ESPnet's ``BeamSearch``.
    """
    from espnet_lenbias.espnet_compat import (  # by way of __getattr__
        BatchBeamSearch,
        BatchScorerInterface,
        BeamSearch,
    )

    search = BeamSearch(*args, **kwargs)
    scorers = search.full_scorers.values()
    if all(isinstance(scorer, BatchScorerInterface) for scorer in scorers):
        search = BatchBeamSearch(*args, **kwargs)
    return search


def download_pretrained(model_tag: str) -> dict[str, str]:
    """Fetch a model of the ESPnet model zoo; return constructor arguments (files)."""
    try:
        from espnet2.utils.pretrained import download_pretrained as download
    except ImportError:  # 202511 has this inside each inference class
        from espnet_model_zoo.downloader import ModelDownloader

        download = ModelDownloader().download_and_unpack
    return download(model_tag)


def model_variant() -> str:
    """Return what sets the models unpacked for this release apart; "" for 202611."""
    return "" if _layout() == _LAYOUTS[0] else "-202511"


def add_older_names(model_file: Path) -> None:
    """Have the parameters of a model go by the names of the release that is here, too.

    202611 has renamed those of the layer behind the subsampling. 202511 leaves what it
    does not find at random, without a word.
    """
    if not model_variant():
        return
    import torch  # here, not above: see the module's docstring

    parameters = torch.load(model_file, map_location="cpu")
    older = {
        re.sub(r"(\bembed\.out)\.(weight|bias)$", r"\1.0.\2", name): value
        for name, value in parameters.items()
    }
    if older.keys() - parameters.keys():
        torch.save({**parameters, **older}, model_file)


def commandline() -> str:
    """Return this process's command line, quoted as ESPnet's logs show it."""
    try:
        from espnet2.legacy.utils.cli_utils import get_commandline_args
    except ImportError:
        from espnet.utils.cli_utils import get_commandline_args
    return get_commandline_args()


def inference_parser(module: str) -> argparse.ArgumentParser:
    """Return the parser of an ESPnet inference tool without importing the tool.

    Importing a tool takes many seconds and its parser needs little of it: the imports
    that ``get_parser`` uses are taken from the source and run with that function alone.

    Args:
        module: e.g. ``espnet2.bin.asr_inference``.
    """
    code = _parser_code(module)
    if code is None:  # this release's get_parser leans on more of its module
        parser = importlib.import_module(module).get_parser()
    else:
        namespace = {"__name__": module}
        exec(code, namespace)
        parser = namespace["get_parser"]()
    for action in parser._actions:
        # A bare per cent sign, which 202611 has in a help text, ends `--help` in a
        # ValueError: argparse fills in `%(default)s` and the like.
        action.help = re.sub(r"%%|%(?!\()", "%%", action.help or "")
    return parser


# Once a process: before Python 3.11.8 and 3.12.2, parsing can fail when another thread,
# such as Dask's, logs a traceback at the same time (gh-106905).
@functools.cache
def _parser_code(module: str) -> CodeType | None:
    """Compile ``get_parser`` and the imports it uses; None where these do not do."""
    source = Path(importlib.util.find_spec(module).origin)
    part = _parser_source(ast.parse(source.read_text(encoding="utf-8")))
    return part and compile(part, str(source), "exec")


def _parser_source(tree: ast.Module) -> ast.Module | None:
    """Cut out ``get_parser`` and the imports it uses; None where these do not do."""
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "get_parser"
    ]
    if not functions:
        return None
    names = [node for node in ast.walk(functions[0]) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(functions[0]) if isinstance(node, ast.arg)}
    needed = {node.id for node in names} - bound - set(dir(builtins))

    imports = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            used = [a for a in node.names if _bound_name(a) in needed]
            if used:
                needed -= {_bound_name(alias) for alias in used}
                node.names = used
                imports.append(node)
    if needed:
        return None
    return ast.Module(body=[*imports, functions[0]], type_ignores=[])


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]
