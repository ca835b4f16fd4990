import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { signProof } from "@rollcall/identity";
import { releaseLease } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { command, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";
import { sealSessionToken } from "./session-token.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let left: TestReplica;
let right: TestReplica;
let atLeft: QueryClient;
let atRight: QueryClient;

beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  [left, right] = await Promise.all([replicas.start({ store }), replicas.start({ store })]);
  [atLeft, atRight] = await Promise.all([serveQueries(left), serveQueries(right)]);
});

afterAll(async () => {
  agents.close();
  await Promise.all([atLeft.close(), atRight.close()]);
  await replicas.close();
  await database.drop();
});

type Answer = Readonly<Record<string, unknown>> & {
  readonly sessionToken?: string;
  readonly challenge?: { readonly nonce: string; readonly proofText: string };
};

/** A POST of JSON over HTTP/1.1, as curl sends it. */
async function post(at: QueryClient, body: object): Promise<Answer> {
  const url = `http://${at.address}/rollcall.health.v1.HealthQueryService/ReportHeartbeat`;
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as Answer & {
    readonly details?: readonly { readonly debug?: { readonly reason?: string } }[];
  };
  if (response.ok) return answer;
  const { message, details = [] } = answer;
  return { refused: details.find(({ debug }) => debug?.reason)?.debug?.reason, message };
}

type Agent = ReturnType<FakeAgents["create"]>;

async function registered(nodeId: string): Promise<Agent> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent;
}

/** A request that opens a session with a new challenge. */
async function opening(agent: Agent, at: QueryClient) {
  const { challenge } = await post(at, { nodeId: agent.nodeId });
  if (challenge === undefined) throw new Error("no challenge");
  const signature = Buffer.from(signProof(agent.privateKey, challenge.proofText));
  return {
    nodeId: agent.nodeId,
    open: { nonce: challenge.nonce, hello: { signature: signature.toString("base64") } },
  };
}

async function open(agent: Agent, at: QueryClient): Promise<string> {
  const answer = await post(at, await opening(agent, at));
  if (answer.sessionToken === undefined) throw new Error(`not opened: ${JSON.stringify(answer)}`);
  return answer.sessionToken;
}

const beat = (nodeId: string, sessionToken: string, sequence: number, usage = {}) => ({
  nodeId,
  beat: { sessionToken, sequence, usage },
});

