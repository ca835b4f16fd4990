import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { until } from "../../libs/testkit/src/until.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { workspaceRoot } from "../support/workspace.ts";

jest.setTimeout(600_000);

interface ActiveTargets {
  readonly data: { readonly activeTargets: readonly { readonly labels: Readonly<Record<string, string>> }[] };
}

const page = readFileSync(join(workspaceRoot, "docs/prometheus-discovery.md"), "utf8");
const block = (opening: string) => page.split(`\`\`\`${opening}\n`)[1]?.split("```")[0] ?? "";

/** Find Debian's prometheus without its service. It is the installed program or the one in its package. */
function findPrometheus(folder: string): string {
  if (spawnSync("prometheus", ["--version"]).status === 0) return "prometheus";
  const run = (program: string, words: readonly string[]) => {
    const { status, stderr } = spawnSync(program, words, { cwd: folder, timeout: 180_000 });
    if (status !== 0) throw new Error(`${program} ${words[0]} failed: ${stderr}`);
  };
  run("apt-get", ["-qq", "update"]);
  run("apt-get", ["-qq", "download", "prometheus"]);
  const file = readdirSync(folder).find((name) => name.endsWith(".deb")) ?? "";
  run("dpkg-deb", ["-x", file, "package"]);
  return join(folder, "package/usr/bin/prometheus");
}

// Runs Prometheus with the scrape configuration that docs/prometheus-discovery.md describes.
describe("docs/prometheus-discovery.md", () => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-prometheus-"));
  let fixture: UpFixture;
  let prometheus: ChildProcess;
  let port: number;

  beforeAll(async () => {
    const program = findPrometheus(folder);
    fixture = await createUpFixture();
    await fixture.up("--no-agent");
    const agents = ["n1", "n2", "n3"].map((name) => {
      const zone = name === "n3" ? "b" : "a";
      return fixture.agent(name, "--label", `zone=${zone}`);
    });
    for (const agent of agents) await agent.logged("connected");
    [port = 0] = await freePorts(1);
    const command = block("sh test=token").replace("rollcall ", `${join(workspaceRoot, "bin/rollcall")} `);
    const made = spawnSync("sh", ["-c", command], {
      cwd: folder,
      env: {
        ...process.env,
        ROLLCALL_SERVER: fixture.server,
        ROLLCALL_TOKEN_FILE: join(fixture.dataDirectory, "admin-token"),
      },
    });
    expect(String(made.stderr)).toContain("role viewer");
    const scrape = block("yaml test=scrape").replace("rollcall.example:7700", fixture.server).replace("30s", "1s");
    writeFileSync(join(folder, "prometheus.yml"), scrape);
    const words = [
      "--config.file=prometheus.yml",
      `--web.listen-address=127.0.0.1:${port}`,
      "--storage.tsdb.path=data",
    ];
    prometheus = spawn(program, words, { cwd: folder, stdio: "ignore" });
  });
  afterAll(async () => {
    prometheus?.kill("SIGTERM");
    if (prometheus?.exitCode === null) await once(prometheus, "exit");
    await fixture?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Return the labels of each target in Prometheus; null if Prometheus does not respond. */
  async function targets() {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/targets?state=active`).catch(() => null);
    if (answer === null || !answer.ok) return null;
    const { data } = (await answer.json()) as ActiveTargets;
    return data.activeTargets.map(({ labels }) => labels).sort((left, right) => compare(left.node, right.node));
  }

  it("should let Prometheus find the nodes of a selection, and drop a removed one", async () => {
    await until("two targets", async () => (await targets())?.length === 2, 60_000);
    const found = await targets();
    expect(found?.map(({ node }) => node)).toEqual(["n1", "n2"]);
    expect(found?.[0]).toMatchObject({ job: "nodes", zone: "a", health: "HEALTHY" });
    expect(found?.[0]?.instance).toMatch(/:9100$/);
    await fixture.client.admin.rejectNode({ node: "n1" });
    await until("one target", async () => (await targets())?.length === 1, 60_000);
    expect((await targets())?.[0]?.node).toBe("n2");
  });
});

function compare(left = "", right = ""): number {
  return left < right ? -1 : 1;
}
