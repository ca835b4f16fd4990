import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { MembershipState, type Node, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RESOURCE_FACTS, type WorkResource } from "@rollcall/domain";
import { connectionWord, healthWord, holdWord, membershipWord, schedulingWord, typeWord } from "../words.ts";

/** One of a node's four states, with its cause. */
export interface StateFacts {
  readonly word: string;
  /** Milliseconds since 1970; null when unknown. */
  readonly sinceMs: number | null;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
}

/**
 * The data that pages store for each node, small enough for 50,000 nodes. Pages that show more load the whole
 * message.
 */
export interface NodeRow {
  readonly id: string;
  readonly type: string;
  readonly membership: StateFacts;
  readonly connection: StateFacts;
  readonly health: StateFacts;
  readonly scheduling: StateFacts;
  /** Health for machines, connection for processes of the control plane. */
  readonly status: string;
  readonly mayTakeWork: boolean;
  /** Kinds of the node's holds. */
  readonly holds: readonly string[];
  readonly labels: ReadonlyMap<string, string>;
  readonly labelsText: string;
  readonly hostname: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
  readonly gpuModels: string;
  readonly cpuModel: string;
  readonly numaNodes: number;
  readonly vm: boolean;
  readonly vfioGpus: number;
  /** Names of the facts that the agent cannot determine. Their last known values are shown. */
  readonly unknownFacts: readonly string[];
  readonly version: string;
  readonly architecture: string;
  readonly os: string;
  readonly keyFingerprint: string;
  readonly joinTokenId: string;
  readonly joinedWithoutToken: boolean;
  readonly joinedFrom: string;
  readonly macs: readonly string[];
  readonly createdMs: number | null;
  readonly etag: string;
}

/** The fields of a node that a row needs. Pages request only these fields. */
export const ROW_PATHS: readonly string[] = [
  "id",
  "type",
  "membership",
  "connection",
  "health.state",
  "health.since",
  "health.reason",
  "health.message",
  "health.actor",
  "scheduling.state",
  "scheduling.since",
  "scheduling.reason",
  "scheduling.message",
  "scheduling.actor",
  "scheduling.holds.kind",
  "may_take_work",
  "labels.key",
  "labels.value",
  "info.hostname",
  "info.cpu.threads",
  "info.cpu.model",
  "info.memory_bytes",
  "info.disk_bytes",
  "info.gpus.name",
  "info.gpus.unusable",
  "info.numa_nodes.id",
  "info.vm.capable",
  "info.vfio_gpus.pci_address",
  "info.unknown_facts.fact",
  "info.agent_version",
  "info.os.architecture",
  "info.os.name",
  "info.interfaces.mac",
  "key_fingerprint",
  "join_token_id",
  "joined_without_token",
  "joined_from",
  "create_time",
  "etag",
];

interface ProtoState {
  readonly state: number;
  readonly since?: Timestamp | undefined;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
}

/** Create the row of a node. Strings that many nodes share are stored once. */
export function toRow(node: Node): NodeRow {
  const { info } = node;
  const health = facts(node.health, healthWord);
  const connection = facts(node.connection, connectionWord);
  const labelsText = node.labels.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)).join(",");
  return {
    id: node.id,
    type: typeWord(node.type),
    membership: facts(node.membership, membershipWord),
    connection,
    health,
    scheduling: schedulingOf(node),
    status: node.type === NodeType.ORCHESTRATOR ? connection.word : health.word,
    mayTakeWork: node.mayTakeWork,
    holds: (node.scheduling?.holds ?? []).map(({ kind }) => holdWord(kind)),
    labels: new Map(node.labels.map(({ key, value }) => [shared(key), shared(value)])),
    labelsText: shared(labelsText),
    hostname: info?.hostname ?? "",
    cores: info?.cpu?.threads ?? 0,
    memoryBytes: Number(info?.memoryBytes ?? 0n),
    diskBytes: Number(info?.diskBytes ?? 0n),
    gpus: info?.gpus.filter(({ unusable }) => unusable === "").length ?? 0,
    gpuModels: shared([...new Set(info?.gpus.map(({ name }) => name))].join(", ")),
    cpuModel: shared(info?.cpu?.model ?? ""),
    numaNodes: info?.numaNodes.length ?? 0,
    vm: info?.vm?.capable ?? false,
    vfioGpus: info?.vfioGpus.length ?? 0,
    unknownFacts: info?.unknownFacts.map(({ fact }) => shared(fact)) ?? [],
    version: shared(info?.agentVersion ?? ""),
    architecture: shared(info?.os?.architecture ?? ""),
    os: shared(info?.os?.name ?? ""),
    keyFingerprint: node.keyFingerprint,
    joinTokenId: shared(node.joinTokenId),
    joinedWithoutToken: node.joinedWithoutToken,
    joinedFrom: node.joinedFrom,
    macs: (info?.interfaces ?? []).map(({ mac }) => mac).filter((mac) => mac !== ""),
    createdMs: toMs(node.createTime),
    etag: node.etag,
  };
}

/**
 * Format the amount of a node's resource; empty for 0. When the agent cannot determine the amount, the text
 * says that it is unknown, or is the last known amount.
 */
export function amountText(
  { unknownFacts }: Pick<NodeRow, "unknownFacts">,
  resource: WorkResource,
  amount: number,
  format: (amount: number) => string = String,
): string {
  if (!unknownFacts.includes(RESOURCE_FACTS[resource])) return amount === 0 ? "" : format(amount);
  return amount === 0 ? "unknown" : `${format(amount)} (last known)`;
}

/** The amount to export of a node's resource; empty if it has never been known. */
export function exportedAmount(
  { unknownFacts }: Pick<NodeRow, "unknownFacts">,
  resource: WorkResource,
  amount: number,
): number | "" {
  return amount === 0 && unknownFacts.includes(RESOURCE_FACTS[resource]) ? "" : amount;
}

/** Milliseconds since 1970, or null. */
export function toMs(time: Timestamp | undefined): number | null {
  return time === undefined ? null : timestampMs(time);
}

function facts(state: ProtoState | undefined, word: (state: number | undefined) => string): StateFacts {
  return {
    word: word(state?.state),
    sinceMs: toMs(state?.since),
    reason: shared(state?.reason ?? ""),
    message: shared(state?.message ?? ""),
    actor: shared(state?.actor ?? ""),
  };
}

/** The word for a machine that has no hold, but gets no work because nobody has approved it. */
export const NOT_APPROVED = "NOT_APPROVED";

/** The API's scheduling state has only the holds. A machine without holds is eligible only when it is approved. */
function schedulingOf(node: Node): StateFacts {
  const scheduling = facts(node.scheduling, schedulingWord);
  const isWithheld = scheduling.word === "ELIGIBLE" && node.membership?.state !== MembershipState.APPROVED;
  return isWithheld ? { ...scheduling, word: NOT_APPROVED } : scheduling;
}

/** Maximum number of shared strings. Rows store further strings themselves. */
const MOST_SHARED = 50_000;
const words = new Map<string, string>();

function shared(text: string): string {
  const known = words.get(text);
  if (known !== undefined) return known;
  if (words.size < MOST_SHARED) words.set(text, text);
  return text;
}
