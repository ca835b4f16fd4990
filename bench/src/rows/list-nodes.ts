import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  ListNodesRequestSchema,
  ListNodesResponseSchema,
  NodeStatus,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { Bench } from "../bench-context.ts";
import { UnaryClient } from "../load/unary-client.ts";
import { type Figure, percentile } from "../report.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";

const LIST_PATH = "/rollcall.registry.v1.RegistryService/ListNodes";
const PAGE_SIZE = 100;
const CALLS = 300;
const WARM_UP_CALLS = 30;
const AIM_P99_MS = 50;

type ListRequest = MessageInitShape<typeof ListNodesRequestSchema>;

const QUERIES: readonly (readonly [name: string, request: ListRequest])[] = [
  ["no filter", {}],
  ["approved and unhealthy", { memberships: [MembershipState.APPROVED], statuses: [NodeStatus.UNHEALTHY] }],
  ["zone=zone-3", { labelSelector: "zone=zone-3" }],
  ["zone=zone-3, healthy", { labelSelector: "zone=zone-3", statuses: [NodeStatus.HEALTHY] }],
  ["rack in (rack-7, rack-8)", { labelSelector: "rack in (rack-7,rack-8)" }],
  ["by cores, descending", { orderBy: "cores desc" }],
];

/** Lists the pages of a large fleet, one call after the other. */
export const listNodes: Bench = {
  name: "list-nodes",
  title: `pages of ${PAGE_SIZE} of a large fleet, one call after the other`,
  async run(context) {
    const { url } = await startDatabase(context);
    await seedNodes({ url, count: context.size.nodes, identities: false });
    await spreadHealth(url);
    await settle(url);
    const token = await createAccessToken(url);
    const { port } = await startService(context, "registry", url);
    context.progress(`${context.size.nodes} nodes seeded`);

    const client = new UnaryClient({ port, localAddress: "127.0.0.1" }, { authorization: `Bearer ${token}` });
    context.atEnd(async () => client.close());
    await client.ready;
    const figures: Figure[] = [];
    for (const [name, request] of QUERIES) {
      figures.push(...(await measureQuery(client, name, request)));
    }
    return figures;
  },
};

async function measureQuery(client: UnaryClient, name: string, request: ListRequest): Promise<readonly Figure[]> {
  const latenciesMs = new Float64Array(CALLS);
  let pageToken = "";
  for (let call = -WARM_UP_CALLS; call < CALLS; call++) {
    const page = create(ListNodesRequestSchema, { ...request, pageSize: PAGE_SIZE, pageToken });
    const encoded = toBinary(ListNodesRequestSchema, page);
    const start = performance.now();
    const answer = await client.call(LIST_PATH, encoded);
    if (call >= 0) latenciesMs[call] = performance.now() - start;
    // Continue with the next page, and start again after the last one, because deep pages must not cost more than
    // early ones.
    pageToken = fromBinary(ListNodesResponseSchema, answer).nextPageToken;
  }
  const figure = { unit: "ms", against: "aim for p99", compared: AIM_P99_MS };
  return [
    { figure: `${name}, p50`, measured: percentile(latenciesMs, 0.5), ...figure, target: "" },
    {
      figure: `${name}, p99`,
      measured: percentile(latenciesMs, 0.99),
      ...figure,
      target: "1 or less",
    },
  ];
}

/** Put a third of the fleet into each health state, so that a filter on health excludes some nodes. */
async function spreadHealth(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(
      `update node_sessions set health =
         (array['HEALTHY', 'UNHEALTHY', 'UNKNOWN'])[1 + right(node_id, 6)::integer % 3]`,
    );
  });
}

/**
 * Do now what Postgres would otherwise do in the background during the measurement because of the bulk writes.
 */
async function settle(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("vacuum analyze");
    await client.query("checkpoint");
  });
}
