"""A complete Rollcall agent. It represents this machine, and runs processes if you give it a user to run them as."""

import argparse
import asyncio
import logging
import os
import platform
import signal
import socket
from pathlib import Path

from rollcall.node.v1 import node_pb2, usage_pb2

from rollcall.agent import Agent, Options, ProcessExecutor, Tls


def info() -> node_pb2.NodeInfo:
    threads = os.cpu_count() or 1
    architecture = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return node_pb2.NodeInfo(
        hostname=socket.gethostname(),
        os=node_pb2.OperatingSystem(
            family=platform.system().lower(), kernel=platform.release(), architecture=architecture
        ),
        cpu=node_pb2.Cpu(threads=threads, usable_millis=threads * 1000),
        labels={"kit": "python"},
    )


def usage() -> usage_pb2.ResourceUsage:
    """Return the machine's load as a percentage of its processors."""
    return usage_pb2.ResourceUsage(cpu_percent=min(100.0, 100 * os.getloadavg()[0] / (os.cpu_count() or 1)))


async def main() -> None:
    """Run until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:7700", help="address of the registry, HOST:PORT or a URL")
    parser.add_argument("--name", default=socket.gethostname(), help="id of the node")
    parser.add_argument("--state-dir", type=Path, required=True, help="directory for the node's key and executions")
    parser.add_argument("--join-token-file", type=Path, help="file with a join token or a service account's token")
    parser.add_argument("--ca-file", type=Path, help="PEM file of the authorities to trust")
    parser.add_argument("--ca-fingerprint", help="fingerprint that rollcall token create prints")
    parser.add_argument("--work-user", help="run executions as this user (default: run none)")
    parser.add_argument("--work-same-user", action="store_true", help="allow --work-user to be the agent's own user")
    words = parser.parse_args()
    executor = None
    if words.work_user:
        directory = words.state_dir.with_name(f"{words.state_dir.name}-work")
        executor = ProcessExecutor(directory, user=words.work_user, may_be_own_user=words.work_same_user)
    tls = None
    if words.ca_file or words.ca_fingerprint:
        tls = Tls(ca_file=words.ca_file, ca_fingerprint=words.ca_fingerprint)
    agent = Agent(
        Options(
            server=words.server,
            node_id=words.name,
            state_dir=words.state_dir,
            join_token_file=words.join_token_file,
            version="example-1.0",
            tls=tls,
            info=info,
            usage=usage,
            executor=executor,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, agent.close)
    await agent.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
