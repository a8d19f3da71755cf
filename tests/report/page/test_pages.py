"""The files as a parser of HTML reads them."""

import json
import sys

import lxml.html
import pytest

from espnet_lenbias.report.command import main
from espnet_lenbias.report.page.audio import Source, page_audio
from espnet_lenbias.report.page.explained import kept_texts
from espnet_lenbias.report.running import Ended, Running
from tests.report.made import write_lines
from tests.report.page.made import (
    HOSTILE_KEY,
    HOSTILE_ROW,
    HOSTILE_WORDS,
    TEXTS,
    even_confidence,
    even_times,
    report_page,
    write_audio,
    write_decodings,
    write_explained,
    write_hostile,
)


def parsed(path):
    return lxml.html.fromstring(path.read_text("utf-8"))


def data_of(page):
    """What the page's scripts read."""
    return json.loads(page.get_element_by_id("data").text)


def texts(elements):
    return [" ".join(element.text_content().split()) for element in elements]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return parsed(report_page(*write_decodings(tmp_path_factory.mktemp("report"))))


def test_nothing_is_fetched(report):
    (policy,) = report.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy
    assert not report.xpath("//link | //*[@src] | //iframe | //object")
    links = report.xpath("//a/@href")
    assert links
    assert all(link.startswith("#") for link in links)


def test_every_table_has_headers_that_sort(report):
    tables = report.xpath("//table[contains(@class, 'sortable')]")
    assert {table.get("id") for table in tables} == {
        *("table1", "paired", "reference_length", "word_confidence"),
    }
    for table in tables:
        heads = table.xpath("./thead/tr/th")
        assert all(h.get("scope") == "col" for h in heads)
        assert all(h.get("aria-sort") == "none" for h in heads)
        assert all(len(h.xpath("./button[@type='button']")) == 1 for h in heads)
        for row in table.xpath("./tbody/tr"):
            assert len(row) == len(heads)
            assert all(cell.get("data-value") is not None for cell in row)


def test_word_errors(report):
    table = report.get_element_by_id("table1")
    titles = texts(table.xpath("./thead//button"))
    assert titles[:4] == ["search", "beam", "utterances", "WER %"]  # all of one set
    rows = [texts(row)[:3] for row in table.xpath("./tbody/tr")]
    assert rows == [
        ["simple", "4", "3"],
        ["simple", "16", "3"],
        ["explicit_length", "4", "3"],
        ["explicit_length", "16", "3"],
    ]
    # 1 of 4, 0 of 2 and 2 of 5 words are missing
    wer = table.xpath("./tbody/tr[2]/td[4]")[0]
    assert float(wer.get("data-value")) == pytest.approx(100 * 3 / 11)
    assert wer.text.strip() == "27.3"


def test_everything_that_can_be_used_has_a_name(report):
    ids = set(report.xpath("//@id"))
    assert len(ids) == len(report.xpath("//@id"))
    assert set(report.xpath("//label/@for | //output/@for")) <= ids
    for control in report.xpath("//input | //select"):
        named = control.get("aria-label") or control.xpath("ancestor::label")
        assert named or control.get("id") in report.xpath("//label/@for")
    for box in report.xpath("//*[contains(@class, 'scroll')]"):
        assert box.get("tabindex") == "0"
        assert box.get("aria-label")
    assert report.xpath("/html/@lang") == ["en"]
    assert report.xpath("//meta[@name='viewport']/@content") == [
        "width=device-width, initial-scale=1"
    ]


def test_utterances_with_the_most_errors_come_first(report):
    cards = report.xpath("//details[@class='utterance']")
    assert [card.get("data-key") for card in cards] == ["utt3", "utt1", "utt2"]
    grid = cards[1].xpath(".//table[@class='alignment']")[0]
    rows = [texts(row) for row in grid.xpath(".//tr")]
    assert rows == [
        ["reference", "one", "two", "three", "four"],
        [
            "simple, beam 4explicit_length, beam 4explicit_length, beam 160 errors",
            *("one", "two", "three", "four"),
        ],
        ["simple, beam 161 error", "one", "two", "three", "four"],
    ]
    assert texts(grid.xpath(".//tr[3]//del")) == ["two"]
    assert not grid.xpath(".//tr[2]//del | .//mark | .//ins")


