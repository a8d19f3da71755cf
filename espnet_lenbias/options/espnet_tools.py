"""ESPnet's inference tools that search label by label, and how they differ.

No torch in here: command lines ask for it before they load anything.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from espnet_lenbias import espnet_compat

# ESPnet options that choose another kind of search -> what that search is.
OTHER_DECODING = {
    "streaming": "blockwise streaming search",
    "time_sync": "time-synchronous search",
    "partial_ar": "partially autoregressive decoding",
    "hugging_face_decoder": "Hugging Face generation",
    "ctc_greedy": "the best path of CTC",
    "run_chunk": "classification chunk by chunk",
}


@dataclass(frozen=True)
class Tool:
    """An inference tool, ``espnet2.bin.<name>``."""

    name: str
    # Where our subclass of its inference class is: its module in `inference`, and the
    # class.
    home: str
    class_name: str
    # ESPnet's class of the task.
    task_name: str
    # What the inference object calls the options of the training.
    train_args: str
    # The data that is decoded, and that which a text is, of the names in its
    # `--data_path_and_name_and_type`. The text may be what an utterance comes with; None:
    # it takes none.
    source: str = "speech"
    text: str | None = None
    # Whether its output is in another language than what it decodes.
    translates: bool = False
    # Whether it takes an utterance chunk by chunk, as in a stream.
    streams: bool = False
    # Whether it decodes several utterances as one batch.
    batches: bool = False
    # Its models hear so many seconds, however short the audio is; 0: as many as there
    # are.
    window_seconds: float = 0.0
    # The files that it writes for each rank.
    files: tuple[str, ...] = ("token", "token_int", "score", "text")

    @property
    def key(self) -> str:
        """The letters that the options which name its model begin with."""
        return self.name.partition("_")[0]

    @property
    def model_options(self) -> tuple[str, str]:
        """The two options that name its model."""
        return f"{self.key}_train_config", f"{self.key}_model_file"

    @property
    def module(self) -> str:
        """ESPnet's tool."""
        return f"espnet2.bin.{self.name}"

    @property
    def drop_in(self) -> str:
        """The tool here that takes its place."""
        return f"espnet_lenbias.bin.{self.name}"

    def inference_class(self) -> Any:
        """Return our subclass of the tool's inference class; loads torch and ESPnet."""
        module = importlib.import_module(f"espnet_lenbias.inference.{self.home}")
        return getattr(module, self.class_name)

    def task(self) -> Any:
        """Return ESPnet's class of the task; loads torch and ESPnet."""
        return getattr(espnet_compat, self.task_name)


ASR = Tool(
    "asr_inference",
    "asr",
    "Speech2Text",
    "ASRTask",
    "asr_train_args",
    batches=True,
)
ASR_STREAMING = Tool(
    "asr_inference_streaming",
    "asr_streaming",
    "Speech2TextStreaming",
    "ASRTask",
    "asr_train_args",
    streams=True,
)
ST = Tool(
    "st_inference", "st", "Speech2Text", "STTask", "st_train_args", translates=True
)
ST_STREAMING = Tool(
    "st_inference_streaming",
    "st_streaming",
    "Speech2TextStreaming",
    "STTask",
    "st_train_args",
    translates=True,
    streams=True,
)
MT = Tool(
    "mt_inference",
    "mt",
    "Text2Text",
    "MTTask",
    "mt_train_args",
    source="src_text",
    text="src_text",
    translates=True,
)
S2T = Tool(
    "s2t_inference",
    "s2t",
    "Speech2Text",
    "S2TTask",
    "s2t_train_args",
    text="text_prev",
    batches=True,
    window_seconds=30.0,
    files=("token", "token_int", "score", "text", "text_nospecial"),
)
SLU = Tool(
    "slu_inference",
    "slu",
    "Speech2Understand",
    "SLUTask",
    "asr_train_args",
    text="transcript",
)

TOOLS = (ASR, ASR_STREAMING, ST, ST_STREAMING, MT, S2T, SLU)


# Options of OWSM that hold a symbol in angle brackets, to be given without them in a shell.
SYMBOLS = ("lang_sym", "task_sym")


def symbol(text: str) -> str:
    """Return a symbol as models have it, in angle brackets, given with or without."""
    return f"<{text.lstrip('<').rstrip('>')}>"


def tool_of(letters: str) -> Tool | None:
    """Return the tool whose model's options begin so; None: there is none."""
    return next((tool for tool in TOOLS if tool.key == letters), None)


def owner_of(names: Iterable[str]) -> Tool | None:
    """Return the tool whose model options with these names describe; None: no tool's.

    Args:
        names: Of the options that hold the files of a model.
    """
    given = set(names)
    return next((tool for tool in TOOLS if {*tool.model_options} & given), None)


# ESPnet's other inference tools, and how they decode.
OTHER_TOOLS = {
    "espnet2.bin.asr_inference_k2": "with the graphs of k2",
    "espnet2.bin.asr_inference_maskctc": "by refining the output of CTC (mask-CTC)",
    "espnet2.bin.asr_transducer_inference": "with the search of a transducer",
    "espnet2.bin.s2t_inference_ctc": "with CTC alone",
}
