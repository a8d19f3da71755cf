from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.page.curves import curves, lighter
from espnet_lenbias.report.table1 import score_line
from tests.report.made import REFERENCES, cells, system

SHORT = {**REFERENCES, "s1-u1": ""}  # 6 of 12 words are lost


def made(*rows):
    found = cells(*rows)
    kinds = kinds_of([cell.system for cell in found])
    return curves([score_line(cell) for cell in found], [], kinds)


def test_a_point_for_each_row():
    found = made(
        (system("simple", 4), {"texts": REFERENCES}),
        (system("simple", 16), {"texts": SHORT}),
        (system("explicit_length", 4), {"texts": REFERENCES}),
    )
    assert found["sets"] == ["dev"]
    assert [x["name"] for x in found["searches"]] == ["simple", "explicit_length"]
    titles = ["Word error rate (%)", "Length ratio (dashed: the right length)"]
    assert [chart["title"] for chart in found["charts"]] == titles  # no steps are known
    wer, ratio = (chart["spec"]["data"]["values"] for chart in found["charts"])
    assert [(x["search"], x["beam"], x["value"]) for x in wer] == [
        ("simple", 4, 0.0),
        ("simple", 16, 50.0),
        ("explicit_length", 4, 0.0),
    ]
    assert [x["value"] for x in ratio] == [1.0, 0.5, 1.0]
    assert wer[1]["low"] < 50.0 < wer[1]["high"]
    axis = found["charts"][0]["spec"]["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [4, 16]


def test_steps_where_they_are_known():
    steps = dict.fromkeys(REFERENCES, 7)
    found = made((system("simple", 4), {"texts": REFERENCES, "steps": steps}))
    *_, chart = found["charts"]
    assert chart["title"] == "Search steps"
    (point,) = chart["spec"]["data"]["values"]
    assert (point["value"], point["low"], point["high"]) == (7.0, 7.0, 7.0)


def test_searches_look_as_in_the_plots():
    found = made(
        (system("simple", 4), {"texts": REFERENCES}),
        (system("explicit_length", 4), {"texts": REFERENCES}),
    )
    simple, proposed = found["searches"]
    assert (simple["colour"], simple["shape"], simple["dash"]) == (
        "#D55E00",
        "square",
        [6, 4],
    )
    assert (proposed["colour"], proposed["shape"], proposed["dash"]) == (
        "#0072B2",
        "diamond",
        [],
    )
    for layer in found["charts"][0]["spec"]["layer"]:
        assert layer["encoding"]["color"]["scale"] == {
            "domain": ["simple", "explicit_length"],
            "range": ["#D55E00", "#0072B2"],
        }


def test_colours_on_a_dark_ground_are_lighter():
    assert lighter("#000000", 0.4) == "#666666"  # 102 of 255
    assert (
        lighter("#ff0080", 0.5) == "#ff80c0"
    )  # halves of 127.5 and 191.5 round to even
    assert lighter("#ffffff") == "#ffffff"
