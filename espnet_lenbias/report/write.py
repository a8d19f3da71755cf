"""Writing a report: tables, plots, trn files, RESULTS.md and report.md."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.metrics import USUAL_TOKENIZER
from espnet_lenbias.report.bleu import signatures
from espnet_lenbias.report.cells import Cell, cells_of
from espnet_lenbias.report.confidence import confidence_line, rated, reliability_lines
from espnet_lenbias.report.document import HEADING, Contents, document
from espnet_lenbias.report.endings import ending_line
from espnet_lenbias.report.figures.beam_size import (
    bleu_figure,
    errors_figure,
    steps_figure,
)
from espnet_lenbias.report.figures.looks import Kind, kinds_of
from espnet_lenbias.report.figures.reference_length import length_figure
from espnet_lenbias.report.figures.reliability import reliability_figure
from espnet_lenbias.report.figures.saving import save
from espnet_lenbias.report.figures.word_confidence import word_confidence_figure
from espnet_lenbias.report.lengths import length_lines
from espnet_lenbias.report.missing import Note
from espnet_lenbias.report.page.compared import PageRequest, report_page
from espnet_lenbias.report.page.render import write_page
from espnet_lenbias.report.paired import paired_lines
from espnet_lenbias.report.sclite import (
    has_espnets_scores,
    results_md,
    trn_files,
    write_trn,
)
from espnet_lenbias.report.systems import System
from espnet_lenbias.report.table1 import score_line
from espnet_lenbias.report.table2 import example_lines, home, most_different
from espnet_lenbias.report.tables import escape, write_csv, write_text
from espnet_lenbias.report.translation import (
    Translation,
    paired_bleu_lines,
    translation_line,
)
from espnet_lenbias.report.trust import doubtful_lines, scores_per_label, trust_line
from espnet_lenbias.report.word_confidence import (
    roc_lines,
    temperatures,
    with_words,
    word_confidence_line,
    word_reliability_lines,
)

PAGE = "report.html"
_REPORT = "report.md"

# The plots of a set, as the document calls them.
_PLOTS = (
    *("BLEU", "beam size", "search steps", "reference length", "reliability"),
    "word confidence",
)

_EXAMPLES = 3


@dataclass(frozen=True)
class Request:
    """What is asked of a report."""

    # Of the folder that was read.
    name: str
    # The set to look at closely.
    detail: str
    # The examples; none: those of that set on which the systems' lengths differ most.
    utterances: Sequence[str] = ()
    # Results of a lower original score per label are not to be trusted; None: the
    # threshold is what each set says itself.
    doubtful: float | None = None
    # The set that the temperature of confidences is fitted on.
    temperature_from: str | None = None
    # Of the BLEU of translations.
    tokenizer: str = USUAL_TOKENIZER
    # Of the page to look at, report.html; None: there is none.
    page: PageRequest | None = None


def write_report(
    folder: Path,
    request: Request,
    systems: Sequence[System],
    cells: Sequence[Cell],
    of_all: Sequence[Translation],
    notes: Sequence[Note],
) -> None:
    """Write a report.

    Args:
        folder: Where to.
        request: What is asked of it.
        systems: The rows.
        cells: What they have decoded.
        of_all: Those of the cells that are scored as translations.
        notes: What is missing.

    Raises:
        OSError: A file cannot be written.
        OptionError: There is a file in its place that no report has written.
    """
    _has_report(folder)  # refused now: what follows takes a while
    name, detail, utterances = request.name, request.detail, request.utterances
    doubtful = request.doubtful
    names = sorted({cell.dataset for cell in cells})
    sets = {dataset: cells_of(cells, dataset) for dataset in names}
    looked_at = [cell for of_set in sets.values() for cell in rated(of_set)]
    sure = [cell for of_set in sets.values() for cell in with_words(of_set)]
    fitted = temperatures(sure, request.temperature_from)
    scored = [cell for cell in looked_at if scores_per_label(cell.decoding)]
    tables: dict[str, list[Any]] = {
        "translation": [translation_line(x) for x in of_all],
        "paired_bleu": paired_bleu_lines(of_all),
        "table1": [score_line(cell) for cell in cells],
        "reference_length": [x for c in sets.values() for x in length_lines(c)],
        "endings": [ending_line(cell) for cell in cells],
        "paired": paired_lines(cells),
        "confidence": [confidence_line(cell) for cell in looked_at],
        "reliability": [x for cell in looked_at for x in reliability_lines(cell)],
        "word_confidence": [word_confidence_line(cell, fitted) for cell in sure],
        "word_reliability": [x for cell in sure for x in word_reliability_lines(cell)],
        "word_roc": [x for cell in sure for x in roc_lines(cell)],
        "trust": [trust_line(cell, doubtful) for cell in scored],
        "doubtful": [x for cell in scored for x in doubtful_lines(cell, doubtful)],
    }
    chosen = utterances or most_different(sets[detail], _EXAMPLES)
    examples = {key: example_lines(home(key, sets, detail), key) for key in chosen}
    tables["table2"] = [line for lines in examples.values() for line in lines]
    finished = [cell for cell in cells if cell.complete]
    trns = {cell: trn_files(folder, cell) for cell in finished}
    for cell, files in trns.items():
        if has_espnets_scores(folder, cell):
            raise _foreign(files[0])
    there = [folder / file for file in _written(tables, sets)]
    _take(folder, name, [*there, *(file for files in trns.values() for file in files)])
    for table, lines in tables.items():
        if lines:
            write_csv(folder / f"{table}.csv", lines)

    kinds = kinds_of(systems)
    plots = {of_set: write_plots(folder, of_set, tables, kinds) for of_set in sets}
    for cell in finished:
        write_trn(folder, cell)
    of_finished = [x for x in of_all if x.cell.complete]
    write_text(folder / "RESULTS.md", results_md(name, finished, of_finished))
    contents = Contents(
        name=name,
        systems=systems,
        cells=cells,
        detail=detail,
        examples=examples,
        how_chosen=_how_chosen(detail, utterances),
        endings=_of(tables["endings"], detail),
        translation=tables["translation"],
        paired_bleu=tables["paired_bleu"],
        signatures=signatures(request.tokenizer) if of_all else "",
        paired=tables["paired"],
        confidence=_of(tables["confidence"], detail),
        word_confidence=tables["word_confidence"],
        temperature_from=request.temperature_from,
        trust=_of(tables["trust"], detail),
        plots=plots[detail],
        notes=notes,
    )
    write_text(folder / _REPORT, document(contents))
    if request.page is not None:
        data = report_page(
            name, systems, cells, tables, notes, utterances, request.page, folder
        )
        write_page(folder / PAGE, "report.html", data)


def _written(tables: Iterable[str], sets: Iterable[str]) -> list[str]:
    """Return how the files of a report are called, but for the report itself."""
    plots = [f"{of_set}_{_file_name(plot)}" for of_set in sets for plot in _PLOTS]
    return ["RESULTS.md", PAGE, *(f"{table}.csv" for table in tables), *plots]


def _take(folder: Path, name: str, files: Sequence[Path]) -> None:
    """Make room for a report: files of an earlier one go, a person's own are refused.

    By its heading the report itself tells that the others are of a report, so it is the
    first that is written.

    Args:
        folder: Where the report goes.
        name: What it is called.
        files: Those that it has beside itself.

    Raises:
        OptionError: Names a file or folder that no report has written.
        OSError: A file cannot be read, written or removed.
    """
    there = [path for path in files if path.exists() and not path.is_symlink()]
    folders = [path for path in there if path.is_dir()]
    if folders or (there and not _has_report(folder)):
        raise _foreign([*folders, *there][0])
    write_text(folder / _REPORT, f"{HEADING}{escape(name)}\n")
    for path in there:
        path.unlink()


def _has_report(folder: Path) -> bool:
    """Tell whether there is an earlier report in a folder.

    Raises:
        OptionError: There is another file, or a folder, of its name.
        OSError: It cannot be read.
    """
    report = folder / _REPORT
    if not report.exists():
        return False
    if report.is_dir() or not report.read_text("utf-8", "replace").startswith(HEADING):
        raise _foreign(report)
    return True


def _foreign(path: Path) -> OptionError:
    return OptionError(
        f"output_dir: {path} stands where the report goes, and no report has written it: "
        "move it, or name another folder"
    )


def write_plots(
    folder: Path,
    dataset: str,
    tables: Mapping[str, Sequence[Any]],
    kinds: Mapping[str, Kind],
) -> dict[str, str]:
    """Draw what the finished decodings of a set say.

    Args:
        folder: Where to.
        dataset: The set.
        tables: The lines of each table, of all sets.
        kinds: Of all searches of the report, by label.

    Returns:
        The name of each plot that there is something for, and that of its file.
    """
    finished = [line for line in _of(tables["table1"], dataset) if not line.missing]
    lengths = _of(tables["reference_length"], dataset)
    bins = _of(tables["reliability"], dataset)
    of_words = _of(tables["word_reliability"], dataset)
    curves = _of(tables["word_roc"], dataset)
    translated = [x for x in _of(tables["translation"], dataset) if not x.missing]
    figures = (
        bleu_figure(translated, kinds) if translated else None,
        errors_figure(finished, kinds) if finished else None,
        steps_figure(finished, kinds),
        length_figure(lengths, kinds),
        reliability_figure(bins, kinds),
        word_confidence_figure(of_words, curves, kinds),
    )
    files = {}
    for name, figure in zip(_PLOTS, figures, strict=True):
        if figure is not None:
            files[name] = f"{dataset}_{_file_name(name)}"
            save(figure, folder / files[name])
    return files


def _file_name(plot: str) -> str:
    """Return what the name of a plot's file ends in, behind that of the set."""
    return f"{plot.replace(' ', '_')}.png"


def _of(lines: Iterable[Any], dataset: str) -> list[Any]:
    return [line for line in lines if line.dataset == dataset]


def _how_chosen(detail: str, utterances: Sequence[str]) -> str:
    if utterances:
        return "The utterances are those that were asked for."
    return (
        f"The utterances of {detail} on whose length in words the rows differ most "
        "(longest output minus shortest)."
    )
