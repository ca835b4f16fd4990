"""The agent that `make conformance NAME=python` tests. It is the kit with a wall clock that jumps on request."""

import argparse
import asyncio
import logging
import signal
import time
from pathlib import Path

from rollcall.agent import Agent, Options, ProcessExecutor


def wall_clock(file: Path) -> float:
    """Return the time, shifted by the milliseconds in the file."""
    try:
        return time.time() + int(file.read_text(encoding="utf-8")) / 1000
    except (OSError, ValueError):
        return time.time()


async def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser()
    for flag in ("--server", "--name"):
        parser.add_argument(flag, required=True)
    for flag in ("--state-dir", "--clock-file"):
        parser.add_argument(flag, type=Path, required=True)
    words = parser.parse_args()
    directory = words.state_dir.with_name(f"{words.state_dir.name}-work")
    options = Options(
        server=words.server,
        node_id=words.name,
        state_dir=words.state_dir,
        version="conformance",
        machine_fingerprint=f"machine-of-{words.name}",
        executor=ProcessExecutor(directory, may_be_own_user=True),
        wall_clock=lambda: wall_clock(words.clock_file),
    )
    agent = Agent(options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, agent.close)
    await agent.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
