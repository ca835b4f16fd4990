import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { MachineClock } from "./execution/keeper-services.ts";
import { SeenStamp } from "./seen-stamp.ts";

const clockAt = (nowMs: number) => ({ nowMs: () => nowMs }) as unknown as MachineClock;

describe("SeenStamp", () => {
  it("should survive the keeper, but neither a reboot nor a clock that it is ahead of", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollcall-seen-"));
    const first = await SeenStamp.open(directory, "boot-1", clockAt(5_000));
    first.renew();
    await first.close();
    const seenBy = async (boot: string, nowMs: number) => (await SeenStamp.open(directory, boot, clockAt(nowMs))).atMs;
    expect(await seenBy("boot-1", 9_000)).toBe(5_000);
    // The clock starts again with each boot.
    expect(await seenBy("boot-2", 9_000)).toBe(9_000);
    expect(await seenBy("boot-1", 1_000)).toBe(1_000);
    await rm(directory, { recursive: true });
  });
});
