import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { needs } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

const PAGE = fileURLToPath(new URL("../../../docs/heartbeat-with-curl.md", import.meta.url));
const run = promisify(execFile);

/** Whether curl, and an OpenSSL that signs with Ed25519 keys, are installed. The page under test needs both. */
function isEquipped(): boolean {
  const openssl = spawnSync("openssl", ["version"], { encoding: "utf8" });
  const curl = spawnSync("curl", ["--version"]);
  return curl.status === 0 && /^OpenSSL [3-9]/.test(openssl.stdout ?? "");
}

const { describe: describeEquipped } = needs("curl and OpenSSL 3", isEquipped());

describeEquipped("docs/heartbeat-with-curl.md", () => {
  let fixture: UpFixture;
  beforeAll(async () => {
    fixture = await createUpFixture();
    await fixture.up("--agent=false");
  });
  afterAll(() => fixture.dispose());

  it("should make a node that is HEALTHY while it beats, and declare it unhealthy when it stops", async () => {
    const { server, dataDirectory, client } = fixture;
    const script = readFileSync(PAGE, "utf8").match(/```sh test=whole\n([\s\S]*?)```/)?.[1] ?? "";
    const env = {
      ...process.env,
      NODE: "curl-1",
      REGISTRY: `http://${server}`,
      DIR: dataDirectory,
      BEATS: "3",
      INTERVAL: "0",
    };
    const { stdout } = await run("sh", ["-c", script], { env });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(answers[0]).toMatchObject({
      membership: { state: "MEMBERSHIP_STATE_APPROVED" },
      heartbeatInterval: "0.500s",
      unhealthyAfter: "3s",
    });
    const history = () => client.healthHistory("curl-1");
    await until("the silent node to be declared", async () => (await history()).join().startsWith("HEALTHY,UNHEALTHY"));
    // A second run with the same key does not create another node.
    await run("sh", ["-c", script], { env });
    await until("the node to be back", async () => (await history()).slice(1).includes("HEALTHY"));
  });
});
