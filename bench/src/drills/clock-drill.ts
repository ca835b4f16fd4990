import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { FleetDrill } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";
import { findLibfaketime } from "./libfaketime.ts";

/** The wall clock of the replicas jumps, while the clock of the machine does not. */
export const clock: FleetDrill = {
  name: "clock",
  title: "the wall clock of every replica jumps one day ahead, back, and one day behind",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 30_000, short: 2_000 },
  run: async (context, size, faultMs) => {
    const library = findLibfaketime();
    if (library === null) throw new Error("this drill needs libfaketime (package faketime)");
    const file = join(context.directory, "clock");
    // Replace the file atomically, because half a line would be a different time.
    const set = (offset: string): void => {
      writeFileSync(`${file}.next`, `${offset}\n`);
      renameSync(`${file}.next`, file);
    };
    set("+0d");
    const fleet = await Fleet.start(context, size, {
      env: {
        LD_PRELOAD: library,
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_CACHE_DURATION: "1",
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
      },
    });
    for (const offset of ["+1d", "+0d", "-1d", "+0d"]) {
      set(offset);
      context.progress(`the wall clock is ${offset}`);
      await delay(faultMs);
    }
    return fleet.outcome();
  },
};
