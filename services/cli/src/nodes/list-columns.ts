import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { MembershipState, type Node, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu } from "@rollcall/domain";
import { COLUMN_GROUPS } from "../choices.ts";
import { type Cell, type Column, optionalCell, reasonCell, stateCell } from "../output/table.ts";
import { formatTime } from "../output/units.ts";
import {
  amountText,
  CORES,
  DISK,
  freeOf,
  GPUS,
  isUnknownFact,
  MEMORY,
  UNKNOWN,
  type WorkResource,
  workOf,
} from "./node-work.ts";
import { LAST_SEEN_COLUMN } from "./read-health.ts";
import { connectionWord, labelsText, membershipWord, schedulingWord, statusWord, typeWord } from "./words.ts";

/** A node and what the health replicas know about it. */
export interface ListedNode {
  readonly node: Node;
  readonly health: NodeHealth | undefined;
}

/** A group of columns, as named in --show. */
export type ColumnGroup = (typeof COLUMN_GROUPS)[number];

const NOTHING: Cell = { text: "-", raw: "" };

const ALWAYS: readonly Column<ListedNode>[] = [
  { title: "ID", name: "id", cell: ({ node }) => ({ text: node.id }) },
  { title: "TYPE", name: "type", rank: 9, cell: ({ node }) => ({ text: typeWord(node.type) }) },
  {
    title: "APPROVAL",
    name: "approval",
    cell: ({ node }) => stateCell(membershipWord(node.membership?.state)),
  },
  { title: "STATUS", name: "status", cell: ({ node }) => stateCell(statusWord(node)) },
];

const GROUPS: Readonly<Record<ColumnGroup, readonly Column<ListedNode>[]>> = {
  scheduling: [
    {
      title: "SCHEDULING",
      name: "scheduling",
      rank: 1,
      cell: ({ node }) => schedulingCell(node),
    },
  ],
  labels: [{ title: "LABELS", name: "labels", rank: 8, limit: 32, cell: ({ node }) => optionalCell(labelsText(node)) }],
  capacity: [
    { title: "CORES", name: "cores", rank: 4, cell: ({ node }) => count(node.info?.cpu?.threads) },
    { title: "MEMORY", name: "memory_bytes", rank: 5, cell: ({ node }) => bytes(node, MEMORY, node.info?.memoryBytes) },
    {
      title: "GPUS",
      name: "gpus",
      rank: 3,
      cell: ({ node }) => amountCell(node, GPUS, hardware(node)?.gpus.filter(isUsableGpu).length),
    },
  ],
  work: [
    { title: "CORES FREE", name: "free_millicores", rank: 4, cell: ({ node }) => freeCell(node, CORES) },
    { title: "MEMORY FREE", name: "free_memory_bytes", rank: 5, cell: ({ node }) => freeCell(node, MEMORY) },
    { title: "GPUS FREE", name: "free_gpus", rank: 4, cell: ({ node }) => freeCell(node, GPUS) },
    {
      ...{ title: "EXECUTIONS", name: "executions", rank: 6 },
      cell: ({ node }) => count(node.info?.work === undefined ? undefined : (node.allocated?.executions ?? 0)),
    },
  ],
  seen: [LAST_SEEN_COLUMN],
  connection: [
    {
      title: "CONNECTION",
      name: "connection",
      rank: 7,
      cell: ({ node }) => stateCell(connectionWord(node.connection?.state)),
    },
  ],
  version: [
    { title: "VERSION", name: "version", rank: 4, cell: ({ node }) => optionalCell(node.info?.agentVersion) },
    {
      title: "ARCHITECTURE",
      name: "architecture",
      rank: 9,
      cell: ({ node }) => optionalCell(node.info?.os?.architecture),
    },
    { title: "OS", name: "os", rank: 7, limit: 32, cell: ({ node }) => optionalCell(node.info?.os?.name) },
  ],
  hardware: [
    { title: "CPU", name: "cpu", rank: 7, limit: 40, cell: ({ node }) => optionalCell(node.info?.cpu?.model) },
    { title: "DISK", name: "disk_bytes", rank: 4, cell: ({ node }) => bytes(node, DISK, node.info?.diskBytes) },
    { title: "GPU MODELS", name: "gpu_models", rank: 3, limit: 40, cell: ({ node }) => gpuModels(node) },
  ],
  features: [
    {
      title: "NUMA NODES",
      name: "numa_nodes",
      rank: 7,
      cell: ({ node }) => count(hardware(node)?.numaNodes.length),
    },
    { title: "VM", name: "vm", rank: 4, cell: ({ node }) => yesOrNo(node.info?.vm?.capable) },
    {
      title: "VFIO GPUS",
      name: "vfio_gpus",
      rank: 3,
      cell: ({ node }) => count(hardware(node)?.vfioGpus.length),
    },
  ],
  reasons: [
    { title: "SINCE", name: "since", rank: 7, cell: ({ node }) => since(node) },
    { title: "REASON", name: "reason", rank: 3, cell: ({ node }) => reasonCell(telling(node)?.reason) },
    {
      title: "MESSAGE",
      name: "message",
      rank: 1,
      limit: 60,
      cell: ({ node }) => optionalCell(telling(node)?.message),
    },
  ],
};

