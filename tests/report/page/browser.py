"""A browser without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def started() -> Iterator[Any]:
    """Start chromium; yield playwright's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Any, path: Path, told: list[str], **options: Any) -> Any:
    """Open a page, with its charts drawn.

    Args:
        browser: Of :func:`started`.
        path: Of the page.
        told: Gets what goes wrong: console messages, errors, and requests of any but
            the page and what lies within it.
        options: Of playwright's pages, e.g. the size.
    """
    page = browser.new_page(**options)
    page.set_default_timeout(20_000)  # ms, for a busy machine
    page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(f"request: {request.url[:200]}"))
    page.goto(path.as_uri())
    told.remove(f"request: {path.as_uri()}")
    charts = page.locator(".chart")
    for i in range(charts.count()):
        charts.nth(i).locator("svg").wait_for()
    return page
