"""The command, on folders written by hand."""

import csv
import subprocess
import sys

import pytest

from espnet_lenbias.report.command import main
from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.table1 import score_line
from espnet_lenbias.report.write import write_plots
from tests.report.made import REFERENCES, cells, system, write_lines, write_system

SIMPLE = {"search": "simple", "ctc_weight": 0.0, "lm_weight": 0.0}
PROPOSED = {**SIMPLE, "search": "explicit_length"}

# dev-other has one utterance more, of 3 words
OTHER = {**REFERENCES, "s2-u4": "x y z"}


def files(texts: dict, final: float) -> dict:
    """Return what a search of ours writes: scores of -2 and 4 labels for all."""
    return {
        "text": texts,
        "score": dict.fromkeys(texts, final),
        "original_score": dict.fromkeys(texts, -2.0),
        "steps": dict.fromkeys(texts, 5),
        "token_int": dict.fromkeys(texts, "7 8 9"),
    }


def write_data(folder):
    write_lines(folder / "dev-clean" / "text", REFERENCES)
    write_lines(folder / "dev-other" / "text", OTHER)
    write_lines(folder / "dev-other" / "utt2spk", dict.fromkeys(OTHER, "ann"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write three rows, one not finished, one not begun, and their report."""
    root = tmp_path_factory.mktemp("report")
    write_data(root / "data")
    short = {**OTHER, "s1-u1": "", "s2-u4": "x"}  # 8 words lost
    half = {"s1-u1": "the cat"}
    exp = root / "exp"
    sets = {"dev-clean": files(REFERENCES, -2.0), "dev-other": files(short, -2.0)}
    write_system(exp, "simple_4", {**SIMPLE, "beam_size": 4}, sets)
    write_system(
        exp, "simple_8", {**SIMPLE, "beam_size": 8}, {"dev-other": files(half, -2.0)}
    )
    sets = {"dev-clean": files(REFERENCES, -0.1), "dev-other": files(OTHER, -0.1)}
    write_system(exp, "proposed_4", {**PROPOSED, "beam_size": 4}, sets)
    write_system(exp, "proposed_8", {**PROPOSED, "beam_size": 8}, {})
    assert main([str(exp), "--data", str(root / "data")]) == 0
    return exp / "report"


def read_csv(path):
    with path.open() as f:
        return list(csv.DictReader(f))


@pytest.mark.parametrize(
    "name",
    [
        *("RESULTS.md", "report.md", "report.html", "table1.csv"),
        "simple_4/dev-clean/score_wer/ref.trn",
    ],
)
def test_a_file_that_no_report_has_written_is_not_written_over(name, tmp_path, capsys):
    write_data(tmp_path / "data")
    sets = {"dev-clean": files(REFERENCES, -2.0)}
    write_system(tmp_path / "exp", "simple_4", {**SIMPLE, "beam_size": 4}, sets)
    out = tmp_path / "out"
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data")]
    command += ["--output_dir", str(out)]
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine\n")
    (out / "notes.md").write_text("mine, too\n")
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 2
    assert (
        f"error: output_dir: {out / name} stands where the" in capsys.readouterr().err
    )
    assert (out / name).read_text() == "mine\n"
    (out / name).unlink()
    assert main(command) == main(command) == 0  # over the first report
    assert (out / "notes.md").read_text() == "mine, too\n"


@pytest.mark.parametrize("name", ["RESULTS.md", "report.md", "table1.csv"])
def test_a_folder_of_the_name_of_a_file_is_told(name, tmp_path, capsys):
    """The folder may be a row, where the report goes beside the rows."""
    write_data(tmp_path / "data")
    write_system(
        tmp_path / "exp",
        "a",
        {**SIMPLE, "beam_size": 4},
        {"dev-clean": files(REFERENCES, -2.0)},
    )
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data")]
    command += ["--output_dir", str(tmp_path / "out")]
    assert main(command) == 0
    report = (tmp_path / "out" / "report.md").read_text()
    (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / name).mkdir()
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 2
    assert f"{tmp_path / 'out' / name} stands where the" in capsys.readouterr().err
    if name != "report.md":
        assert (tmp_path / "out" / "report.md").read_text() == report


def test_what_espnet_has_scored_stays(made, capsys):
    """Its stage 13 may have come after an earlier report."""
    scores = made / "simple_4" / "dev-clean" / "score_wer"
    before = (scores / "hyp.trn").read_text()
    (scores / "result.txt").write_text("of sclite\n")
    command = [str(made.parent), "--data", str(made.parent.parent / "data")]
    try:
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 2
        assert f"{scores / 'hyp.trn'} stands where the rep" in capsys.readouterr().err
        assert (scores / "hyp.trn").read_text() == before
    finally:
        (scores / "result.txt").unlink()


def test_the_files(made):
    top = {path.name for path in made.iterdir() if path.is_file()}
    # of so few utterances there is nothing to see by length or confidence
    sets, plots = ("dev-clean", "dev-other"), ("beam_size", "search_steps")
    pictures = {f"{s}_{p}.png" for s in sets for p in plots}
    tables = {"table1", "table2", "paired", "reference_length", "confidence", "trust"}
    tables |= {"endings", "reliability"}
    assert top == pictures | {f"{t}.csv" for t in tables} | {
        "report.md",
        "RESULTS.md",
    }
    for name in pictures:
        assert (made / name).read_bytes().startswith(b"\x89PNG")


def test_table_1(made):
    text = (made / "report.md").read_text()
    rows = [line.replace(" ", "") for line in text.splitlines()]
    assert rows.count("|simple|0|4|**0.0**|53.3|0|8|0|1.8|") == 1  # 7 words of 4
    assert rows.count("|simple|0|8|-|66.7†|0†|4†|0†|2.0†|") == 1
    assert rows.count("|explicit_length|0|4|**0.0**|**0.0**|0|0|0|3.8|") == 1
    assert rows.count("|explicit_length|0|8|-|-|-|-|-|-|") == 1
    lines = {
        (x["dataset"], x["search"], x["beam_size"]): x
        for x in read_csv(made / "table1.csv")
    }
    line = lines["dev-other", "simple", "4"]
    assert float(line["wer"]) == pytest.approx(100 * 8 / 15)
    assert float(line["wer_low"]) < 100 * 8 / 15 < float(line["wer_high"])
    assert lines["dev-other", "simple", "8"]["missing"] == "3"


def test_what_is_missing_is_a_line_per_kind_after_the_tables(made):
    text = (made / "report.md").read_text()
    heading = "## What is missing\n\n"
    tables, _, missing = text.partition(heading)
    assert "nothing is decoded" not in tables
    assert "†: not finished, see the end." in tables
    assert text.rindex("\n| ") < text.index(heading)
    shown, _, rows = missing.partition("<details><summary>Row by row</summary>")
    assert shown.strip().splitlines() == [
        "- nothing is decoded of dev-clean (2 rows), dev-other (1 row)",
        (
            "- † not finished: dev-other (1 row); the numbers are of the utterances "
            "decoded so far, and no comparison, plot or mark has them"
        ),
    ]
    assert [line for line in rows.splitlines() if line.startswith("- ")] == [
        "- `simple_8`: nothing of dev-clean",
        "- `proposed_8`: nothing of dev-clean, dev-other",
        "- `simple_8`, dev-other: only 1 of 4 utterances are decoded",
    ]
    assert rows.rstrip().endswith("</details>")


def test_results_md_and_trn_files_are_of_finished_rows(made):
    results = (made / "RESULTS.md").read_text().splitlines()
    assert [line for line in results if line.startswith("|")][2:] == [
        "|simple_4/dev-clean|3|12|100.0|0.0|0.0|0.0|0.0|0.0|",
        "|simple_4/dev-other|4|15|46.7|0.0|53.3|0.0|53.3|50.0|",
        "|proposed_4/dev-clean|3|12|100.0|0.0|0.0|0.0|0.0|0.0|",
        "|proposed_4/dev-other|4|15|100.0|0.0|0.0|0.0|0.0|0.0|",
    ]
    assert not (made / "simple_8").exists()


def test_trn_files(made):
    path = made / "simple_4" / "dev-other" / "score_wer" / "hyp.trn"
    assert path.read_text().splitlines() == [
        " (ann-s1-u1)",
        "oh yes (ann-s1-u2)",
        "a b c d (ann-s2-u3)",
        "x (ann-s2-u4)",
    ]


def test_comparison(made):
    clean, other = read_csv(made / "paired.csv")
    assert (clean["dataset"], float(clean["difference"]), float(clean["p"])) == (
        "dev-clean",
        0.0,
        1.0,
    )
    assert float(other["difference"]) == pytest.approx(-100 * 8 / 15)
    assert (other["other"], other["other_beam_size"]) == ("simple", "4")


def test_examples(made):
    text = (made / "report.md").read_text()
    # lengths of the two finished rows: 0 and 6 words, 1 and 3, then level
    places = [text.index(f"{key} (dev-other)") for key in ("s1-u1", "s2-u4", "s1-u2")]
    assert places == sorted(places)
    assert "s2-u3 (dev-other)" not in text
    assert "on whose length in words the rows differ most" in text
    row = next(x for x in read_csv(made / "table2.csv") if x["search"] != "simple")
    assert (row["original_score"], row["score"], row["steps"]) == ("-2.0", "-0.1", "5")


def test_confidence(made):
    simple, proposed = (
        x for x in read_csv(made / "confidence.csv") if x["dataset"] == "dev-other"
    )
    # exp(-2 / 4) with 2 of 4 right, and exp(-0.1) with all right
    assert float(simple["mean_confidence"]) == pytest.approx(0.60653, abs=1e-4)
    assert float(simple["calibration_error"]) == pytest.approx(0.10653, abs=1e-4)
    assert float(simple["auc"]) == 0.5
    assert float(proposed["mean_confidence"]) == pytest.approx(0.90484, abs=1e-4)
    assert float(proposed["calibration_error"]) == pytest.approx(0.09516, abs=1e-4)
    assert proposed["auc"] == "nan"


def test_plots_leave_out_what_is_not_finished(tmp_path):
    rows = [
        (system("simple", 4), {"texts": REFERENCES}),
        (system("simple", 8), {"texts": {"s1-u1": "the cat"}}),
    ]
    found = cells(*rows)
    kinds = kinds_of([cell.system for cell in found])
    lines = {
        "reference_length": [],
        "reliability": [],
        "word_reliability": [],
        "word_roc": [],
        "translation": [],
    }

    def plots(of):
        lines["table1"] = [score_line(cell) for cell in of]
        return write_plots(tmp_path, "dev", lines, kinds)

    assert plots(found) == {"beam size": "dev_beam_size.png"}
    both = (tmp_path / "dev_beam_size.png").read_bytes()
    assert plots(found[:1]) == {"beam size": "dev_beam_size.png"}
    assert (tmp_path / "dev_beam_size.png").read_bytes() == both
    assert plots(found[1:]) == {}


def test_nothing_of_an_earlier_report_is_left(tmp_path, capsys):
    """A person's own files stay."""
    write_data(tmp_path / "data")
    sets = {"dev-clean": {"text": REFERENCES}}
    write_system(tmp_path / "exp", "a", {**SIMPLE, "beam_size": 4}, sets)
    out = tmp_path / "out"
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data")]
    command += ["--output_dir", str(out)]
    main(command)
    written = {path.name for path in out.iterdir()}
    for name in ("report.html", "doubtful.csv", "dev-clean_BLEU.png", "own.csv"):
        (out / name).write_text("of before")
    main(command)
    assert {path.name for path in out.iterdir()} == written | {"own.csv"}


def test_it_says_how_words_are_counted(made):
    assert (
        "Words are what stands between white space; texts are compared as they are"
        in (made / "report.md").read_text()
    )


def test_what_the_options_choose(tmp_path, capsys):
    write_data(tmp_path / "data")
    sets = {"dev-clean": {"text": REFERENCES}, "dev-other": {"text": OTHER}}
    write_system(tmp_path / "exp", "a", {**SIMPLE, "beam_size": 4}, sets)
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data")]
    command += ["--output_dir", str(tmp_path / "out"), "--detail", "dev-clean"]
    main([*command, "--utterances", "s2-u4"])
    text = (tmp_path / "out" / "report.md").read_text()
    assert "`dev-clean words` is the mean length" in text
    assert "s2-u4 (dev-other): x y z" in text
    assert "The utterances are those that were asked for." in text
    assert "dev-clean_beam_size.png" in text
    assert not (tmp_path / "exp" / "report").exists()
    assert "dev-clean ins" in capsys.readouterr().out


def test_transcripts_and_names_are_shown_as_they_are(tmp_path):
    texts = {"u_": "<unk> *x* |", "v": "_a_ `b`"}
    write_lines(tmp_path / "data" / "dev set" / "text", texts)
    config = {**SIMPLE, "beam_size": 4, "row": "_mine_ <b>"}
    write_system(tmp_path / "exp", "a*", config, {"dev set": {"text": texts}})
    main([str(tmp_path / "exp"), "--data", str(tmp_path / "data")])
    text = (tmp_path / "exp" / "report" / "report.md").read_text()
    assert "u\\_ (dev set): \\<unk\\> \\*x\\* \\|\n" in text
    assert "| \\<unk\\> \\*x\\* \\| |" in text
    assert "| \\_mine\\_ \\<b\\> |" in text
    assert "](dev%20set_beam_size.png)" in text
    results = (tmp_path / "exp" / "report" / "RESULTS.md").read_text()
    assert "|a\\*/dev set|2|5|100.0|" in results
    (line,) = read_csv(tmp_path / "exp" / "report" / "table1.csv")
    assert line["search"] == "_mine_ <b>"


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--detail", "test"],
            "--detail: no row has decoded test, but dev-clean, dev-",
        ),
        (["--utterances", "s9"], "--utterances: no set has s9"),
        (["--data", "gone"], "there are no references gone/dev-clean/text"),
        (["--output_dir", __file__], f"output_dir {__file__} cannot be written ("),
        (["--html_audio", "none"], "--html_audio: it is an option of the page: add --"),
        (["--html_utterances", "3"], "--html_utterances: it is an option of the page"),
        (["--html", "--html_utterances", "0"], "argument --html_utterances: "),
        (["--html", "--html_audio", "link"], "--html_audio link: no set has a "),
        (
            ["--html", "--html_utterances", "all", "--utterances", "s1-u1"],
            "--html_utterances: --utterances names the utterances of the page already",
        ),
    ],
)
def test_options_that_are_wrong(tmp_path, capsys, options, message):
    write_data(tmp_path / "data")
    sets = {"dev-clean": {"text": REFERENCES}, "dev-other": {"text": OTHER}}
    write_system(tmp_path / "exp", "a", {**SIMPLE, "beam_size": 4}, sets)
    command = [str(tmp_path / "exp"), "--data", str(tmp_path / "data"), *options]
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    assert f"espnet-lenbias report: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "explain"])
def test_help_and_mistakes_do_not_wait_for_torch(command):
    code = (
        "import sys\n"
        "from espnet_lenbias.cli import main\n"
        "try:\n"
        f"    main(['{command}', '--help'])\n"
        "finally:\n"
        "    assert not {'torch', 'matplotlib'} & set(sys.modules)\n"
    )
    command_line = [sys.executable, "-c", code]
    run = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert f"usage: espnet-lenbias {command}" in run.stdout
