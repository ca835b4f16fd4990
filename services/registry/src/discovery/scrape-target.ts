import type { Node, NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu, type Node as StoredNode } from "@rollcall/domain";
import { nodeToProto } from "@rollcall/wire";

/** An entry of Prometheus' HTTP service discovery. */
export interface ScrapeTarget {
  /** The address as HOST:PORT. */
  readonly targets: readonly [string];
  readonly labels: Readonly<Record<string, string>>;
}

const PREFIX = "__meta_rollcall_";

/** A node as a scrape target: its address, and labels for relabeling. */
export function scrapeTarget(record: StoredNode, port: number): ScrapeTarget {
  const { membership, connection, health, scheduling } = record;
  const node = nodeToProto(record);
  const { info } = node;
  const address = addressOfNode(node);
  const host = address.includes(":") ? `[${address}]` : address;
  return {
    targets: [`${host}:${port}`],
    labels: {
      ...prefixed({
        node_id: node.id,
        address,
        membership: membership.state,
        connection: connection.state,
        health: health.state,
        scheduling: scheduling.state,
        may_take_work: String(node.mayTakeWork),
        ...(info === undefined ? {} : facts(info)),
      }),
      ...labelsOf(node),
    },
  };
}

function facts(info: NodeInfo): Readonly<Record<string, string>> {
  const { hostname, advertiseUrl, agentVersion, os, cpu, memoryBytes, gpus } = info;
  return {
    ...{ hostname, advertise_url: advertiseUrl, agent_version: agentVersion },
    ...{ os: os?.family ?? "", os_name: os?.name ?? "", kernel: os?.kernel ?? "", arch: os?.architecture ?? "" },
    cpu_model: cpu?.model ?? "",
    cpu_threads: String(cpu?.threads ?? 0),
    memory_bytes: String(memoryBytes ?? ""),
    gpus: String(gpus.filter(isUsableGpu).length),
    gpu_models: [...new Set(gpus.map(({ name }) => name))].sort().join(","),
  };
}

/**
 * A node's labels in the form that Prometheus uses for Kubernetes: the value of each label, and a second label to
 * show that it exists, whatever its value.
 */
function labelsOf({ labels }: Node): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { key, value } of labels) {
    const name = key.replaceAll(/[^A-Za-z0-9_]/g, "_");
    found[`${PREFIX}label_${name}`] = value;
    found[`${PREFIX}labelpresent_${name}`] = "true";
  }
  return found;
}

/** Add the prefix, and drop empty values, because Prometheus treats an empty label as an absent one. */
function prefixed(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const kept = Object.entries(values).filter(([, value]) => value !== "");
  return Object.fromEntries(kept.map(([name, value]) => [PREFIX + name, value]));
}

/**
 * The host that the node advertises, otherwise its first permanent address that others can reach, otherwise its
 * host name.
 */
function addressOfNode({ id, info }: Node): string {
  if (info === undefined) return id;
  if (URL.canParse(info.advertiseUrl)) {
    const { hostname } = new URL(info.advertiseUrl);
    if (hostname !== "") return hostname.replace(/^\[(.*)\]$/, "$1");
  }
  const addresses = info.interfaces.flatMap((one) => one.addresses).map((text) => text.split("/", 1)[0] ?? "");
  const usable = addresses.filter((address) => !/^(127\.|169\.254\.|::1$|fe80:)/i.test(address) && address !== "");
  return usable.find((address) => !address.includes(":")) ?? usable[0] ?? (info.hostname || id);
}
