import math

import pytest

from espnet_lenbias.report.figures.beam_size import errors_figure, steps_figure
from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.table1 import score_line
from tests.report.made import cells, system

# Ten utterances of two words each.
REFERENCES = {f"u{n}": "a b" for n in range(10)}


def shown(axes):
    """Return the points of each curve of a panel."""
    lines = [line for line in axes.get_lines() if line.get_label()[0] != "_"]
    return {
        line.get_label(): [list(map(float, values)) for values in line.get_data()]
        for line in lines
    }


def labels(axes):
    return {text.get_text() for text in axes.texts}


def made(*rows, references=REFERENCES):
    found = cells(*rows, references=references)
    kinds = kinds_of([cell.system for cell in found])
    return [score_line(cell) for cell in found], kinds


def without(n):
    """Return the references with so many of the texts lost."""
    return {
        key: "" if i < n else text for i, (key, text) in enumerate(REFERENCES.items())
    }


def test_errors_and_length_against_beam_size():
    lines, kinds = made(
        (system("simple", 64), {"texts": without(6)}),
        (system("simple", 4), {"texts": without(1)}),
        (system("explicit_length", 4), {"texts": REFERENCES}),
    )
    figure = errors_figure(lines, kinds)
    wer, ratio = figure.axes
    assert shown(wer) == {
        "simple": [[4, 64], pytest.approx([10.0, 60.0])],
        "explicit_length": [[4], [0.0]],
    }
    assert shown(ratio) == {
        "simple": [[4, 64], pytest.approx([0.9, 0.4])],
        "explicit_length": [[4], [1.0]],
    }
    for axes in (wer, ratio):
        assert axes.get_xscale() == "log"
        assert [text.get_text() for text in axes.get_xticklabels()] == ["4", "64"]
        assert labels(axes) == {"simple", "explicit_length"}
        assert axes.get_ylabel() == ""  # the title says it, where nothing can collide
        assert axes.get_legend() is None and not figure.legends
    assert wer.get_title(loc="left") == "word error rate (%), without LM"
    assert "length ratio" in ratio.get_title(loc="left")


def test_the_set_its_size_and_the_level_of_the_intervals_are_in_the_figure():
    rows = [system("simple"), system("simple + x", search="simple")]
    rows += [system("explicit_length")]
    lines, kinds = made(*((row, {"texts": without(2)}) for row in rows))
    title, note = (text.get_text() for text in errors_figure(lines, kinds).texts)
    assert title == "dev, 10 utterances"
    assert note == "Bands: 95 % bootstrap intervals of simple and explicit_length."


def test_the_bands_are_the_intervals_of_the_table():
    lines, kinds = made(
        (system("simple", 4), {"texts": without(3)}),
        (system("simple", 8), {"texts": without(5)}),
    )
    wer, _ = errors_figure(lines, kinds).axes
    (band,) = wer.collections
    corners = {tuple(xy) for path in band.get_paths() for xy in path.vertices.tolist()}
    assert corners == {
        (line.beam_size, end) for line in lines for end in (line.wer_low, line.wer_high)
    }


def test_a_set_of_nine_utterances_is_not_joined_and_says_so():
    nine = dict(list(REFERENCES.items())[:9])
    rows = [(system("simple", beam), {"texts": nine}) for beam in (4, 8)]
    lines, kinds = made(*rows, references=nine)
    figure = errors_figure(lines, kinds)
    joined, alone = figure.axes[0].get_lines()
    assert all(math.isnan(y) for y in joined.get_ydata())
    assert list(alone.get_xdata()) == [4, 8]
    assert alone.get_markerfacecolor() == "none"
    assert "Hollow: fewer than 10 utterances." in figure.texts[1].get_text()


def test_24_rows_are_small_multiples():
    heuristics = [f"simple + x {n}" for n in range(10)]
    rows = [
        system(name, search=name.split()[0], lm_weight=lm, beam=beam, tag=f"{name}{lm}")
        for lm in (0.0, 0.3)
        for name in ("simple", *heuristics, "explicit_length")
        for beam in (4, 64)
    ]
    lines, kinds = made(*((row, {"texts": without(1)}) for row in rows))
    figure = errors_figure(lines, kinds)
    assert len(figure.axes) == 8  # 4 panels, with and without LM, each of two measures
    for axes in figure.axes:
        curves = [line for line in axes.get_lines() if line.get_label()[0] != "_"]
        assert len(curves) <= 8
        assert len(axes.texts) == len(curves)
        alike = {(c.get_color(), c.get_marker(), c.get_linestyle()) for c in curves}
        assert len(alike) == len(curves)
    per_axes = [set(shown(axes)) for axes in figure.axes]
    assert set().union(*per_axes) == {row.label for row in rows}


def test_steps_where_they_are_known():
    steps = dict.fromkeys(REFERENCES, 6)
    lines, kinds = made(
        (system("simple", 4), {"texts": REFERENCES, "steps": steps}),
        (system("simple", 64), {"texts": REFERENCES}),
        (system("explicit_length", 4), {"texts": REFERENCES, "steps": steps}),
        (system("espnet", 4), {"texts": REFERENCES}),
    )
    (axes,) = steps_figure(lines, kinds).axes
    assert shown(axes) == {"simple": [[4], [6.0]], "explicit_length": [[4], [6.0]]}
    assert axes.get_ylim()[0] == 0
    assert steps_figure(lines[1:2], kinds) is None


def test_three_panels_of_steps_leave_no_empty_axes():
    steps = {"texts": REFERENCES, "steps": dict.fromkeys(REFERENCES, 6)}
    models = [(0.0, 0.0), (0.3, 0.0), (0.3, 0.3)]
    rows = [
        system(f"simple {lm} {ctc}", search="simple", lm_weight=lm, ctc_weight=ctc)
        for lm, ctc in models
    ]
    lines, kinds = made(*((row, steps) for row in rows))
    assert [axes.get_title(loc="left") for axes in steps_figure(lines, kinds).axes] == [
        "search steps, without LM",
        "search steps, with LM",
        "search steps, with CTC and LM",
    ]