def test_words_times_and_audio_are_there_for_the_player(report):
    player = data_of(report)["players"][1]
    assert player["rows"][-1] == {
        "names": ["explicit_length, beam 4", "explicit_length, beam 16"],
        "text": "one two three four",
        "kinds": "CCCC",
        "times": [[0.0, 0.5], [0.5, 1.0], [1.0, 1.5], [1.5, 2.0]],
        "confidence": [1.0, 0.8, 0.6, 0.4],
    }
    assert player["shown"] == len(player["rows"]) - 1
    assert player["audio"]["src"].startswith("data:audio/mpeg;base64,")
    assert player["audio"]["duration"] == 2.0


def test_audio_that_cannot_be_read_costs_no_more_than_itself(tmp_path):
    exp, data = write_decodings(tmp_path)
    lines = write_audio(data / "dev", list(TEXTS))
    lines["utt1"] = f"{tmp_path}/gone.wav"
    del lines["utt2"]
    write_lines(data / "dev" / "wav.scp", lines)
    page = parsed(report_page(exp, data))
    assert texts(page.xpath("//*[@class='problem']")) == [
        f"No audio: there is no audio file {tmp_path}/gone.wav",
        "No audio: wav.scp names no audio of it",
    ]
    assert len(page.xpath("//details[@class='utterance']")) == 3
    audio = [player["audio"] for player in data_of(page)["players"]]
    assert ["src" in x for x in audio] == [True, False, False]
    assert len(page.xpath("//button[@class='play']")) == 1


def test_without_audio(tmp_path):
    exp, data = write_decodings(tmp_path)
    page = report_page(exp, data, "--html_audio", "none")
    assert b"data:audio" not in page.read_bytes()
    assert not parsed(page).xpath("//button[@class='play']")
    (data / "dev" / "wav.scp").write_text("no list of audio\n\n")  # nobody reads it
    again = report_page(exp, data, "--html_audio", "none")
    assert again.read_bytes() == page.read_bytes()
    (data / "dev" / "wav.scp").unlink()
    assert report_page(exp, data).read_bytes() == page.read_bytes()


def test_how_many_utterances(tmp_path):
    exp, data = write_decodings(tmp_path)

    def keys(*options):
        page = parsed(report_page(exp, data, "--html_audio", "none", *options))
        return page.xpath("//details[@class='utterance']/@data-key")

    assert keys("--html_utterances", "2") == ["utt3", "utt1"]
    assert keys("--html_utterances", "all") == ["utt3", "utt1", "utt2"]
    assert keys("--utterances", "utt2", "utt3") == ["utt2", "utt3"]


def test_names_and_texts_are_never_markup(tmp_path):
    path = report_page(*write_hostile(tmp_path))
    page = parsed(path)
    assert texts(page.xpath("//h1")) == ["Decodings of <b>{{7*7}}"]
    assert page.xpath("//details[@class='utterance']/@data-key") == [HOSTILE_KEY]
    (name,) = page.xpath("//table[@class='alignment']//tr[2]/th")
    assert name.text == f"{HOSTILE_ROW}, beam 4"
    said = page.xpath("//table[@class='alignment']//tr[1]/td")
    assert [cell.text for cell in said] == HOSTILE_WORDS.split()
    assert not page.xpath("//img | //b")
    # data, charts and three scripts of ours, none more and none cut short
    assert len(page.xpath("//script")) == 5
    (row,) = data_of(page)["players"][0]["rows"]
    assert (row["names"], row["text"]) == ([f"{HOSTILE_ROW}, beam 4"], HOSTILE_WORDS)
    explained = parsed(write_explained(tmp_path / "x.html", None, HOSTILE_KEY))
    assert texts(explained.xpath("//h1")) == [HOSTILE_KEY]
    assert len(explained.xpath("//script")) == 5


