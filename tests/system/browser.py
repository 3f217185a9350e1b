# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, for test_dashboard_page.py and test_cockpit.py.

With SGP_PICTURES=FOLDER what they see is also drawn there, as PNG, for a person to look at."""
import base64
import os
import shutil

from fleet import PATIENCE, poll

PICTURES = os.environ.get("SGP_PICTURES")
PHONE = 380  # pixels
CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    MISSING = None if shutil.which(CHROMIUM) and shutil.which(DRIVER) else "not installed: chromium, chromium-driver"
except ImportError:
    MISSING = "not installed: python3-selenium; scripts/setup --long installs it"

KEYS = {} if MISSING else {"Tab": Keys.TAB, "ArrowLeft": Keys.ARROW_LEFT, "ArrowRight": Keys.ARROW_RIGHT, "Home": Keys.HOME,
                           "End": Keys.END}


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_page_load_timeout(PATIENCE)

    def close(self):
        self.driver.quit()

    def cdp(self, method, **arguments):
        """A command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(method, arguments)

    def metrics(self):
        self.cdp("Performance.enable")
        return self.cdp("Performance.getMetrics")["metrics"]

    def look(self, width=1400, dark=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, end=None):
        """The page as PNG: the whole of it, or down to where an element begins."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        top = "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"
        height = self.run(top, end) if end else size["height"]
        clip = {"x": 0, "y": 0, "width": self.run("return innerWidth"), "height": height, "scale": 1}
        data = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def draw(self, name):
        """The page light and dark, wide and narrow; a narrow page has nothing beside its edge."""
        for dark in (False, True):
            for width in (1400, PHONE):
                self.look(width, dark)
                self.wait("the width", lambda width=width: self.run("return innerWidth") == width)
                found = self.run("return document.documentElement.scrollWidth")
                assert found <= width, (name, dark, found, width)
                if PICTURES:
                    self.picture(os.path.join(PICTURES, f"{name}-{width}-{'dark' if dark else 'light'}.png"))
        self.look()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def press(self, key):
        self.driver.switch_to.active_element.send_keys(KEYS.get(key, key))

    def drag(self, selector, left, right):
        """With the pointer, between two places that are parts of an element's width."""
        box = self.run("const b = document.querySelector(arguments[0]); b.scrollIntoView({block: 'center'});"
                       "const r = b.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", selector)
        y = box[1] + box[3] / 2
        for kind, part in (("mousePressed", left), ("mouseMoved", (left + right) / 2), ("mouseMoved", right), ("mouseReleased", right)):
            self.cdp("Input.dispatchMouseEvent", type=kind, x=box[0] + part * box[2], y=y, button="left", buttons=1, clickCount=1)

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def rows(self, selector):
        """The body of a table: a list of texts for each row."""
        return self.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                        ".map(row => [...row.cells].map(cell => cell.innerText))", selector)

    def wait(self, what, condition, timeout=PATIENCE):
        return poll(what, condition, timeout, lambda: self.text()[:3000] + "\n" + "\n".join(self.complaints()), interval=0.2)

    def complaints(self):
        """Errors of scripts, and what the page's policy has blocked."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def accessible(self):
        """The accessibility tree, in the order of reading: (role, name, value) of each node that is not ignored."""
        nodes = {node["nodeId"]: node for node in self.cdp("Accessibility.getFullAXTree")["nodes"]}
        waiting, found = [next(iter(nodes))], []
        while waiting:
            node = nodes[waiting.pop()]
            waiting += [child for child in reversed(node.get("childIds", [])) if child in nodes]
            if not node.get("ignored"):
                found.append(tuple(node.get(key, {}).get("value", "") for key in ("role", "name", "value")))
        return found

    def accessible_part(self, heading):
        """What a screen reader has after a heading, up to the next one: the texts outside tables, and the rows of its
        tables without their heads, a list of names each."""
        texts, rows, part = [], [], False
        for role, name, _ in self.accessible():
            if role == "heading":
                part = name == heading
            elif part and role == "row":
                rows.append([])
            elif part and role in ("rowheader", "cell", "gridcell"):
                rows[-1].append(name)
            elif part and role == "StaticText" and not rows and name != heading:
                texts.append(name)
        return texts, [row for row in rows if row]
