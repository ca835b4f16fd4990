"""Configuration of a KohakuRiver host, from its documentation."""
import os

from kohakuengine import Config
from kohakuriver.models.enums import LogLevel

HOST_BIND_IP: str = "0.0.0.0"
HOST_PORT: int = 8000
HOST_SSH_PROXY_PORT: int = 8002
HOST_REACHABLE_ADDRESS: str = os.environ.get("KR_HOST_IP", "192.0.2.10")

SHARED_DIR: str = "/mnt/cluster"
DB_FILE: str = "/srv/kohakuriver.db"

HEARTBEAT_INTERVAL_SECONDS: int = 5  # seconds
HEARTBEAT_TIMEOUT_FACTOR: int = 6
CLEANUP_CHECK_INTERVAL_SECONDS: int = 10

DEFAULT_CONTAINER_NAME: str = "base"
TASKS_PRIVILEGED: bool = False
ADDITIONAL_MOUNTS: list[str] = [
    "/data:/data",
]

OVERLAY_ENABLED: bool = True
OVERLAY_SUBNET: str = "10.128.0.0/12/6/14"

AUTH_ENABLED: bool = True
ADMIN_SECRET: str = os.environ["KR_ADMIN_SECRET"]

LOG_LEVEL: LogLevel = LogLevel.WARNING


def config_gen():
    return Config.from_globals()
