"""What the programs that measure bundled models share: options, models and audio."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from espnet_lenbias.compare.utterances import Utterance, read_set, spread
from espnet_lenbias.options.packed_model import check_tag
from espnet_lenbias.options.values import from_zero

HERE = Path(__file__).resolve().parents[1]

# The sets of which audio is bundled, and the models.
BUNDLED = ("dev-clean", "dev-other", "test-other")
MODELS = [str(HERE / f"pretrained/asr_{name}.zip") for name in ("transformer", "rnn")]


def measuring_parser(
    doc: str, name: str, sets: Sequence[str]
) -> argparse.ArgumentParser:
    """Return a parser with the options of data and results.

    Args:
        doc: Of the program.
        name: Of the folder of its results, unless another is given.
        sets: Usual ones.
    """
    parser = argparse.ArgumentParser(
        description=doc.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--output_dir", type=Path, default=HERE / "exp" / name)
    add("--audio", type=Path, default=HERE / "slice/LibriSpeech", help="as demo.py's")
    add("--sets", nargs="+", default=list(sets))
    add("--utterances", type=from_zero, default=0, help="of each set; 0: all")
    return parser


def load_measured(parser: argparse.ArgumentParser, path: str, **options: Any) -> Any:
    """Return a model without CTC and LM; exit with status 2 where there is none."""
    # Here, not above: this loads torch.
    from espnet_lenbias import Speech2Text

    try:
        return Speech2Text.from_pretrained(
            path, ctc_weight=0.0, lm_weight=0.0, **options
        )
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")


def read_measured(
    args: argparse.Namespace, models: Sequence[str]
) -> dict[str, Sequence[Utterance]]:
    """Return the utterances of each set, once models are there and results can be written.

    Args:
        args: The options of :func:`measuring_parser`.
        models: Packed ones.

    Raises:
        OSError: Audio, a model or the folder is not there.
        ValueError: A model is none.
    """
    sets = {s: spread(read_set(args.audio, s), args.utterances) for s in args.sets}
    for model in models:
        check_tag(model)
    args.output_dir.mkdir(parents=True, exist_ok=True)
    return sets
