import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { accessTokenHash, ensureAccessToken } from "../libs/store/src/index.ts";
import { addWorkNode, createTestDatabase, type TestDatabase } from "../libs/testkit/src/index.ts";
import { type AccessRig, startAccessRig } from "./support/access-rig.ts";

/** The default limit of one caller's concurrent streams. */
const STREAMS = 2_000;
/** The number of watches that one token opens over a few connections. */
const WATCHES = 10_000;
const CONNECTIONS = 12;
const JOBS = 10;
const NODES = 200;
/** A selector with the maximum number of conditions. */
const SELECTOR = Array.from({ length: 100 }, (_, index) => `k${index % 7}!=v${"x".repeat(30)}`).join(",");

let database: TestDatabase;
let rig: AccessRig;
let baseUrl = "";
beforeAll(async () => {
  database = await createTestDatabase();
  const limits = { "Quota.Jobs": `${JOBS}` };
  rig = await startAccessRig(database, null, limits);
  for (const role of ["viewer", "submitter", "admin"]) {
    await ensureAccessToken(rig.store.db, { id: role, name: role, role, hash: accessTokenHash(tokenOf(role)) });
  }
  for (let index = 0; index < NODES; index += 1) await addWorkNode(rig.store, `n${index}`);
  baseUrl = rig.methods.find(({ name }) => name.endsWith("/WatchNodes"))?.baseUrl ?? "";
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const tokenOf = (role: string) => `token-of-the-${role}`;
const JOB_SERVICE = "rollcall.scheduler.v1.JobService";
const REGISTRY = "rollcall.registry.v1.RegistryService";
const POLICIES = "rollcall.admin.v1.HealthPolicyService";
const STATE = "rollcall.admin.v1.DeclaredStateService";

/** Call a method with JSON. Returns "ok" or the reason of the refusal. */
async function ask(role: string, method: string, request: object): Promise<string> {
  const answer = await fetch(`${baseUrl}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${tokenOf(role)}` },
    body: JSON.stringify(request),
  });
  const text = await answer.text();
  return answer.ok ? "ok" : (/"reason":"(\w+)"/.exec(text)?.[1] ?? `${answer.status} ${text}`);
}

const times = (count: number, act: (index: number) => Promise<string>) =>
  Promise.all(Array.from({ length: count }, (_, index) => act(index)));

