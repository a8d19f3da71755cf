"""report.md: the tables and plots with what one has to know to read them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from espnet_lenbias.report.bootstrap import LEVEL, RESAMPLES
from espnet_lenbias.report.cells import Cell, cells_of
from espnet_lenbias.report.confidence import ConfidenceLine
from espnet_lenbias.report.endings import EXPLANATION, EndingLine, worth_showing
from espnet_lenbias.report.holm import CORRECTED
from espnet_lenbias.report.missing import Note
from espnet_lenbias.report.paired import PairedLine
from espnet_lenbias.report.systems import PROPOSED, System
from espnet_lenbias.report.table1 import UNFINISHED, table1, wer_by_beam
from espnet_lenbias.report.table2 import ExampleLine, steps_table
from espnet_lenbias.report.tables import escape, markdown_table
from espnet_lenbias.report.translation import (
    PairedBleuLine,
    TranslationLine,
    translation_table,
)
from espnet_lenbias.report.trust import SHARE, TrustLine
from espnet_lenbias.report.word_confidence import WordConfidenceLine

HEADING = "# Decodings of "  # by which a report is known as one


@dataclass(frozen=True)
class Contents:
    """What a report shows."""

    name: str  # of the folder that was read
    systems: Sequence[System]
    cells: Sequence[Cell]
    detail: str  # the set that is looked at closely
    examples: Mapping[str, Sequence[ExampleLine]]  # by utterance
    how_chosen: str  # the examples
    endings: Sequence[EndingLine]  # of the detail set
    paired: Sequence[PairedLine]
    confidence: Sequence[ConfidenceLine]  # of the detail set
    word_confidence: Sequence[WordConfidenceLine]  # of all sets
    temperature_from: str | None  # the set that temperatures are fitted on
    trust: Sequence[TrustLine]  # of the detail set
    plots: Mapping[str, str]  # of the detail set: what -> file
    notes: Sequence[Note]  # what is missing
    translation: Sequence[TranslationLine] = ()
    paired_bleu: Sequence[PairedBleuLine] = ()
    signatures: str = ""  # of BLEU and chrF

    @property
    def sets(self) -> list[str]:
        """The names of the sets, sorted."""
        return sorted({cell.dataset for cell in self.cells})


def document(contents: Contents) -> str:
    """Return report.md."""
    sections = [_head, _translation, _table1, _by_beam, _paired, _table2]
    sections += [_endings, _confidence, _word_confidence, _trust, _missing]
    return _join(section(contents) for section in sections)


def _head(contents: Contents) -> str:
    references = {cell.dataset: cell.references for cell in contents.cells}
    sets = "\n".join(
        f"- {escape(name)}: {len(of_set.texts)} utterances, references of "
        f"{of_set.mean_words:.1f} words on average"
        for name, of_set in sorted(references.items())
    )
    return (
        f"{HEADING}{escape(contents.name)}\n\n{sets}\n\n"
        "Words are what stands between white space; texts are compared as they are, "
        "without normalising case, punctuation or numbers. Confidence intervals "
        f"({100 * LEVEL:.0f} %, in the CSV files and below) are percentiles over "
        f"{RESAMPLES} resamples of the utterances, the same ones for all rows of a set."
    )


def _translation(contents: Contents) -> str:
    if not contents.translation:
        return ""
    parts = [
        "## Translation: BLEU and chrF\n\n"
        "Of sacrebleu, on the texts as they are, with one reference each "
        f"(`{contents.signatures}`); the intervals resample the texts. The length ratio "
        "is in the words of BLEU's tokenizer. Word error rates, in the tables below, say "
        "little of a translation, which can be right in other words.\n\n"
        + translation_table(contents.translation)
    ]
    if contents.paired_bleu:
        parts.append(
            f"{PROPOSED} against the other search with the highest BLEU, likewise at the "
            "same beam size and at any; the difference is positive where the proposed "
            "search is better. "
            f"{CORRECTED}\n\n" + markdown_table(contents.paired_bleu)
        )
    return _join([*parts, *_pictures(contents, "BLEU")])


def _table1(contents: Contents) -> str:
    table = table1(contents.systems, contents.cells, contents.detail)
    unfinished = any(not cell.complete for cell in contents.cells)
    mark = f" {UNFINISHED}: not finished, see the end." if unfinished else ""
    return (
        "## Table 1: word error rates (%)\n\n"
        f"`{contents.detail} words` is the mean length of the output. The lowest error "
        f"rate of each column is bold. Intervals are in table1.csv.{mark}\n\n{table}"
    )


def _by_beam(contents: Contents) -> str:
    parts = ["## Word error rate (%) by beam size"]
    parts += [
        f"### {escape(name)}\n\n"
        + wer_by_beam(contents.systems, cells_of(contents.cells, name))
        for name in contents.sets
    ]
    parts += _pictures(contents, "beam size", "reference length")
    return _join(parts)


def _paired(contents: Contents) -> str:
    if not contents.paired:
        return ""
    return (
        f"## {PROPOSED} against the best other search\n\n"
        "The best other search with the same kinds of models, at the same beam size and "
        "at any; it is chosen on the set itself, which favours it. The difference is "
        "negative where the proposed search has fewer errors; its interval and the "
        f"two-sided p are of a paired bootstrap. {CORRECTED}\n\n"
        + markdown_table(contents.paired)
    )


def _table2(contents: Contents) -> str:
    parts = ["## Table 2: examples and search steps"]
    if contents.examples:
        parts.append(contents.how_chosen)
    references = {cell.dataset: cell.references.texts for cell in contents.cells}
    for key, lines in contents.examples.items():
        if not lines:
            parts.append(f"{escape(key)}: no row has decoded it.")
            continue
        dataset = lines[0].dataset
        table = markdown_table(lines, leave_out=("dataset", "utterance"))
        said = escape(references[dataset][key])
        parts.append(f"{escape(key)} ({escape(dataset)}): {said}\n\n{table}")
    parts.append(
        "Mean search steps of an utterance:\n\n"
        + steps_table(contents.systems, contents.cells)
    )
    parts += _pictures(contents, "search steps")
    return _join(parts)


def _endings(contents: Contents) -> str:
    if not worth_showing(contents.endings):
        return ""
    table = markdown_table(contents.endings)
    return f"## Loops, empty outputs, forced ends\n\n{EXPLANATION}\n\n{table}"


def _confidence(contents: Contents) -> str:
    if not contents.confidence:
        return ""
    table = markdown_table(contents.confidence)
    text = (
        "## The score as a confidence\n\n"
        "Does a confidence of 0.9 mean that nine in ten utterances are right, to the "
        "last word? ECE, the expected calibration error, is how far the two are apart "
        "on average (0: never); AUC is the probability that of a right and a wrong "
        "utterance the wrong one has the lower confidence (0.5: chance, 1: always).\n\n"
        f"{table}"
    )
    return _join([text, *_pictures(contents, "reliability")])


def _word_confidence(contents: Contents) -> str:
    if not contents.word_confidence:
        return ""
    fitted = "`--temperature_from SET` fits it on a development set."
    if contents.temperature_from is not None:
        fitted = (
            f"Here it is fitted on {escape(contents.temperature_from)}, so the error of "
            "that set at it says little."
        )
    text = (
        "## How sure words are\n\n"
        "Of the words that decoding has given a confidence of 0.9 nine in ten should be "
        "right: stand at their place in the reference. ECE and AUC are as above, of "
        "words. At a temperature T a confidence c is c^(1/T), as "
        f"`confidence_temperature: T` has it in decoding. {fitted}\n\n"
        + markdown_table(contents.word_confidence)
    )
    return _join([text, *_pictures(contents, "word confidence")])


def _trust(contents: Contents) -> str:
    if not contents.trust:
        return ""
    return (
        "## Results not to be trusted\n\n"
        "A search gives text for noise, too. Doubtful are utterances whose original "
        "score per label is below the threshold: the one of `--doubtful`, or else what "
        f"the set says itself, where at most {100 * SHARE:.0f} % of it are below. "
        "doubtful.csv lists them. Nothing is left out of any other table.\n\n"
        + markdown_table(contents.trust)
    )


def _missing(contents: Contents) -> str:
    if not contents.notes:
        return ""
    kinds = "\n".join(f"- {note.summary}" for note in contents.notes)
    rows = "\n".join(f"- {line}" for note in contents.notes for line in note.details)
    return (
        f"## What is missing\n\n{kinds}\n\n"
        f"<details><summary>Row by row</summary>\n\n{rows}\n\n</details>"
    )


def _join(parts: Iterable[str]) -> str:
    """Put parts that are not empty below one another, an empty line between."""
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _pictures(contents: Contents, *names: str) -> list[str]:
    """Return links to those of these plots that there are."""
    return [
        f"![{name}, {escape(contents.detail)}]({quote(contents.plots[name])})"
        for name in names
        if name in contents.plots
    ]
