"""Tests a login that the issuer no longer renews."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from rollcall import ConfigurationError
from rollcall.credentials import Login


class Issuer:
    """Accepts only the refresh token "good"."""

    def __init__(self) -> None:
        self.asked = 0
        self.on_refusal: Callable[[], None] = lambda: None
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, {"issuer": issuer.url, "token_endpoint": f"{issuer.url}/token"})

            def do_POST(self) -> None:
                issuer.asked += 1
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                if form["refresh_token"] != ["good"]:
                    issuer.on_refusal()
                    self.answer(400, {"error": "invalid_grant"})
                    return
                claims = base64.urlsafe_b64encode(b'{"aud":"rollcall","exp":9999999999}').decode().rstrip("=")
                self.answer(200, {"access_token": f"e30.{claims}.", "refresh_token": "next"})

            def answer(self, code: int, fields: dict[str, str]) -> None:
                body = json.dumps(fields).encode()
                self.send_response(code)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def write_context(self, path: Path, refresh_token: str) -> None:
        """Write a context as `rollcall login --oidc` does, with an expired token."""
        path.write_text(
            f"contexts: {{lab: {{server: 'localhost:1', token: old, oidc: {{issuer: '{self.url}', client_id: cli, "
            f"audience: rollcall, refresh_token: {refresh_token}, expires_at: '1970-01-01T00:00:00Z'}}}}}}\n"
        )


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_remembers_a_refusal(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    issuer.write_context(path, "bad")
    now = 1_000_000_000.0
    login = Login(path, "lab", lambda: now)
    for _ in range(50):
        with pytest.raises(ConfigurationError, match="has expired"):
            login.token()
    assert issuer.asked == 1
    now += 30
    with pytest.raises(ConfigurationError, match="has expired"):
        login.token()
    assert issuer.asked == 2
    issuer.write_context(path, "good")
    assert (login.token() or "").startswith("e30.")


def test_takes_what_another_program_saves(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    issuer.write_context(path, "bad")
    issuer.on_refusal = lambda: issuer.write_context(path, "good")
    assert (Login(path, "lab").token() or "").startswith("e30.")


def test_does_not_hold_other_calls_while_it_waits(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    issuer.write_context(path, "bad")
    login = Login(path, "lab")
    tokens: list[str | None] = []

    def wait(_: float) -> None:
        issuer.write_context(path, "good")
        other = threading.Thread(target=lambda: tokens.append(login.token()), daemon=True)
        other.start()
        other.join(20)

    monkeypatch.setattr("rollcall.credentials.time.sleep", wait)
    token = login.token()
    assert tokens == [token]
