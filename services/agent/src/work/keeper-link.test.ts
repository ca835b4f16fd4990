import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { KeeperFrameSchema, KeeperRequestSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { silentLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { FrameReader, frameMessage } from "@rollcall/wire";
import { KeeperLink } from "./keeper-link.ts";

const EXPECTED = { version: "1", settingsDigest: "digest" };
/** The documented limit of unanswered requests. The greeting is one of them until the keeper answers it. */
const MOST_UNANSWERED = 5_000;

/** A keeper that greets, and answers other requests only when the test says so. */
class FakeKeeper {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  isAnswering = false;
  requests = 0;

  constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(path: string): Promise<void> {
    this.#server.listen(path);
    await once(this.#server, "listening");
  }

  /** Break all connections. The link then connects again. */
  breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.breakAll();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const reader = new FrameReader();
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk: Buffer) => {
      for (const message of reader.take(chunk)) {
        const { id, request } = fromBinary(KeeperRequestSchema, message);
        const isGreet = request.case === "greet";
        if (!isGreet) this.requests += 1;
        if (!isGreet && !this.isAnswering) continue;
        const reply = isGreet ? { case: "greeting" as const, value: { ...EXPECTED, pid: 1 } } : { case: undefined };
        const frame = create(KeeperFrameSchema, { frame: { case: "reply", value: { id, reply } } });
        socket.write(frameMessage(toBinary(KeeperFrameSchema, frame)));
      }
    });
  }
}

describe("KeeperLink", () => {
  let folder: string;
  let keeper: FakeKeeper;
  let link: KeeperLink;
  let greetings = 0;
  const stop = { now: () => {}, over: Promise.resolve() };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "rollcall-link-"));
    const socketPath = join(folder, "keeper.sock");
    keeper = new FakeKeeper();
    await keeper.listen(socketPath);
    greetings = 0;
    const listener = {
      onGreeting: () => {
        greetings += 1;
      },
      ...{ onOffer: () => {}, onChanged: () => {}, onListed: () => {}, onGone: () => {} },
    };
    const access = { socketPath, start: null, isNeeded: true, expected: EXPECTED };
    link = new KeeperLink({ access, clock: systemClock, random: () => 0, log: silentLogger }, listener);
    const ending = new AbortController();
    stop.over = link.run(ending.signal);
    stop.now = () => ending.abort();
    await until("the greeting", () => greetings === 1);
  });

  afterEach(async () => {
    stop.now();
    await stop.over;
    await keeper.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("should fail the requests of a lost connection, and have room for new ones", async () => {
    const requests = Array.from({ length: MOST_UNANSWERED }, () => link.request({ case: "probe", value: {} }));
    const failures = Promise.allSettled(requests);
    await expect(link.request({ case: "probe", value: {} })).rejects.toThrow("too many unanswered requests");
    await until("all requests", () => keeper.requests >= MOST_UNANSWERED);
    keeper.breakAll();
    expect(new Set((await failures).map(({ status }) => status))).toEqual(new Set(["rejected"]));
    keeper.isAnswering = true;
    await until("another greeting", () => greetings === 2);
    expect(await link.request({ case: "probe", value: {} })).toMatchObject({ error: "" });
  });
});
