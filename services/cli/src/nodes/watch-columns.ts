import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Column } from "../output/table.ts";
import { usageColumns } from "./health-columns.ts";
import { listColumns } from "./list-columns.ts";
import type { UsageHistory } from "./usage.ts";

/** A node with its live usage. */
export interface WatchedNode {
  readonly node: Node;
  readonly health: NodeHealth | undefined;
  readonly usage: UsageHistory;
}

const SPARK_WIDTH = 10;

/** The columns of `node watch`: the states, then what the machine is doing. */
export function watchColumns(): readonly Column<WatchedNode>[] {
  return [...listColumns(["scheduling", "connection", "seen"]), ...usageColumns(SPARK_WIDTH)];
}
