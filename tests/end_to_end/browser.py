"""A person at a browser: headless Chromium, signed in to a live Airflow. Each page that is looked at is checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from checkpoint_eval.embedded import Endpoint

UI = "/checkpoint-eval/ui"
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Person:
    """Looks at pages. `outside`: requests that went to another host; `faults`: what axe found, page by page."""

    def __init__(self, page: Page, endpoint: Endpoint, pictures: Path | None) -> None:
        self.page = page
        self.endpoint = endpoint
        self._pictures = pictures
        self.outside: list[str] = []
        self.faults: dict[str, list[str]] = {}
        page.on("request", self._seen)

    def sign_in(self) -> None:
        """By Airflow's form, where an anonymous visitor of a page is sent."""
        self.page.goto(f"{self.endpoint.url}{UI}/runs")
        self.page.get_by_label("Username").fill(self.endpoint.user)
        self.page.get_by_label("Password").fill(self.endpoint.password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"**{UI}/runs")

    def open(self, path: str, name: str = "") -> Page:
        """Go to a page of ours and look at it."""
        answer = self.page.goto(f"{self.endpoint.url}{UI}/{path}")
        assert answer is not None and answer.status == 200, f"{path}: {answer and answer.status}"
        self.look(name or path.partition("?")[0])
        return self.page

    def look(self, name: str) -> None:
        """Take a picture, in light, in dark and on a phone, and let axe look for what hinders people."""
        from axe_playwright_python.sync_playwright import Axe

        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            self._picture(f"{name}-{scheme}")
            found = Axe().run(self.page).response["violations"]
            serious = [f"{v['id']}: {v['help']}" for v in found if v["impact"] in ("serious", "critical")]
            if serious:
                self.faults.setdefault(f"{name} ({scheme})", []).extend(serious)
        self.page.set_viewport_size({"width": 390, "height": 844})
        self._picture(f"{name}-phone")
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 1:
            self.faults.setdefault(name, []).append(f"{wide} pixels too wide for a phone")
        self.page.set_viewport_size({"width": 1280, "height": 900})
        self.page.emulate_media(color_scheme="light")

    def _picture(self, name: str) -> None:
        if self._pictures is not None:
            self.page.screenshot(path=self._pictures / f"{name.replace('/', '_')}.png", full_page=True)

    def _seen(self, request: Any) -> None:
        if not request.url.startswith((self.endpoint.url, "data:", "blob:")):
            self.outside.append(request.url)


@contextmanager
def person(endpoint: Endpoint) -> Iterator[Person]:
    """A person at Debian's Chromium; CHECKPOINT_EVAL_PICTURES names a folder that keeps what was seen."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    folder = os.environ.get("CHECKPOINT_EVAL_PICTURES")
    pictures = Path(folder) if folder else None
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        yield Person(page, endpoint, pictures)
        browser.close()
