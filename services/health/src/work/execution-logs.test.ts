import http2 from "node:http2";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type LogRequest, ServeLogsRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { createTestDatabase, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { type ManualClock, until } from "@rollcall/testkit/time";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const LARGE_PIECE = Buffer.alloc(62_500, "x");
const LARGE_BYTES = 16_000_000;

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let owner: TestReplica;
let other: TestReplica;
let atOwner: QueryClient;
let atOther: QueryClient;
let asViewer: QueryClient;
let agent: FakeAgent;
let stream: Awaited<ReturnType<FakeAgent["join"]>>;
let executionId: string;
let tests = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = await replicas.start({ store: await database.openStore() });
  other = await replicas.start({ store: await database.openStore() });
  atOwner = await serveQueries(owner, "submitter");
  atOther = await serveQueries(other, "submitter");
  asViewer = await serveQueries(other, "viewer");
});

beforeEach(async () => {
  tests += 1;
  executionId = `e${tests}`;
  agent = agents.create(`logger-${tests}`);
  await register(database.store, [agent]);
  stream = await agent.join(owner.address, { runsWork: true });
  const observations = [{ id: executionId, state: ObservedState.RUNNING }];
  stream.send({ case: "executionReport", value: { number: 1n, whole: true, observations } });
  await stream.nextOf("reportAck");
});

afterEach(() => agents.close());

afterAll(async () => {
  await Promise.all([atOwner, atOther, asViewer].map((it) => it.close()));
  await replicas.close();
  await database.drop();
});

/** Read output until it ends, as text. */
async function read(at: QueryClient, options: { readonly tailBytes?: bigint; readonly follow?: boolean } = {}) {
  const pieces = [];
  for await (const { stream: of, offset, data } of at.client.readExecutionLog({ executionId, ...options })) {
    pieces.push(`${of === OutputStream.STDERR ? "stderr" : "stdout"} ${offset} ${Buffer.from(data).toString()}`);
  }
  return pieces;
}

const failureOf = (reading: Promise<unknown>) => reading.then(() => null, describeError);

/** A piece of output as gRPC frames it for HTTP/2. */
function envelopeOf(piece: MessageInitShape<typeof ServeLogsRequestSchema>): Buffer {
  const message = toBinary(ServeLogsRequestSchema, create(ServeLogsRequestSchema, piece));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([prefix, message]);
}

/** Serve the requested output, as an agent does. */
async function serve({ token }: LogRequest, pieces: readonly (readonly [number, bigint, string])[]) {
  const call = stream.serveLogs();
  await call.send({ token });
  for (const [of, offset, text] of pieces) await call.send({ stream: of, offset, data: Buffer.from(text) });
  call.end();
  return call.ended;
}

