import type { ForeignKey } from "@rollcall/config";
import { nothing, protection, serverOf, words } from "./meanings.ts";

const WORK = "set it in each job file; Rollcall runs processes and containers, but no virtual machines";
const NETWORK = "Rollcall creates no container networks";
const PATHS = "it is a path that only KohakuRiver uses";

/**
 * The keys of KohakuRiver's host_config.py and runner_config.py. HEARTBEAT_INTERVAL and similar keys are missing,
 * because they are aliases of our keys.
 */
export const KOHAKURIVER_KEYS: readonly ForeignKey[] = [
  serverOf("HOST_ADDRESS"),
  words("LOG_LEVEL", "Log.Level", { full: "trace", debug: "debug", info: "info", warning: "warn" }),
  ...nothing("set Listen.Host and Listen.Port; agents and clients speak gRPC there", [
    ...["HOST_BIND_IP", "HOST_PORT", "HOST_SSH_PROXY_PORT"],
  ]),
  ...nothing("set Health.AdvertiseAddress if agents use another name to reach it", ["HOST_REACHABLE_ADDRESS"]),
  ...nothing("agents open no ports", ["RUNNER_BIND_IP", "RUNNER_PORT"]),
  ...nothing("silent nodes are detected every Orchestrator.NodeManager.DetectorTick", [
    "CLEANUP_CHECK_INTERVAL_SECONDS",
  ]),
  ...nothing("usage is measured for each heartbeat", ["RESOURCE_CHECK_INTERVAL_SECONDS"]),
  ...nothing("Rollcall stores everything in Postgres, see Database.URL", ["DB_FILE"]),
  ...nothing("logs go to standard output", ["HOST_LOG_FILE", "RUNNER_LOG_FILE"]),
  ...protection("access is controlled by tokens (`rollcall access`) and OIDC", [
    ...["AUTH_ENABLED", "ADMIN_SECRET", "ADMIN_REGISTER_SECRET", "SESSION_EXPIRE_HOURS"],
    "INVITATION_EXPIRE_HOURS",
  ]),
  ...nothing(PATHS, [...["SHARED_DIR", "LOCAL_TEMP_DIR", "CONTAINER_DIR", "CONTAINER_TAR_DIR", "NUMACTL_PATH"]]),
  ...nothing(WORK, [
    ...["DEFAULT_WORKING_DIR", "DEFAULT_CONTAINER_NAME", "INITIAL_BASE_IMAGE"],
    ...["TASKS_PRIVILEGED", "ADDITIONAL_MOUNTS", "ENV_CONTAINER_CPU_LIMIT"],
    ...["ENV_CONTAINER_MEM_LIMIT", "DOCKER_IMAGE_SYNC_TIMEOUT", "AUTO_SNAPSHOT_ON_STOP"],
    ...["MAX_SNAPSHOTS_PER_VPS", "AUTO_RESTORE_ON_CREATE", "VM_IMAGES_DIR", "VM_INSTANCES_DIR"],
    ...["VM_DEFAULT_MEMORY_MB", "VM_DEFAULT_DISK_SIZE", "VM_ACS_OVERRIDE"],
    ...["VM_BOOT_TIMEOUT_SECONDS", "VM_SSH_READY_TIMEOUT_SECONDS"],
    "VM_HEARTBEAT_TIMEOUT_SECONDS",
  ]),
  ...protection("executions run as Work.User, or as the job's choice from Work.Users", ["RUNNER_USER"]),
  ...nothing(NETWORK, [
    ...["TUNNEL_ENABLED", "TUNNEL_CLIENT_PATH", "DOCKER_NETWORK_NAME", "DOCKER_NETWORK_SUBNET"],
    ...["DOCKER_NETWORK_GATEWAY", "VM_BRIDGE_NAME", "VM_BRIDGE_SUBNET", "VM_BRIDGE_GATEWAY"],
    ...["OVERLAY_ENABLED", "OVERLAY_SUBNET", "OVERLAY_NETWORK_NAME", "OVERLAY_BRIDGE_NAME"],
    ...["OVERLAY_HOST_IP", "OVERLAY_HOST_PREFIX", "OVERLAY_VXLAN_ID", "OVERLAY_VXLAN_PORT"],
    ...["OVERLAY_PORT", "OVERLAY_MTU"],
  ]),
];
