import { durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { HealthQueryService, type NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { readPages } from "../output/listing.ts";
import type { Column } from "../output/table.ts";
import { printable } from "../output/text.ts";
import { formatDuration } from "../output/units.ts";

/** What the health replicas know about nodes, keyed by node id. */
export type HealthById = ReadonlyMap<string, NodeHealth>;

const NOTHING: HealthById = new Map();

/**
 * Adds live data of the health replicas to a listing. If the replicas do not respond, the listing continues without
 * that data: one warning, and no further calls.
 */
export class HealthJoin {
  readonly #control: ControlPlane;
  readonly #health: Client<typeof HealthQueryService>;
  readonly #warn: (line: string) => void;
  readonly #includeSamples: boolean;
  #away = false;
  #hasWarned = false;

  constructor(
    control: ControlPlane,
    { warn, includeSamples }: { warn(line: string): void; readonly includeSamples: boolean },
  ) {
    this.#control = control;
    this.#health = control.client("health", HealthQueryService);
    this.#warn = warn;
    this.#includeSamples = includeSamples;
  }

  /**
   * Read the known health of these nodes; empty if the health service does not respond. Nodes that no replica holds are
   * missing.
   */
  async read(nodeIds: readonly string[]): Promise<HealthById> {
    if (this.#away || nodeIds.length === 0) return NOTHING;
    try {
      const nodes: NodeHealth[] = [];
      const pages = readPages(
        (part) => this.#health.listNodeHealth({ ...part, nodeIds: [...nodeIds], includeSamples: this.#includeSamples }),
        { countOf: (page) => page.nodes.length, size: nodeIds.length },
      );
      for await (const page of pages) nodes.push(...page.nodes);
      this.#warnOfMissing(nodes);
      return new Map(nodes.map((node) => [node.nodeId, node]));
    } catch (error) {
      // Show the nodes without live data, because nodes and their states do not come from the health service.
      this.#away = true;
      const why = await this.#control.explain("health", error);
      this.#warn(`warning: last seen and usage are missing: ${printable(why)}\n`);
      return NOTHING;
    }
  }

  /** Warn once about all nodes whose replicas do not respond. */
  #warnOfMissing(nodes: readonly NodeHealth[]): void {
    const missing = nodes.filter((node) => node.telemetryUnavailable !== "");
    const [first] = missing;
    if (first === undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    const of = missing.length === 1 ? `node ${first.nodeId}` : `${missing.length} nodes`;
    const why = printable(first.telemetryUnavailable);
    this.#warn(`warning: last seen and usage of ${of} are missing: ${why}\n`);
  }
}

/** How long ago a node was last seen, in milliseconds by the replica's monotonic clock; null if unknown. */
export function silentMs(health: NodeHealth | undefined): number | null {
  if (health?.silentFor === undefined || health.lastSeenTime === undefined) return null;
  return durationMs(health.silentFor);
}

/** The column that shows when a node was last seen. */
export const LAST_SEEN_COLUMN: Column<{ readonly health: NodeHealth | undefined }> = {
  title: "LAST SEEN",
  name: "last_seen",
  rank: 2,
  cell: ({ health }) => {
    const ms = silentMs(health);
    if (ms === null || health?.lastSeenTime === undefined) return { text: "-", raw: "" };
    return { text: `${formatDuration(ms)} ago`, raw: timestampDate(health.lastSeenTime).toISOString() };
  },
};
