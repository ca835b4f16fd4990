import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { reasonText } from "@rollcall/domain";
import type { ReactNode } from "react";
import { NodeLink } from "../../app/link.tsx";
import { amountText, exportedAmount, type NodeRow, type StateFacts } from "../../state/nodes/node-row.ts";
import type { OrderBy } from "../../state/nodes/sorted-view.ts";
import { isoTime } from "../../state/time-words.ts";
import { formatBytes, formatPercent } from "../../state/units.ts";
import { Reason, StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

/** Live data of a node that its row does not have: usage and the last frame. */
export type Usage = NodeHealth | undefined;

/** A column of the node list. */
export interface NodeColumn {
  readonly name: string;
  readonly title: string;
  /** The width in pixels. */
  readonly width: number;
  readonly order?: OrderBy;
  readonly right?: boolean;
  readonly cell: (row: NodeRow, usage: Usage) => ReactNode;
  /** The value in exports; numbers are raw, times are in RFC 3339. */
  readonly raw: (row: NodeRow) => string | number;
}

/** All columns, in order. */
export const COLUMNS: readonly NodeColumn[] = [
  { name: "id", title: "Node", width: 180, order: "id", cell: (row) => <NodeLink id={row.id} />, raw: (row) => row.id },
  text("type", "Type", 110, (row) => row.type, "type"),
  state("approval", "Approval", 110, (row) => row.membership, "approval"),
  state("health", "Health", 110, (row) => row.health, "health"),
  state("connection", "Connection", 130, (row) => row.connection, "connection"),
  state("scheduling", "Scheduling", 115, (row) => row.scheduling, "scheduling"),
  {
    ...{ name: "cpu", title: "CPU", width: 70, right: true, raw: () => "" },
    cell: (_, usage) =>
      ofUsage(usage, ({ cpuPercent }) => (cpuPercent === undefined ? "-" : formatPercent(cpuPercent))),
  },
  {
    ...{ name: "memory-used", title: "Memory used", width: 110, right: true, raw: () => "" },
    cell: (_, usage) =>
      ofUsage(usage, ({ memoryUsedMib, memoryTotalMib }) =>
        memoryUsedMib === undefined || memoryTotalMib === 0
          ? "-"
          : formatPercent((memoryUsedMib / memoryTotalMib) * 100),
      ),
  },
  {
    ...{ name: "seen", title: "Last seen", width: 100, raw: () => "" },
    cell: (_, usage) => <LastSeen usage={usage} />,
  },
  number("cores", "Cores", 70, (row) => row.cores, "cores"),
  amount("memory", "Memory", 90, (row) => row.memoryBytes, formatBytes),
  amount("disk", "Disk", 90, (row) => row.diskBytes, formatBytes),
  amount("gpus", "GPUs", 70, (row) => row.gpus),
  text("gpu-models", "GPU models", 200, (row) => row.gpuModels),
  text("labels", "Labels", 260, (row) => row.labelsText, "labels"),
  text("hostname", "Host name", 160, (row) => row.hostname),
  text("version", "Version", 80, (row) => row.version, "version"),
  text("os", "OS", 200, (row) => row.os),
  text("architecture", "Architecture", 100, (row) => row.architecture),
  text("cpu-model", "Processor", 240, (row) => row.cpuModel),
  text("joined-from", "Joined from", 150, (row) => row.joinedFrom),
  number("numa", "NUMA nodes", 95, (row) => row.numaNodes),
  text("vm", "VM", 60, (row) => (row.vm ? "yes" : "no")),
  number("vfio", "VFIO GPUs", 90, (row) => row.vfioGpus),
  {
    ...{ name: "reason", title: "Reason", width: 190, raw: (row) => telling(row).reason },
    cell: (row) => <Reason of={telling(row).reason || "-"} />,
  },
  text("message", "Message", 280, (row) => telling(row).message),
  time("since", "Since", 100, (row) => telling(row).sinceMs, "since"),
  time("created", "Joined", 100, (row) => row.createdMs, "created"),
];

/** The columns that are shown by default. */
export const DEFAULT_COLUMNS = [
  "id",
  "approval",
  "health",
  "connection",
  "scheduling",
  "cpu",
  "seen",
  "cores",
  "memory",
  "gpus",
  "labels",
];

/** The columns named in an address, in the order of the list. The id is always included. */
export function columnsOf(names: string | undefined): readonly NodeColumn[] {
  const wanted = names === undefined ? DEFAULT_COLUMNS : names.split(",");
  return COLUMNS.filter(({ name }) => name === "id" || wanted.includes(name));
}

/** The most important state of a node: membership unless it is approved, otherwise health or connection. */
function telling(row: NodeRow): StateFacts {
  if (row.membership.word !== "APPROVED") return row.membership;
  return row.type === "compute" ? row.health : row.connection;
}

function ofUsage(
  usage: Usage,
  read: (usage: NonNullable<NonNullable<NodeHealth["latest"]>["usage"]>) => string,
): ReactNode {
  const latest = usage?.latest?.usage;
  return latest === undefined ? <span className="soft">-</span> : read(latest);
}

function LastSeen({ usage }: { readonly usage: Usage }) {
  const seen = usage?.lastSeenTime;
  return <Time ms={seen === undefined ? null : Number(seen.seconds) * 1000 + seen.nanos / 1e6} />;
}

function text(name: string, title: string, width: number, read: (row: NodeRow) => string, order?: OrderBy): NodeColumn {
  return {
    ...{ name, title, width, ...(order === undefined ? {} : { order }), raw: read },
    cell: (row) => {
      const value = read(row);
      return value === "" ? <span className="soft">-</span> : <span title={value}>{value}</span>;
    },
  };
}

function number(
  name: string,
  title: string,
  width: number,
  read: (row: NodeRow) => number,
  order?: OrderBy,
  format: (value: number) => string = String,
): NodeColumn {
  return {
    ...{ name, title, width, right: true, ...(order === undefined ? {} : { order }), raw: read },
    cell: (row) => {
      const value = read(row);
      return value === 0 ? <span className="soft">-</span> : format(value);
    },
  };
}

/** A resource whose amount can be unknown. */
function amount(
  name: "memory" | "disk" | "gpus",
  title: string,
  width: number,
  read: (row: NodeRow) => number,
  format?: (value: number) => string,
): NodeColumn {
  return {
    ...{ name, title, width, right: true, order: name, raw: (row: NodeRow) => exportedAmount(row, name, read(row)) },
    cell: (row) => amountText(row, name, read(row), format) || <span className="soft">-</span>,
  };
}

function state(
  name: string,
  title: string,
  width: number,
  read: (row: NodeRow) => StateFacts,
  order: OrderBy,
): NodeColumn {
  return {
    ...{ name, title, width, order, raw: (row: NodeRow) => read(row).word },
    cell: (row) => <State of={read(row)} />,
  };
}

function State({ of: { word, reason, message } }: { readonly of: StateFacts }) {
  return <StateMark word={word} title={reasonText(reason, message)} />;
}

function time(
  name: string,
  title: string,
  width: number,
  read: (row: NodeRow) => number | null,
  order: OrderBy,
): NodeColumn {
  const raw = (row: NodeRow) => isoTime(read(row));
  return { ...{ name, title, width, order, raw }, cell: (row) => <Time ms={read(row)} /> };
}
