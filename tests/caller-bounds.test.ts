import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { accessTokenHash, ensureAccessToken } from "../libs/store/src/index.ts";
import { addWorkNode, createTestDatabase, type TestDatabase } from "../libs/testkit/src/index.ts";
import { type AccessRig, startAccessRig } from "./support/access-rig.ts";

const STREAMS = 40;
const JOBS = 10;
const NODES = 200;
/** A selector with as many conditions as one can have. */
const SELECTOR = Array.from({ length: 100 }, (_, index) => `k${index % 7}!=v${"x".repeat(30)}`).join(",");

let database: TestDatabase;
let rig: AccessRig;
let baseUrl = "";
beforeAll(async () => {
  database = await createTestDatabase();
  const limits = { "Listen.StreamsPerCaller": `${STREAMS}`, "Quota.Jobs": `${JOBS}` };
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

/** Call a method with JSON: "ok", or the reason of its refusal. */
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

/** How a call that has to wait can end: it waits within its deadline. */
const ENDS = ["ok", "TOO_MANY_CALLS", "OVERLOADED", "DEADLINE_EXCEEDED"] as const;

/** What one caller asks for at once, and what it can end with. */
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
  it.each(FLOODS)("should be bounded in %s, and keep no other caller out", async (_, count, act, ends) => {
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

  it("should hold as many watches as one caller can, of all kinds together", async () => {
    const paths = [`/${REGISTRY}/WatchNodes`, `/${JOB_SERVICE}/WatchJobs`, `/${JOB_SERVICE}/WatchExecutions`];
    const session = connect(baseUrl);
    const attempts = 3 * STREAMS;
    try {
      // The server takes more streams of a connection once it knows its caller.
      const opened = Array.from({ length: attempts }, (_, index) => watch(session, paths[index % paths.length] ?? ""));
      const first = await Promise.all(opened);
      expect(countsOf(first)).toEqual({ held: STREAMS, TOO_MANY_STREAMS: attempts - STREAMS });
    } finally {
      session.destroy();
    }
  });

  it("should prune nothing of others that its role could not change", async () => {
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

/** Flag of the frame that ends a stream. */
const END_OF_STREAM = 2;

/** Open a watch over Connect: "held" once its first message has come, else the reason of its end. */
function watch(session: ReturnType<typeof connect>, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ...{ ":method": "POST", ":path": path, "content-type": "application/connect+json" },
      authorization: `Bearer ${tokenOf("viewer")}`,
    });
    stream.on("error", reject);
    stream.on("data", (chunk: Buffer) => {
      const isEnd = chunk[0] === END_OF_STREAM;
      resolve(isEnd ? (/"reason":"(\w+)"/.exec(chunk.toString("latin1"))?.[1] ?? "ended") : "held");
    });
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]));
  });
}
