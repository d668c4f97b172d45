"""A headless Chromium, led over its DevTools protocol: pages, real keys, real clicks, pictures of the screen."""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.commands import wait_until

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
SWITCHES: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip
NAMED: Final = {
    "enter": ("Enter", "Enter", 13), "left": ("ArrowLeft", "ArrowLeft", 37), "up": ("ArrowUp", "ArrowUp", 38),
    "right": ("ArrowRight", "ArrowRight", 39), "down": ("ArrowDown", "ArrowDown", 40), "tab": ("Tab", "Tab", 9),
    "escape": ("Escape", "Escape", 27),
    ",": (",", "Comma", 188), ".": (".", "Period", 190), "/": ("/", "Slash", 191), ";": (";", "Semicolon", 186),
    "[": ("[", "BracketLeft", 219), "]": ("]", "BracketRight", 221), "'": ("'", "Quote", 222),
    "-": ("-", "Minus", 189), "=": ("=", "Equal", 187),
}  # fmt: skip
CTRL, SHIFT = 2, 8


class Page:
    """One tab, with cookies of its own."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._sent = socket, 0
        self.do("Page.enable")
        self.do("Runtime.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while True:
            answer: dict[str, Any] = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == self._sent:
                assert "error" not in answer, (method, answer)
                return dict(answer["result"])

    def see(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (expression, answer)
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        wait_until(lambda: self.see(f"!!({expression})"), seconds, f"{expression}\n{self.see('location.href')}")

    def go(self, url: str) -> None:
        self.do("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def press(self, key: str) -> None:
        """A key as Label Studio writes hotkeys: "q", "shift+q", "ctrl+enter", "left"."""
        *held, name = key.split("+")
        modifiers = (CTRL if "ctrl" in held else 0) | (SHIFT if "shift" in held else 0)
        if name in NAMED:
            value, code, number = NAMED[name]
        else:
            value = name.upper() if modifiers & SHIFT else name
            code, number = (f"Digit{name}" if name.isdigit() else f"Key{name.upper()}"), ord(name.upper())
        told = {"key": value, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        text = {"text": "\r" if name == "enter" else value} if len(value) == 1 or name == "enter" else {}
        self.do("Input.dispatchKeyEvent", type="keyDown", **told, **({} if modifiers & CTRL else text))
        self.do("Input.dispatchKeyEvent", type="keyUp", **told)

    def write(self, text: str) -> None:
        self.do("Input.insertText", text=text)

    def click(self, element: str) -> None:
        """Click into the middle of an element, an expression; where something lies over it, that gets the click."""
        x, y = self.see(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        where = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, **where)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        self.see(f"localStorage.setItem('preferred-color-scheme', '{'Dark' if dark else 'Light'}')")
        self.see(f"document.documentElement.dataset.colorScheme = '{'dark' if dark else 'light'}'")

    def shot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser with nothing in it, ended with all its processes; it reaches this machine and nothing else."""
    command = [CHROMIUM, *SWITCHES, f"--user-data-dir={folder}", "about:blank"]
    with (folder.parent / f"{folder.name}.log").open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    told = folder / "DevToolsActivePort"
    try:
        wait_until(lambda: told.exists() and told.read_text().count("\n"), 60, "Chromium is up", pause=0.2)
        port = told.read_text().splitlines()[0]
        (tab,) = [
            one for one in httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False).json() if one["type"] == "page"
        ]
        with connect(tab["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
            page = Page(socket)
            yield page
            with suppress(ConnectionClosed):
                page.do("Browser.close")
    finally:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
