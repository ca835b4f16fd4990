import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const terminal = { columns: 80, rows: 24 };

beforeAll(async () => {
  const labels = { zone: "europe-west-1a", "example.com/rack": "seventeen", role: "frontend" };
  await rig.connect("a-machine-with-a-rather-long-name.example.internal", { ...INFO, labels });
  await rig.register("web-1");
  await rig.run(["node", "cordon", "web-1", "-m", "a long reason that explains in detail why nothing must run here"]);
  await rig.run(["node", "ban", "--id", "another-machine-with-a-long-name.example.internal", "-m", "stolen at night"]);
  await rig.run(["token", "create", "--description", "the machines of the seventeenth rack in the second hall"]);
  await rig.run("access create continuous-integration-of-the-frontend --role submitter");
  await rig.run("webhook set ops --url https://ops.example.com/hooks/of/the/frontend/team/incoming");
  await rig.run("policy set --group gpus --selector gpu --unhealthy-after 2m -m slow");
  await rig.register("web-2");
  await rig.run("node delete web-2");
  await rig.run("brake freeze -m works");
  writeFileSync(
    join(rig.folder, "web.yaml"),
    "name: web\ntype: service\nqueueTimeout: 1h\nprocess: {command: [sleep, 1h]}\n",
  );
  await rig.run("job run --detach web.yaml");
});

describe("tables and panels on a terminal with 80 columns", () => {
  it.each([
    "node list",
    "node list --show scheduling,labels,capacity,work,seen,connection,version,hardware,features,reasons",
    "node bans",
    "node health",
    "node summary",
    "node describe web-1",
    "node why web-1",
    "node health web-1",
    "events",
    "audit list",
    "token list",
    "access list",
    "webhook list",
    "webhook show ops",
    "policy list",
    "policy show --default",
    "brake status",
    "status",
    "doctor",
    "config list",
    "whoami",
    "options",
    "job list",
    "job executions",
    "job owners",
  ])("should fit: %s", async (line) => {
    const { out, err } = await rig.run(line, { terminal, env: { COLUMNS: "" } });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are removed.
    const text = `${out}${err}`.replaceAll(/\u001b\[[0-9;?]*[a-zA-Z]/g, "");
    expect(text.split("\n").filter((each) => each.length > 80)).toEqual([]);
  });

  it.each([
    "node wait nothing --for healthy --timeout 300ms",
    "node describe web-3",
    "node list --selector a=b --filter-health healthy,unhealthy,unknown,wrong",
    "job run --detach nowhere/else/in/a/folder/with/a/long/name/web.yaml",
    "get nodes",
  ])("should wrap errors and hints: %s", async (line) => {
    const { code, err } = await rig.run(line, { terminal, env: { COLUMNS: "" } });
    expect(code).not.toBe(0);
    expect(err.split("\n").filter((each) => each.length > 80)).toEqual([]);
    // Scripts get each error in one line.
    expect((await rig.run(line)).err.split(/\s+/)).toEqual(err.split(/\s+/));
  });

  it("should show whole findings of the doctor", async () => {
    const { out } = await rig.run("doctor", { terminal, env: { COLUMNS: "", NO_COLOR: "1" } });
    const { findings } = JSON.parse((await rig.run("doctor -o json")).out);
    const words = new Set(out.split(/\s+/));
    const exact = findings.map(({ found }: { found: string }) => found).filter((found: string) => !/\d/.test(found));
    expect(exact.length).toBeGreaterThan(3);
    expect(exact.flatMap((found: string) => found.split(" ")).filter((word: string) => !words.has(word))).toEqual([]);
    expect(out).not.toContain("…");
  });

  it("should leave out repeated values of events before it cuts changes", async () => {
    const { out } = await rig.run("events --node web-1", { terminal, env: { COLUMNS: "", NO_COLOR: "1" } });
    const [heading = "", first = ""] = out.split("\n");
    expect(heading).not.toContain("SUBJECT");
    expect(heading).toMatch(/^TIME +TYPE +CHANGE/);
    expect(first).toMatch(/^\d\d:\d\d:\d\dZ /);
  });

  it.each([
    "node bans",
    "node list --deleted",
    "access list",
    "audit list",
    "events",
    "webhook show ops",
    "policy show --group gpus",
    "job owners",
    "job history web",
    "job describe web",
    "node describe web-1",
    "node why web-1",
    "brake status",
    "status",
  ])("should show people by name: %s", async (line) => {
    const { code, out } = await rig.run(line);
    expect(code).toBe(0);
    expect(out).not.toMatch(/\b(token|user|system):?[0-9a-f]{6,}|\btoken:/);
    expect(out).not.toMatch(/\bsystem\b/);
  });

  it("should show the ids of people on request", async () => {
    expect((await rig.run("job history web -o wide")).out).toMatch(/ token:[0-9a-f-]{36} /);
  });
});