def test_a_page_is_written_whole_and_through_no_link(tmp_path):
    exp, data = write_decodings(tmp_path)
    (exp / "out").mkdir()
    (tmp_path / "private").write_text("mine")
    (exp / "out" / "report.html").symlink_to(tmp_path / "private")
    path = report_page(exp, data)
    assert (tmp_path / "private").read_text() == "mine"
    assert not path.is_symlink()
    assert not list(path.parent.glob(".draft*"))
    first = path.read_bytes()
    assert report_page(exp, data).read_bytes() == first


def test_a_report_without_a_page_needs_no_extra(tmp_path, monkeypatch):
    for module in ("jinja2", "vl_convert"):
        monkeypatch.setitem(sys.modules, module, None)
    exp, data = write_decodings(tmp_path)
    assert main([str(exp), "--data", str(data)]) == 0
    assert not list((exp / "report").glob("*.html"))


def test_the_page_of_an_utterance(tmp_path):
    write_audio(tmp_path, ["utt1"])
    audio = page_audio(Source(str(tmp_path / "audio 0.flac")), "embed", tmp_path)
    page = parsed(write_explained(tmp_path / "x.html", audio))
    (slider,) = page.xpath("//input[@id='position']")
    assert (slider.get("min"), slider.get("max"), slider.get("value")) == (
        "1",
        "4",
        "4",
    )
    steps = page.get_element_by_id("steps")
    assert [texts(row)[-1] for row in steps.xpath("./tbody/tr")] == [
        "a",
        "a b",
        "a b a",
        "a b a a",
    ]
    # all but the fourth of tests/report/test_explanation.py's rows
    course = data_of(page)["course"]["positions"]
    assert [x["p_end"] for x in course] == pytest.approx(
        [0.25 / 0.85, 0.0, 0.096 / 0.39, 0.2058 / 0.2646], abs=1e-6
    )
    assert len(page.xpath("//button[@class='play']")) == 1


def test_hypotheses_of_a_position():
    # a and b; then b ends, and ab and aa run on
    running = [
        Running([0, 0], [1, 2], [-1.0, -2.0]),
        Running([0, 0], [2, 1], [-2.5, -3.0], [Ended(1, -2.25), Ended(0, -1.5)]),
    ]
    found = kept_texts(running, lambda labels: "".join(" ab"[i] for i in labels))
    assert [[(x["text"], x["ended"], x["score"]) for x in at] for at in found] == [
        [("a", False, -1.0), ("b", False, -2.0)],
        [
            ("a", True, -1.5),
            ("b", True, -2.25),
            ("ab", False, -2.5),
            ("aa", False, -3.0),
        ],
    ]


@pytest.mark.slow
def test_the_size_of_a_page(tmp_path):
    """100 of 200 utterances of 10 s and 25 words, of six rows with all files."""
    words = [f"word{i}" for i in range(25)]
    said = {f"utt{n:03}": " ".join([*words[n % 5 :], "end"]) for n in range(200)}
    exp, data = tmp_path / "exp", tmp_path / "data"
    write_lines(data / "dev" / "text", dict.fromkeys(said, " ".join(words)))
    (line,) = write_audio(data / "dev", ["utt000"], seconds=10.0).values()
    write_lines(data / "dev" / "wav.scp", dict.fromkeys(said, line))
    files = {
        "text": said,
        "word_confidence": even_confidence(said),
        "word_times": even_times(said, 10.0),
    }
    for search in ("simple", "explicit_length"):
        for beam in (4, 16, 64):
            for name, values in files.items():
                folder = exp / f"{search}_{beam}"
                write_lines(folder / "dev" / "1best_recog" / name, values)
            (folder / "decode.yaml").write_text(
                f"search: {search}\nbeam_size: {beam}\n"
            )
    page = report_page(exp, data)
    assert len(data_of(parsed(page))["players"]) == 100
    assert page.stat().st_size < 10e6
