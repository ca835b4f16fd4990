import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { describeError, reasonOf } from "../libs/errors/src/index.ts";
import { MIN_REVISION_HEADER, REVISION_HEADER } from "../libs/rpc/src/index.ts";
import { accessTokenHash, currentRevision, ensureAccessToken } from "../libs/store/src/index.ts";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "../libs/testkit/src/index.ts";
import { type Rig as AdminRig, startRig as startAdmin } from "../services/admin/src/testing/rig.ts";
import { type Rig as RegistryRig, startRig as startRegistry } from "../services/registry/src/testing/rig.ts";
import { serviceOf } from "../services/scheduler/src/testing/job-specs.ts";
import { type Rig as SchedulerRig, startRig as startScheduler } from "../services/scheduler/src/testing/rig.ts";
import { type AccessRig, type ServedMethod, startAccessRig } from "./support/access-rig.ts";
import { BufferedLog } from "./support/buffered-log.ts";
import { endGrpcCalls, grpcCall } from "./support/grpc-call.ts";
import { rawCall } from "./support/raw-call.ts";
import { formatSourcesTable, withSourcesTable } from "./support/revisions-page.ts";
import { workspaceRoot } from "./support/workspace.ts";

const PAGE = join(workspaceRoot, "docs/revisions.md");
const TOKEN = "token-of-an-admin";
const AS_ADMIN = `Bearer ${TOKEN}`;
const FAR_AHEAD = "1000000000000000";
const NO_REVISIONS = ["", "text", "-1", "+1", "1.5", "0x10", "1, 2", "9223372036854775808", "9".repeat(400)];

const seen = (revision: bigint | string) => ({ [MIN_REVISION_HEADER]: String(revision) });
const needsRole = ({ caller }: ServedMethod) => caller !== "anyone" && caller !== "node" && caller !== "replica";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await addWorkNode(database.store, "n1");
});
afterAll(() => database.drop());

