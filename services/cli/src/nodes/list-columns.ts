import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { COLUMN_GROUPS } from "../choices.ts";
import { styleOfState } from "../output/style.ts";
import type { Cell, Column } from "../output/table.ts";
import { formatBytes } from "../output/units.ts";
import { LAST_SEEN_COLUMN } from "./last-seen.ts";
import { connectionWord, labelsText, membershipWord, schedulingWord, statusWord, typeWord } from "./words.ts";

/** A node and what the health replicas know of it. */
export interface ListedNode {
  readonly node: Node;
  readonly health: NodeHealth | undefined;
}

/** A group of columns, as --show names it. */
export type ColumnGroup = (typeof COLUMN_GROUPS)[number];

/** What stands where nothing is known. */
const NOTHING: Cell = { text: "-", raw: "" };

const ALWAYS: readonly Column<ListedNode>[] = [
  { title: "ID", name: "id", cell: ({ node }) => ({ text: node.id }) },
  { title: "TYPE", name: "type", cell: ({ node }) => ({ text: typeWord(node.type) }) },
  {
    title: "APPROVAL",
    name: "approval",
    cell: ({ node }) => state(membershipWord(node.membership?.state)),
  },
  { title: "STATUS", name: "status", cell: ({ node }) => state(statusWord(node)) },
];

const GROUPS: Readonly<Record<ColumnGroup, readonly Column<ListedNode>[]>> = {
  scheduling: [
    {
      title: "SCHEDULING",
      name: "scheduling",
      cell: ({ node }) => state(schedulingWord(node.scheduling?.state)),
    },
  ],
  labels: [{ title: "LABELS", name: "labels", limit: 32, cell: ({ node }) => optional(labelsText(node)) }],
  capacity: [
    { title: "CORES", name: "cores", cell: ({ node }) => count(node.info?.cpu?.threads) },
    { title: "MEMORY", name: "memory_bytes", cell: ({ node }) => bytes(node.info?.memoryBytes) },
    { title: "GPUS", name: "gpus", cell: ({ node }) => count(hardware(node)?.gpus.length) },
  ],
  seen: [LAST_SEEN_COLUMN],
  connection: [
    {
      title: "CONNECTION",
      name: "connection",
      cell: ({ node }) => state(connectionWord(node.connection?.state)),
    },
  ],
  version: [
    { title: "VERSION", name: "version", cell: ({ node }) => optional(node.info?.agentVersion) },
    {
      title: "ARCHITECTURE",
      name: "architecture",
      cell: ({ node }) => optional(node.info?.os?.architecture),
    },
    { title: "OS", name: "os", limit: 32, cell: ({ node }) => optional(node.info?.os?.name) },
  ],
  hardware: [
    { title: "CPU", name: "cpu", limit: 40, cell: ({ node }) => optional(node.info?.cpu?.model) },
    { title: "DISK", name: "disk_bytes", cell: ({ node }) => bytes(node.info?.diskBytes) },
    { title: "GPU MODELS", name: "gpu_models", limit: 40, cell: ({ node }) => gpuModels(node) },
  ],
  features: [
    {
      title: "NUMA NODES",
      name: "numa_nodes",
      cell: ({ node }) => count(hardware(node)?.numaNodes.length),
    },
    { title: "VM", name: "vm", cell: ({ node }) => yesOrNo(node.info?.vm?.capable) },
    {
      title: "VFIO GPUS",
      name: "vfio_gpus",
      cell: ({ node }) => count(hardware(node)?.vfioGpus.length),
    },
  ],
  reasons: [
    { title: "SINCE", name: "since", cell: ({ node }) => since(node) },
    { title: "REASON", name: "reason", cell: ({ node }) => optional(telling(node)?.reason) },
    {
      title: "MESSAGE",
      name: "message",
      limit: 60,
      cell: ({ node }) => optional(telling(node)?.message),
    },
  ],
};

/** The columns of a listing: id, type, approval and status always come first. */
export function listColumns(groups: readonly ColumnGroup[]): readonly Column<ListedNode>[] {
  return [...ALWAYS, ...COLUMN_GROUPS.filter((group) => groups.includes(group)).flatMap((group) => GROUPS[group])];
}

function state(word: string): Cell {
  return { text: word, style: styleOfState(word) };
}

function optional(text: string | undefined): Cell {
  return text === undefined || text === "" ? NOTHING : { text };
}

function count(value: number | undefined): Cell {
  return value === undefined ? NOTHING : { text: String(value) };
}

function bytes(value: bigint | undefined): Cell {
  return value === undefined || value === 0n ? NOTHING : { text: formatBytes(Number(value)), raw: String(value) };
}

function yesOrNo(value: boolean | undefined): Cell {
  return value === undefined ? NOTHING : { text: value ? "yes" : "no" };
}

/**
 * What a machine is made of. A process of the control plane tells nothing of that, which is not the same as having
 * none.
 */
function hardware({ info }: Node): Node["info"] {
  return info?.cpu === undefined ? undefined : info;
}

function gpuModels({ info }: Node): Cell {
  return optional([...new Set(info?.gpus.map((gpu) => gpu.name))].join(", "));
}

/** The state that tells most about a node now: its rejection or wait, else what its status is made of. */
function telling(node: Node) {
  if (node.membership !== undefined && membershipWord(node.membership.state) !== "APPROVED") return node.membership;
  return statusWord(node) === connectionWord(node.connection?.state) ? node.connection : node.health;
}

function since(node: Node): Cell {
  const at = telling(node)?.since;
  return at === undefined ? NOTHING : { text: new Date(timestampMs(at)).toISOString().slice(0, 19).replace("T", " ") };
}
