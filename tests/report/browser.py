"""A page in headless Chromium, driven by its debugging protocol over pipes.

    with Browser() as browser:
        page = browser.open(path)
        page.evaluate("document.title")

Nothing but Python's own library is needed. find() is None where there is no Chromium.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SECONDS = 60


def find():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def give():  # the protocol's ends are the descriptors 3 and 4
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking",
             "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "about:blank"],
            close_fds=False, preexec_fn=give, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.events = 0, b"", []
        return self

    def __exit__(self, *_):
        os.close(self.to)
        os.close(self.back)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": params}
        if session:
            asked["sessionId"] = session
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while True:
            said = self.message()
            if said.get("id") == self.number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']}")
                return said["result"]
            self.events.append(said)

    def open(self, path, **look):
        return Page(self, path, **look)


class Page:
    def __init__(self, browser, path, width=1200, height=900, dark=False):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.look(width, height, dark)
        self.url = "file://" + os.path.abspath(path)
        self.call("Page.navigate", url=self.url)
        self.wait("document.readyState === 'complete'")

    def look(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def evaluate(self, expression):
        said = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in said:
            raise RuntimeError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"{expression}: not within {SECONDS} s; "
                                   f"{self.complaints()}")
            time.sleep(0.05)

    def complaints(self):
        """Messages on the console, errors, and requests beside the page's own."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown",
                          "Log.entryAdded"):
                found.append(json.dumps(params)[:600])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url not in (self.url, "about:blank"):
                    found.append("request: " + url)
        return found

    def picture(self, path):
        import base64
        said = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as to:
            to.write(base64.b64decode(said["data"]))

    def key(self, name, text=None):
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
