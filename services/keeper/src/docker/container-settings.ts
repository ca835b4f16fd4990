import type Docker from "dockerode";
import type { ExecutionIdentity } from "../journal/execution-record.ts";
import type { ContainerPlan } from "../spec/read-spec.ts";
import type { EngineFacts } from "./docker-engine.ts";
import type { Image } from "./image-store.ts";

/** What a container is made from. */
export interface ContainerRequest {
  /** Name of the keeper that makes it. */
  readonly keeper: string;
  readonly engine: EngineFacts["kind"];
  /** What the engine can limit. */
  readonly limits: EngineFacts["limits"];
  readonly identity: ExecutionIdentity;
  readonly plan: ContainerPlan;
  readonly image: Image;
  readonly env: Readonly<Record<string, string>>;
  /** Empty for the image's own. */
  readonly argv: readonly string[];
}

/**
 * What images of services need, which begin as root, to take over their files and to become another user. Nothing to
 * make devices, raw sockets or file capabilities. Other users have none: podman gives them what is named, root or not.
 */
const CAPABILITIES_OF_ROOT = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/** The engine's own log is read by the keeper as it is written; this much waits for one that is away. */
const LOG_BOUNDS = { "max-size": "16m", "max-file": "2" };

const NANOCPUS_PER_MILLICORE = 1_000_000;

/** The labels by which a keeper knows its containers. */
export const LABELS = {
  keeper: "rollcall.keeper",
  execution: "rollcall.execution",
  job: "rollcall.job",
  node: "rollcall.node",
  spec: "rollcall.spec",
  image: "rollcall.image",
} as const;

/** Labels by name. */
type Labels = Readonly<Record<string, string>>;

/** Say to an engine what container to make. Nothing of the machine is mounted, and nothing is privileged. */
export function containerSettings(request: ContainerRequest): Docker.ContainerCreateOptions {
  const { keeper, identity, plan, image, env, argv, engine, limits } = request;
  const { millicores, memoryBytes, pids } = plan;
  const ports = Object.values(identity.ports).flatMap((port) => [`${port}/tcp`, `${port}/udp`]);
  return {
    name: containerName(keeper, identity.id),
    // Its name may mean another one by now.
    Image: image.id,
    Env: Object.entries({ ...env, ...gpuEnvironment(identity.gpuUuids) }).map(([name, value]) => `${name}=${value}`),
    ...(argv.length > 0 && { Cmd: [...argv] }),
    ...(plan.user !== "" && { User: plan.user }),
    Labels: { ...labelsOf(keeper, identity), [LABELS.image]: image.digest },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    AttachStdin: false,
    Tty: false,
    HostConfig: {
      // Inside and outside the port is the same: it is what PORT_* says.
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostPort: port.split("/")[0] ?? "" }]])),
      ...(millicores > 0 && { NanoCpus: millicores * NANOCPUS_PER_MILLICORE }),
      // As much with swap as without: none.
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

/** Images for GPUs ask for all of them, which an engine with NVIDIA's runtime as its default would grant. */
function gpuEnvironment(uuids: readonly string[]): Readonly<Record<string, string>> {
  return { NVIDIA_VISIBLE_DEVICES: uuids.length === 0 ? "void" : uuids.join(",") };
}

/** Docker asks the runtime for devices; podman has their descriptions by name. */
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

/** The name of an execution's container. An engine gives a name once: no two keepers make two containers. */
export function containerName(keeper: string, id: string): string {
  return `rollcall-${keeper}-${id}`;
}

/** Whether a container is that of an execution, whatever its name says. */
export function isContainerOf(labels: Labels | null | undefined, keeper: string, id: string): boolean {
  return labels?.[LABELS.keeper] === keeper && labels[LABELS.execution] === id;
}
