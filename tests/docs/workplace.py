"""A folder in which the commands of the pages find what they name.

What stands in for what:

================================  ====================================================
exp/asr/{config.yaml,*.pth}       the bundled transformer model, as a training leaves it
exp/asr/decode_*/test_clean       results that a decoding has left: the right texts, and
                                  the journal of a run of this package
exp/asr/decode_espnet/test_clean  the same of ESPnet's own tool, which leaves no journal
dump/raw/test_clean               two of the bundled utterances
data/talks                        one of them as a recording, and a piece of it
conf/                             the decode configs of recipes/librispeech
speech.flac, other.flac           the same two utterances
recipes/                          the bundled models, one file of the bundled audio, and
                                  the data of recipes/mini_mt
tmp/                              /tmp
.venv                             the environment of the Python that runs the tests
sbatch                            a command that does nothing
================================  ====================================================
"""

import os
import shutil
import sys
from pathlib import Path

from espnet_lenbias.decoding.journal import options_line
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.run_journal import JOURNAL
from tests.bundled import bundled
from tests.docs.pages import ROOT

SLICE = Path("recipes/mini_librispeech/slice/LibriSpeech/dev-clean")
BOOTS, WALTER = "2005-20050-0003", "2008-20080-0005"
TEXTS = {
    BOOTS: "NINETEEN BOOTS",
    WALTER: "WALTER KNEW THAT SHE FOUND HARRIET",
}


def speech(key: str) -> Path:
    """Return the audio of a bundled utterance."""
    return next((ROOT / SLICE).rglob(f"{key}.flac"))


def make(folder: Path) -> None:
    """Fill the folder."""
    audio = {key: speech(key) for key in TEXTS}
    data = folder / "dump" / "raw" / "test_clean"
    data.mkdir(parents=True)
    _write_lines(data / "wav.scp", {key: str(path) for key, path in audio.items()})
    _write_lines(data / "text", TEXTS)
    talks = folder / "data" / "talks"
    talks.mkdir(parents=True)
    _write_lines(talks / "wav.scp", {"talk": str(audio[BOOTS])})
    _write_lines(talks / "segments", {"piece": "talk 0 1"})
    for name, path in zip(("speech", "other"), audio.values(), strict=True):
        shutil.copy(path, folder / f"{name}.flac")

    model = folder / "exp" / "asr"
    for search in ("espnet", "simple", "explicit_length"):
        results = model / f"decode_{search}" / "test_clean"
        (results / "1best_recog").mkdir(parents=True)
        _write_lines(results / "1best_recog" / "text", TEXTS)
        if search != "espnet":
            options = {"search": search, "beam_size": "16"}
            (results / JOURNAL).write_text(options_line(options))
    files = model_files(str(bundled("asr_transformer")))
    (model / "config.yaml").symlink_to(files["asr_train_config"])
    (model / "valid.acc.ave.pth").symlink_to(files["asr_model_file"])

    (folder / "conf").mkdir()
    for config in (ROOT / "recipes" / "librispeech" / "conf").glob("decode_*.yaml"):
        shutil.copy(config, folder / "conf")

    (folder / SLICE).mkdir(parents=True)
    speaker = audio[BOOTS].parents[1]
    (folder / SLICE / speaker.name).symlink_to(speaker)
    pretrained = Path("recipes", "mini_librispeech", "pretrained")
    (folder / pretrained).symlink_to(ROOT / pretrained)
    (folder / "recipes" / "mini_mt").symlink_to(ROOT / "recipes" / "mini_mt")

    (folder / "tmp").mkdir()
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    (folder / "bin").mkdir()
    _write_script(folder / "bin" / "sbatch", "exit 0")


def path_variable(folder: Path) -> str:
    """Return the PATH on which the folder's commands are found."""
    return f"{Path(sys.executable).parent}:{folder / 'bin'}:{os.environ['PATH']}"


def replace_python(folder: Path) -> None:
    """Put a command that only prints its arguments in the place of .venv/bin/python."""
    (folder / ".venv").unlink()
    (folder / ".venv" / "bin").mkdir(parents=True)
    _write_script(folder / ".venv" / "bin" / "python", 'echo "$@"')


def _write_lines(path: Path, values: dict[str, str]) -> None:
    path.write_text("".join(f"{key} {value}\n" for key, value in values.items()))


def _write_script(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
