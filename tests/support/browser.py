"""A page in Debian's chromium, without a window: tests that need it are skipped where there is none."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["opened"]


@contextmanager
def opened(page: Path, scheme: str = "light", width: int = 1280) -> Iterator[tuple[Any, list[str]]]:
    """Open a file offline; yield playwright's page, and a list of what the console has complained of.

    ``scheme`` is what the reader prefers, ``light`` or ``dark``; ``width`` is the window's, in pixels.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium is installed: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e .[dev]")
    with playwright.sync_playwright() as driver:
        window = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        try:
            context = window.new_context(color_scheme=scheme, offline=True, viewport={"width": width, "height": 900})
            shown, complaints = context.new_page(), []
            shown.on("console", lambda said: complaints.extend([said.text] * (said.type in ("error", "warning"))))
            shown.on("pageerror", lambda error: complaints.append(str(error)))
            shown.goto(page.resolve().as_uri(), timeout=90_000)
            shown.wait_for_selector("html[data-ready]", timeout=60_000)
            yield shown, complaints
        finally:
            window.close()
