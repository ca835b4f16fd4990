import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { SettingsSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { keyFingerprint } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import type { Registrar } from "../registration/registrar.ts";
import type { AgentIdentity } from "../stream/hello.ts";
import { settledKeys } from "../testing/memory-key-files.ts";
import { KeyRotation } from "./key-rotation.ts";

const DAY_MS = 86_400_000;
const MOST_ROTATIONS = 100;
const REQUESTED_MS = 600_000;
const REPEATED_EVERY_MS = 10_000;

describe("KeyRotation", () => {
  it("should rotate each key at the same age, counted from its own creation", async () => {
    const clock = new ManualClock();
    const keys = settledKeys();
    const ending = new AbortController();
    let rotations = 0;
    const registrar: Pick<Registrar, "rotateKey"> = {
      // The server has accepted the next key and already counts this call as its first use.
      rotateKey: async ({ next }) => {
        rotations += 1;
        // End an agent that rotates without a pause, because time would never pass.
        if (rotations > MOST_ROTATIONS) ending.abort();
        return { current: keyFingerprint(next.publicKey), next: null };
      },
    };
    const rotation = new KeyRotation({
      identity: { nodeId: "n1", keys } as unknown as AgentIdentity,
      registrar: registrar as Registrar,
      clock,
      log: silentLogger,
      random: () => 0.5,
      intervalMs: 10 * DAY_MS,
      keyMadeAtMs: clock.wallMs() - 4 * DAY_MS,
      onOffered: () => {},
    });
    const running = rotation.run(ending.signal);
    const daysUntilNext = async () => {
      const before = rotations;
      for (let days = 1; days <= 100; days += 1) {
        await clock.pass(DAY_MS);
        if (rotations > before) return [days, rotations - before];
      }
      return null;
    };
    const first = await daysUntilNext();
    const next = [await daysUntilNext(), await daysUntilNext(), await daysUntilNext()];
    ending.abort();
    await running;
    expect([first, ...next]).toEqual([
      [6, 1],
      [10, 1],
      [10, 1],
      [10, 1],
    ]);
  });

  it("should rotate within the time of the first request, however often the server repeats it", async () => {
    const clock = new ManualClock();
    const ending = new AbortController();
    let rotations = 0;
    const registrar: Pick<Registrar, "rotateKey"> = {
      rotateKey: async ({ next }) => {
        rotations += 1;
        return { current: keyFingerprint(next.publicKey), next: null };
      },
    };
    const rotation = new KeyRotation({
      identity: { nodeId: "n1", keys: settledKeys() } as unknown as AgentIdentity,
      registrar: registrar as Registrar,
      clock,
      log: silentLogger,
      random: () => 0.5,
      intervalMs: 0,
      keyMadeAtMs: clock.wallMs(),
      onOffered: () => {},
    });
    const running = rotation.run(ending.signal);
    const request = create(SettingsSchema, { rotateKeyWithin: durationFromMs(REQUESTED_MS) });
    for (let passedMs = 0; passedMs < REQUESTED_MS && rotations === 0; passedMs += REPEATED_EVERY_MS) {
      rotation.heed(request);
      await clock.pass(REPEATED_EVERY_MS);
    }
    ending.abort();
    await running;
    expect(rotations).toBe(1);
  });
});
