"""The pages as they are used."""

import numpy as np
import pytest
import soundfile

from espnet_lenbias.report.page.audio import Source, page_audio
from tests.programs import needs_programs
from tests.report.page.browser import CHROMIUM, opened, started
from tests.report.page.made import (
    HOSTILE_KEY,
    HOSTILE_WORDS,
    RATE,
    report_page,
    write_audio,
    write_decodings,
    write_explained,
    write_hostile,
)

pytestmark = [
    pytest.mark.slow,
    needs_programs(CHROMIUM is not None, "chromium"),
]

WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    with started() as it:
        yield it


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return report_page(*write_decodings(tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    write_audio(folder, ["utt1"])
    audio = page_audio(Source(str(folder / "audio 0.flac")), "embed", folder)
    return write_explained(folder / "utt1.html", audio)


@pytest.fixture
def show(browser):
    """Open a page; at the end nothing may have gone wrong on it."""
    told, pages = [], []

    def open_it(path, size=WIDE, **options):
        pages.append(opened(browser, path, told, viewport=size, **options))
        return pages[-1]

    yield open_it
    for page in pages:
        page.close()
    # the audio that lies within a page
    assert [
        x for x in told if not x.startswith("request: data:audio/mpeg;base64,")
    ] == []


def column(page, table, place):
    """The texts of a column's cells that are shown."""
    cells = page.locator(f"#{table} tbody tr:visible > :nth-child({place})")
    return [" ".join(text.split()) for text in cells.all_inner_texts()]


def card(page, key):
    """Open an utterance; return it."""
    found = page.locator(f'details[data-key="{key}"]')
    found.locator("summary").click()
    return found


def test_columns_sort(show, report):
    page = show(report)
    head = page.locator("#table1 th", has_text="WER %")
    assert column(page, "table1", 2) == ["4", "16", "4", "16"]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    wer = [float(text.split()[0]) for text in column(page, "table1", 4)]
    assert wer == [0.0, 0.0, 0.0, 27.3]
    head.locator("button").press("Enter")  # by the keyboard, and the other way round
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "table1", 4)[0].startswith("27.3")
    beam = page.locator("#table1 th", has_text="beam")
    beam.locator("button").click()
    assert column(page, "table1", 2) == ["4", "4", "16", "16"]  # numbers, not texts
    assert head.get_attribute("aria-sort") == "none"


def test_tables_filter(show, report):
    page = show(report)
    page.get_by_label("Filter").first.fill("EXPLICIT 16")
    assert column(page, "table1", 1) == ["explicit_length"]
    assert column(page, "table1", 2) == ["16"]
    assert page.locator("output[for=table1-filter]").inner_text() == "1 of 4"
    page.get_by_label("Filter").first.fill("")
    assert len(column(page, "table1", 1)) == 4
    assert page.locator("output[for=table1-filter]").inner_text() == ""


def test_utterances_filter_and_sort(show, report):
    page = show(report)

    def keys():
        return page.locator("details.utterance:visible .name").all_inner_texts()

    assert keys() == ["utt3", "utt1", "utt2"]
    page.get_by_label("Sort by").select_option("name")
    assert keys() == ["utt1", "utt2", "utt3"]
    page.get_by_label("Sort by").select_option("errors per word")  # 2 of 5, 1 of 4, 0
    assert keys() == ["utt3", "utt1", "utt2"]
    page.locator("#utterances-filter").fill("five")
    assert keys() == ["utt2"]


def test_searches_that_are_not_to_be_seen(show, report):
    page = show(report)
    points = page.locator(".chart").first.locator(".mark-symbol path")
    assert points.count() == 4
    page.get_by_label("simple", exact=True).uncheck()
    assert points.count() == 2
    page.get_by_label("simple", exact=True).check()
    assert points.count() == 4


def test_the_player_plays(show, tmp_path):
    """Audio of a minute, which does not end while a busy machine looks away."""
    page = show(report_page(*write_decodings(tmp_path, seconds=60.0)))
    player = card(page, "utt1").locator(".player")
    audio = player.locator("audio")
    button = player.get_by_role("button", name="Play", exact=True)
    button.press("Space")
    page.wait_for_function("a => a.currentTime > 0.2", arg=audio.element_handle())
    assert player.locator(".play").inner_text() == "Pause"
    player.locator(".play").click()
    assert audio.evaluate("a => a.paused")
    assert float(player.locator(".seek").input_value()) > 0.2
    # one at a time
    other = card(page, "utt2").locator(".player")
    player.locator(".play").click()
    other.locator(".play").click()
    page.wait_for_function("a => a.paused", arg=audio.element_handle())
    assert not other.locator("audio").evaluate("a => a.paused")


def test_the_waveform_is_a_slider(show, report):
    page = show(report)
    player = card(page, "utt1").locator(".player")
    seek = player.get_by_role("slider")
    seek.press("End")
    assert player.locator("audio").evaluate("a => a.currentTime") == pytest.approx(2.0)
    assert player.locator(".time").inner_text() == "2.0 s of 2.0 s"
    box = seek.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    heard = player.locator("audio").evaluate("a => a.currentTime")
    assert heard == pytest.approx(0.5, abs=0.03)


def test_words_stand_at_their_times(show, report):
    page = show(report)
    player = card(page, "utt1").locator(".player")
    words = player.locator(".words li")
    track = player.locator(".track").bounding_box()
    for i in range(4):  # of half a second each
        box = words.nth(i).bounding_box()
        assert box["x"] == pytest.approx(track["x"] + i * track["width"] / 4, abs=1)
    names = [
        words.nth(i).locator("button").get_attribute("aria-label") for i in range(4)
    ]
    assert names[2] == "three: confidence 0.60, 1.00 to 1.50 s"
    kinds = words.locator(".word").evaluate_all("x => x.map(word => word.className)")
    assert kinds == ["word sure", "word fair", "word unsure", "word doubtful"]
    words.nth(2).click()  # plays from there on
    audio = player.locator("audio").element_handle()
    page.wait_for_function("a => a.currentTime > 1.1", arg=audio)
    # of another search no times and no confidences are known
    player.get_by_label("Words of").select_option("simple, beam 16")
    assert player.locator(".words").inner_text().split() == ["one", "three", "four"]
    assert player.locator(".words.timed").count() == 0
    assert not player.locator(".key").is_visible()


def test_words_that_are_wrong_say_so(show, tmp_path):
    exp, data = write_decodings(tmp_path)
    path = exp / "simple_16" / "dev" / "1best_recog" / "text"
    path.write_text(
        path.read_text().replace("one three four", "one to three more four")
    )
    page = show(report_page(exp, data))
    player = card(page, "utt1").locator(".player")
    player.get_by_label("Words of").select_option("simple, beam 16")
    titles = player.locator(".words .word").evaluate_all("x => x.map(w => w.title)")
    assert titles == [
        "",
        "another word in the reference",
        "",
        "not in the reference",
        "",
    ]


def test_the_browser_hears_a_click_when_it_is(show, tmp_path):
    samples = np.zeros(2 * RATE)
    samples[RATE : RATE + 80] = 0.9  # after a second
    soundfile.write(tmp_path / "click.wav", samples, RATE)
    audio = page_audio(Source(str(tmp_path / "click.wav")), "embed", tmp_path)
    page = show(write_explained(tmp_path / "x.html", audio))
    loudest = page.evaluate(
        """async () => {
            const { players } = JSON.parse(document.getElementById("data").textContent);
            const text = atob(players[0].audio.src.split(",")[1]);
            const bytes = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
            const context = new OfflineAudioContext(1, 1, 16000);
            const buffer = await context.decodeAudioData(bytes.buffer);
            const samples = buffer.getChannelData(0).map(Math.abs);
            return samples.indexOf(Math.max(...samples)) / buffer.sampleRate;
        }"""
    )
    assert loudest == pytest.approx(1.0025, abs=0.01)


def test_linked_audio_plays(browser, tmp_path):
    """A piece of it, from 0.5 to 1.0 s; the whole of it would take a minute."""
    write_audio(tmp_path / "data", ["utt1"], seconds=60.0)
    source = Source(str(tmp_path / "data" / "audio 0.flac"), 0.5, 1.0)
    audio = page_audio(source, "link", tmp_path)
    path = write_explained(tmp_path / "x.html", audio)
    told = []
    page = opened(browser, path, told)
    page.get_by_role("button", name="Play", exact=True).click()
    element = page.locator("audio").element_handle()
    page.wait_for_function("a => a.currentTime > 0.5", arg=element)
    page.wait_for_function(
        "a => a.paused", arg=element
    )  # the piece has come to its end
    assert page.locator(".time").inner_text() == "0.5 s of 0.5 s"
    assert set(told) == {f"request: {tmp_path.as_uri()}/data/audio%200.flac"}
    page.close()


def test_audio_that_is_gone(browser, tmp_path):
    write_audio(tmp_path, ["utt1"])
    file = tmp_path / "audio 0.flac"
    audio = page_audio(Source(str(file)), "link", tmp_path)
    path = write_explained(tmp_path / "x.html", audio)
    file.unlink()
    page = opened(browser, path, [])
    page.locator(".problem").wait_for()
    assert (
        page.locator(".problem").inner_text() == "The browser cannot play this audio."
    )
    page.close()


def test_the_slider_moves_the_course(show, explained):
    page = show(explained)
    slider = page.get_by_role("slider", name="Position N")
    numbers = page.locator("#numbers")
    # see tests/report/test_explanation.py
    assert numbers.inner_text().split("\n")[:2] == ["ending probability", "0.7778"]
    marked = page.locator(".chart .mark-rule.role-mark line")
    last = marked.bounding_box()["x"]
    slider.press("Home")
    assert page.locator("output[for=position]").inner_text() == "1 of 4"
    assert numbers.inner_text().split("\n")[:2] == ["ending probability", "0.2941"]
    assert marked.bounding_box()["x"] < last
    slider.press("ArrowRight")
    assert numbers.inner_text().split("\n")[:2] == ["ending probability", "0.0000"]
    slider.press("ArrowRight")  # N = 3 leaves aba, and aa ends
    rows = page.locator("#kept tbody tr").all_inner_texts()
    # ln .1738; ln .2940, which is .6 * .7 * .7
    assert [row.split("\t") for row in rows] == [
        ["a a ends here", "-1.750"],
        ["a b a", "-1.224"],
    ]


def test_a_click_on_the_chart_moves_it_too(show, explained):
    page = show(explained)
    page.locator(".chart .mark-rect.role-mark path").first.click()
    assert page.get_by_role("slider", name="Position N").input_value() == "1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_page_scrolls_sideways(show, report, explained, size, scheme):
    for path in (report, explained):
        page = show(path, size, color_scheme=scheme)
        details = page.locator("details")
        details.evaluate_all("all => all.forEach((one) => (one.open = true))")
        widths = "[document.documentElement.scrollWidth, innerWidth]"
        if path == report:  # its players are there
            page.locator(".words .word").last.wait_for()
        wide, there = page.evaluate(widths)
        assert wide <= there


def test_long_names_on_a_phone(show, tmp_path):
    exp, data = write_decodings(tmp_path)
    for tag, row in {"simple_4": "simple + " * 10, "simple_16": "x" * 80}.items():
        config = exp / tag / "decode.yaml"
        config.write_text(f"{config.read_text()}row: {row}\n")
    page = show(report_page(exp, data), PHONE)
    card(page, "utt1").locator(".words .word").last.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_dark_is_dark(show, report):
    page = show(report, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    line = page.locator(".chart").first.locator(".mark-line path").last
    assert page.evaluate(ground) == "rgb(18, 22, 28)"
    assert line.get_attribute("stroke") == "#66aad1"  # #0072B2 with 40 % of white
    page.emulate_media(color_scheme="light")
    page.wait_for_function(
        "document.querySelector('.chart .mark-line:last-of-type path') !== null"
    )
    assert page.evaluate(ground) == "rgb(246, 247, 249)"


def test_focus_is_seen(show, report):
    page = show(report)
    page.locator("#table1 th button").first.focus()
    page.keyboard.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    assert page.evaluate(outline) == "3px"


def test_names_and_texts_are_shown_as_they_are(show, tmp_path):
    page = show(report_page(*write_hostile(tmp_path)))
    assert page.locator("h1").inner_text() == "Decodings of <b>{{7*7}}"
    utterance = page.locator("details.utterance")
    utterance.locator("summary").click()
    assert utterance.locator(".name").inner_text() == HOSTILE_KEY
    words = utterance.locator(".words .word").all_inner_texts()
    assert words == HOSTILE_WORDS.split()
    assert page.evaluate("window.caught") is None
    page = show(write_explained(tmp_path / "x.html", None, HOSTILE_KEY))
    assert page.locator("h1").inner_text() == HOSTILE_KEY
    assert page.evaluate("window.caught") is None
