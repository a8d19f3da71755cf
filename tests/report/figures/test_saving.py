"""Names of any kind in figures."""

import warnings

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from espnet_lenbias.report.figures import saving
from espnet_lenbias.report.figures.beam_size import errors_figure
from espnet_lenbias.report.figures.labels import room
from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.figures.saving import save
from espnet_lenbias.report.table1 import score_line
from tests.report.made import REFERENCES, cells, system


@pytest.mark.parametrize(
    "name, missing",
    [
        ("_mine", ""),
        ("simple $_$", ""),
        ("$x^$ and \\$", ""),
        ("näive Å †", ""),
        ("\u4f60\u597d", "\u4f60 \u597d"),
        ("bytes \udce4", ""),  # a question mark, which matplotlib's font has
    ],
)
def test_a_row_of_any_name_is_there_and_what_no_font_has_is_named(
    tmp_path, caplog, monkeypatch, name, missing
):
    monkeypatch.setattr(saving, "_FURTHER_FONTS", ())  # this machine may have them
    row = system(name, 4, search="simple")
    found = cells((row, {"texts": REFERENCES}), dataset=f"dev {name}")
    figure = errors_figure([score_line(x) for x in found], kinds_of([row]))
    labels = [t.get_text() for t in figure.findobj(Annotation)]
    assert labels.count(name.replace(" ", " ")) == 2  # one in each panel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(figure, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    messages = [record.message for record in caplog.records]
    if missing:
        (message,) = messages
        assert f"plot.png: no font here has {missing}, which" in message
    else:
        assert not messages


def test_a_sign_that_no_font_has(tmp_path, caplog):
    figure = Figure()
    figure.text(0.1, 0.1, "a \U000f0000 b")  # private: nobody's
    save(figure, tmp_path / "plot.png")
    (record,) = caplog.records
    assert "no font here has \U000f0000, which is shown as a box" in record.message


def test_other_warnings_are_passed_on(tmp_path, monkeypatch):
    figure = Figure()

    def savefig(path, **_):
        path.touch()
        warnings.warn("odd", stacklevel=1)

    monkeypatch.setattr(figure, "savefig", savefig)
    with pytest.warns(UserWarning, match="odd"):
        save(figure, tmp_path / "plot.png")


def test_wide_signs_get_wide_room():
    assert room([["\u4f60\u597d\u4f60\u597d"]]).width == room([["letters8"]]).width
