"""HTML made of a page's data: one file that needs no other, and no network."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from espnet_lenbias.report.tables import write_text

# The one function of Vega's that charts.js calls.
_VEGA = "window.vegaEmbed = vegaEmbed;"

# NaN and infinity would stop the page's scripts.
_JSON = {"allow_nan": False, "separators": (",", ":")}

_SCRIPTS = ("tables.js", "player.js", "charts.js")


def write_page(path: Path, template: str, data: Mapping[str, Any]) -> None:
    """Write a page, whole or not at all.

    Args:
        path: Of the file.
        template: Its name in ``assets``.
        data: What the page shows: what JSON has.

    Raises:
        OSError: Names the file.
    """
    write_text(path, page(template, data))


def page(template: str, data: Mapping[str, Any]) -> str:
    """Return a page; see :func:`write_page`."""
    # Here, not above: they are an extra of this package.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(__package__, "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = _JSON

    def ours(name: str) -> Markup:
        """Return a file of ours as it stands."""
        loader = environment.loader
        assert loader is not None
        return Markup(loader.get_source(environment, name)[0])

    return environment.get_template(template).render(
        data=data,
        style=ours("page.css"),
        scripts=[ours(name) for name in _SCRIPTS],
        charts=Markup(_vega()),
    )


@cache
def _vega() -> str:
    """Return Vega as a script, which takes a second or more to put together."""
    from vl_convert import javascript_bundle

    # A script ends at the first sign of its end, even within a string.
    return javascript_bundle(_VEGA).replace("</script", "<\\/script")
