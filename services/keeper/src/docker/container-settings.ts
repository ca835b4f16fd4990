import type Docker from "dockerode";
import type { ExecutionIdentity } from "../journal/execution-entry.ts";
import type { ContainerPlan } from "../spec/read-spec.ts";
import type { EngineFacts } from "./docker-engine.ts";
import type { Image } from "./image-store.ts";

/** The parameters of a new container. */
export interface ContainerRequest {
  /** The name of the keeper that creates the container. */
  readonly keeper: string;
  readonly engine: EngineFacts["kind"];
  /** Limits that the engine can enforce. */
  readonly limits: EngineFacts["limits"];
  readonly identity: ExecutionIdentity;
  readonly plan: ContainerPlan;
  readonly image: Image;
  readonly env: Readonly<Record<string, string>>;
  /** The command; empty for the image's own. */
  readonly argv: readonly string[];
}

/**
 * Capabilities of containers that run as root. Service images start as root to take ownership of their files and then
 * switch to another user. None of these capabilities creates devices, raw sockets or file capabilities. Containers of
 * other users get none, because podman grants named capabilities to root and non-root alike.
 */
const CAPABILITIES_OF_ROOT = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/**
 * How much of a log the engine keeps. The keeper reads the log as it is written, so this only matters while no keeper
 * runs.
 */
const LOG_BOUNDS = { "max-size": "16m", "max-file": "2" };

const NANOCPUS_PER_MILLICORE = 1_000_000;

/** Labels that identify a keeper's containers. */
export const LABELS = {
  keeper: "rollcall.keeper",
  execution: "rollcall.execution",
  job: "rollcall.job",
  node: "rollcall.node",
  spec: "rollcall.spec",
  image: "rollcall.image",
} as const;

/** Label values, keyed by name. */
type Labels = Readonly<Record<string, string>>;

/** Build the engine's settings for a container. The container mounts nothing of the machine, and has no privileges. */
export function containerSettings(request: ContainerRequest): Docker.ContainerCreateOptions {
  const { keeper, identity, plan, image, env, argv, engine, limits } = request;
  const { millicores, memoryBytes, pids } = plan;
  const ports = Object.values(identity.ports).flatMap((port) => [`${port}/tcp`, `${port}/udp`]);
  return {
    name: containerName(keeper, identity.id),
    // Use the id, because the name may refer to another image by now.
    Image: image.id,
    Env: Object.entries({ ...env, ...gpuEnvironment(identity.gpuUuids) }).map(([name, value]) => `${name}=${value}`),
    ...(argv.length > 0 && { Cmd: [...argv] }),
    ...(plan.user !== "" && { User: plan.user }),
    Labels: { ...labelsOf(keeper, identity), [LABELS.image]: image.digest },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    AttachStdin: false,
    Tty: false,
    HostConfig: {
      // Use the same port number inside and outside the container, because PORT_* has this value.
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostPort: port.split("/")[0] ?? "" }]])),
      ...(millicores > 0 && { NanoCpus: millicores * NANOCPUS_PER_MILLICORE }),
      // Set the limit that includes swap to the memory limit, so that the container cannot swap.
      ...(memoryBytes > 0 && { Memory: memoryBytes, MemorySwap: memoryBytes }),
      ...(limits.includes("pids") && { PidsLimit: pids }),
      ...gpuDevices(engine, identity.gpuUuids),
      CapDrop: ["ALL"],
      CapAdd: isRoot(plan.user === "" ? image.user : plan.user) ? CAPABILITIES_OF_ROOT : [],
      SecurityOpt: ["no-new-privileges"],
      Privileged: false,
      AutoRemove: false,
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "json-file", Config: LOG_BOUNDS },
    },
  };
}

function isRoot(user: string): boolean {
  const [name] = user.split(":");
  return name === "" || name === "root" || /^0+$/.test(name ?? "");
}

/**
 * Variables that select the execution's GPUs. Without them, a GPU image requests all GPUs, and an engine whose default
 * is NVIDIA's runtime grants them.
 */
function gpuEnvironment(uuids: readonly string[]): Readonly<Record<string, string>> {
  return { NVIDIA_VISIBLE_DEVICES: uuids.length === 0 ? "void" : uuids.join(",") };
}

/** Settings that give a container its GPUs. Docker requests devices from the runtime; podman uses CDI names. */
function gpuDevices(engine: EngineFacts["kind"], uuids: readonly string[]): Partial<Docker.HostConfig> {
  if (uuids.length === 0) return {};
  if (engine === "docker") {
    return { DeviceRequests: [{ Driver: "nvidia", DeviceIDs: [...uuids], Capabilities: [["gpu"]] }] };
  }
  return {
    Devices: uuids.map((uuid) => {
      const name = `nvidia.com/gpu=${uuid}`;
      return { PathOnHost: name, PathInContainer: name, CgroupPermissions: "rwm" };
    }),
  };
}

/** The labels of an execution's container. */
function labelsOf(keeper: string, { id, job, nodeId, specDigest }: ExecutionIdentity): Labels {
  return {
    [LABELS.keeper]: keeper,
    [LABELS.execution]: id,
    [LABELS.job]: job,
    [LABELS.node]: nodeId,
    [LABELS.spec]: specDigest,
  };
}

/**
 * The name of an execution's container. Names are unique within an engine, so two keepers never create two containers.
 */
export function containerName(keeper: string, id: string): string {
  return `rollcall-${keeper}-${id}`;
}

/** Whether a container belongs to an execution, regardless of its name. */
export function isContainerOf(labels: Labels | null | undefined, keeper: string, id: string): boolean {
  return labels?.[LABELS.keeper] === keeper && labels[LABELS.execution] === id;
}
