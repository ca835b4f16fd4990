import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  ConnectionState,
  MembershipState,
  type Node,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { type ListNodesRequestSchema, NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createTestDatabase, refusalOf, saveHolds } from "@rollcall/testkit";
import { observe, operate } from "../testing/operator.ts";
import { addOrchestrator } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { TestNode } from "../testing/test-node.ts";

type Request = MessageInitShape<typeof ListNodesRequestSchema>;

const COUNT = 300;
/** Number of spot nodes: every tenth node. */
const SPOTS = COUNT / 10;
const MIB = 2n ** 20n;
let rig: Rig;

function idOf(index: number): string {
  return `node-${String(index).padStart(4, "0")}`;
}

/** Machines of a few sizes, in several states. */
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  const machines = Array.from({ length: COUNT }, (_, index) => new TestNode(idOf(index)));
  await seed(rig.store, machines, {
    infoOf: (_, index) => ({
      cpu: { threads: (index * 7) % 64 },
      memoryBytes: BigInt((index * 13) % 97) * MIB,
      diskBytes: BigInt((index * 29) % 11) * MIB,
      gpus: Array.from({ length: index % 3 }, (_, at) => ({ name: "H100", uuid: `GPU-${index}-${at}` })),
      labels: {
        zone: ["a", "b", "c"][index % 3] ?? "",
        cores: String((index * 7) % 64),
        ...(index % 10 === 0 ? { spot: "true" } : {}),
      },
    }),
  });
  await operate(rig.store, idOf(5), "reject");
  await operate(rig.store, idOf(6), "reject");
  await observe(rig.store, [idOf(1), idOf(2), idOf(3)], "HEALTHY");
  await observe(rig.store, [idOf(4)], "UNHEALTHY");
  await rig.store.transaction((tx) =>
    saveHolds(tx, idOf(7), [{ kind: "OPERATOR", sinceMs: 1, message: "", actor: "token:x" }]),
  );
  await addOrchestrator(rig.store, "control");
});
afterAll(() => rig.close());

