"""The rooms of the package: which module may know which."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "espnet_lenbias"
FOLDER = Path(__file__).parents[1] / PACKAGE

# A room knows itself and those on the floors below, not its neighbours.
FLOORS = (
    {"errors", "espnet_compat"},
    {"options"},
    {"alignment", "posteriors", "scorers"},
    {"search"},
    {"inference"},
    {"report"},
    {"compare", "decoding"},
    {"bin", "mt", "s2t", "slu", "speech2text_streaming", "st", PACKAGE},
    {"cli"},
    {"__main__"},
)


def module_name(path: Path) -> str:
    """Return the name by which a file of the package is imported."""
    name = ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {module_name(path): path for path in FOLDER.rglob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """Yield all that a file imports, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else str(node.module)


IMPORTS = {name: set(imported(path)) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.").partition(".")[0]


def floor_of(module: str) -> int:
    return [room_of(module) in rooms for rooms in FLOORS].index(True)


def test_there_is_no_circle():
    """A CycleError names the modules of one."""
    graph = {name: names & MODULES.keys() for name, names in IMPORTS.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_knows_its_room_and_those_below(name):
    others = {m for m in IMPORTS[name] & MODULES.keys() if room_of(m) != room_of(name)}
    assert {m for m in others if floor_of(m) >= floor_of(name)} == set()


def test_the_map_lists_the_folders_from_the_lowest_floor():
    rooms = (FOLDER.parent / "docs" / "code.md").read_text("utf-8").split("\n## ")[0]
    order = re.findall(r"^\| `(\w+)/` \|", rooms, re.MULTILINE)
    assert set(order) == {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert order == sorted(order, key=floor_of)


def test_the_length_model_and_the_beam_know_nothing_of_espnet():
    for name in ("length_model", "beam"):
        names = IMPORTS[f"{PACKAGE}.search.{name}"]
        assert f"{PACKAGE}.espnet_compat" not in names
        assert {m.partition(".")[0] for m in names} & {"espnet", "espnet2"} == set()


def test_options_and_command_lines_load_no_torch():
    names = [m for m in MODULES if room_of(m) in {"options", "bin", "cli", "__main__"}]
    for name in names:
        if room_of(name) == "options":
            assert "torch" not in {m.partition(".")[0] for m in IMPORTS[name]}
    code = f"import sys, {', '.join(names)}; print('torch' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout == "False\n"
