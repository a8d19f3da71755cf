import pytest

from espnet_lenbias.compare.beam_sizes import beam_size_figure
from espnet_lenbias.compare.compare import ComparedSearch, Result
from espnet_lenbias.report.figures.looks import kinds_of, looks
from tests.report.made import system


def results(search, beam, *texts):
    """Return the results of utterances whose references are `a b`."""
    return [
        Result("dev", f"u{n}", search, beam, "a b", text, -2.0, -1.0, 3, 0.1)
        for n, text in enumerate(texts)
    ]


ROWS = [
    ComparedSearch("simple", "simple", 4),
    ComparedSearch("tuned", "simple", 4, {"length_norm": True, "eos_threshold": 1.5}),
    ComparedSearch("explicit_length", "explicit_length", 4),
]
KINDS = {row.label: row.kind for row in ROWS}


def curves(axes):
    lines = [line for line in axes.get_lines() if line.get_label()[0] != "_"]
    return {line.get_label(): line for line in lines}


def points(line):
    return [list(map(float, values)) for values in line.get_data()]


@pytest.fixture
def figure():
    """Draw ten utterances, of which simple search loses three, then five."""
    made = [
        *results("simple", 64, *["a b"] * 5, *[""] * 5),
        *results("simple", 4, *["a b"] * 7, *[""] * 3),
        *results("tuned", 4, *["a b x"] * 10),
        *results("explicit_length", 4, *["a b"] * 10),
    ]
    return beam_size_figure(made, KINDS, "dev")


def test_a_curve_per_search_in_both_panels(figure):
    wer, ratio = figure.axes
    assert {label: points(line) for label, line in curves(wer).items()} == {
        "simple": [[4, 64], pytest.approx([30.0, 50.0])],
        "tuned": [[4], [50.0]],
        "explicit_length": [[4], [0.0]],
    }
    assert {label: points(line) for label, line in curves(ratio).items()} == {
        "simple": [[4, 64], pytest.approx([0.7, 0.5])],
        "tuned": [[4], [1.5]],
        "explicit_length": [[4], [1.0]],
    }
    assert [text.get_text() for text in wer.get_xticklabels()] == ["4", "64"]
    assert {text.get_text() for text in wer.texts} == set(KINDS)
    assert [text.get_text() for text in figure.texts] == [
        "dev, 10 utterances",
        "Bands: 95 % bootstrap intervals of simple and explicit_length.",
    ]


def test_the_looks_are_those_of_a_report(figure):
    options = frozenset({"length_norm", "eos_threshold"})
    rows = [system("simple"), system("heuristics", search="simple", options=options)]
    expected = looks(kinds_of([*rows, system("explicit_length")])).values()
    drawn = curves(figure.axes[0]).values()
    assert [(c.get_color(), c.get_marker()) for c in drawn] == [
        (look.colour, look.marker) for look in expected
    ]


def test_it_can_be_saved_without_a_display(figure, tmp_path):
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
