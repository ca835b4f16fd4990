import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { HealthQueryService, NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { printable } from "../output/text.ts";

/** What the health replicas know of some nodes, by node id. */
export type HealthById = ReadonlyMap<string, NodeHealth>;

const NOTHING: HealthById = new Map();

/**
 * Joins what only health replicas know to a listing. When they are away, the listing goes on without it: one warning,
 * and no further calls.
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
    health: Client<typeof HealthQueryService>,
    warn: (line: string) => void,
    { includeSamples }: { readonly includeSamples: boolean },
  ) {
    this.#control = control;
    this.#health = health;
    this.#warn = warn;
    this.#includeSamples = includeSamples;
  }

  /** What is known of these nodes; nothing when health is away. Nodes that no replica holds are missing. */
  async read(nodeIds: readonly string[]): Promise<HealthById> {
    if (this.#away || nodeIds.length === 0) return NOTHING;
    try {
      const nodes: NodeHealth[] = [];
      let pageToken = "";
      do {
        const page = await this.#health.listNodeHealth({
          nodeIds: [...nodeIds],
          pageSize: nodeIds.length,
          pageToken,
          includeSamples: this.#includeSamples,
        });
        nodes.push(...page.nodes);
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      this.#warnOfMissing(nodes);
      return new Map(nodes.map((node) => [node.nodeId, node]));
    } catch (error) {
      // Who is here and what they may do does not depend on health: better to show that than nothing.
      this.#away = true;
      const why = await this.#control.explain("health", error);
      this.#warn(`warning: last seen and usage are missing: ${printable(why)}\n`);
      return NOTHING;
    }
  }

  /** One line for all nodes of replicas that do not answer. */
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

/** How long ago a node was last heard of, in milliseconds by the replica's monotonic clock; null when nobody knows. */
export function silentMs(health: NodeHealth | undefined): number | null {
  if (health?.silentFor === undefined || health.lastSeenTime === undefined) return null;
  return durationMs(health.silentFor);
}