describe("every method", () => {
  let log: BufferedLog;
  let rig: AccessRig;
  beforeAll(async () => {
    log = new BufferedLog(database.store);
    rig = await startAccessRig(log, null);
    await ensureAccessToken(rig.store.db, { id: "admin", name: "admin", role: "admin", hash: accessTokenHash(TOKEN) });
  });
  afterEach(() => log.release());
  afterAll(async () => {
    endGrpcCalls();
    await rig.close();
  });

  it.each([
    ...NO_REVISIONS.map((text) => [text, "invalid_argument INVALID_MIN_REVISION"] as const),
    [FAR_AHEAD, "out_of_range MIN_REVISION_AHEAD"] as const,
  ])("should refuse the revision %j with a reason, over every protocol", async (text, refusal) => {
    const wrong: string[] = [];
    for (const { baseUrl, method, name } of rig.methods.filter(needsRole)) {
      for (const call of [rawCall, grpcCall]) {
        const outcome = await call(baseUrl, method, AS_ADMIN, seen(text));
        if (outcome !== refusal) wrong.push(`${call.name} of ${name}: ${outcome}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("should ignore the revision if no role is required, or before the caller is authenticated", async () => {
    const wrong: string[] = [];
    for (const { baseUrl, method, name } of rig.methods) {
      const outcome = await rawCall(baseUrl, method, null, seen(FAR_AHEAD));
      if (outcome.includes("MIN_REVISION")) wrong.push(`${name}: ${outcome}`);
    }
    expect(wrong).toEqual([]);
  });

  it("should wait for its caller's revision if it answers from its process's copy of the log, and only then", async () => {
    const { methods, policies, store } = rig;
    const readsLog = methods.filter(({ name }) => policies[name]?.readsLog === true);
    expect(readsLog.map(({ name }) => name.split("/").at(-1))).toEqual([
      ...["SubmitJob", "PlanJob", "RevertJob", "ExplainExecution"],
    ]);
    log.hold();
    await store.change(async () => ({
      result: null,
      events: [
        { type: "node.labels.changed", subject: "n1", actor: "t", reason: "", message: "", before: {}, after: {} },
      ],
    }));
    const header = seen(await currentRevision(database.store.db));
    const answered: string[] = [];
    const waiting = readsLog.map(async ({ baseUrl, method, name }) => {
      const outcome = await rawCall(baseUrl, method, AS_ADMIN, header);
      answered.push(name);
      return outcome;
    });
    const others = methods.filter((it) => needsRole(it) && !readsLog.includes(it));
    const refused: string[] = [];
    for (const { baseUrl, method, name } of others.filter((it) => it.method.methodKind === "unary")) {
      const outcome = await rawCall(baseUrl, method, AS_ADMIN, header);
      if (/SERVICE_BEHIND|MIN_REVISION|INTERNAL/.test(outcome)) refused.push(`${name}: ${outcome}`);
    }
    expect(refused).toEqual([]);
    expect(answered).toEqual([]);
    log.release();
    for (const outcome of await Promise.all(waiting)) expect(outcome).toMatch(/^(ok|invalid_argument|not_found)/);
  });

  it("should be as docs/revisions.md says (UPDATE_DOCS=1 writes its table)", () => {
    const page = readFileSync(PAGE, "utf8");
    const wanted = withSourcesTable(page, formatSourcesTable(rig.policies));
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, wanted);
    else expect(page).toBe(wanted);
  });
});

describe("services that share the database", () => {
  let log: BufferedLog;
  let admin: AdminRig;
  let registry: RegistryRig;
  let scheduler: SchedulerRig;
  let impatient: SchedulerRig;
  beforeAll(async () => {
    const { store } = database;
    log = new BufferedLog(store);
    admin = await startAdmin({ store });
    registry = await startRegistry({ store });
    scheduler = await startScheduler(store, { logStore: log.store.reserved });
    impatient = await startScheduler(store, { logStore: log.store.reserved, readWithinMs: 1 });
    for (const { jobs } of [scheduler, impatient]) await jobs.planJob({ spec: serviceOf("web", 1) });
  });
  afterEach(() => log.release());
  afterAll(async () => {
    await impatient.close();
    await scheduler.close();
    await registry.close();
    await admin.close();
  });

  /** Make a call. Returns its response, and the revision in the response's headers. */
  async function withRevision<T>(call: (options: { onHeader(headers: Headers): void }) => Promise<T>) {
    let revision: string | null = null;
    const onHeader = (headers: Headers) => {
      revision = headers.get(REVISION_HEADER);
    };
    return { answer: await call({ onHeader }), revision: revision as string | null };
  }

  const label = (client: AdminRig["admin"], value: string, requestId = "") =>
    withRevision((options) => client.setNodeLabels({ node: "n1", set: { zone: value }, requestId }, options));

  it("should return the revision of a change, of a repeated one, and of a list", async () => {
    const first = await label(admin.admin, "told", "the-same");
    const head = String(await currentRevision(database.store.db));
    expect(first.revision).toBe(head);
    for (const again of [await label(admin.admin, "told", "the-same"), await label(admin.admin, "told")]) {
      expect(again.revision).toBe(head);
    }
    const listed = await withRevision((options) => registry.registry.listNodes({}, options));
    expect(listed).toMatchObject({ answer: { revision: BigInt(head) }, revision: head });
    const events = await withRevision((options) => registry.events.listEvents({}, options));
    expect(events.revision).toBe(head);
    const status = await withRevision((options) => registry.registry.getControlPlaneStatus({}, options));
    expect(status.revision).toBe(head);
  });

  it("should plan with what its caller has seen, although the scheduler has not read it yet", async () => {
    log.hold();
    const { revision } = await label(admin.admin, "seen");
    const spec = serviceOf("web", 1, { selector: "zone = seen" });
    let isAnswered = false;
    const plan = scheduler.jobs.planJob({ spec }, { headers: seen(revision ?? "") }).finally(() => {
      isAnswered = true;
    });
    const listed = await registry.registry.listNodes({}, { headers: seen(revision ?? "") });
    expect(listed.nodes[0]?.labels).toEqual(expect.arrayContaining([expect.objectContaining({ value: "seen" })]));
    expect(isAnswered).toBe(false);
    log.release();
    const { refusal, executions } = await plan;
    expect({ refusal, nodes: executions.map(({ nodeId }) => nodeId) }).toEqual({ refusal: undefined, nodes: ["n1"] });
  });

  it("should refuse with SERVICE_BEHIND if it cannot read the revision in time, and answer later", async () => {
    log.hold();
    const { revision } = await label(admin.admin, "late");
    const call = () => impatient.jobs.planJob({ spec: serviceOf("web", 1) }, { headers: seen(revision ?? "") });
    const refused = await call().catch(describeError);
    expect(refused).toMatchObject({ reason: "SERVICE_BEHIND", metadata: { revision }, retryAfterMs: 1_000 });
    log.release();
    await eventually(async () => {
      await expect(call()).resolves.toMatchObject({ waiting: 0 });
    });
  });

  it("should refuse a revision that is ahead, and check none for anonymous clients", async () => {
    const call = scheduler.jobs.planJob({ spec: serviceOf("web", 1) }, { headers: seen(FAR_AHEAD) });
    const head = String(await currentRevision(database.store.db));
    expect(await call.catch(describeError)).toMatchObject({
      reason: "MIN_REVISION_AHEAD",
      metadata: { revision: FAR_AHEAD, head },
    });
    const anonymous = await scheduler.client();
    expect(await anonymous.planJob({}, { headers: seen(FAR_AHEAD) }).catch(reasonOf)).toBe("TOKEN_MISSING");
  });
});
