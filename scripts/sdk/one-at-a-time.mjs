// Keeps programs that write the same files from running at the same time.
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const SCAN_EVERY_MS = 200;
const LONGEST_WAIT_MS = 1_200_000;

/**
 * Do work that only one process can do at a time: the process that created the folder `lock`. Removes a lock that
 * a killed process left behind.
 */
export async function oneAtATime(lock, work) {
  const untilMs = performance.now() + LONGEST_WAIT_MS;
  const holderFile = join(lock, "pid");
  while (!(await makes(lock))) {
    if (performance.now() > untilMs) throw new Error(`another process has held ${lock} for 20 minutes; remove it`);
    const holder = Number(await readFile(holderFile, "utf8").catch(() => "0"));
    if (holder > 0 && !isAlive(holder)) await takeAway(lock);
    else await delay(SCAN_EVERY_MS);
  }
  await writeFile(holderFile, String(process.pid));
  try {
    return await work();
  } finally {
    await rm(lock, { recursive: true, force: true });
  }
}

async function makes(folder) {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** Rename a stale lock before removing it. If several processes find it, only one of them can rename it. */
async function takeAway(lock) {
  const aside = `${lock}.${process.pid}`;
  await rename(lock, aside).then(
    () => rm(aside, { recursive: true, force: true }),
    () => {},
  );
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