/** The columns of a listing: id, type, approval and status come first. */
export function listColumns(groups: readonly ColumnGroup[]): readonly Column<ListedNode>[] {
  return [...ALWAYS, ...COLUMN_GROUPS.filter((group) => groups.includes(group)).flatMap((group) => GROUPS[group])];
}

/** Whether a node gets work. Empty for a node that is eligible but not approved, because it gets no work. */
function schedulingCell({ membership, scheduling }: Node): Cell {
  const isEligible = scheduling?.state === SchedulingState.ELIGIBLE;
  const isApproved = membership?.state === MembershipState.APPROVED;
  return isEligible && !isApproved ? { ...NOTHING, raw: "ELIGIBLE" } : stateCell(schedulingWord(scheduling?.state));
}

/** The free and the offered amount of a resource: "14.5/16". */
function freeCell(node: Node, resource: WorkResource): Cell {
  const work = workOf(node);
  if (work === null) return NOTHING;
  const [free, offered] = [freeOf(work, resource), resource.offered(work)];
  if (offered === undefined || isUnknownFact(node.info, resource.fact)) return { text: UNKNOWN, raw: "" };
  return { text: `${resource.format(free)}/${resource.format(offered)}`, raw: String(free) };
}

/** An amount that can be unknown or outdated. */
function amountCell({ info }: Node, resource: WorkResource, amount: number | undefined): Cell {
  if (info === undefined || amount === undefined) return NOTHING;
  const text = amountText(info, resource, amount);
  return { text, raw: text === UNKNOWN ? "" : String(amount) };
}

function count(value: number | undefined): Cell {
  return value === undefined ? NOTHING : { text: String(value) };
}

function bytes(node: Node, resource: WorkResource, value: bigint | undefined): Cell {
  if (value === 0n && !isUnknownFact(node.info, resource.fact)) return NOTHING;
  if (value === undefined) return hardware(node) === undefined ? NOTHING : { text: UNKNOWN, raw: "" };
  return amountCell(node, resource, Number(value));
}

function yesOrNo(value: boolean | undefined): Cell {
  return value === undefined ? NOTHING : { text: value ? "yes" : "no" };
}

/** The hardware of a machine; undefined for a process of the control plane, which reports no hardware. */
function hardware({ info }: Node): Node["info"] {
  return info?.cpu === undefined ? undefined : info;
}

function gpuModels({ info }: Node): Cell {
  return optionalCell([...new Set(info?.gpus.map((gpu) => gpu.name))].join(", "));
}

/**
 * The state that explains the node's status best: the membership unless the node is approved, otherwise the state that
 * determines the status.
 */
function telling(node: Node) {
  if (node.membership !== undefined && membershipWord(node.membership.state) !== "APPROVED") return node.membership;
  return statusWord(node) === connectionWord(node.connection?.state) ? node.connection : node.health;
}

function since(node: Node): Cell {
  const at = telling(node)?.since;
  return at === undefined
    ? NOTHING
    : { text: formatTime(timestampMs(at)), raw: new Date(timestampMs(at)).toISOString() };
}
