"""Make of README.md the page that a package index shows, which has no files beside it.

    python .ci/package_page.py FOLDER [REPOSITORY_URL]

FOLDER holds the copy of README.md that is packaged. With the address of the repository,
links to its files get absolute, and images are shown from there; the package's metadata
get the address too. Without it images are left out, and of links the text stays.
"""

import re
import sys
from pathlib import Path

# ![text](target) or [text](target) of Markdown; the target is a path, not an address.
_IMAGE = re.compile(r"!\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_HTML = re.compile(r"<[^>]*\b(?:src|srcset|href)=")


def page(readme: str, url: str = "") -> str:
    """Return the Markdown of the page.

    Args:
        readme: That of the README, with paths in the repository as targets.
        url: Of the repository; "" if there is none.
    """
    if _HTML.search(readme):
        raise ValueError("README.md: write images and links in Markdown, not in HTML")
    if url:
        url = url.rstrip("/")
        readme = _IMAGE.sub(rf"![\1]({url}/raw/HEAD/\2)", readme)
        return _LINK.sub(rf"[\1]({url}/blob/HEAD/\2)", readme)
    readme = re.sub(rf"(?m)^{_IMAGE.pattern}\n\n?", "", readme)
    return _LINK.sub(r"\1", _IMAGE.sub("", readme))


def main() -> None:
    """Rewrite README.md and setup.cfg in the folder."""
    folder, *url = sys.argv[1:]
    readme, metadata = Path(folder, "README.md"), Path(folder, "setup.cfg")
    readme.write_text(page(readme.read_text("utf-8"), *url), "utf-8")
    if url:
        head = "[metadata]\n"
        text = metadata.read_text("utf-8").replace(head, f"{head}url = {url[0]}\n")
        metadata.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
