import argparse
import sys

import pytest

from espnet_lenbias.options.html_page import (
    add_html_options,
    audio_choice,
    check_html_options,
)


def parsed(*command):
    parser = argparse.ArgumentParser()
    add_html_options(parser, "x.html")
    parser.add_argument("--html_utterances", type=int)
    return parser.parse_args(command)


def test_options_of_a_page_that_there_is_not():
    check_html_options(parsed(), ("html_utterances",))
    for option in (["--html_audio", "none"], ["--html_utterances", "3"]):
        with pytest.raises(ValueError, match=f"{option[0]}: .* add --html"):
            check_html_options(parsed(*option), ("html_utterances",))
        check_html_options(parsed("--html", *option), ("html_utterances",))


@pytest.mark.parametrize("module", ["jinja2", "vl_convert"])
def test_an_extra_that_is_not_installed(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ValueError, match=rf"--html: .* {module} .*espnet_lenbias\[html\]"
    ):
        check_html_options(parsed("--html"))
    check_html_options(parsed())


def test_where_the_audio_is():
    assert audio_choice(None, True, "") == "embed"
    assert audio_choice("link", True, "") == "link"
    assert audio_choice(None, False, "") == "none"
    assert audio_choice("none", False, "") == "none"
    with pytest.raises(ValueError, match="--html_audio link: no wav.scp: say .* none"):
        audio_choice("link", False, "no wav.scp")
