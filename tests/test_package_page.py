"""The page that a package index shows, made of README.md by `make dist`."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "package_page.py"
README = """\
See [the guide](docs/guide.md), [above](#top) or [ESPnet](https://github.com/espnet/espnet).

![WER](images/wer.png)

The end.
"""


def made(folder: Path, *url: str, readme: str = README) -> subprocess.CompletedProcess:
    (folder / "README.md").write_text(readme)
    (folder / "setup.cfg").write_text("[metadata]\nname = x\n")
    command = [sys.executable, str(SCRIPT), str(folder), *url]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("url", ["https://host/me/x", "https://host/me/x/"])
def test_with_the_address_of_the_repository(url, tmp_path):
    assert made(tmp_path, url).returncode == 0
    assert (tmp_path / "README.md").read_text() == (
        "See [the guide](https://host/me/x/blob/HEAD/docs/guide.md), [above](#top) or "
        "[ESPnet](https://github.com/espnet/espnet).\n\n"
        "![WER](https://host/me/x/raw/HEAD/images/wer.png)\n\n"
        "The end.\n"
    )
    assert f"[metadata]\nurl = {url}\n" in (tmp_path / "setup.cfg").read_text()


def test_without_it_nothing_is_linked_that_is_not_there(tmp_path):
    assert made(tmp_path).returncode == 0
    assert (tmp_path / "README.md").read_text() == (
        "See the guide, [above](#top) or [ESPnet](https://github.com/espnet/espnet).\n\n"
        "The end.\n"
    )
    assert (tmp_path / "setup.cfg").read_text() == "[metadata]\nname = x\n"


def test_html_is_refused(tmp_path):
    result = made(tmp_path, readme='<img width="50%" src="images/wer.png">\n')
    assert result.returncode == 1
    assert "write images and links in Markdown, not in HTML" in result.stderr
