// Keeps programs that make the same files apart.
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 200;
const LONGEST_WAIT_MS = 1_200_000;

/**
 * Do work that one process at a time may do: the one that could make the folder `lock`. What a process left that was
 * killed is taken away.
 */
export async function oneAtATime(lock, work) {
  const untilMs = performance.now() + LONGEST_WAIT_MS;
  const holderFile = join(lock, "pid");
  while (!(await makes(lock))) {
    if (performance.now() > untilMs) throw new Error(`another process has held ${lock} for 20 minutes; remove it`);
    const holder = Number(await readFile(holderFile, "utf8").catch(() => "0"));
    if (holder > 0 && !isAlive(holder)) await takeAway(lock);
    else await delay(LOOK_EVERY_MS);
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

/** One of those that find it dead can rename it. */
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
