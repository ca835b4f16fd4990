import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { ExecutionObservation } from "@rollcall/api/rollcall/work/v1/work_pb";
import { DesiredState, EndReason, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { WORK_CHANNEL } from "@rollcall/store";
import { createTestDatabase, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import pg from "pg";
import { register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const SPEC = Buffer.from("an encoded spec");
const DIGEST = createHash("sha256").update(SPEC).digest();

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let record: pg.Client;
let first: TestReplica;
let second: TestReplica;
let agent: FakeAgent;
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  record = new pg.Client(database.url);
  await record.connect();
  const start = async () => replicas.start({ store: await database.openStore() });
  first = await start();
  second = await start();
});

beforeEach(async () => {
  nodes += 1;
  agent = agents.create(`worker-${nodes}`);
  await register(database.store, [agent]);
});

afterEach(() => agents.close());

afterAll(async () => {
  await replicas.close();
  await record.end();
  await database.drop();
});

/** Set in the store whether an execution should run, as a scheduler's commit does. */
async function want(id: string, desired: "RUN" | "STOP" | "FORGET", notifies = true): Promise<void> {
  const { nodeId } = agent;
  const allocations = `
    insert into node_allocations (node_id, generation) values ($1, nextval('work_generations'))
    on conflict (node_id) do update set generation = nextval('work_generations'), changed = pg_current_xact_id()`;
  const specs = "insert into execution_specs (digest, spec) values ($1, $2) on conflict (digest) do nothing";
  const executions = `
    insert into executions (
      id, job, version, index, node_id, desired, generation, spec_digest, ports, millicores, memory_bytes, disk_bytes
    )
    select $1, 'web', 1, 0, $2, $3, generation, $4, '{"http": 20000}', 100, 0, 0
    from node_allocations where node_id = $2
    on conflict (id) do update
      set desired = excluded.desired, generation = excluded.generation, changed = pg_current_xact_id()`;
  await record.query("begin");
  await record.query(allocations, [nodeId]);
  await record.query(specs, [DIGEST, SPEC]);
  await record.query(executions, [id, nodeId, desired, DIGEST]);
  if (notifies) await record.query("select pg_notify($1, 'WANTED')", [WORK_CHANNEL]);
  await record.query("commit");
}

async function observed(id: string) {
  const { rows } = await record.query(
    "select observed, epoch::int, report::int, end_reason from execution_observations where execution_id = $1",
    [id],
  );
  return rows[0] ?? null;
}

/** The executions in the next frame that orders the agent to forget some. */
async function forgotten(stream: Awaited<ReturnType<typeof join>>): Promise<readonly string[]> {
  for (;;) {
    const { references } = await stream.nextOf("executions");
    const ids = references.filter(({ desired }) => desired === DesiredState.FORGET).map(({ id }) => id);
    if (ids.length > 0) return ids;
  }
}

const join = (replica: TestReplica) => agent.join(replica.address, { runsWork: true });

function report(number: number, observations: readonly Partial<ExecutionObservation>[], whole = true) {
  return {
    case: "executionReport" as const,
    value: { number: BigInt(number), whole, observations: observations.map((it) => ({ ...it })) as never },
  };
}

describe("work on the wire", () => {
  it("should send an agent what should run, as it changes, and the specs that it requests", async () => {
    await want("a1", "RUN");
    const stream = await join(first);
    const whole = await stream.nextOf("executions");
    expect(whole).toMatchObject({ whole: true, more: false, logId: database.store.logId() });
    expect(whole.references).toMatchObject([{ id: "a1", desired: DesiredState.RUN, ports: { http: 20_000 } }]);
    expect(Buffer.from(whole.references[0]?.specDigest ?? [])).toEqual(DIGEST);
    await want("a2", "RUN");
    await want("a1", "STOP");
    const changed = new Map<string, DesiredState>();
    while (changed.size < 2) {
      const { references } = await stream.nextOf("executions");
      for (const { id, desired } of references) changed.set(id, desired);
    }
    expect([...changed].sort()).toEqual([
      ["a1", DesiredState.STOP],
      ["a2", DesiredState.RUN],
    ]);
    stream.send({ case: "wantSpecs", value: { digests: [new Uint8Array(DIGEST)] } });
    expect(Buffer.from((await stream.nextOf("spec")).spec)).toEqual(SPEC);
  });

  it("should find changes of what should run without a notification, within seconds", async () => {
    const stream = await join(first);
    await stream.nextOf("executions");
    await want(`p${nodes}`, "RUN", false);
    await first.pass(2_000);
    expect(await stream.nextOf("executions")).toMatchObject({ references: [{ id: `p${nodes}` }] });
  });

  it("should save an agent's report before acknowledging it", async () => {
    const stream = await join(first);
    stream.send(report(1, [{ id: `b${nodes}`, state: ObservedState.RUNNING }]));
    expect((await stream.nextOf("reportAck")).number).toBe(1n);
    expect(await observed(`b${nodes}`)).toMatchObject({ observed: "RUNNING", epoch: 1, report: 1 });
    stream.send(report(2, [{ id: `b${nodes}`, state: ObservedState.ENDED, endReason: EndReason.OOM }], false));
    expect((await stream.nextOf("reportAck")).number).toBe(2n);
    expect(await observed(`b${nodes}`)).toMatchObject({ observed: "ENDED", end_reason: "OOM" });
  });

  it("should save a limited number of executions that an agent claims to run, and ask again for the rest", async () => {
    const stream = await join(first);
    const claim = async (number: number, prefix: string) => {
      // Send several parts, because a frame can have at most 64 KiB. The parts of a report must be consecutive.
      for (let part = 0; part < 6; part += 1) {
        const ids = Array.from({ length: 600 }, (_, index) => `${prefix}${nodes}x${part}x${index}`);
        const observations = ids.map((id) => ({ id, state: ObservedState.RUNNING })) as never;
        const value = { number: BigInt(number), whole: true, more: part < 5, observations };
        stream.send({ case: "executionReport", value });
      }
      expect((await stream.nextOf("reportAck")).number).toBe(BigInt(number));
    };
    await claim(1, "one");
    await claim(2, "two");
    const rows = await record.query("select count(*)::integer from execution_observations where node_id = $1", [
      agent.nodeId,
    ]);
    expect(rows.rows).toEqual([{ count: 1_000 }]);
  });

  it("should mark executions that were reported before, so that none is started twice", async () => {
    const [seen, unseen] = [`r${nodes}`, `u${nodes}`];
    await want(seen, "RUN");
    await want(unseen, "RUN");
    const stream = await join(first);
    const reported = ({ references }: { references: readonly { id: string; reported: boolean }[] }) =>
      Object.fromEntries(references.map((one) => [one.id, one.reported]));
    expect(reported(await stream.nextOf("executions"))).toEqual({ [seen]: false, [unseen]: false });
    stream.send(report(1, [{ id: seen, state: ObservedState.RUNNING }]));
    await stream.nextOf("reportAck");
    const again = await join(second);
    expect(reported(await again.nextOf("executions"))).toEqual({ [seen]: true, [unseen]: false });
  });

  it("should let a node forget ended executions of a deleted job, at once or when it reconnects", async () => {
    await want("keeps1", "RUN");
    const session = await join(first);
    const ended = ["gone1", "keeps1"].map((id) => ({
      id,
      state: ObservedState.ENDED,
      endReason: EndReason.EXITED,
      exitCode: 0,
    }));
    await want("gone1", "STOP");
    session.send(report(1, ended));
    expect((await session.nextOf("reportAck")).number).toBe(1n);
    await database.store.change(async (tx) => {
      await tx.deleteFrom("executions").where("id", "=", "gone1").execute();
      const change = { before: null, after: null, message: "", reason: "OPERATOR_DELETED" };
      return { result: null, events: [{ ...change, type: "job.deleted", subject: "web", actor: "token:t" }] };
    });
    expect(await forgotten(session)).toEqual(["gone1"]);
    const again = await join(second);
    again.send(report(1, ended));
    expect(await forgotten(again)).toEqual(["gone1"]);
  });

  it("should ignore reports of an ended session after a later session's report", async () => {
    const old = await join(first);
    const id = `c${nodes}`;
    const young = await join(second);
    young.send(report(1, [{ id, state: ObservedState.READY }]));
    await young.nextOf("reportAck");
    old.send(report(9, [{ id, state: ObservedState.STARTING }]));
    await old.end();
    expect(await observed(id)).toMatchObject({ observed: "READY", epoch: 2 });
  });

  it("should send nothing about work to an agent that runs none", async () => {
    await want("d1", "RUN");
    const stream = await agent.join(first.address);
    stream.send(report(1, [{ id: "d2", state: ObservedState.RUNNING }]));
    await stream.beatAcknowledged();
    await want("d1", "STOP");
    await until("the change to be read", async () => {
      await stream.beatAcknowledged();
      return first.app.replica.nodes.find(agent.nodeId) !== undefined;
    });
    expect(stream.take().map(({ frame }) => frame.case)).not.toContain("executions");
    expect(await observed("d2")).toBeNull();
  });

  it("should end only the stream of the agent that breaks the rules", async () => {
    const stream = await join(first);
    stream.send(report(2, []));
    await stream.nextOf("reportAck");
    stream.send(report(1, []));
    expect(await stream.end()).toMatchObject({ error: { reason: "INVALID_REQUEST" } });
  });

  it("should show a node as disconnected, not as unhealthy, when its agent restarts", async () => {
    const stream = await join(first);
    await stream.beatAcknowledged();
    stream.send({ case: "goodbye", value: { reason: "upgrade", kind: 2 } });
    await stream.end();
    await until("its connection to be recorded", async () => {
      const { rows } = await record.query(
        "select connection_reason as reason, health from node_sessions where node_id = $1",
        [agent.nodeId],
      );
      return rows[0]?.reason === "AGENT_RESTARTING" && rows[0].health === "HEALTHY";
    });
  });
});
