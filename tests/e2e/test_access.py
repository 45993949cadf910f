"""Who may do what, asked of the running web server as a browser or a script would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import websocket

from tests.e2e.product import PATIENCE, Person, Product, Run, gang, nodes, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ACTIONS = ("start", "pause", "resume", "stop")


@pytest.fixture(scope="module")
def held_gang(whole_product: Product) -> Iterator[Run]:
    """A run on which a gang waits for somebody's word."""
    run = whole_product.start_sandbox("access")
    whole_product.sandbox(run).create_all([*nodes(1), *gang("secret", 2)])
    until(lambda: len(whole_product.waits(run, "waiting")) == 2, "the gang waits")
    yield run
    assert len(whole_product.waits(run, "waiting")) == 2, "somebody who may not has decided"


@contextmanager
def open_socket(person: Person, run: Run, origin: str) -> Iterator[websocket.WebSocket]:
    url = f"ws{person.base_url.removeprefix('http')}/ws/runs/{run.id}/?topics=waiting"
    socket = websocket.WebSocket()
    socket.settimeout(PATIENCE)
    try:
        socket.connect(url, origin=origin, cookie=person.cookies)
        yield socket
    finally:
        socket.shutdown()


def test_a_viewer_may_look(product: Product, held_gang: Run) -> None:
    viewer = product.person("viewer")

    answer = viewer.get(f"/api/runs/{held_gang.id}/waiting")

    assert answer.status_code == 200
    # In whichever order: the first may have been tried before the second was there.
    waiting = {pod["pod"] for pod in answer.json()["pods"]}
    assert waiting == {"default/secret-0", "default/secret-1"}


def test_links_for_bots_lead_to_the_demo(product: Product, held_gang: Run) -> None:
    viewer = product.person("viewer")

    items = viewer.get(f"/api/v1/waiting?run={held_gang.id}").json()["items"]

    links = [url for item in items for url in item["links"].values()]
    assert links
    assert all(url.startswith(f"{viewer.base_url}/") for url in links), links
    page = urlsplit(items[0]["links"]["page"])
    assert viewer.get(page.path).status_code == 200


def test_a_viewer_may_not_decide(product: Product, held_gang: Run) -> None:
    viewer = product.person("viewer")
    for verdict in ("approve", "deny"):
        body = {"pod_group": "default/secret", "verdict": verdict}
        answer = viewer.post(f"/api/runs/{held_gang.id}/waiting/decide", body)
        assert (answer.status_code, "error" in answer.json()) == (403, True)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_viewer_may_not_control(product: Product, held_gang: Run, action: str) -> None:
    viewer = product.person("viewer")

    answer = viewer.post(f"/api/runs/{held_gang.id}/control", {"action": action})

    assert (answer.status_code, "error" in answer.json()) == (403, True)
    product.wait_for_state(held_gang, "running", seconds=1)


def test_a_viewer_may_not_start_a_sandbox(product: Product) -> None:
    viewer = product.person("viewer")

    answer = viewer.post("/api/sandboxes", {"name": "viewers", "preset": "empty", "speed": 1})

    assert answer.status_code == 403
    assert product.rows("select id from dashboard_cluster where name = 'viewers'") == []


def test_a_request_without_its_token_is_refused(product: Product, held_gang: Run) -> None:
    admin = product.person("admin")
    del admin.session.cookies["csrftoken"]

    answer = admin.post(f"/api/runs/{held_gang.id}/control", {"action": "stop"})

    assert answer.status_code == 403


def test_a_stranger_gets_the_login_page_or_json(product: Product, held_gang: Run) -> None:
    stranger = product.anonymous()
    base = f"/runs/{held_gang.id}/"
    for path in ("/", base, f"{base}queues/", f"{base}heatmap/", f"{base}cycles/", f"{base}audit/"):
        answer = stranger.get(path)
        assert answer.status_code == 302, path
        assert answer.headers["Location"].startswith("/login/?next=")
    for path in ("waiting", "queues", "cycles", "overview", "run", "cycles/latest/matrix"):
        answer = stranger.get(f"/api/runs/{held_gang.id}/{path}")
        assert answer.status_code == 401, path
        assert "error" in answer.json()
    assert stranger.get("/api/clusters").status_code == 401


def test_the_login_link_is_of_this_start_alone(product: Product) -> None:
    stranger = product.anonymous()
    path = urlsplit(product.demo.login_url).path
    head, signature = path.rstrip("/").rsplit(":", 1)
    other = "B" if signature[0] == "A" else "A"

    forged = stranger.get(f"{head}:{other}{signature[1:]}/")

    assert (forged.status_code, forged.headers["Location"]) == (302, "/login/")
    assert stranger.get("/api/clusters").status_code == 401
    stranger.get(path)
    assert stranger.get("/api/clusters").status_code == 200


@pytest.mark.parametrize("name", ["admin", "viewer"])
def test_a_socket_of_somebody_who_is_logged_in(product: Product, held_gang: Run, name: str) -> None:
    person = product.person(name)

    with open_socket(person, held_gang, origin=person.base_url) as socket:
        hello = json.loads(socket.recv())

    assert (hello["type"], hello["run"]) == ("hello", held_gang.id)
    assert ("dashboard.decide_waitingpod" in hello["permissions"]) == (name == "admin")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"]
)
def test_a_socket_from_another_site_is_refused(
    product: Product, held_gang: Run, origin: str
) -> None:
    with (
        pytest.raises(websocket.WebSocketBadStatusException) as refusal,
        open_socket(product.person("admin"), held_gang, origin=origin),
    ):
        pytest.fail("the handshake was accepted")

    assert refusal.value.status_code == 403


def test_a_socket_of_a_stranger_is_closed(product: Product, held_gang: Run) -> None:
    stranger = product.anonymous()
    with open_socket(stranger, held_gang, origin=stranger.base_url) as socket:
        code, data = socket.recv_data()

    assert code == websocket.ABNF.OPCODE_CLOSE
    assert int.from_bytes(data[:2], "big") == 4401
