"""The pages in a real browser without a server: templates, static files, API and websocket are
answered in the test process, so that a page can be shown any state, at any size, at once."""

from __future__ import annotations

import json
import mimetypes
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.template.loader import render_to_string
from playwright.sync_api import Page, Route, WebSocketRoute

from dashboard import heatmap
from dashboard.views import NAVIGATION
from tests.browser import fake_data

ORIGIN = "http://kubesched.test"
ROOT = Path(__file__).resolve().parents[2]
# What kubesched_site.settings sends with every page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class FakeSite:
    """Routes one browser page. ``answers`` (path below the API -> JSON, bytes or callable) and
    ``context`` may be changed before ``open``; ``send`` pushes a frame; ``posts`` and ``acks``
    are what the page sent."""

    def __init__(self, page: Page, nodes: int = 1523) -> None:
        self.page = page
        self.nodes = nodes
        self.posts: list[tuple[str, Any]] = []
        self.acks: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.socket: WebSocketRoute | None = None
        self.refusing = False
        self.greeting = 1
        self.context: dict[str, Any] = {"may_decide": True, "may_control": True, "may_add": True}
        self.answers: dict[str, Any] = self._answers()
        page.route(f"{ORIGIN}/**", self._answer)
        page.route_web_socket(re.compile(r"/ws/"), self._connected)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", self._console)

    def open(self, path: str) -> None:
        self.page.goto(ORIGIN + path)

    def send(self, frame: dict[str, Any] | bytes) -> None:
        assert self.socket is not None, "the page has not connected"
        self.socket.send(frame if isinstance(frame, bytes) else json.dumps(frame))

    def _console(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(f"console: {message.text}")

    def _connected(self, socket: WebSocketRoute) -> None:
        if self.refusing:
            socket.close(code=1013)
            return
        self.socket = socket
        socket.on_message(lambda text: self.acks.append(json.loads(text)))
        # A page that comes back learns that something was committed meanwhile.
        seq, self.greeting = self.greeting, 10**6
        hello = {"type": "hello", "run": 1, "seq": seq, "now": fake_data.NOW, "permissions": []}
        socket.send(json.dumps(hello))

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        self.requests.append(url.path + (f"?{url.query}" if url.query else ""))
        if url.path.startswith("/static/"):
            self._static(route, url.path)
        elif url.path.startswith("/api/"):
            self._api(route, url.path.removeprefix("/api/").removeprefix("runs/1/"), url.query)
        else:
            self._html(route, url.path, url.query)

    def _static(self, route: Route, path: str) -> None:
        file = ROOT / path.lstrip("/")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        if not file.is_file():
            self.problems.append(f"missing static file {path}")
            route.fulfill(status=404, body="")
            return
        route.fulfill(body=file.read_bytes(), content_type=kind)

    def _api(self, route: Route, path: str, query: str) -> None:
        if route.request.method == "POST":
            self.posts.append((path, route.request.post_data_json))
        answer = self.answers.get(path, (404, {"error": "Not found."}))
        if callable(answer):
            answer = answer({key: values[0] for key, values in parse_qs(query).items()})
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        if isinstance(body, bytes):
            route.fulfill(status=status, body=body, content_type="application/octet-stream")
        else:
            route.fulfill(status=status, body=json.dumps(body), content_type="application/json")

    def _html(self, route: Route, path: str, query: str) -> None:
        html = render(path, query, self.context)
        route.fulfill(
            body=html, content_type="text/html", headers={"Content-Security-Policy": POLICY}
        )

    def _answers(self) -> dict[str, Any]:
        matrix = fake_data.matrix(self.nodes)
        frame = heatmap.encode_full(fake_data.heatmap_of(matrix, seq=100, sequence=412))
        depths = {"active": 640, "backoff": 38, "unschedulable": 211, "gated": 12}
        return {
            "run": fake_data.run_frame(),
            "overview": fake_data.overview_frame(self.nodes),
            "cycles": fake_data.cycles_frame(50, first=400),
            "queues": fake_data.queues_frame(depths),
            "waiting": fake_data.waiting_frame([]),
            "nodes": {"names": list(fake_data.node_names(self.nodes))},
            "cycles/latest/matrix": frame,
            "cycles/412/matrix": frame,
            "cycles/412/raw": fake_data.raw_bytes(matrix),
            "cycles/412": fake_data.decision_detail(412),
            "clusters": {"clusters": []},
        }


PAGES = {name: name for name, _ in NAVIGATION}
PAGES["cycles"] = "decisions"


def render(path: str, query: str, extra: dict[str, Any]) -> str:
    """The HTML of a page as dashboard.views would render it, without a database."""
    user = SimpleNamespace(is_authenticated=True, is_staff=True, get_username=lambda: "ada")
    run = SimpleNamespace(
        pk=1, name="demo", state="running", desired_state="running", message="",
        get_state_display=lambda: "Running", cluster=SimpleNamespace(name="demo-sandbox"),
    )  # fmt: skip
    context: dict[str, Any] = {
        "user": user, "csrf_token": "token", "navigation": NAVIGATION, "clock_speed": 1.0,
        "cycle": parse_qs(query).get("cycle", [""])[0], "outcomes": [], "query": "",
        "chosen_outcome": "", "matrices_kept": 500,
    }  # fmt: skip
    parts = path.strip("/").split("/")
    if parts[0] == "login":
        return render_to_string("registration/login.html", {"csrf_token": "token"})
    if parts[0] != "runs":
        return render_to_string("pages/home.html", {**context, "page": "home", **extra})
    page = "overview" if len(parts) == 2 else PAGES[parts[2]]
    if page == "decisions" and len(parts) == 4:
        page, context["sequence"] = "decision", int(parts[3])
    return render_to_string(f"pages/{page}.html", {**context, "run": run, "page": page, **extra})
