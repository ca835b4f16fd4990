import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { KeeperFrameSchema, KeeperRequestSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type Clock, silentLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { FrameReader, frameMessage } from "@rollcall/wire";
import { KeeperLink } from "./keeper-link.ts";

const EXPECTED = { version: "1", settingsDigest: "digest" };
const PROBE_EVERY_MS = 5_000;
const BREAKS = 8;

let folder: string;
let keeper: Server | null = null;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rollcall-link-"));
});
afterEach(async () => {
  keeper?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Start a keeper that greets. Returns a function that ends it with its connections. */
async function startKeeper(): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const reader = new FrameReader();
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      for (const message of reader.take(chunk)) {
        const { id } = fromBinary(KeeperRequestSchema, message);
        const reply = { case: "greeting" as const, value: { ...EXPECTED, pid: 1 } };
        const frame = create(KeeperFrameSchema, { frame: { case: "reply", value: { id, reply } } });
        socket.write(frameMessage(toBinary(KeeperFrameSchema, frame)));
      }
    });
  });
  keeper = server.listen(join(folder, "keeper.sock"));
  await once(server, "listening");
  return async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
}

describe("a keeper's link that breaks", () => {
  it("should connect again soon after each of many breaks, and report a keeper that has gone once", async () => {
    const pausesMs: number[] = [];
    const clock: Clock = {
      nowMs: () => systemClock.nowMs(),
      wallMs: () => systemClock.wallMs(),
      sleep: (ms, signal) => {
        if (ms >= PROBE_EVERY_MS) return systemClock.sleep(ms, signal);
        pausesMs.push(ms);
        return systemClock.sleep(1, signal);
      },
    };
    let [greeted, gone] = [0, 0];
    const listener = {
      onGreeting: () => {
        greeted += 1;
      },
      onGone: () => {
        gone += 1;
      },
      ...{ onOffer: () => {}, onChanged: () => {}, onListed: () => {} },
    };
    const access = { socketPath: join(folder, "keeper.sock"), start: null, isNeeded: true, expected: EXPECTED };
    const link = new KeeperLink({ access, clock, random: () => 0.5, log: silentLogger }, listener);
    const ending = new AbortController();
    const over = link.run(ending.signal);
    try {
      for (let round = 1; round <= BREAKS; round += 1) {
        const endKeeper = await startKeeper();
        await until(`greeting ${round}`, () => greeted === round);
        const before = pausesMs.length;
        await endKeeper();
        await until("attempts without a keeper", () => pausesMs.length >= before + 10);
        expect(gone).toBe(round);
        // A keeper that responded is tried again soon, and an absent one less and less often.
        const [first, second] = pausesMs.slice(before);
        expect([first, second].map((ms) => (ms ?? 0) <= 100)).toEqual([true, true]);
        expect(pausesMs.at(-1)).toBe(2_500);
      }
    } finally {
      ending.abort();
      await over;
    }
  });
});
