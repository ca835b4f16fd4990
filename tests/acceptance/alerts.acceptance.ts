import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { TestAuthority, validNow } from "../../libs/testkit/src/certificates.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { until } from "../../libs/testkit/src/until.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { workspaceRoot } from "../support/workspace.ts";

jest.setTimeout(600_000);

const WAIT_MS = 60_000;
const MONTH_MS = 30 * 86_400_000;
const ALERT = "RollcallCertificateExpiresSoon";

/** Whether Prometheus is installed. On CI the test runs in any case, because CI can install it. */
const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: string;
  readonly annotations: Readonly<Record<string, string>>;
}

// Runs Debian's Prometheus with the shipped configuration and rules, for an `up` in its initial setup.
needs("prometheus", hasPrometheus).describe("deploy/monitoring/prometheus.yaml", () => {
  const authority = new TestAuthority();
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-alerts-"));
  let fixture: UpFixture;
  let prometheus: ChildProcess;
  let printed = "";
  let url: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    // The certificate is valid until tomorrow. When Prometheus checks it, less than a day is left.
    const { certFile, keyFile } = authority.write("server");
    await fixture.up("--no-agent", "--tls-cert", certFile, "--tls-key", keyFile, "--tls-ca", authority.caFile);
    const [port = 0] = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const source = join(workspaceRoot, "deploy/monitoring");
    copyFileSync(join(source, "alerts.yaml"), join(folder, "alerts.yaml"));
    const config = readFileSync(join(source, "prometheus.yaml"), "utf8")
      .replaceAll("127.0.0.1:7790", fixture.probes)
      .replaceAll("15s", "1s")
      .replace("# external_labels:", "external_labels:");
    writeFileSync(join(folder, "prometheus.yaml"), config);
    const words = [
      `--config.file=${folder}/prometheus.yaml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    prometheus = spawn("prometheus", words, { stdio: ["ignore", "ignore", "pipe"] });
    prometheus.stderr?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  });
  afterAll(async () => {
    prometheus?.kill("SIGTERM");
    if (prometheus?.exitCode === null) await once(prometheus, "exit");
    await fixture.dispose();
    for (const path of [folder, authority.dir]) rmSync(path, { recursive: true, force: true });
  });

  async function ask<T>(path: string): Promise<T | null> {
    const answer = await fetch(`${url}/api/v1/${path}`).catch(() => null);
    return answer?.ok === true ? ((await answer.json()) as { readonly data: T }).data : null;
  }

  /** Return the firing alerts; null if Prometheus does not respond. */
  async function firing(): Promise<readonly Alert[] | null> {
    const found = await ask<{ readonly alerts: readonly Alert[] }>("alerts");
    return found?.alerts.filter(({ state }) => state === "firing") ?? null;
  }

  async function waitFor<T>(what: string, condition: () => Promise<T | null>): Promise<T> {
    return until<T>(what, condition, WAIT_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}:\n${printed}`);
    });
  }

  it("should scrape the process, and load every rule", async () => {
    await waitFor("a target that is up", async () => {
      const targets = await ask<{ readonly activeTargets: readonly { readonly health: string }[] }>("targets");
      return targets?.activeTargets.map(({ health }) => health).join() === "up";
    });
    const rules = await ask<{ readonly groups: readonly { readonly rules: readonly { readonly name: string }[] }[] }>(
      "rules",
    );
    const names = rules?.groups.flatMap((group) => group.rules.map(({ name }) => name));
    const written = readFileSync(join(folder, "alerts.yaml"), "utf8").matchAll(/alert: (\w+)/g);
    expect(names?.sort()).toEqual([...written].map(([, name]) => name).sort());
  });

  it("should fire for a certificate that expires soon, and link to its section of the runbook", async () => {
    const alerts = await waitFor("the alert", async () => {
      const found = await firing();
      return found !== null && found.length > 0 ? found : null;
    });
    expect(alerts).toEqual([expect.objectContaining({ labels: expect.objectContaining({ alertname: ALERT }) })]);
    expect(alerts[0]?.annotations.summary).toContain(`The certificate of ${fixture.probes} expires in 23h`);
    const [page, section] = (alerts[0]?.annotations.runbook_url ?? "").split("#");
    expect(page).toBe("https://docs.example.org/runbook");
    const titles = [...readFileSync(join(workspaceRoot, "docs/runbook.md"), "utf8").matchAll(/^## (.*)$/gm)];
    expect(titles.map(([, title = ""]) => title.toLowerCase())).toContain(section);
  });

  it("should stop firing once the certificate is renewed, without a restart", async () => {
    authority.write("server", { ...validNow(), notAfterMs: Date.now() + MONTH_MS });
    await waitFor("the end of the alert", async () => (await firing())?.length === 0);
  });
});
