"""``espnet-lenbias report``: tables and plots of decodings that are on disk.

DIR holds a folder for each row of the tables, with what was decoded: DIR/<row>/<set>/text
(asr.sh) or DIR/<row>/<set>/1best_recog/text, with the files `score`, `original_score`,
`steps` and `token_int` beside it where the search writes them. How it was decoded is
read from the journal, decoding.jsonl, that the tools of this package leave in the folder
of the set. ESPnet's own tools leave none: for these, copy the decode config to
DIR/<row>/decode.yaml. There, `row: NAME` gives a row a name; without it the name says
the search and its options.

Words are what stands between white space; texts are compared as they are, without any
normalisation. A row that is not finished is marked and compared with nothing.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.values import finite

# What LibriSpeech's recipes call the set of the paper's error analysis.
_USUAL_DETAIL = ("dev-other", "dev_other")


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    description = (__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(
        prog="espnet-lenbias report",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="the folder of decodings")
    add(
        "--data",
        type=Path,
        required=True,
        help="folder of the references: DATA/<set>/text, and utt2spk for trn files",
    )
    add("--output_dir", type=Path, help="where to write (default: DIR/report)")
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
    from espnet_lenbias.report.write import write_report

    try:
        found = read_decodings(args.dir, args.data)
        sets = sorted({decoding.references.name for decoding in found.decodings})
        detail = _detail(args.detail, sets)
        find_utterances(found.decodings, args.utterances)
        folder = args.output_dir or args.dir / "report"
        make_output_dir(folder)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    systems, cells = found.systems, score(found.decodings)
    missing = notes(systems, cells, found.skipped, found.contradicted, found.incomplete)
    name = args.dir.resolve().name
    try:
        write_report(
            folder,
            name,
            systems,
            cells,
            detail,
            args.utterances,
            missing,
            args.doubtful,
        )
    except OSError as e:
        parser.exit(2, f"{parser.prog}: error: the report in {folder}: {e}\n")
    print(table1(systems, cells, detail))
    for note in missing:
        print(note.summary)
    print(f"tables and plots are in {folder}: see report.md")
    return 0


def _detail(asked: str | None, sets: Sequence[str]) -> str:
    """Return the set to look at closely."""
    if asked is None:
        usual = [name for name in _USUAL_DETAIL if name in sets]
        return (usual or sets)[0]
    if asked not in sets:
        raise ValueError(f"--detail: no row has decoded {asked}, but {', '.join(sets)}")
    return asked
