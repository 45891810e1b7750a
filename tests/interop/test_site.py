#!/usr/bin/env python3
"""docs/site/build makes a site without broken links; and, if Chromium and its driver are installed, a browser shows
and searches its pages. (tests/run does not install them: they are 300 MB.)"""
import functools
import html.parser
import http.server
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from packages import ROOT, check, finish_tests, leave_out, need_packages

need_packages(selenium="selenium", material="mkdocs-material>=9.6,<10")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait


class page_links(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.text = set(), [], 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            if value and ((name == "href" and tag in ("a", "link")) or (name == "src" and tag in ("img", "script"))):
                self.links.append(value)


class quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def broken_links(site):
    pages = {path: page_links(path) for path in site.glob("**/*.html")}
    for path, page in pages.items():
        for link in page.links:
            to, _, anchor = urllib.parse.unquote(link).partition("#")
            if ":" in to.split("/")[0] or path.name == "404.html":
                continue
            target = (path.parent / to.partition("?")[0]).resolve() if to else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].ids | {"__skip"}):
                yield f"{path.relative_to(site)}: {link}"


with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder).resolve() / "site"
    built = subprocess.run([sys.executable, ROOT / "docs/site/build", site], capture_output=True, text=True)
    check(built.returncode == 0, "the site is built without a warning", built.stdout + built.stderr)
    pages = sorted(p for p in site.glob("**/*.html") if p.name != "404.html")
    check(len(pages) > 40 and (site / "api/callbacks.html").exists(), "with a page for each page of docs and each room", str(pages))
    check(not (broken := list(broken_links(site))), "no link is broken", "\n".join(broken))
    api = (site / "api/callbacks.html").read_text()
    check("restore_best_weights" in api and "belongs to the snapshots of backup_and_restore" in api, "docstrings and settings are in the API pages")

    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        leave_out("a browser shows each page, and searches", "chromium and chromium-driver are not installed")
        sys.exit(finish_tests())
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = shutil.which("chromium")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    bad = []
    for page in pages:
        browser.get(f"{address}/{page.relative_to(site)}")
        shown = browser.find_element(By.CSS_SELECTOR, "article h1").text
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        if not shown or errors:
            bad.append(f"{page.relative_to(site)}: {shown!r} {errors}")
    check(not bad, f"a browser shows each of {len(pages)} pages without an error", "\n".join(bad))

    browser.get(f"{address}/index.html")
    browser.execute_script("document.querySelector('#__search').click()")
    field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    WebDriverWait(browser, 30).until(lambda b: field.is_displayed() and field.is_enabled())

    def found(words):
        """(page, text) of each result of a search, in their order."""
        field.clear()
        field.send_keys(words)
        time.sleep(1)  # the previous results stay until there are new ones
        items = WebDriverWait(browser, 30).until(lambda b: [e for e in b.find_elements(By.CSS_SELECTOR, ".md-search-result__item") if e.text])
        return [(e.find_element(By.TAG_NAME, "a").get_attribute("href").split("/")[-1].split(".")[0], e.text) for e in items]

    check(any("restore_best_weights" in text for _, text in found("restore_best_weights")), "the search finds an option of a callback")
    explained = {"networks", "training", "data", "own_parts", "features", "keras", "reference", "programs", "index"}
    for words in ["conv2d", "save model", "lstm", "attention", "early_stopping", "shuffle", "predictor"]:
        pages = [page for page, _ in found(words)][:1]
        check(set(pages) <= explained, f"the first answer to {words} is a page that explains it", str(pages))
    browser.quit()
sys.exit(finish_tests())
