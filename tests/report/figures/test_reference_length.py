from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.figures.reference_length import length_figure
from espnet_lenbias.report.lengths import LengthLine

KINDS = {
    "simple": Kind("simple"),
    "simple, LM 0.6": Kind("simple", models=(True, False)),
    "explicit_length": Kind("explicit_length"),
}


def line(search, beam, shortest, longest, wer, lm=0.0, utterances=12):
    head = ("dev", search, lm, beam)
    return LengthLine(*head, shortest, longest, utterances, wer, 1.0)


def shown(axes):
    lines = [line for line in axes.get_lines() if line.get_label()[0] != "_"]
    return {
        line.get_label(): [list(map(float, values)) for values in line.get_data()]
        for line in lines
    }


def test_columns_are_the_smallest_and_the_largest_beam_and_rows_the_models():
    figure = length_figure(
        [
            line("simple", 4, 1, 3, 10.0),
            line("simple", 4, 4, 4, 20.0),
            line("simple", 4, 1, 3, 7.0, lm=0.6),
            line("simple", 4, 4, 4, 8.0, lm=0.6),
            line("simple", 16, 1, 3, 11.0),
            line("simple", 16, 4, 4, 12.0),
            line("explicit_length", 64, 1, 3, 5.0),
            line("explicit_length", 64, 4, 4, 6.0),
        ],
        KINDS,
    )
    small, large, with_lm = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "word error rate (%), beam 4, without LM",
        "word error rate (%), beam 64, without LM",
        "word error rate (%), beam 4, with LM",
    ]
    assert shown(small) == {"simple": [[0, 1], [10.0, 20.0]]}
    assert shown(large) == {"explicit_length": [[0, 1], [5.0, 6.0]]}
    assert shown(with_lm) == {"simple, LM 0.6": [[0, 1], [7.0, 8.0]]}
    assert [text.get_text() for text in small.get_xticklabels()] == ["1-3", "4"]
    assert figure.texts[0].get_text() == "dev, 24 utterances"


def test_ranges_of_few_utterances_are_hollow():
    lines = [
        line("simple", 4, 1, 3, 10.0, utterances=10),
        line("simple", 4, 4, 4, 20.0, utterances=9),
    ]
    figure = length_figure(lines, KINDS)
    (axes,) = figure.axes
    _, alone = axes.get_lines()
    assert list(alone.get_xdata()) == [1]
    assert figure.texts[1].get_text() == "Hollow: fewer than 10 utterances."


def test_there_is_no_figure_of_too_few_utterances():
    assert length_figure([line("simple", 4, 1, 3, 10.0, utterances=9)], KINDS) is None
    assert length_figure([], KINDS) is None