describe("reportHeartbeat()", () => {
  it("should make a node CONNECTED, HEALTHY with its first heartbeat, and time its silence like any other's", async () => {
    const agent = await registered("u-life");
    const opened = await post(atLeft, await opening(agent, atLeft));
    expect(opened).toMatchObject({
      sessionEpoch: "1",
      heartbeatInterval: "1s",
      unhealthyAfter: "3s",
    });
    expect(await statesOf(database.store, "u-life")).toEqual(["CONNECTED STREAM_OPENED", "UNKNOWN NEVER_CONNECTED"]);
    const token = opened.sessionToken ?? "";
    expect(await post(atLeft, beat("u-life", token, 1, { cpuPercent: 42 }))).toMatchObject({
      sequence: 1,
      membership: { state: "MEMBERSHIP_STATE_APPROVED" },
    });
    await eventually(async () =>
      expect((await statesOf(database.store, "u-life"))[1]).toBe("HEALTHY HEARTBEAT_RECEIVED"),
    );
    const { nodeHealth } = await atRight.client.getNodeHealth({ node: "u-life" });
    expect(nodeHealth?.latest?.usage?.cpuPercent).toBe(42);
    await left.pass(2_900);
    await post(atLeft, beat("u-life", token, 2));
    await left.pass(2_900);
    expect(left.app.replica.nodes.find("u-life")?.health.state).toBe("HEALTHY");
    await left.pass(200);
    await eventually(async () =>
      expect(await statesOf(database.store, "u-life")).toEqual([
        "DISCONNECTED STREAM_STALE",
        "UNHEALTHY HEARTBEATS_MISSED",
      ]),
    );
    expect(await post(atLeft, beat("u-life", token, 3))).toMatchObject({ refused: "STREAM_STALE" });
    await post(atLeft, beat("u-life", await open(agent, atLeft), 1));
    await eventually(async () =>
      expect(await statesOf(database.store, "u-life")).toEqual([
        "CONNECTED STREAM_OPENED",
        "HEALTHY HEARTBEAT_RECEIVED",
      ]),
    );
  });

  it("should end a session whose first heartbeat never comes", async () => {
    const agent = await registered("u-mute");
    const token = await open(agent, atLeft);
    await left.pass(3_200);
    expect(await post(atLeft, beat("u-mute", token, 1))).toMatchObject({ refused: "STREAM_STALE" });
    await eventually(async () => expect((await statesOf(database.store, "u-mute"))[0]).toMatch(/^DISCONNECTED/));
  });

  it("should accept a heartbeat at any replica", async () => {
    const agent = await registered("u-far");
    const token = await open(agent, atLeft);
    expect(await post(atRight, beat("u-far", token, 1, { cpuPercent: 7 }))).toMatchObject({
      sequence: 1,
    });
    expect(await post(atLeft, beat("u-far", token, 1))).toMatchObject({
      refused: "SEQUENCE_NOT_RISING",
    });
    expect(await post(atRight, beat("u-far", token, 1))).toMatchObject({
      refused: "SEQUENCE_NOT_RISING",
    });
    expect(left.app.replica.nodes.find("u-far")?.samples?.size).toBe(1);
    const bye = { nodeId: "u-far", goodbye: { sessionToken: token, reason: "done" } };
    await post(atRight, bye);
    await eventually(async () =>
      expect(await statesOf(database.store, "u-far")).toEqual([
        "DISCONNECTED AGENT_SHUTDOWN",
        "UNHEALTHY AGENT_SHUTDOWN",
      ]),
    );
    expect(await post(atRight, beat("u-far", token, 2))).toMatchObject({
      refused: "SESSION_SUPERSEDED",
    });
  });

  it("should let the newest session win, whatever its kind", async () => {
    const agent = await registered("u-two");
    const first = await open(agent, atLeft);
    const second = await open(agent, atRight);
    await eventually(async () =>
      expect(await post(atLeft, beat("u-two", first, 1))).toMatchObject({
        refused: "SESSION_SUPERSEDED",
      }),
    );
    expect(await post(atLeft, beat("u-two", second, 1))).toMatchObject({ sequence: 1 });
    const stream = await agent.join(right.address);
    await stream.beatAcknowledged();
    expect(await post(atLeft, beat("u-two", second, 2))).toMatchObject({
      refused: "SESSION_SUPERSEDED",
    });
  });

  it("should distinguish the sessions of one node at one replica", async () => {
    const agent = await registered("u-same");
    const first = await open(agent, atLeft);
    const second = await open(agent, atLeft);
    expect(await post(atLeft, beat("u-same", first, 1))).toMatchObject({ refused: "SESSION_SUPERSEDED" });
    expect(await post(atLeft, beat("u-same", second, 1))).toMatchObject({ sequence: 1 });
    await left.pass(3_200);
    expect(await post(atLeft, beat("u-same", second, 2))).toMatchObject({ refused: "STREAM_STALE" });
    // The reason why the second session ended is not returned for the first.
    expect(await post(atLeft, beat("u-same", first, 2))).toMatchObject({ refused: "SESSION_SUPERSEDED" });
  });

  it("should return an operator's decision with the next call", async () => {
    const agent = await registered("u-rejected");
    const token = await open(agent, atLeft);
    await post(atLeft, beat("u-rejected", token, 1));
    await command(database.store, "u-rejected", "reject", "wrong rack");
    await eventually(async () =>
      expect(await post(atLeft, beat("u-rejected", token, 9))).toMatchObject({
        refused: "NODE_REJECTED",
        message: expect.stringContaining("wrong rack"),
      }),
    );
    expect(await post(atLeft, await opening(agent, atLeft))).toMatchObject({
      refused: "NODE_REJECTED",
    });
  });

  it("should refuse a stored key that anyone can sign for", async () => {
    const neutral = new Uint8Array(32);
    neutral[0] = 1;
    const agent = agents.create("u-weak");
    await register(database.store, [{ nodeId: "u-weak", publicKey: neutral }]);
    const { open } = await opening(agent, atLeft);
    const signature = Buffer.concat([Buffer.from([1]), Buffer.alloc(63)]).toString("base64");
    const forged = { nodeId: "u-weak", open: { ...open, hello: { signature } } };
    expect(await post(atLeft, forged)).toMatchObject({ refused: "PROOF_INVALID" });
  });

  it("should refuse a caller that cannot prove to be the node, and a used challenge", async () => {
    const agent = await registered("u-proof");
    const thief = agents.create("u-thief");
    const stolen = { ...(await opening(thief, atLeft)), nodeId: "u-proof" };
    expect(await post(atLeft, stolen)).toMatchObject({ refused: "PROOF_INVALID" });
    const request = await opening(agent, atLeft);
    expect((await post(atLeft, request)).sessionToken).toBeDefined();
    expect(await post(atRight, request)).toMatchObject({ refused: "CHALLENGE_INVALID" });
    const made = {
      ...request,
      open: { ...request.open, nonce: Buffer.alloc(40).toString("base64") },
    };
    expect(await post(atLeft, made)).toMatchObject({ refused: "CHALLENGE_INVALID" });
    const other = { ...request.open.hello, nodeId: "u-other" };
    expect(await post(atLeft, { ...request, open: { ...request.open, hello: other } })).toMatchObject({
      refused: "INVALID_REQUEST",
    });
    expect(await post(atLeft, await opening(thief, atLeft))).toMatchObject({
      refused: "NODE_NOT_REGISTERED",
    });
    expect(await post(atLeft, { nodeId: "no node" })).toMatchObject({ refused: "INVALID_NODE_ID" });
  });

  it("should refuse tokens of other sessions", async () => {
    const agent = await registered("u-token");
    const token = await open(agent, atLeft);
    const claims = { nodeId: "u-token", epoch: 1, replicaId: left.instance };
    // Change a character in the middle of the seal. At the end, a different character can decode to the same bytes, or
    // already be the replacement.
    const at = token.length - 6;
    const forged = `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
    for (const bad of ["", "rs1.x.y", forged, sealSessionToken(Buffer.alloc(32), claims)]) {
      expect(await post(atLeft, beat("u-token", bad, 1))).toMatchObject({
        refused: "SESSION_TOKEN_INVALID",
      });
    }
    expect(await post(atLeft, beat("u-far", token, 1))).toMatchObject({
      refused: "SESSION_TOKEN_INVALID",
    });
  });

  it("should make an agent retry, then open a new session, when the owner of its session is gone", async () => {
    const third = await replicas.start({ store: database.store });
    const atThird = await serveQueries(third);
    const agent = await registered("u-orphan");
    const token = await open(agent, atThird);
    await post(atLeft, beat("u-orphan", token, 1));
    await atThird.close();
    await third.kill();
    expect(await post(atLeft, beat("u-orphan", token, 2))).toMatchObject({
      refused: "OWNER_UNAVAILABLE",
    });
    await releaseLease(database.store.db, third.instance, third.instance);
    await left.pass(2_100);
    expect(await post(atLeft, beat("u-orphan", token, 3))).toMatchObject({
      refused: "SESSION_SUPERSEDED",
    });
    expect(await post(atLeft, beat("u-orphan", await open(agent, atLeft), 1))).toMatchObject({
      sequence: 1,
    });
  });
});
