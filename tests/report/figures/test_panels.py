from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.figures.panels import cut, panels

LM = (True, False)


def kinds(n_others, models=(False, False), suffix=""):
    others = {
        f"simple + x {n}{suffix}": Kind("simple", frozenset("x"), models)
        for n in range(n_others)
    }
    return {
        f"simple{suffix}": Kind("simple", frozenset(), models),
        **others,
        f"explicit_length{suffix}": Kind("explicit_length", frozenset(), models),
    }


def test_few_searches_share_one_panel():
    (panel,) = panels(kinds(2))
    assert panel.labels == ["simple", "simple + x 0", "simple + x 1", "explicit_length"]
    assert panel.references == ["simple", "explicit_length"]
    assert panel.title == "without LM"


def test_24_searches_are_at_most_eight_to_a_panel():
    rows = kinds(10) | kinds(10, LM, ", LM 0.3")
    shown = panels(rows)
    assert [panel.title for panel in shown] == [
        "without LM (1 of 2)",
        "without LM (2 of 2)",
        "with LM (1 of 2)",
        "with LM (2 of 2)",
    ]
    assert [len(panel.labels) for panel in shown] == [7, 7, 7, 7]
    assert {label for panel in shown for label in panel.labels} == set(rows)
    for panel in shown:
        assert panel.labels[0].startswith("simple")
        assert panel.labels[-1].startswith("explicit_length")


def test_searches_without_a_reference():
    rows = {f"row {n}": Kind("another", models=(False, True)) for n in range(9)}
    first, second = panels(rows)
    assert (first.title, len(first.labels), len(second.labels)) == (
        "with CTC (1 of 2)",
        4,
        5,
    )
    assert first.references == []


def test_a_single_search():
    (panel,) = panels({"explicit_length": Kind("explicit_length")})
    assert panel.labels == ["explicit_length"]


def test_parts_are_level():
    assert cut(list("abcdefg"), 6) == [list("abc"), list("defg")]
    assert cut(list("abcdef"), 6) == [list("abcdef")]
    assert cut([], 6) == [[]]