async function allPages(request: Request): Promise<readonly Node[]> {
  const nodes: Node[] = [];
  let pageToken = "";
  do {
    const page = await rig.registry.listNodes({ ...request, pageToken });
    nodes.push(...page.nodes);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return nodes;
}

async function idsOf(request: Request): Promise<readonly string[]> {
  return (await allPages({ pageSize: 1_000, ...request })).map(({ id }) => id);
}

function indicesWhere(accept: (index: number) => boolean): readonly string[] {
  return Array.from({ length: COUNT }, (_, index) => index)
    .filter(accept)
    .map(idOf);
}

const threads = (node: Node) => node.info?.cpu?.threads ?? 0;
const statusOf = (node: Node) =>
  node.type === NodeType.ORCHESTRATOR
    ? "CONNECTED"
    : (["", "HEALTHY", "UNHEALTHY", "UNKNOWN"][node.health?.state ?? 0] ?? "");
const SORT_KEYS: Readonly<Record<string, (node: Node) => string | number | bigint>> = {
  id: ({ id }) => id,
  type: ({ type }) => (type === NodeType.COMPUTE ? "COMPUTE" : "ORCHESTRATOR"),
  // For these columns, numbers and strings have the same order.
  approval: ({ membership }) => membership?.state ?? 0,
  status: statusOf,
  scheduling: ({ scheduling }) => scheduling?.state ?? 0,
  cores: threads,
  memory: ({ info }) => info?.memoryBytes ?? 0n,
  disk: ({ info }) => info?.diskBytes ?? 0n,
  gpus: ({ info }) => info?.gpus.length ?? 0,
  created: ({ createTime }) => (createTime?.seconds ?? 0n) * 1_000_000_000n + BigInt(createTime?.nanos ?? 0),
};

describe("listNodes(), pages", () => {
  it.each(Object.keys(SORT_KEYS).flatMap((column) => [column, `${column} desc`]))(
    "should return each node once, ordered by %s",
    async (orderBy) => {
      const nodes = await allPages({ pageSize: 40, orderBy });
      expect(new Set(nodes.map(({ id }) => id)).size).toBe(COUNT + 1);
      expect(nodes).toHaveLength(COUNT + 1);
      const [column = "", direction] = orderBy.split(" ");
      const keyOf = SORT_KEYS[column];
      if (keyOf === undefined) throw new Error(`nothing is known of ${column}`);
      const sorted = nodes.toSorted((left, right) => {
        const [one, other] = [keyOf(left), keyOf(right)];
        if (one !== other) return one < other ? -1 : 1;
        return left.id < right.id ? -1 : 1;
      });
      if (direction === "desc") sorted.reverse();
      expect(nodes.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
    },
  );

  it("should return 100 nodes per page by default", async () => {
    const page = await rig.registry.listNodes({});
    expect(page.nodes).toHaveLength(100);
    expect(page.nextPageToken).not.toBe("");
  });

  it("should end without a token when the last page is full", async () => {
    const page = await rig.registry.listNodes({ labelSelector: "spot", pageSize: SPOTS });
    expect(page.nodes).toHaveLength(SPOTS);
    expect(page.nextPageToken).toBe("");
  });

  it("should accept a token from a page of another size", async () => {
    const first = await rig.registry.listNodes({ pageSize: 3 });
    const second = await rig.registry.listNodes({ pageSize: 2, pageToken: first.nextPageToken });
    expect(second.nodes.map(({ id }) => id)).toEqual([idOf(2), idOf(3)]);
  });

  it.each<Request>([
    { orderBy: "cores" },
    { orderBy: "id desc" },
    { labelSelector: "zone=a" },
    { memberships: [MembershipState.APPROVED] },
    { statuses: [NodeStatus.UNKNOWN] },
    { types: [NodeType.COMPUTE] },
    { connections: [ConnectionState.CONNECTED] },
    { schedulings: [SchedulingState.ELIGIBLE] },
    { search: "node" },
    { hardwareAddresses: ["m"] },
    { hostnames: ["h"] },
  ])("should refuse a token of another filter or order: %j", async (request) => {
    const { nextPageToken: pageToken } = await rig.registry.listNodes({ pageSize: 1 });
    expect(await refusalOf(rig.registry.listNodes({ ...request, pageToken }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_PAGE_TOKEN",
    });
  });

  it("should neither skip nor repeat remaining nodes while others come and go", async () => {
    const first = await rig.registry.listNodes({ pageSize: 150 });
    await operate(rig.store, idOf(3), "delete");
    await new TestNode("node-0003-a").register(rig.registry);
    const rest = await rig.registry.listNodes({ pageSize: 200, pageToken: first.nextPageToken });
    const ids = [...first.nodes, ...rest.nodes].map(({ id }) => id);
    expect(ids).toEqual(["control", ...indicesWhere(() => true)]);
    await operate(rig.store, "node-0003-a", "delete");
  });
});

describe("listNodes(), filters", () => {
  it.each<[string, (index: number) => boolean]>([
    ["zone=a", (index) => index % 3 === 0],
    ["zone==a", (index) => index % 3 === 0],
    ["zone!=a", (index) => index % 3 !== 0],
    ["zone in (a,b)", (index) => index % 3 !== 2],
    ["zone notin (a,b)", (index) => index % 3 === 2],
    ["spot", (index) => index % 10 === 0],
    ["!spot", (index) => index % 10 !== 0],
    ["cores>60", (index) => (index * 7) % 64 > 60],
    ["cores<2", (index) => (index * 7) % 64 < 2],
    ["zone=a,spot,cores>31", (index) => index % 30 === 0 && (index * 7) % 64 > 31],
    ["nothing=like,this", () => false],
  ])("should select by %s", async (labelSelector, accept) => {
    const types = [NodeType.COMPUTE];
    const gone = new Set([idOf(3)]);
    const wanted = indicesWhere(accept).filter((id) => !gone.has(id));
    expect(await idsOf({ labelSelector, types })).toEqual(wanted);
  });

  it("should filter by membership", async () => {
    const memberships = [MembershipState.REJECTED];
    expect(await idsOf({ memberships })).toEqual([idOf(5), idOf(6)]);
    expect(await idsOf({ memberships: [MembershipState.PENDING] })).toEqual([]);
  });

  it("should filter by type", async () => {
    expect(await idsOf({ types: [NodeType.ORCHESTRATOR] })).toEqual(["control"]);
  });

  it("should filter by the words of the status column", async () => {
    expect(await idsOf({ statuses: [NodeStatus.UNHEALTHY] })).toEqual([idOf(4)]);
    expect(await idsOf({ statuses: [NodeStatus.HEALTHY, NodeStatus.UNHEALTHY] })).toEqual([idOf(1), idOf(2), idOf(4)]);
    expect(await idsOf({ statuses: [NodeStatus.UNKNOWN] })).toHaveLength(COUNT - 4);
    expect(await idsOf({ statuses: [NodeStatus.CONNECTED] })).toContain("control");
    expect(await idsOf({ statuses: [NodeStatus.DISCONNECTED] })).not.toContain("control");
  });

  it("should filter by connection and by scheduling", async () => {
    expect(await idsOf({ connections: [ConnectionState.CONNECTED] })).toContain("control");
    expect(await idsOf({ connections: [ConnectionState.DISCONNECTED] })).not.toContain("control");
    expect(await idsOf({ schedulings: [SchedulingState.INELIGIBLE] })).toEqual([idOf(7)]);
    const both = [SchedulingState.INELIGIBLE, SchedulingState.ELIGIBLE];
    expect(await idsOf({ schedulings: both })).toHaveLength(COUNT);
  });

  it.each<[string, (index: number) => boolean]>([
    ["NODE-001", (index) => index >= 10 && index < 20],
    ["zone=b", (index) => index % 3 === 1],
    ["h100 zone=b", (index) => index % 3 === 1],
    ["spot  node-009", (index) => index === 90],
    ["h100 zone=a", () => false],
    ["%", () => false],
    ["node_", () => false],
    ["'\\", () => false],
  ])("should find %s literally in ids, labels and models", async (search, accept) => {
    const gone = new Set([idOf(3)]);
    expect(await idsOf({ search })).toEqual(indicesWhere(accept).filter((id) => !gone.has(id)));
  });

  it("should find a word in the host name and in the model of the processor", async () => {
    const info = { hostname: "Rack-12.Example", cpu: { model: "EPYC 9654", threads: 1 } };
    await new TestNode("odd").register(rig.registry, info);
    expect(await idsOf({ search: "rack-12.ex" })).toEqual(["odd"]);
    expect(await idsOf({ search: "epyc odd" })).toEqual(["odd"]);
    await operate(rig.store, "odd", "delete");
  });

  it("should filter by hardware addresses of any interface and by exact host names", async () => {
    const interfaces = [{ name: "lo" }, { name: "eth0", mac: "02:42:ac:11:00:02" }];
    await new TestNode("odd").register(rig.registry, { hostname: "rack-12.example", interfaces });
    expect(await idsOf({ hardwareAddresses: ["02:42:ac:11:00:02", '"'] })).toEqual(["odd"]);
    expect(await idsOf({ hardwareAddresses: ["02:42:AC:11:00:02", "$", "02:42"] })).toEqual([]);
    expect(await idsOf({ hostnames: ["rack-12.example", "x"] })).toEqual(["odd"]);
    expect(await idsOf({ hostnames: ["rack-12", "Rack-12.example"] })).toEqual([]);
    expect(await idsOf({ hostnames: ["rack-12.example"], hardwareAddresses: ["m"] })).toEqual([]);
    await operate(rig.store, "odd", "delete");
  });

  it("should require all kinds of filters to match", async () => {
    const request: Request = {
      connections: [ConnectionState.CONNECTED],
      schedulings: [SchedulingState.ELIGIBLE],
      search: "node-0001",
      memberships: [MembershipState.APPROVED],
      statuses: [NodeStatus.HEALTHY],
      types: [NodeType.COMPUTE],
      labelSelector: "zone=b",
    };
    expect(await idsOf(request)).toEqual([idOf(1)]);
  });
});

describe("listNodes(), refusals", () => {
  it.each<[Request, string]>([
    [{ orderBy: "colour" }, "INVALID_ORDER_BY"],
    [{ labelSelector: "a in (" }, "INVALID_SELECTOR"],
    [{ labelSelector: "a=\0" }, "INVALID_REQUEST"],
    [{ pageToken: "garbage" }, "INVALID_PAGE_TOKEN"],
    [{ pageSize: -1 }, "INVALID_REQUEST"],
    [{ pageSize: 1_001 }, "INVALID_REQUEST"],
    [{ memberships: [0] }, "INVALID_REQUEST"],
    [{ statuses: [99 as NodeStatus] }, "INVALID_REQUEST"],
    [{ types: [NodeType.UNSPECIFIED] }, "INVALID_REQUEST"],
    [{ connections: [0] }, "INVALID_REQUEST"],
    [{ schedulings: [99 as SchedulingState] }, "INVALID_REQUEST"],
    [{ search: "x".repeat(257) }, "INVALID_REQUEST"],
    [{ search: "a b c d e f g h i" }, "INVALID_REQUEST"],
    [{ search: "a\0" }, "INVALID_REQUEST"],
    [{ hardwareAddresses: ["a\0"] }, "INVALID_REQUEST"],
    [{ hardwareAddresses: Array(65).fill("a") }, "INVALID_REQUEST"],
    [{ hostnames: [""] }, "INVALID_REQUEST"],
  ])("should refuse %j with %s", async (request, reason) => {
    expect(await refusalOf(rig.registry.listNodes(request))).toMatchObject({
      code: Code.InvalidArgument,
      reason,
    });
  });
});

describe("listNodes(), plain HTTP", () => {
  async function get(message: object): Promise<{ status: number; body: unknown }> {
    const query = new URLSearchParams({ encoding: "json", message: JSON.stringify(message) });
    const url = `${rig.baseUrl}/rollcall.registry.v1.RegistryService/ListNodes?${query}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${rig.token}` } });
    return { status: response.status, body: await response.json() };
  }

  it("should answer a GET", async () => {
    const { status, body } = await get({
      pageSize: 1,
      labelSelector: "spot",
      orderBy: "cores desc",
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ nodes: [{ info: { cpu: { threads: 62 } } }] });
  });

  it("should refuse a GET like a call", async () => {
    const { status, body } = await get({ orderBy: "colour" });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: "invalid_argument" });
    expect(JSON.stringify(body)).toContain("INVALID_ORDER_BY");
  });
});

