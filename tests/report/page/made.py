"""A report with a page, and a page of one utterance, written by hand."""

from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import soundfile

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.report.command import main
from espnet_lenbias.report.explanation import Searched, explain
from espnet_lenbias.report.page.explained import explained_page
from espnet_lenbias.report.page.render import write_page
from tests.report.made import write_lines, write_system
from tests.tables import TableModel

RATE = 16000

# Texts that are none of HTML, of a script, of JSON or of a template.
HOSTILE_WORDS = (
    """<unk> </script><script>window.caught=1</script> {{7*7}} "'&amp; <!--"""
)
HOSTILE_KEY = """u'"><img/src=x/onerror=window.caught=1>"""
HOSTILE_ROW = """</script><script>window.caught=1</script>{{7*7}}"'"""

# Of 4, 2 and 5 words, and without one of the first and two of the last.
TEXTS = {"utt1": "one two three four", "utt2": "five six", "utt3": HOSTILE_WORDS}
SHORT = {"utt1": "one three four", "utt2": "five six", "utt3": "<unk> {{7*7}} <!--"}


def speech(seconds: float = 2.0, rate: int = RATE) -> np.ndarray:
    """Return noise with bursts that is 0.5 at most, always the same."""
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, int(seconds * rate))
    envelope = np.abs(np.sin(np.arange(len(noise)) / rate * 2 * np.pi))
    loud: np.ndarray = noise * envelope
    return loud


def write_audio(folder: Path, keys: list[str], seconds: float = 2.0) -> dict[str, str]:
    """Write a file for each utterance, and the ``wav.scp``; return its lines."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = {}
    for number, key in enumerate(keys):
        lines[key] = str(folder / f"audio {number}.flac")
        soundfile.write(lines[key], speech(seconds), RATE)
    write_lines(folder / "wav.scp", lines)
    return lines


def even_times(texts: dict[str, str], seconds: float = 2.0) -> dict[str, str]:
    """Return lines of `word_times`: all words of an utterance are equally long."""
    lines = {}
    for key, text in texts.items():
        ends = np.linspace(0, seconds, len(text.split()) + 1)
        lines[key] = " ".join(f"{a:.3f}-{b:.3f}" for a, b in pairwise(ends))
    return lines


def even_confidence(texts: dict[str, str]) -> dict[str, str]:
    """Return lines of `word_confidence`, from 1.0 down to 0.0 in each utterance."""
    return {
        key: " ".join(f"{max(1 - 0.2 * i, 0):.6f}" for i in range(len(text.split())))
        for key, text in texts.items()
    }


def write_decodings(root: Path, seconds: float = 2.0) -> tuple[Path, Path]:
    """Write two searches at two beam sizes, of three utterances; return DIR and DATA."""
    exp, data = root / "exp", root / "data"
    write_lines(data / "dev" / "text", TEXTS)
    write_audio(data / "dev", list(TEXTS), seconds)
    simple = {"search": "simple", "ctc_weight": 0.0, "lm_weight": 0.0}
    rows = {
        "simple_4": ({**simple, "beam_size": 4}, {"text": TEXTS}),
        "simple_16": ({**simple, "beam_size": 16}, {"text": SHORT}),
    }
    for beam in (4, 16):
        config = {**simple, "search": "explicit_length", "beam_size": beam}
        files = {
            "text": TEXTS,
            "word_confidence": even_confidence(TEXTS),
            "word_times": even_times(TEXTS, seconds),
        }
        rows[f"explicit_{beam}"] = (config, files)
    for tag, (config, files) in rows.items():
        write_system(exp, tag, config, {"dev": files})
    return exp, data


def write_hostile(root: Path) -> tuple[Path, Path]:
    """Write one row whose names, keys and texts are markup; return DIR and DATA."""
    exp, data = root / "<b>{{7*7}}", root / "data"
    texts = {HOSTILE_KEY: HOSTILE_WORDS}
    write_lines(data / "dev" / "text", texts)
    config = {"search": "simple", "beam_size": 4, "lm_weight": 0.0, "row": HOSTILE_ROW}
    write_system(exp, "simple", config, {"dev": {"text": texts}})
    return exp, data


def report_page(exp: Path, data: Path, *options: str) -> Path:
    """Make the report, but for plots, which take seconds; return its page."""
    command = [str(exp), "--data", str(data), "--output_dir", str(exp / "out")]
    with patch("espnet_lenbias.report.write.write_plots", return_value={}):
        assert main([*command, "--html", *options]) == 0
    return exp / "out" / "report.html"


def searched() -> Searched:
    """Return a search whose course tests/report/test_explanation.py has worked out."""
    model = TableModel(ExplicitLengthBeamSearch)
    return explain(model, {"speech": np.zeros(5)}, "x").searched


def write_explained(path: Path, audio: dict | None, title: str = "utt1") -> Path:
    """Write the page of that search."""
    write_page(path, "explain.html", explained_page(searched(), title, audio))
    return path
