"""``espnet-lenbias report``: tables, plots and a page of decodings that are on disk.

DIR holds a folder for each row of the tables, with what was decoded: DIR/<row>/<set>/text
(asr.sh) or DIR/<row>/<set>/1best_recog/text, with the files `score`, `original_score`,
`steps`, `stopped`, `token_int` and `word_confidence` beside it where they are written.
How it was decoded is read from the journal, decoding.jsonl, that the tools of this package
leave in the folder of the set. ESPnet's own tools leave none: for these, copy the decode
config to DIR/<row>/decode.yaml. There, `row: NAME` gives a row a name; without it the name
says the search and its options.

Words are what stands between white space; texts are compared as they are, without any
normalisation. What a translation tool has made is scored with sacrebleu's BLEU and chrF,
too. A row that is not finished is marked and compared with nothing.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.html_page import (
    NO_AUDIO,
    add_html_options,
    audio_choice,
    check_html_options,
)
from espnet_lenbias.options.metrics import METRICS, TOKENIZERS, USUAL_TOKENIZER
from espnet_lenbias.options.output_folder import make_output_dir, named_path
from espnet_lenbias.options.values import finite, from_one, take_as_written

if TYPE_CHECKING:
    from espnet_lenbias.report.decodings import Decoding
    from espnet_lenbias.report.page.compared import PageRequest

# What LibriSpeech's recipes call the set of the paper's error analysis.
_USUAL_DETAIL = ("dev-other", "dev_other")

# Utterances of the page: 100 of 15 s are 7 MB of audio.
_PAGE_UTTERANCES = 100
_ALL = "all"


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    description = (__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(
        prog="espnet-lenbias report",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    take_as_written(parser)
    add = parser.add_argument
    add("dir", type=named_path, metavar="DIR", help="the folder of decodings")
    add(
        "--data",
        type=named_path,
        required=True,
        help="folder of the references: DATA/<set>/text, and utt2spk for trn files",
    )
    add("--output_dir", type=named_path, help="where to write (default: DIR/report)")
    add(
        "--detail",
        metavar="SET",
        help="the set whose errors, examples and plots report.md shows (default: "
        "dev-other if there is one, else the first)",
    )
    add(
        "--utterances",
        nargs="+",
        default=[],
        metavar="ID",
        help="examples to show (default: where the rows' lengths differ most)",
    )
    add(
        "--doubtful",
        type=finite,
        metavar="SCORE",
        help="results with a lower original score per label are not to be trusted "
        "(default: below it are 5 %% of each set)",
    )
    add(
        "--temperature_from",
        metavar="SET",
        help="the set on which the temperature of the words' confidences is fitted",
    )
    add(
        "--metric",
        choices=METRICS,
        help="bleu: score all rows with BLEU and chrF, too; wer: none (default: those "
        "of translation tools, which the journal tells)",
    )
    add(
        "--tokenize",
        choices=TOKENIZERS,
        default=USUAL_TOKENIZER,
        help="how sacrebleu cuts texts into words for BLEU (default: %(default)s; zh: "
        "Chinese)",
    )
    add_html_options(parser, "report.html, beside report.md")
    add(
        "--html_utterances",
        type=_count_or_all,
        metavar="N",
        help="how many utterances the page has, those with the most word errors: a "
        f"number, or {_ALL} (default: {_PAGE_UTTERANCES}); with --utterances, it has those",
    )
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = get_parser()
    args = parser.parse_args(cmd)
    # Here, not above: `--help` need not wait for matplotlib.
    from espnet_lenbias.report.cells import score
    from espnet_lenbias.report.decodings import read_decodings
    from espnet_lenbias.report.missing import notes
    from espnet_lenbias.report.table1 import table1
    from espnet_lenbias.report.table2 import find_utterances
    from espnet_lenbias.report.translation import (
        translation_line,
        translation_table,
        translations,
    )
    from espnet_lenbias.report.write import PAGE, Request, write_report

    try:
        check_html_options(args, ("html_utterances",))
        found = read_decodings(args.dir, args.data)
        sets = sorted({decoding.references.name for decoding in found.decodings})
        detail = _detail(args.detail, sets)
        _check_temperature_from(args.temperature_from, found.decodings)
        find_utterances(found.decodings, args.utterances)
        page = _page(args, sets) if args.html else None
        folder = args.output_dir or args.dir / "report"
        make_output_dir(folder)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    systems, cells = found.systems, score(found.decodings)
    missing = notes(
        systems,
        cells,
        found.skipped,
        found.contradicted,
        found.incomplete,
        found.mixed,
    )
    of_all = translations(cells, args.metric, args.tokenize)
    if args.tokenize != USUAL_TOKENIZER and not of_all:
        parser.exit(
            2,
            f"{parser.prog}: error: tokenize: no row is scored with BLEU, for which it "
            "cuts texts into words: say --metric bleu, or leave it out\n",
        )
    request = Request(
        name=args.dir.resolve().name,
        detail=detail,
        utterances=args.utterances,
        doubtful=args.doubtful,
        temperature_from=args.temperature_from,
        tokenizer=args.tokenize,
        page=page,
    )
    try:
        write_report(folder, request, systems, cells, of_all, missing)
    except OptionError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    except OSError as e:
        parser.exit(2, f"{parser.prog}: error: the report in {folder}: {e}\n")
    if of_all:
        print(translation_table(map(translation_line, of_all)))
    print(table1(systems, cells, detail))
    for note in missing:
        print(note.summary)
    print(f"tables and plots are in {folder}: see report.md")
    if page is not None:
        print(f"page: {folder / PAGE}")
    return 0


def _page(args: argparse.Namespace, sets: Sequence[str]) -> "PageRequest":
    """Return what is asked of the page.

    Raises:
        OSError: A list of audio files cannot be read.
        ValueError: It is wrong, or audio is asked for that there is not; or utterances,
            twice.
    """
    from espnet_lenbias.report.page.audio import sources_of
    from espnet_lenbias.report.page.compared import PageRequest

    if args.utterances and args.html_utterances is not None:
        raise ValueError(
            "--html_utterances: --utterances names the utterances of the page already: "
            "leave one of them out"
        )
    read = [] if args.html_audio == NO_AUDIO else sets
    sources = {name: sources_of(args.data / name) for name in read}
    how = audio_choice(
        args.html_audio,
        any(sources.values()),
        f"no set has a {args.data}/<set>/wav.scp",
    )
    count = args.html_utterances or _PAGE_UTTERANCES
    return PageRequest(None if count == _ALL else count, how, sources)


def _count_or_all(text: str) -> int | str:
    """Read a number from 1 on, or `all`."""
    return text if text == _ALL else from_one(text)


def _check_temperature_from(asked: str | None, decodings: Sequence["Decoding"]) -> None:
    """Verify that a temperature can be fitted on a set."""
    with_words = {
        d.references.name for d in decodings if any(d.word_confidence.values())
    }
    if asked is not None and asked not in with_words:
        has = (
            f"but {', '.join(sorted(with_words))}"
            if with_words
            else "nor any other set"
        )
        raise ValueError(
            f"--temperature_from: no row has confidences of the words of {asked}, {has}: "
            "decode it with `confidence: true`"
        )


def _detail(asked: str | None, sets: Sequence[str]) -> str:
    """Return the set to look at closely."""
    if asked is None:
        usual = [name for name in _USUAL_DETAIL if name in sets]
        return (usual or sets)[0]
    if asked not in sets:
        raise ValueError(f"--detail: no row has decoded {asked}, but {', '.join(sets)}")
    return asked
