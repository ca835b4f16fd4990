import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { fingerprintOf } from "../../libs/identity/src/index.ts";
import { until } from "../../libs/testkit/src/index.ts";
import { RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import type { UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";

type DataDirectory = Pick<UpFixture, "dataDirectory">;

/** Return the fingerprint of the first certificate in a file. */
export function fingerprintIn(file: string): string {
  return fingerprintOf(new X509Certificate(readFileSync(file)));
}

/** Run a command as the user of a fixture's `up`. */
export async function userCommand({ dataDirectory }: DataDirectory, ...words: readonly string[]) {
  const running = new RollcallProcess(words, { ROLLCALL_DATA_DIR: dataDirectory });
  return { code: await running.exit(), out: running.out };
}

/** Wait until an agent reports that it trusts exactly these authorities. */
export async function isTrusting(at: DataDirectory, id: string, wanted: readonly string[]): Promise<void> {
  const sorted = wanted.toSorted().join();
  await until(
    `${id} to trust ${sorted}`,
    async () => {
      const { code, out } = await userCommand(at, "node", "describe", id, "-o", "json");
      const trusted: readonly string[] = code === 0 ? (JSON.parse(out).info?.trust?.authorities ?? []) : [];
      return trusted.join() === sorted;
    },
    PATIENCE_MS,
  );
}

/**
 * The time limit for an agent to report its authorities. It is long enough for a busy machine, on which
 * each poll starts a process.
 */
const PATIENCE_MS = 120_000;
