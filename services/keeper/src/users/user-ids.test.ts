import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { needs } from "@rollcall/testkit/needs";
import { ManualClock } from "@rollcall/testkit/time";
import { UserIds } from "./user-ids.ts";

const RANGE = { first: 56_920, last: 56_922 };
const IDS = 3;
const SWEEP_PAUSE_MS = 60_000;
const USED_UP = "all user ids of Work.UserIds (56920-56922) are in use, or own files that executions have left behind";

const { describe, it } = needs(
  "getent",
  ["/usr/bin/getent", "/bin/getent"].some((path) => existsSync(path)),
);

describe("UserIds", () => {
  const clock = new ManualClock();
  let root: string;
  let ids: UserIds;
  let claimed = 0;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "rollcall-user-ids-"));
    ids = new UserIds({ ...RANGE, directory: root, shared: [join(root, "none")], clock, log: silentLogger });
  });

  afterEach(() => rm(root, { recursive: true }));

  /** Claim an id for a new execution. Returns the execution's directory, which ends the use when it is removed. */
  async function claim(): Promise<string> {
    claimed += 1;
    const home = join(root, `execution-${claimed}`);
    await mkdir(home);
    await ids.claim(home).catch(async (error: unknown) => {
      await rm(home, { recursive: true });
      throw error;
    });
    return home;
  }

  it("should give each id once at a time, and all of them again", async () => {
    const begin = async (): Promise<Use> => {
      const home = await claim();
      const end = async () => {
        await rm(home, { recursive: true });
        clock.advance(SWEEP_PAUSE_MS);
      };
      return { endings: { "a removed execution": end } };
    };
    expect(await faultsAtLimit({ limit: IDS, reason: USED_UP, begin })).toEqual([]);
  });

  it("should keep an id while it is unknown whether its execution's directory still exists", async () => {
    const disk = join(root, "disk");
    const home = join(disk, "execution");
    await mkdir(home, { recursive: true });
    await ids.claim(home);
    for (let count = 1; count < IDS; count += 1) await claim();
    await rm(disk, { recursive: true });
    // Nothing below a link to itself can be looked up, as on a disk with an error.
    await symlink(disk, disk);
    clock.advance(SWEEP_PAUSE_MS);
    await expect(claim()).rejects.toThrow(USED_UP);
    await rm(disk);
    clock.advance(SWEEP_PAUSE_MS);
    await claim();
  });

  it("should search for free ids at most once a minute", async () => {
    const homes = [await claim(), await claim(), await claim()];
    // This waits for the search that the third claim has begun.
    await expect(claim()).rejects.toThrow(USED_UP);
    for (const home of homes) await rm(home, { recursive: true });
    clock.advance(SWEEP_PAUSE_MS - 1);
    await expect(claim()).rejects.toThrow(USED_UP);
    clock.advance(1);
    for (let count = 0; count < IDS; count += 1) await claim();
  });
});