describe("the output of an execution", () => {
  it.each([
    ["the replica that holds the node", () => atOwner],
    ["another replica", () => atOther],
  ])("should be read through %s, as its agent sends it", async (_, at) => {
    const reading = read(at(), { tailBytes: 100n, follow: true });
    const asked = await stream.nextOf("logRequest");
    expect(asked).toMatchObject({ executionId, stream: 0, tailBytes: 100n, follow: true });
    const pieces = [
      [1, 0n, "hello "],
      [2, 0n, "oh"],
      [1, 6n, "world"],
    ] as const;
    expect(await serve(asked, pieces)).toMatchObject({ code: 0 });
    expect(await reading).toEqual(["stdout 0 hello ", "stderr 0 oh", "stdout 6 world"]);
  });

  it.each([
    ["the replica that holds the node", () => [owner, atOwner] as const],
    ["another replica", () => [other, atOther] as const],
  ])("should be followed through %s with signs of life while there is none", async (_, at) => {
    const [replica, { client }] = at();
    const clock = replica.clock as ManualClock;
    const leaving = new AbortController();
    const pieces = client.readExecutionLog({ executionId, follow: true }, { signal: leaving.signal });
    const messages = pieces[Symbol.asyncIterator]();
    const first = messages.next();
    const call = stream.serveLogs();
    await call.send({ token: (await stream.nextOf("logRequest")).token, stream: 1, data: Buffer.from("early") });
    expect((await first).value).toMatchObject({ stream: OutputStream.STDOUT, offset: 0n });
    let isHere = false;
    const bookmark = messages.next().finally(() => (isHere = true));
    await until("a sign of life", () => {
      clock.advance(10_000);
      return isHere;
    });
    expect((await bookmark).value).toMatchObject({ stream: OutputStream.UNSPECIFIED, data: new Uint8Array() });
    await call.send({ stream: 1, offset: 5n, data: Buffer.from("late") });
    let piece = await messages.next();
    while (piece.value?.data.byteLength === 0) piece = await messages.next();
    expect(Buffer.from(piece.value?.data ?? []).toString()).toBe("late");
    leaving.abort();
  });

  it("should be read at full speed without ending its agent's stream, however long it is", async () => {
    const pieces = atOwner.client.readExecutionLog({ executionId });
    const bringing = (async () => {
      const call = stream.serveLogs();
      const { token } = await stream.nextOf("logRequest");
      await call.send({ token });
      for (let at = 0; at < LARGE_BYTES; at += LARGE_PIECE.byteLength) {
        await call.send({ stream: 1, offset: BigInt(at), data: LARGE_PIECE });
      }
      call.end();
    })();
    let bytes = 0;
    for await (const { data } of pieces) {
      bytes += data.byteLength;
      // Advance the clock by more than the rate limit delays a piece.
      (owner.clock as ManualClock).advance(20);
    }
    await bringing;
    await stream.beatAcknowledged();
    expect([bytes, stream.ended]).toEqual([LARGE_BYTES, undefined]);
  });

  it("should be refused as a flood if no reader requested it", async () => {
    const session = http2.connect(`http://${owner.address}`);
    session.on("error", () => {});
    const goAway = new Promise<number>((resolve) => session.on("goaway", resolve));
    // Send raw frames, because gRPC clients stop when their call is refused.
    const headers = {
      ":method": "POST",
      ":path": "/rollcall.health.v1.HealthService/ServeLogs",
      "content-type": "application/grpc",
    };
    const envelope = envelopeOf({ token: Buffer.alloc(16), stream: 1, data: LARGE_PIECE });
    while (!session.destroyed) {
      const call = session.request(headers, { endStream: false }).on("error", () => {});
      const over = new Promise((resolve) => call.on("close", resolve));
      call.resume();
      for (let sent = 0; sent < LARGE_BYTES && !call.destroyed; sent += LARGE_PIECE.byteLength) {
        await Promise.race([new Promise((resolve) => call.write(envelope, resolve)), over]);
      }
    }
    expect(await goAway).toBe(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    await stream.beatAcknowledged();
  });

  it("should end the agent's call when its reader leaves", async () => {
    const leaving = new AbortController();
    const pieces = atOther.client.readExecutionLog({ executionId, follow: true }, { signal: leaving.signal });
    const first = pieces[Symbol.asyncIterator]().next();
    const call = stream.serveLogs();
    const { token } = await stream.nextOf("logRequest");
    await call.send({ token, stream: 1, data: Buffer.from("x") });
    await first;
    leaving.abort();
    expect(await call.ended).toMatchObject({ code: 0 });
  });

  it("should accept each token once, and no other tokens", async () => {
    const reading = read(atOwner);
    const asked = await stream.nextOf("logRequest");
    const forged = stream.serveLogs();
    await forged.send({ token: Buffer.alloc(16), stream: 1, data: Buffer.from("lies") });
    expect(await forged.ended).toMatchObject({ error: { reason: "LOG_NOT_FOUND" } });
    await serve(asked, [[1, 0n, "true"]]);
    expect(await reading).toEqual(["stdout 0 true"]);
    expect(await serve(asked, [[1, 0n, "again"]])).toMatchObject({ error: { reason: "LOG_NOT_FOUND" } });
  });

  it("should fail with the reason when there is none", async () => {
    const gone = failureOf(read(atOther));
    const { token } = await stream.nextOf("logRequest");
    const call = stream.serveLogs();
    await call.send({ token, failure: "LOG_NOT_FOUND" });
    expect(await gone).toMatchObject({ reason: "LOG_NOT_FOUND" });
    stream.breakConnection();
    await until("the node to be known as away", () => owner.app.replica.nodes.find(agent.nodeId)?.stream === null);
    expect(await failureOf(read(atOwner))).toMatchObject({ reason: "LOG_UNAVAILABLE" });
    executionId = "none";
    expect(await failureOf(read(atOther))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
  });

  it.each([
    ["LOG_NOT_FOUND", "", "LOG_NOT_FOUND", /has no output of the execution$/],
    ["LOG_UNAVAILABLE", "the keeper failed: EIO", "LOG_UNAVAILABLE", /cannot read the output: the keeper failed: EIO$/],
    ["TOO_MANY_STREAMS", "16 outputs", "TOO_MANY_STREAMS", /cannot send more outputs at the same time: 16 outputs$/],
    // The agent sends ROLE_TOO_LOW, a reason that only the control plane can decide.
    ["ROLE_TOO_LOW", "", "LOG_UNAVAILABLE", /cannot send the output, ROLE_TOO_LOW$/],
  ])("should be refused as its node says: %s, %j", async (failure, failureMessage, reason, message) => {
    for (const at of [atOwner, atOther]) {
      const reading = failureOf(read(at));
      const { token } = await stream.nextOf("logRequest");
      await stream.serveLogs().send({ token, failure, failureMessage });
      expect(await reading).toMatchObject({ reason, message: expect.stringMatching(message) });
    }
  });

  it("should be read by one caller a limited number of times, and again after one reader has ended", async () => {
    const leaving = Array.from({ length: 8 }, () => new AbortController());
    const readings = leaving.map(({ signal }) => {
      const pieces = atOther.client.readExecutionLog({ executionId, follow: true }, { signal });
      return failureOf(pieces[Symbol.asyncIterator]().next());
    });
    for (const _ of leaving) await stream.nextOf("logRequest");
    expect(await failureOf(read(atOther))).toMatchObject({
      reason: "TOO_MANY_STREAMS",
      message: expect.stringContaining("reads 8 outputs of node"),
    });
    leaving[0]?.abort();
    await readings[0];
    await until("room for another reading", async () => {
      const next = new AbortController();
      const pieces = atOther.client.readExecutionLog({ executionId }, { signal: next.signal });
      const refused = failureOf(pieces[Symbol.asyncIterator]().next()).then((failure) => failure !== null);
      const isAsked = stream.nextOf("logRequest").then(() => false);
      const isRefused = await Promise.race([refused, isAsked]);
      next.abort();
      return !isRefused;
    });
    for (const one of leaving) one.abort();
    await Promise.all(readings);
  });

  it.each([
    ["fields that are too many", Buffer.alloc(900_000, Buffer.from([0xf8, 0x7f, 0])), "MESSAGE_TOO_LARGE", 8],
    ["a message that is too large", Buffer.alloc(1_200_000), "MESSAGE_TOO_LARGE", 8],
    ["bytes that are no message", Buffer.from([0x0a, 0xff, 0xff]), "MALFORMED_MESSAGE", 3],
  ] as const)(
    "should end with the reason why %s are refused, for the reader and the agent",
    async (_, bytes, reason, code) => {
      for (const at of [atOwner, atOther]) {
        const reading = failureOf(read(at));
        const { token } = await stream.nextOf("logRequest");
        const call = stream.serveLogs();
        await call.send({ token, stream: 1, data: Buffer.from("x") });
        // The call must end before this piece has been read completely.
        void call.send(bytes);
        expect(await call.ended).toMatchObject({ code, error: { reason } });
        expect(await reading).toMatchObject({
          reason,
          message: expect.stringMatching(/^the output that the node sent/),
        });
      }
    },
  );

  it("should not be shown to viewers", async () => {
    expect(await failureOf(read(asViewer))).toMatchObject({ reason: "ROLE_TOO_LOW" });
  });
});
