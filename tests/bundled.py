"""The bundled models, for the release of ESPnet that is installed.

They were trained with 202611. ESPnet 202511 has another name for one of their layers, and
without a word leaves it at random: for that release the tests take copies in which the
layer is renamed.
"""

import io
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import torch

from espnet_lenbias import espnet_compat

PRETRAINED = Path(__file__).parents[1] / "recipes" / "mini_librispeech" / "pretrained"

# Whether ESPnet is 202611 or later.
RECENT = espnet_compat.BeamSearch.__module__.startswith("espnet2.legacy")

_NOW, _BEFORE = "encoder.embed.out.", "encoder.embed.out.0."


@cache
def bundled(name: str) -> Path:
    """Return ``<name>.zip``."""
    archive = PRETRAINED / f"{name}.zip"
    if RECENT:
        return archive
    copy = Path(tempfile.mkdtemp()) / archive.name
    with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(copy, "w") as renamed:
        for member in packed.infolist():
            data = packed.read(member)
            renamed.writestr(member, _renamed(data) if _is_asr(member) else data)
    return copy


def _is_asr(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith(".pth") and "asr" in member.filename


def _renamed(data: bytes) -> bytes:
    """Rename the layer in the parameters of a model, as ESPnet saves them."""
    parameters = torch.load(io.BytesIO(data))
    renamed = {key.replace(_NOW, _BEFORE): value for key, value in parameters.items()}
    assert renamed.keys() != parameters.keys()
    out = io.BytesIO()
    torch.save(renamed, out)
    return out.getvalue()
