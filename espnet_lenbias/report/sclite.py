"""The files of ESPnet's scoring, without sclite: trn lines and RESULTS.md.

Here the alignment with the fewest errors counts. sclite's costs (4 for a substitution, 3
for a deletion or an insertion) can choose another one, with other kinds of errors and,
rarely, one error more.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from espnet_lenbias.report.bleu import bleu_in_words
from espnet_lenbias.report.cells import Cell
from espnet_lenbias.report.tables import escape, write_text
from espnet_lenbias.report.translation import Translation
from espnet_lenbias.report.trn import trn_line

_HEAD = (
    "|dataset|Snt|Wrd|Corr|Sub|Del|Ins|Err|S.Err|\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)

_BLEU_HEAD = "|dataset|score|verbose_score|\n|---|---|---|\n"


def trn(texts: Mapping[str, str], speakers: Mapping[str, str]) -> str:
    """Return lines ``TEXT (speaker-utterance)``, in the order of the texts."""
    return "".join(trn_line(key, text, speakers[key]) for key, text in texts.items())


def trn_files(folder: Path, cell: Cell) -> tuple[Path, Path]:
    """Return ``<tag>/<set>/score_wer/{hyp,ref}.trn``, where ESPnet's stage 13 has them."""
    folder = folder / cell.system.tag / cell.dataset / "score_wer"
    return folder / "hyp.trn", folder / "ref.trn"


def has_espnets_scores(folder: Path, cell: Cell) -> bool:
    """Tell whether ESPnet's stage 13 has scored a decoding: its files stay as they are."""
    hyp, _ = trn_files(folder, cell)
    return hyp.with_name("result.txt").is_file()


def write_trn(folder: Path, cell: Cell) -> None:
    """Write hypotheses and references, see :func:`trn_files`."""
    hyp, ref = trn_files(folder, cell)
    hyp.parent.mkdir(parents=True, exist_ok=True)
    speakers = cell.references.speakers
    hypotheses = {key: cell.decoding.texts[key] for key in cell.keys}
    references = {key: cell.references.texts[key] for key in cell.keys}
    write_text(hyp, trn(hypotheses, speakers))
    write_text(ref, trn(references, speakers))


def results_md(
    name: str, cells: Sequence[Cell], translations: Sequence[Translation] = ()
) -> str:
    """Return ESPnet's RESULTS.md of finished decodings.

    Args:
        name: Of the folder that they are in.
        cells: The decodings.
        translations: Those of them that are scored with BLEU, too.
    """
    packages = ["espnet", "espnet_lenbias", "torch", "jiwer"]
    of_bleu = ""
    if translations:
        packages.append("sacrebleu")
        of_bleu = f"\n### BLEU\n\n{_BLEU_HEAD}{''.join(map(bleu_line, translations))}"
    environment = "".join(f"- {p} version: `{version(p)}`\n" for p in packages)
    return (
        "# RESULTS\n## Environments\n"
        f"- python version: `{python_version()}`\n{environment}\n"
        f"## {escape(name)}\n### WER\n\n{_HEAD}{''.join(map(results_line, cells))}"
        f"{of_bleu}"
    )


def results_line(cell: Cell) -> str:
    """Return the line of a decoding: counts, then % of the words and sentences."""
    errors = cell.errors
    words = errors.reference_words
    counts = (errors.hits, errors.substitutions, errors.deletions, errors.insertions)
    rates = [_percent(n, words) for n in counts]
    wrong = len(cell.keys) - int(cell.right.sum())
    values = [
        escape(f"{cell.system.tag}/{cell.dataset}"),
        str(len(cell.keys)),
        str(words),
        *rates,
        f"{errors.wer:.1f}",
        _percent(wrong, len(cell.keys)),
    ]
    return f"|{'|'.join(values)}|\n"


def bleu_line(translation: Translation) -> str:
    """Return the line of a translation: BLEU, and what sacrebleu says of it."""
    cell = translation.cell
    score, details = bleu_in_words(translation.counts)
    return f"|{escape(f'{cell.system.tag}/{cell.dataset}')}|{score}|{details}|\n"


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.1f}" if of else "nan"
