"""What runs executions as processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollcall.agent.process_executor import expand

_VECTORS = Path(__file__).resolve().parents[2] / "conformance" / "vectors"


@pytest.mark.parametrize("it", json.loads((_VECTORS / "expansions.json").read_text(encoding="utf-8")))
def test_expands_as_the_keeper_does(it: dict[str, str]) -> None:
    assert expand(it["word"], {"a": "1"}) == it["expanded"]
