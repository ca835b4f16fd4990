import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";

const LOOK_MS = 100;

/** Confirm each login by a device as soon as it has begun, as a person at a browser does. Answers how to end that. */
export function approveLogins(issuer: TestIssuer): () => void {
  let confirmed = 0;
  const timer = setInterval(() => {
    const begun = issuer.requests.filter((request) => request === "POST /device").length;
    if (begun === confirmed) return;
    issuer.decideLogin("approved");
    confirmed = begun;
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/** Processes that a page has written into files NAME.pid and that may still run, after a failure. */
export async function leftOf(checkout: string): Promise<readonly number[]> {
  const files = (await readdir(checkout)).filter((name) => name.endsWith(".pid"));
  const pids = await Promise.all(files.map(async (name) => Number(await readFile(join(checkout, name), "utf8"))));
  return pids.filter((pid) => pid > 1);
}
