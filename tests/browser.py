"""A real browser on the page: Debian's Chromium, driven by Playwright.

`python tests/browser.py docs` writes the picture of docs/solving.md again.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PROBLEM = "wait & X(go & G(go -> X !go)) & F done"


@dataclass
class Visit:
    """A page that is open in a browser.

    Attributes:
        page: Playwright's.
        complaints: errors and warnings of the console, and errors that nothing caught.
        elsewhere: addresses on other machines that the page has asked for.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def ask(self, problem: str, button: str) -> str:
        """Type a problem, click a button, and return what the reply then says."""
        self.page.get_by_label("Problem").fill(problem)
        mark = "() => document.querySelector('#reply .reply')?.setAttribute('data-old', '')"
        self.page.evaluate(mark)
        self.page.get_by_role("button", name=button, exact=True).click()
        self.page.locator("#reply .reply:not([data-old])").wait_for()
        return self.page.inner_text("#reply .reply")


@contextmanager
def visit(address: str, width: int = 1000, height: int = 900) -> Iterator[Visit]:
    """Open a page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        opened = Visit(page)

        def listen(message: Any) -> None:
            if message.type in ("error", "warning"):
                opened.complaints.append(message.text)

        def follow(request: Any) -> None:
            if not request.url.startswith((address, "data:", "blob:")):
                opened.elsewhere.append(request.url)

        page.on("console", listen)
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("request", follow)
        page.goto(address)
        page.get_by_role("button", name="Solve", exact=True).wait_for()
        yield opened
        browser.close()


def main(folder: Path) -> None:
    """Write the picture of the page."""
    from hf_alpha.demo.choices import page_choices
    from hf_alpha.demo.server import serve

    page = serve(page_choices(device="cpu"))
    with visit(page.local_url, 1000, 940) as opened:
        opened.ask(PROBLEM, "Rename")
        opened.page.wait_for_timeout(1_000)  # until it is faded in
        opened.page.screenshot(path=folder / "demo-renamed.png")
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
