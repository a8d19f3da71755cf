"""What the pages name is there."""

import itertools
import re

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, make_targets, prose

PACKAGE = ROOT / "espnet_lenbias"
MAP = (ROOT / "docs" / "code.md").read_text()


def _ids(page):
    return str(page.relative_to(ROOT))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200


def _table(page):
    """Return the rows of a page's first table of searches, by search and beam."""
    lines = iter((ROOT / page).read_text().splitlines())
    head = next(line for line in lines if re.match(r"\| search +\| beam \|", line))
    rows = [head, *itertools.takewhile(lambda line: line.startswith("|"), lines)]
    names, _, *rows = ([cell.strip() for cell in r.strip("|").split("|")] for r in rows)
    return {tuple(row[:2]): dict(zip(names, row, strict=True)) for row in rows}


def test_the_readme_shows_rows_of_the_demo():
    demo = _table("docs/results.md")
    for key, row in _table("README.md").items():
        row["del"] = row.pop("deletions")
        assert row.items() <= demo[key].items()


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", prose(page)):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_make_has_these_targets(page):
    named = set(re.findall(r"`make ([\w-]+)`", prose(page)))
    assert named <= make_targets()


def test_files_on_the_map_are_there():
    named = re.findall(r"`([\w/]+(?:\.py|/))`", MAP)
    assert len(named) > 50
    missing = [n for n in named if not any((b / n).exists() for b in (PACKAGE, ROOT))]
    assert not missing


def test_every_module_is_on_the_map():
    """By its own name, or in some folders by that of the folder."""
    by_folder = ("report/", "compare/", "bin/", "decoding/cluster/")
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if path.name != "__init__.py" and not name.startswith(by_folder):
            assert f"`{name}`" in MAP, name


def test_the_example_of_a_rule_is_the_one_that_a_test_runs():
    tested = (ROOT / "tests" / "search" / "third_party.py").read_text()
    example = re.search(r"# example: begin\n(.*?)# example: end", tested, re.DOTALL)[1]
    shown = [block.text for block in blocks(ROOT / "CONTRIBUTING.md")]
    assert example.strip() in [text.strip() for text in shown]
