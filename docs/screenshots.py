"""Makes the pictures of docs/images: bundled audio is decoded, its pages are opened.

    python docs/screenshots.py

It needs chromium, and playwright and Pillow, which `make install` brings. Decoding takes
some minutes on two CPU cores.
"""

import io
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipes" / "mini_librispeech"
MODEL = RECIPE / "pretrained" / "asr_transformer.zip"
SET = "dev-other"
AUDIO = RECIPE / "slice" / "LibriSpeech" / SET
IMAGES = ROOT / "docs" / "images"

SEARCHES = ("simple", "explicit_length")
BEAMS = (4, 16, 64, 256)
OPTIONS = ("--ctc_weight", "0.0", "--lm_weight", "0.0")
WITH_WORDS = ("--confidence", "true", "--times", "true", "--log_level", "WARNING")

# An utterance on which the searches differ; one whose search is followed, and up to where.
DIFFERS = "3009-30090-0000"
FOLLOWED, POSITION = "3006-30060-0000", 16

COLOURS = 128  # of a picture, which so is small


def main() -> None:
    """Decode, make the pages, and take the pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("screenshots: there is no chromium: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report, explained = make_pages(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium)
        take_pictures(browser, report, explained)
        browser.close()


def make_pages(folder: Path) -> tuple[Path, Path]:
    """Decode; return the page of a report and that of an utterance."""
    data = folder / "data" / SET
    data.mkdir(parents=True)
    files = {path.stem: path for path in sorted(AUDIO.rglob("*.flac"))}
    wav_scp = "".join(f"{key} {path}\n" for key, path in files.items())
    (data / "wav.scp").write_text(wav_scp)
    texts = [path.read_text() for path in sorted(AUDIO.rglob("*.txt"))]
    (data / "text").write_text("".join(texts))
    for search in SEARCHES:
        for beam in BEAMS:
            given = ("--search", search, "--beam_size", beam, *OPTIONS, *WITH_WORDS)
            results = folder / "exp" / f"{search}_{beam}" / SET
            run(
                *(sys.executable, "-m", "espnet_lenbias.bin.asr_inference", *given),
                *("--model_tag", MODEL, "--output_dir", results),
                *("--data_path_and_name_and_type", f"{data / 'wav.scp'},speech,sound"),
            )
    command = Path(sys.executable).with_name("espnet-lenbias")
    run(command, "report", folder / "exp", "--data", folder / "data", "--html")
    run(
        *(command, "explain", files[FOLLOWED], "--model", MODEL, "--beam_size", "16"),
        *(*OPTIONS, *WITH_WORDS, "--html", "--output_dir", folder),
    )
    (explained,) = folder.glob("*.html")
    return folder / "exp" / "report" / "report.html", explained


def run(*command: object) -> None:
    """Run a command."""
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


def take_pictures(browser: Browser, report: Path, explained: Path) -> None:
    """Open the pages and save what they show."""
    page = opened(browser, report, width=1100, height=960)
    save(page.screenshot(), "report")
    card = page.locator(f'details[data-key="{DIFFERS}"]')
    card.locator("summary").click()
    card.locator(".words .word").last.wait_for()
    save(card.screenshot(), "utterance")

    page = opened(browser, explained, width=1100, height=1000)
    page.locator("#position").fill(str(POSITION))
    save(page.screenshot(), "explain")


def opened(browser: Browser, path: Path, width: int, height: int) -> Page:
    """Open a page, with its charts drawn."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(path.as_uri())
    charts = page.locator(".chart")
    for i in range(charts.count()):
        charts.nth(i).locator("svg").wait_for()
    return page


def save(png: bytes, name: str) -> None:
    """Save a picture with fewer colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS)
    picture.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
