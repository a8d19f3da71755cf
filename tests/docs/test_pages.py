"""What the pages name is there."""

import re

import pytest

from tests.docs.pages import PAGES, ROOT, prose
from tests.docs.test_blocks import make_targets

PACKAGE = ROOT / "espnet_lenbias"
MAP = (ROOT / "docs" / "code.md").read_text()


def _ids(page):
    return str(page.relative_to(ROOT))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", prose(page)):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_make_has_these_targets(page):
    named = {t for t in re.findall(r"`make ([\w-]+)`", prose(page))}
    assert named <= make_targets()


def test_files_on_the_map_are_there():
    named = re.findall(r"`([\w/]+(?:\.py|/))`", MAP)
    assert len(named) > 50
    missing = [n for n in named if not any((b / n).exists() for b in (PACKAGE, ROOT))]
    assert not missing


def test_every_module_is_on_the_map():
    """By its own name, or in three rooms by that of its folder."""
    by_folder = ("report/", "bin/", "decoding/cluster/")
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if path.name != "__init__.py" and not name.startswith(by_folder):
            assert f"`{name}`" in MAP, name