function countsOf(outcomes: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** The possible results of a call that has to wait. It waits at most until its deadline. */
const ENDS = ["ok", "TOO_MANY_CALLS", "OVERLOADED", "DEADLINE_EXCEEDED"] as const;

/** The concurrent calls of one caller, and their possible results. */
const FLOODS: readonly (readonly [string, number, (index: number) => Promise<string>, readonly string[]])[] = [
  [
    "lists with the longest selector",
    300,
    () => ask("viewer", `${REGISTRY}/ListNodes`, { labelSelector: SELECTOR, pageSize: 1_000 }),
    ENDS,
  ],
  [
    "lists with more conditions than a selector has",
    50,
    () => ask("viewer", `${REGISTRY}/ListNodes`, { labelSelector: "a,".repeat(100).concat("b") }),
    ["INVALID_SELECTOR"],
  ],
  [
    "previews of a policy of all nodes",
    100,
    () =>
      ask("viewer", `${POLICIES}/PreviewHealthPolicy`, {
        set: { scope: { default: true }, values: { unhealthyAfter: "90s" } },
        pageSize: 1_000,
      }),
    ENDS,
  ],
  [
    "explanations of nodes",
    100,
    (index) => ask("viewer", `${JOB_SERVICE}/ExplainExecution`, { node: `n${index % NODES}` }),
    ENDS,
  ],
  [
    "explanations of what nodes wait for",
    300,
    (index) => ask("viewer", `${REGISTRY}/ExplainNode`, { node: `n${index % NODES}` }),
    ENDS,
  ],
  [
    "jobs",
    100,
    (index) =>
      ask("submitter", `${JOB_SERVICE}/SubmitJob`, {
        spec: {
          ...{ name: `flood-${index}`, type: "JOB_TYPE_BATCH", queueTimeout: "3600s" },
          process: { command: ["true"] },
        },
      }),
    ["ok", "QUOTA_EXCEEDED"],
  ],
];

describe("a caller with few rights", () => {
  it.each(FLOODS)("should be bounded in %s, without affecting other callers", async (_, count, act, ends) => {
    const flood = times(count, act);
    const others = await times(5, () => ask("admin", `${REGISTRY}/GetClusterSummary`, {}));
    expect(countsOf(others)).toEqual({ ok: 5 });
    const outcomes = countsOf(await flood);
    expect(Object.keys(outcomes).filter((outcome) => !ends.includes(outcome))).toEqual([]);
  });

  it("should have as many jobs as its quota, however many it submits at once", async () => {
    const rows = await rig.store.db.selectFrom("jobs").select("name").where("actor", "=", "token:submitter").execute();
    expect(rows).toHaveLength(JOBS);
  });

  it("should hold at most the watches of one caller, of all kinds together, without affecting other callers", async () => {
    const paths = [`/${REGISTRY}/WatchNodes`, `/${JOB_SERVICE}/WatchJobs`, `/${JOB_SERVICE}/WatchExecutions`];
    const sessions = Array.from({ length: CONNECTIONS }, () => connect(baseUrl));
    try {
      // Make a call on each connection, because the server allows more streams after it knows the caller.
      await Promise.all(sessions.map(knowCaller));
      const opening = Array.from({ length: WATCHES }, (_, index) =>
        watch(sessions[index % CONNECTIONS] ?? connect(baseUrl), paths[index % paths.length] ?? ""),
      );
      const others = await times(20, () => ask("admin", `${REGISTRY}/GetClusterSummary`, {}));
      expect(countsOf(others)).toEqual({ ok: 20 });
      const {
        held = 0,
        TOO_MANY_STREAMS: refused = 0,
        OVERLOADED: late = 0,
        ...more
      } = countsOf(await Promise.all(opening));
      expect(more).toEqual({});
      expect(held).toBeLessThanOrEqual(STREAMS);
      expect(held).toBeGreaterThan(STREAMS / 2);
      // A snapshot that does not fit into the queue is refused as OVERLOADED. Most watches must be refused because of
      // the limit on streams.
      expect(held + refused + late).toBe(WATCHES);
      expect(refused).toBeGreaterThan(late);
      // Another caller can still watch.
      expect(await watch(sessions[0] ?? connect(baseUrl), paths[0] ?? "", "admin")).toBe("held");
    } finally {
      for (const session of sessions) session.destroy();
    }
  });

  it("should prune no objects of others that its role cannot change", async () => {
    const labels = { nodeLabels: { node: "n1", labels: { rack: "r1" } } };
    const applied = { objects: [labels], owner: "team" };
    expect(await ask("admin", `${STATE}/ApplyState`, applied)).toBe("ok");
    const prune = { objects: [], owner: "team", prune: true };
    for (const role of ["viewer", "submitter"]) {
      expect(await ask(role, `${STATE}/ApplyState`, prune)).toBe("ROLE_TOO_LOW");
      expect(await ask(role, `${STATE}/PlanState`, prune)).toBe("ROLE_TOO_LOW");
    }
    const kept = await rig.store.db.selectFrom("node_labels").select("value").where("node_id", "=", "n1").execute();
    expect(kept).toEqual([{ value: "r1" }]);
  });
});

/** The flag of the frame that ends a stream. */
const END_OF_STREAM = 2;

/** Make a call on a connection, so that the server knows its caller. */
function knowCaller(session: ReturnType<typeof connect>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ...{ ":method": "POST", ":path": `/${REGISTRY}/GetClusterSummary`, "content-type": "application/json" },
      authorization: `Bearer ${tokenOf("viewer")}`,
    });
    stream.on("error", reject).on("end", resolve).resume();
    stream.end("{}");
  });
}

/** Open a watch with Connect. Returns "held" after its first message, or the reason why it ended. */
function watch(session: ReturnType<typeof connect>, path: string, role = "viewer"): Promise<string> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ...{ ":method": "POST", ":path": path, "content-type": "application/connect+json" },
      authorization: `Bearer ${tokenOf(role)}`,
    });
    stream.on("error", reject);
    stream.on("data", (chunk: Buffer) => {
      const isEnd = chunk[0] === END_OF_STREAM;
      resolve(isEnd ? (/"reason":"(\w+)"/.exec(chunk.toString("latin1"))?.[1] ?? "ended") : "held");
    });
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]));
  });
}
