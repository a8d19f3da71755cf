"""What ``espnet-lenbias explain`` is to decode: an audio file, a text, or both.

No torch in here: a mistake shows before a model is loaded.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.plain_files import LONGEST_NAME, file_name
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.audio_files import (
    are_large,
    audio_rate,
    channel_warning,
    check_audio_file,
    check_rate,
    end_warning,
    length_warning,
    read_audio,
    scale_warning,
    training_types,
)
from espnet_lenbias.options.espnet_tools import S2T, Tool
from espnet_lenbias.options.train_config import why_no_file

_BEGINNING = 4096  # bytes of a plot or page, which hold the mark


@dataclass(frozen=True)
class Input:
    """What is decoded."""

    tool: Tool
    audio: Path | None
    text: str | None

    @property
    def name(self) -> str:
        """What titles call it."""
        return "text" if self.audio is None else self.audio.stem

    def file(self, ending: str) -> str:
        """Return how a file of it is called: as the audio, or by the words of the text."""
        if self.audio is not None:
            name = self.audio.stem + ending
            too_long = len(os.fsencode(name)) > LONGEST_NAME
            return file_name(self.audio.stem, ending) + ending if too_long else name
        return file_name("-".join((self.text or "").split()), ending) + ending

    @property
    def source(self) -> str:
        """What messages call it."""
        return "the text" if self.audio is None else str(self.audio)

    @property
    def mark(self) -> str:
        """What the plot and the page of it hold, which tells them from all others."""
        what = self.text or "" if self.audio is None else os.path.abspath(self.audio)
        digest = hashlib.sha256(os.fsencode(what)).hexdigest()[:16]
        return f"by espnet-lenbias explain, of {digest}"

    @cached_property
    def data(self) -> dict[str, Any]:
        """The data by name, as ESPnet reads them from a data set.

        Raises:
            AudioError: The audio is cut off.
        """
        data: dict[str, Any] = {}
        if self.audio is not None:
            data["speech"] = read_audio(self.audio)
        if self.text is not None:
            assert self.tool.text is not None
            data[self.tool.text] = self.text
        return data


def input_of(tool: Tool, path: Path | None, text: str | None) -> Input:
    """Return what to decode.

    Args:
        tool: Whose model decodes.
        path: An audio file, or of a translator of texts a file with one text.
        text: The text to translate, or what the audio comes with.

    Raises:
        OSError: There is no such file.
        ValueError: Says what is missing, or has no place.
    """
    if text is not None and not text.strip():
        raise ValueError("text: there is nothing in it")
    if tool.source == tool.text:  # a text alone
        if (path is None) == (text is None):
            raise ValueError(
                f"text: {tool.key} translates a text: give one, with --text TEXT or in "
                "a file in the place of AUDIO"
            )
        return Input(tool, None, _only_line(path) if path is not None else text)
    if text is not None and tool.text is None:
        raise ValueError(
            f"text: {tool.key} takes no text, only audio: leave --text out, or say "
            "whose model it is with --tool"
        )
    if path is None:
        raise ValueError(f"AUDIO: {tool.key} decodes an audio file: name one")
    check_audio_file(path)
    return Input(tool, path, text)


def check_input(given: Input, train_config: Mapping[str, Any]) -> list[str]:
    """Verify that audio is what a model was trained on; return warnings.

    Raises:
        AudioError: The audio is cut off.
        ValueError: It has another sampling rate.
    """
    if given.audio is None:
        return []
    rate, samples = audio_rate(given.audio), given.data["speech"]
    check_rate(given.audio, rate, train_config.get("frontend_conf"))
    trained_on = training_types(train_config).get("speech")
    has_window = given.tool.key == S2T.key or train_config.get("encoder") == "whisper"
    n_channels = 1 if samples.ndim == 1 else samples.shape[1]
    warnings = [
        scale_warning(given.source, "sound", are_large(samples), trained_on),
        "" if has_window else length_warning(given.source, len(samples) / rate),
        channel_warning(given.source, n_channels, train_config),
        end_warning(given.audio),
    ]
    return [warning for warning in warnings if warning]


def check_place(given: Input, path: Path) -> None:
    """Verify that a plot or a page replaces none but the same input's.

    Raises:
        OptionError: It would.
        OSError: What is there cannot be read.
    """
    if path.is_dir():
        raise OptionError(
            f"output_dir: {path} is a folder, and stands where a file of {given.source} "
            "goes: move it, or name another folder"
        )
    if not path.is_file() or path.is_symlink():
        return
    with path.open("rb") as f:
        beginning = f.read(_BEGINNING)
    if given.mark.encode() not in beginning:
        raise OptionError(
            f"output_dir: {path} stands where a file of {given.source} goes, and it is "
            "of something else: move it, or name another folder"
        )


def _only_line(path: Path) -> str:
    """Return the text of a file that holds one.

    Raises:
        OSError: There is no such file.
        ValueError: It holds none, or several.
    """
    if not os.path.isfile(path):
        why = why_no_file(path, "text file")
        raise FileNotFoundError(f"{why}: give a text with --text")
    try:
        text = path.read_text("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is no text in UTF-8") from e
    if "\0" in text:
        raise ValueError(f"{path} holds NUL: it is no text in UTF-8")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise ValueError(
            f"{path} has {len(lines)} lines of text, and one is explained: give it with "
            "--text"
        )
    return lines[0].strip()
