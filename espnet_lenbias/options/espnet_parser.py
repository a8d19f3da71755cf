"""The parsers of ESPnet's inference tools, without the wait for an import of the tools.

Importing ``espnet2.bin.asr_inference`` loads torch, the models and more: 20 s of CPU
time, where its ``get_parser`` alone takes 0.6 s. A mistake in an option, and `--help`,
would wait for it. So ``get_parser`` and the imports that it uses are cut out of the
tool's source and run without the rest. This rests on how ESPnet writes its tools; where
a release writes them in another way the tool is imported after all, which is the same
parser, later.
"""

import argparse
import ast
import builtins
import functools
import importlib
import importlib.util
import re
from pathlib import Path
from types import CodeType
from typing import Any

from espnet_lenbias.options.values import take_as_written


def inference_parser(module: str) -> argparse.ArgumentParser:
    """Return the parser of an ESPnet inference tool.

    Args:
        module: e.g. ``espnet2.bin.asr_inference``.
    """
    parser = _cut_out_parser(module)
    if parser is None:
        whole: argparse.ArgumentParser = importlib.import_module(module).get_parser()
        parser = whole
    take_as_written(parser)
    for action in parser._actions:
        # A bare per cent sign, which 202611 has in a help text, ends `--help` in a
        # ValueError: argparse fills in `%(default)s` and the like.
        action.help = re.sub(r"%%|%(?!\()", "%%", action.help or "")
    return parser


def _cut_out_parser(module: str) -> argparse.ArgumentParser | None:
    """Return what ``get_parser`` makes on its own; None if it needs the whole tool."""
    code = _parser_code(module)
    if code is None:
        return None
    namespace: dict[str, Any] = {"__name__": module}
    try:
        exec(code, namespace)
        parser: argparse.ArgumentParser = namespace["get_parser"]()
    except Exception:  # whatever it is, importing the tool mends it or shows it
        return None
    return parser


# Once a process: before Python 3.11.8 and 3.12.2, parsing can fail when another thread,
# such as Dask's, logs a traceback at the same time (gh-106905).
@functools.cache
def _parser_code(module: str) -> CodeType | None:
    """Compile ``get_parser`` and the imports it uses; None where these do not do."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    source = Path(spec.origin)
    part = _parser_source(ast.parse(source.read_text(encoding="utf-8")))
    return None if part is None else compile(part, str(source), "exec")


def _parser_source(tree: ast.Module) -> ast.Module | None:
    """Cut out ``get_parser`` and the imports it uses; None where these do not do."""
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "get_parser"
    ]
    if not functions:
        return None
    names = [node for node in ast.walk(functions[0]) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(functions[0]) if isinstance(node, ast.arg)}
    needed = {node.id for node in names} - bound - set(dir(builtins))

    imports = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            used = [a for a in node.names if _bound_name(a) in needed]
            if used:
                needed -= {_bound_name(alias) for alias in used}
                node.names = used
                imports.append(node)
    if needed:
        return None
    return ast.Module(body=[*imports, functions[0]], type_ignores=[])


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]
