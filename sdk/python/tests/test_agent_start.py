"""Tests that an agent that fails to start releases its state directory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rollcall.agent import Agent, Options


def options(directory: Path) -> Options:
    return Options(server="127.0.0.1:1", node_id="one", state_dir=directory, machine_fingerprint="machine")


def test_releases_the_directory_when_the_record_of_work_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "executions").touch()
    with pytest.raises(FileExistsError) as failed:
        Agent(options(tmp_path))
    (tmp_path / "executions").unlink()
    Agent(options(tmp_path)).identity.release()
    assert failed.value is not None


def test_releases_the_directory_when_the_key_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "node-key.pem").write_text("no key")
    with pytest.raises(ValueError, match="not an Ed25519") as failed:
        Agent(options(tmp_path))
    (tmp_path / "node-key.pem").unlink()
    Agent(options(tmp_path)).identity.release()
    assert failed.value is not None


def test_releases_the_directory_when_the_start_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(options(tmp_path))

    def fail() -> None:
        raise RuntimeError("the work cannot be found again")

    monkeypatch.setattr(agent.ledger, "recover", fail)
    with pytest.raises(RuntimeError, match="found again"):
        asyncio.run(agent.run())
    Agent(options(tmp_path)).identity.release()
