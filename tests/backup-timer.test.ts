import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "../libs/testkit/src/jest/needs.ts";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "./support/checkout.ts";
import { workspaceRoot } from "./support/workspace.ts";

const LIMIT_MS = 120_000;
const UNIT = join(workspaceRoot, "deploy/systemd/rollcall-backup.service");
const { it: itWithSystemd } = needs("systemd-analyze", spawnSync("systemd-analyze", ["--version"]).status === 0);

describe("rollcall-backup.service", () => {
  let fixture: UpFixture;
  let checkout: string;
  let folder: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    folder = mkdtempSync(join(tmpdir(), "rollcall-backups-"));
    await fixture.up("--no-agent");
  }, LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    for (const path of [checkout, folder]) rmSync(path, { recursive: true, force: true });
  }, LIMIT_MS);

  /** Run a command of the unit in the way that systemd does, with the paths of this test. */
  function runUnit(key: string, own: Readonly<Record<string, string>> = {}): void {
    const settings = readUnit(UNIT);
    const defaults = settings.flatMap(([name, value]) => (name === "Environment" ? [value.split("=")] : []));
    const variables = { ...Object.fromEntries(defaults), ...own };
    const [, written = ""] = settings.find(([name]) => name === key) ?? [];
    const command = written
      .replaceAll("/usr/bin/rollcall", join(checkout, "bin/rollcall"))
      .replaceAll("/var/lib/rollcall-backup", folder)
      .replace(/\$\{(\w+)\}|(?<!\$)\$(\w+)/g, (_, braced, bare) => variables[braced ?? bare]);
    execFileSync("sh", ["-ec", command.replaceAll("$$", "\\$")], { cwd: checkout });
  }

  it("should write an intact archive while `up` runs", () => {
    const config = join(checkout, "rollcall.yaml");
    writeFileSync(config, `Data: { Dir: ${fixture.dataDirectory} }\n`);
    writeFileSync(join(checkout, "passphrase"), "correct horse battery staple\n");
    runUnit("ExecStart", { CONFIG: config, OPTIONS: "--passphrase-file=passphrase" });
    const names = readdirSync(folder);
    expect(names).toEqual([expect.stringMatching(/^rollcall-\d{4}-.*Z\.backup$/)]);
    const words = ["backup", "verify", join(folder, names[0] ?? ""), "--passphrase-file", "passphrase"];
    const program = join(checkout, "bin/rollcall");
    expect(execFileSync(program, words, { cwd: checkout, encoding: "utf8" })).toMatch(/intact[\s\S]*encrypted/);
  });

  it("should keep the newest archives, and every file of another name", () => {
    const older = ["01", "02", "03"].map((day) => `rollcall-2020-01-${day}T03-17-00Z.backup`);
    const latest = readdirSync(folder);
    for (const name of [...older, `${older[0]}.0a1b2c3d.partial`, "before upgrade.backup"])
      writeFileSync(join(folder, name), "");
    runUnit("ExecStartPost");
    expect(readdirSync(folder).sort()).toEqual(["before upgrade.backup", ...older, ...latest]);
    runUnit("ExecStartPost", { KEEP: "2" });
    expect(readdirSync(folder).sort()).toEqual(["before upgrade.backup", ...older.slice(2), ...latest]);
  });

  itWithSystemd("should be accepted by systemd, with its timer, and be confined", () => {
    const units = mkdtempSync(join(tmpdir(), "rollcall-units-"));
    try {
      for (const name of ["rollcall-backup.service", "rollcall-backup.timer"])
        cpSync(join(workspaceRoot, "deploy/systemd", name), join(units, name));
      const service = join(units, "rollcall-backup.service");
      // The program is not installed on this machine.
      writeFileSync(service, readFileSync(service, "utf8").replace("/usr/bin/rollcall", "/bin/true"));
      const analyze = (...words: readonly string[]) => {
        const { status, stdout, stderr } = spawnSync("systemd-analyze", words, { encoding: "utf8" });
        return { status, own: `${stdout}${stderr}`.split("\n").filter((line) => line.includes(units)) };
      };
      const timer = join(units, "rollcall-backup.timer");
      expect(analyze("verify", "--man=no", timer)).toEqual({ status: 0, own: [] });
      expect(analyze("calendar", timeOf(timer)).status).toBe(0);
      expect(analyze("security", "--offline=true", "--threshold=30", service).status).toBe(0);
    } finally {
      rmSync(units, { recursive: true });
    }
  });
});

/** Read the settings of a unit, with continued lines joined. */
function readUnit(path: string): readonly (readonly [key: string, value: string])[] {
  const text = readFileSync(path, "utf8").replaceAll("\\\n", "");
  return [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, key = "", value = ""]) => [key, value] as const);
}

function timeOf(timer: string): string {
  return readUnit(timer).find(([key]) => key === "OnCalendar")?.[1] ?? "";
}
