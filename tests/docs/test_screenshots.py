"""The pictures of the pages, which `make screenshots` makes."""

import runpy

import pytest
from PIL import Image

from tests.docs.pages import ROOT

SCRIPT = ROOT / "docs" / "screenshots.py"


@pytest.mark.parametrize("name", ["report", "utterance", "explain"])
def test_pictures_are_small(name):
    path = ROOT / "docs" / "images" / f"{name}.png"
    assert path.stat().st_size < 200_000
    with Image.open(path) as picture:
        assert picture.width >= 900


def test_the_utterances_of_the_pictures_are_bundled():
    pytest.importorskip("playwright")
    script = runpy.run_path(str(SCRIPT))
    for key in (script["DIFFERS"], script["FOLLOWED"]):
        assert len(list(script["AUDIO"].rglob(f"{key}.flac"))) == 1
    assert script["MODEL"].is_file()
