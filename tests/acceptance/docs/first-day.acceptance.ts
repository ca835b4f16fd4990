import { mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type CommandPlace, testPage } from "../../support/page-commands.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { buildEarlier, type EarlierRelease } from "../postgres/earlier-release.ts";
import { FIRST_DAY_PORTS, firstDay } from "./expected-pages.ts";
import { approveLogins, freePortsOf, leftOf, packNewVersion, writeProgram } from "./page-helpers.ts";

const LIMIT_MS = 120_000;
/**
 * The commit that stands for an earlier release, because there is no release yet. It is the last commit with
 * another schema that the current version can migrate.
 */
const EARLIER = "a2cd30cb26a5a47b4d239aaa45842bc8b30f0ab4";
const EARLIER_VERSION = "0.0.9";

describe("an operator's first day, from docs/first-day.md", () => {
  let place: CommandPlace;
  let data: string;
  let stopApproving: () => void;
  let earlier: EarlierRelease;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), "rollcall-first-day-"));
    const checkout = layOutCheckout(data);
    packNewVersion(checkout);
    earlier = await buildEarlier(EARLIER);
    const version = { type: "module", version: EARLIER_VERSION };
    writeFileSync(join(dirname(earlier.main), "../package.json"), JSON.stringify(version));
    // Add the commands `node wait` and `demo`, because the earlier release does not have them.
    const program = join(checkout, "bin/rollcall");
    renameSync(program, join(checkout, "bin/current"));
    const current = `exec '${join(checkout, "bin/current")}' "$@"`;
    const choose = `case "$1 $2" in "node wait" | demo*) ${current} ;; esac`;
    writeProgram(program, `${choose}\nexec '${process.execPath}' '${earlier.main}' "$@"`);
    symlinkSync(join(workspaceRoot, "deploy"), join(checkout, "deploy"));
    place = { checkout, instead: await freePortsOf(FIRST_DAY_PORTS) };
    stopApproving = approveLogins(() => `http://127.0.0.1:${place.instead["7730"]}`, "ana");
  }, LIMIT_MS);

  afterAll(async () => {
    stopApproving();
    for (const pid of await leftOf(place.checkout)) endProcess(pid);
    for (const { pid } of await processesOf(data)) endProcess(pid);
    await earlier.remove();
    for (const folder of [place.checkout, data]) rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  }, LIMIT_MS);

  testPage("docs/first-day.md", firstDay({ before: EARLIER_VERSION, schema: latestMigration() }), () => place);
});

/** Return the last migration of the current sources, such as "0029-console-sessions". */
function latestMigration(): string {
  const names = readdirSync(join(workspaceRoot, "libs/store/src/database/migrations"));
  const found = names.filter((name) => /^\d{4}-[a-z0-9-]+\.ts$/.test(name)).toSorted();
  return basename(found.at(-1) ?? "", ".ts");
}
