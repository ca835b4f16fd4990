"""Configuration of a KohakuRiver runner, from its documentation."""
from kohakuengine import Config
from kohakuriver.models.enums import LogLevel

RUNNER_BIND_IP: str = "0.0.0.0"
RUNNER_PORT: int = 8001
HOST_ADDRESS: str = "192.0.2.10"
HOST_PORT: int = 8000

SHARED_DIR: str = "/mnt/cluster"
LOCAL_TEMP_DIR: str = "/tmp/kohakuriver"

HEARTBEAT_INTERVAL_SECONDS: int = 5
RESOURCE_CHECK_INTERVAL_SECONDS: int = 1

TUNNEL_ENABLED: bool = True
VM_DEFAULT_MEMORY_MB: int = 4_096

LOG_LEVEL: LogLevel = LogLevel.FULL


def config_gen():
    return Config.from_globals()
