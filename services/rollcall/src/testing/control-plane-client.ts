import { readFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { type Event, EventService, type WatchEventsResponse } from "@rollcall/api/rollcall/events/v1/events_pb";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  ConnectionStateSchema,
  HealthStateSchema,
  MembershipStateSchema,
  type Node,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { sendBearer } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";

/** The addresses of the services, and the file with the token. */
export interface ClientOptions {
  readonly registry: string;
  readonly admin: string;
  readonly tokenFile: string;
}

/** The states of a node in one string: "APPROVED CONNECTED HEALTHY". */
export function statesOf(node: Node): string {
  const words = [
    MembershipStateSchema.value[node.membership?.state ?? 0]?.localName,
    ConnectionStateSchema.value[node.connection?.state ?? 0]?.localName,
    HealthStateSchema.value[node.health?.state ?? 0]?.localName,
  ];
  return words.join(" ");
}

/** A client of the public API for tests. */
export class ControlPlaneClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get registry(): Client<typeof RegistryService> {
    return this.#client(this.#options.registry, RegistryService);
  }

  get admin(): Client<typeof AdminService> {
    return this.#client(this.#options.admin, AdminService);
  }

  /** A client of the scheduler, for an `up` whose address serves it too. */
  get jobs(): Client<typeof JobService> {
    return this.#client(this.#options.registry, JobService);
  }

  get policies(): Client<typeof HealthPolicyService> {
    return this.#client(this.#options.admin, HealthPolicyService);
  }

  async node(id: string): Promise<Node | null> {
    const { nodes } = await this.registry.listNodes({ pageSize: 1000 });
    return nodes.find((node) => node.id === id) ?? null;
  }

  /** The epoch of a node's session. Needs an address that serves both registry and health, as `up` does. */
  async epoch(id: string): Promise<bigint> {
    const health = this.#client(this.#options.registry, HealthQueryService);
    const { nodeHealth } = await health.getNodeHealth({ node: id });
    return nodeHealth?.sessionEpoch ?? 0n;
  }

  /** Wait until a node has these states. Returns the node. */
  async becomes(id: string, states: string): Promise<Node> {
    let seen = "";
    const found = await until(`${id} to become ${states}`, async () => {
      const node = await this.node(id);
      seen = node === null ? "absent" : statesOf(node);
      return seen === states ? node : null;
    }).catch(async (error: unknown) => {
      const why = (await this.node(id))?.health;
      throw new Error(`${String(error)}; it is ${seen} (${why?.reason} ${why?.message})`);
    });
    return found;
  }

  /**
   * Raise a node's thresholds above any silence that a busy machine or the agent's pauses can cause, so that the node
   * is never declared unhealthy by mistake. An agent pauses at most 20 s before it retries. The hold for flapping is
   * turned off as well.
   */
  async grantTime(id: string): Promise<void> {
    const scope = { scope: { case: "node", value: id } } as const;
    const [unhealthyAfter, unknownAfter] = [{ seconds: 90n }, { seconds: 180n }];
    const values = { unhealthyAfter, unknownAfter, flappingHold: { seconds: 0n } };
    await this.policies.setHealthPolicy({ scope, values });
  }

  /** All events about a node, oldest first. */
  async events(subject: string): Promise<readonly Event[]> {
    const { events } = await this.#client(this.#options.registry, EventService).listEvents({
      subject,
      pageSize: 1000,
    });
    return events;
  }

  /** Follow the events about a node, from the first one or after a resume token. */
  watchEvents(subject: string, signal: AbortSignal, resumeToken?: string): AsyncIterable<WatchEventsResponse> {
    const start =
      resumeToken === undefined
        ? ({ case: "fromBeginning", value: true } as const)
        : ({ case: "resumeToken", value: resumeToken } as const);
    return this.#client(this.#options.registry, EventService).watchEvents({ start, subject }, { signal, timeoutMs: 0 });
  }

  /** The health states that a node has had, oldest first. */
  async healthHistory(subject: string): Promise<readonly unknown[]> {
    const events = await this.events(subject);
    return events.filter(({ type }) => type === "node.health.changed").map(({ after }) => after?.health);
  }

  // Create a new client each time, because a call over a connection to a server that has ended would fail.
  #client<S extends DescService>(address: string, service: S): Client<S> {
    const token = readFileSync(this.#options.tokenFile, "utf8").trim();
    const transport = createConnectTransport({
      baseUrl: `http://${address}`,
      httpVersion: "1.1",
      defaultTimeoutMs: 5000,
      interceptors: [sendBearer(token)],
    });
    return createClient(service, transport);
  }
}
