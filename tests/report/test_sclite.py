import subprocess

from espnet_lenbias.report.sclite import results_line, results_md, trn, write_trn
from tests.programs import SCLITE, needs_sclite
from tests.report.made import cells, system


def test_trn_lines():
    texts = {"1-u": "THE  CAT", "1-v": ""}
    assert trn(texts, {"1-u": "ann", "1-v": "1"}) == "THE CAT (ann-1-u)\n (1-1-v)\n"


def test_parentheses_in_the_name_of_an_utterance():
    """sclite takes the last ones of a line for those around it."""
    assert trn({"talk (1)": "HI"}, {"talk (1)": "s"}) == "HI (s-talk \uff081\uff09)\n"
    both = dict.fromkeys(
        ["a (1)", "a \uff081\uff09"], "s"
    )  # as two systems call copies
    assert len({line.split("(")[1] for line in trn(both, both).splitlines()}) == 2


def test_words_that_sclite_would_not_take_as_they_are():
    texts = {
        "u": "a { b } c{ {}",
        "v": ";; a ;;b x;;y ;",
        "w": "**a** b *x* x**",
        "x": "@ a@b @a",
    }
    assert trn(texts, dict.fromkeys(texts, "s")).splitlines() == [
        "a \uff5b b \uff5d c\uff5b \uff5b\uff5d (s-u)",
        "\uff1b\uff1b a \uff1b\uff1bb x;;y ; (s-v)",
        "\uff0a\uff0aa\uff0a\uff0a b *x* x** (s-w)",
        "\uff20 a@b @a (s-x)",
    ]


@needs_sclite
def test_sclite_counts_the_words_that_we_count(tmp_path):
    references = {"s-u": "a { b } @ c", "s-v": ";; a b", "s-w": "** {} \\ {x"}
    texts = {"s-u": "a { b @ c", "s-v": "q ;; a b", "s-w": "** {} \\ x"}
    row = (system("simple"), {"texts": texts})
    (cell,) = cells(row, references=references)
    write_trn(tmp_path, cell)
    folder = tmp_path / "simple_4" / "dev" / "score_wer"
    command = [SCLITE, "-r", folder / "ref.trn", "trn", "-h", folder / "hyp.trn", "trn"]
    run = subprocess.run(
        [*command, "-i", "rm", "-o", "all", "stdout"], capture_output=True, check=True
    )
    lines = run.stdout.decode("utf-8", "replace").splitlines()
    (summary,) = [x for x in lines if "Sum " in x and "|" in x][:1]
    # 13 words: 11 right, 1 substituted, 1 deleted; 1 inserted; 3 errors
    counts = [int(x) for x in summary.replace("|", " ").split()[1:]]
    assert counts[:7] == [3, 13, 11, 1, 1, 1, 3]


def test_trn_files_hold_the_same_utterances_in_the_same_order(tmp_path):
    texts = {"s2-u3": "a b", "s1-u1": "the cat", "s1-u2": ""}
    (cell,) = cells((system("simple"), {"texts": texts}))
    write_trn(tmp_path, cell)
    folder = tmp_path / "simple_4" / "dev" / "score_wer"
    assert (folder / "hyp.trn").read_text().splitlines() == [
        "the cat (s1-s1-u1)",
        " (s1-s1-u2)",
        "a b (s2-s2-u3)",
    ]
    assert (folder / "ref.trn").read_text().splitlines() == [
        "the cat sat on the mat (s1-s1-u1)",
        "oh yes (s1-s1-u2)",
        "a b c d (s2-s2-u3)",
    ]


def test_a_line_of_results_md():
    # 12 words: 9 right, 1 substituted, 2 deleted; 1 inserted; 2 of 3 sentences wrong
    texts = {"s1-u1": "the bat sat on", "s1-u2": "oh yes", "s2-u3": "a b c d e"}
    (cell,) = cells((system("simple"), {"texts": texts}))
    line = "|simple_4/dev|3|12|75.0|8.3|16.7|8.3|33.3|66.7|\n"
    assert results_line(cell) == line
    report = results_md("exp/asr", [cell])
    assert report.startswith("# RESULTS\n## Environments\n- python version: `3.")
    assert report.endswith(
        "## exp/asr\n### WER\n\n|dataset|Snt|Wrd|Corr|Sub|Del|Ins|Err|S.Err|\n"
        f"|---|---|---|---|---|---|---|---|---|\n{line}"
    )
