"""Chromium without a window."""

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from dev.prerequisites import find_browser

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root's browser has none
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--window-size=1280,900",
)


def started_chromium() -> Chrome:
    """A browser, which keeps a log of what it requests; to be quit."""
    found = find_browser()
    options = ChromeOptions()
    options.binary_location = found.program
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Chrome(options, ChromeService(found.driver))