describe("listNodes(), read_mask", () => {
  const all = { labelSelector: "spot", pageSize: 1_000 };

  it("should return the named fields and the id", async () => {
    const [whole, masked] = await Promise.all([
      allPages(all),
      allPages({ ...all, readMask: { paths: ["membership.state", "info.gpus.name", "info.memory_bytes"] } }),
    ]);
    expect(masked).toHaveLength(SPOTS);
    expect(masked.map(({ id, membership, info }) => ({ id, membership, info }))).toEqual(
      whole.map(({ id, membership, info }) => ({
        id,
        membership: expect.objectContaining({ state: membership?.state, reason: "", actor: "" }),
        info: expect.objectContaining({
          memoryBytes: info?.memoryBytes,
          gpus: info?.gpus.map(({ name }) => expect.objectContaining({ name, uuid: "" })),
        }),
      })),
    );
    const left = masked.flatMap((node) => [node.health, node.etag, node.createTime, node.info?.cpu, node.allocated]);
    expect(new Set(left)).toEqual(new Set([undefined, ""]));
  });

  it("should return all fields of a node without paths", async () => {
    const whole = await allPages(all);
    expect(await allPages({ ...all, readMask: { paths: [] } })).toEqual(whole);
    expect(whole[0]?.etag).not.toBe("");
  });

  it("should continue from page to page with another mask", async () => {
    const first = await rig.registry.listNodes({ pageSize: 2, readMask: { paths: ["id"] } });
    const second = await rig.registry.listNodes({ pageSize: 2, pageToken: first.nextPageToken });
    expect(second.nodes.map(({ id }) => id)).toEqual([idOf(1), idOf(2)]);
    expect(second.nodes[0]?.etag).not.toBe("");
  });

  it("should refuse a path that names no field, and say which", async () => {
    const refused = await refusalOf(rig.registry.listNodes({ readMask: { paths: ["id", "info.nope"] } }));
    expect(refused).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(JSON.stringify(refused)).toContain("read_mask.paths[1]");
  });
});
