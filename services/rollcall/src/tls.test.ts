import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import tls from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runCli } from "@rollcall/cli";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { until } from "@rollcall/testkit/time";
import { RollcallProcess } from "./testing/rollcall-process.ts";
import { createTestShell } from "./testing/run-client.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

let fixture: UpFixture;
let authority: TestAuthority;
beforeEach(async () => {
  fixture = await createUpFixture();
  authority = new TestAuthority();
});
afterEach(async () => {
  await fixture.dispose();
  rmSync(authority.dir, { recursive: true, force: true });
});

/** Run a verb as the user of the fixture's `up`. */
async function client(line: string, env: Readonly<Record<string, string>> = {}) {
  const shell = createTestShell({
    args: line.split(" "),
    env: { ROLLCALL_DATA_DIR: fixture.dataDirectory, ...env },
  });
  const configuration = {
    list: async () => ({ settings: [], problems: [], warnings: [] }),
    defaultYaml: async () => "",
    convert: async () => ({ settings: [], leftAside: [], yaml: "" }),
  };
  const code = await runCli(shell, { verbs: [], configuration });
  return { code, text: shell.written() };
}

/** Wait until the command line reports a node as healthy. */
async function isHealthy(id: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const line = new RegExp(`^${id},.*HEALTHY.*,CONNECTED`, "m");
  let listed = "";
  await until(`${id} to be healthy`, async () => {
    listed = (await client("node list --output csv", env)).text;
    return line.test(listed);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; listed was:\n${listed}`);
  });
}

async function serialOf(address: string): Promise<string> {
  const [host = "", port = ""] = address.split(":");
  const socket = tls.connect({
    host,
    port: Number(port),
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
  });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

describe("rollcall up --tls", () => {
  it("should serve this user and this machine's agent without configuration, and tell others what to do", async () => {
    const up = await fixture.up("--tls", "--set", "Compute.Name=here", ...WITHOUT_WORK);
    const ca = join(fixture.dataDirectory, "tls/ca.pem");
    await isHealthy("here");
    for (const key of ["ca-key.pem", "server-key.pem"]) {
      expect(statSync(join(fixture.dataDirectory, "tls", key)).mode & 0o777).toBe(0o600);
    }

    const elsewhere = { ROLLCALL_DATA_DIR: authority.dir };
    const plain = await client(`node list --server ${fixture.server}`, elsewhere);
    expect(plain).toMatchObject({ code: 1, text: expect.stringContaining("this port requires TLS") });
    const untrusted = await client(`node list --server https://${fixture.server}`, elsewhere);
    expect(untrusted.code).toBe(3);
    expect(untrusted.text).toContain("authority that is not trusted here");
    expect(untrusted.text).toContain("--ca-file");
    const token = join(fixture.dataDirectory, "admin-token");
    const named = `node list --server ${fixture.server} --ca-file ${ca} --token-file ${token}`;
    expect(await client(named, elsewhere)).toMatchObject({ code: 0 });

    const clear = fixture.agent("clear");
    await clear.logged("connection failed", { reason: "TLS_REQUIRED" });
    await clear.killed();
    const secure = ["--server", `https://${fixture.server}`];
    const other = fixture.agent("other", ...secure);
    const { detail } = await other.logged("connection failed", { reason: "UNREACHABLE" });
    expect(detail).toContain("--ca-file");
    await other.killed();
    fixture.agent("second", ...secure, "--ca-file", ca);
    await isHealthy("second");

    // The printed command needs no file: the agent fetches the named authority, compares its fingerprint and stores
    // it.
    const [flag] = /--ca-fingerprint sha256:[0-9a-f]{64}/.exec((await client("token create")).text) ?? [""];
    fixture.agent("third", ...secure, ...flag.split(" "));
    await isHealthy("third");
    const user = { ROLLCALL_DATA_DIR: authority.dir, XDG_CONFIG_HOME: authority.dir };
    const wrong = flag.replace(/[0-9a-f]{4}$/, (digits) => (digits === "0000" ? "1111" : "0000"));
    const refused = await client(`login --server ${fixture.server} --token-file ${token} ${wrong}`, user);
    expect(refused).toMatchObject({ code: 1, text: expect.stringContaining("has the fingerprint") });
    expect(await client(`login --server ${fixture.server} --token-file ${token} ${flag}`, user)).toMatchObject({
      code: 0,
    });
    expect(await client("node list", user)).toMatchObject({ code: 0, text: expect.stringContaining("third") });

    // No process may print a secret.
    const secrets = [
      readFileSync(token, "utf8").trim(),
      ...["ca-key.pem", "server-key.pem"].map((name) => bodyOf(join(fixture.dataDirectory, "tls", name))),
      ...passwordsIn(join(fixture.dataDirectory, "postgres")),
    ];
    await up.killed("SIGTERM");
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(8);
      for (const said of [up.out, up.err, clear.out, other.out]) expect(said).not.toContain(secret);
    }
  });
});

describe("rollcall up --tls-cert", () => {
  it("should load a new certificate without a restart, keep open streams, and refuse a broken one", async () => {
    const { certFile, keyFile } = authority.write("server");
    const files = ["--tls-cert", certFile, "--tls-key", keyFile, "--tls-ca", authority.caFile];
    const up = await fixture.up(...files, "--set", "Compute.Name=here", ...WITHOUT_WORK);
    await isHealthy("here");
    const first = await serialOf(fixture.server);
    authority.write("server");
    await up.logged("tls certificate replaced");
    const second = await serialOf(fixture.server);
    expect(second).not.toBe(first);
    writeFileSync(certFile, "broken");
    const { problem } = await up.logged("cannot replace the tls certificate, keeping the current one");
    expect(problem).toBe(`${certFile}: contains no PEM certificate`);
    expect(await serialOf(fixture.server)).toBe(second);
    await isHealthy("here");
    const said = up.out.split("\n").filter((line) => line.includes('"connected"'));
    expect(said).toHaveLength(1);
    const metrics = await fetch(`http://${fixture.probes}/metrics`).then((answer) => answer.text());
    expect(metrics).toMatch(/rollcall_tls_certificate_expiry_timestamp_seconds \d{10}/);
  });

  it("should accept only clients and agents with a certificate if one is required", async () => {
    const { certFile, keyFile } = authority.write("server");
    const own = authority.write("client", { usage: "client", names: [] });
    const files = ["--tls-cert", certFile, "--tls-key", keyFile, "--tls-ca", authority.caFile];
    const agent = [`Compute.TLS.CertFile=${own.certFile}`, `Compute.TLS.KeyFile=${own.keyFile}`];
    const settings = ["Compute.Name=here", ...agent].flatMap((setting) => ["--set", setting]);
    await fixture.up(...files, "--tls-client-ca", authority.caFile, ...settings, ...WITHOUT_WORK);
    const without = await client("node list");
    expect(without.code).toBe(1);
    expect(without.text).toContain("pass one with --client-cert and --client-key");
    const shown = { ROLLCALL_CLIENT_CERT: own.certFile, ROLLCALL_CLIENT_KEY: own.keyFile };
    await isHealthy("here", shown);
    const other = ["--server", `https://${fixture.server}`, "--ca-file", authority.caFile];
    await fixture.agent("other", ...other).logged("connection failed", { reason: "CLIENT_CERTIFICATE_REQUIRED" });
  });

  it("should say at startup what is wrong with the files", async () => {
    const { certFile } = authority.write("server");
    const { keyFile } = authority.write("other");
    const dir = ["--data-dir", fixture.dataDirectory];
    const wrong = new RollcallProcess(["up", ...dir, "--tls-cert", certFile, "--tls-key", keyFile]);
    expect(await wrong.exit()).toBe(1);
    expect(wrong.err).toContain(`${keyFile}: not the key of the certificate in ${certFile}`);
    const half = new RollcallProcess(["up", ...dir, "--tls-cert", certFile]);
    expect(await half.exit()).toBe(2);
    expect(half.err).toContain("TLS.CertFile and TLS.KeyFile must be set together");
    const other = new TestAuthority(mkdtempSync(join(authority.dir, "other-")));
    const files = ["--tls-cert", certFile, "--tls-key", authority.write("server").keyFile];
    const unverified = new RollcallProcess(["up", ...dir, ...files, "--tls-ca", other.caFile]);
    expect(await unverified.exit()).toBe(1);
    expect(unverified.err).toContain(`${other.caFile}: contains no root that verifies the certificate in`);
    const announced = new RollcallProcess(["up", ...dir, "--no-agent", "--set", "TLS.AgentCAFile=/nowhere.pem"]);
    expect(await announced.exit()).toBe(1);
    expect(announced.out).toContain("cannot announce authorities to agents: /nowhere.pem: cannot be read");
  });
});

describe("listening beyond loopback", () => {
  it.each([["up"], ["serve", "registry", "--database-url", "postgres://u:p@127.0.0.1:1/x"]])(
    "should require TLS or explicit consent: %s",
    async (...verb) => {
      const refused = new RollcallProcess([...verb, "--listen", "0.0.0.0"]);
      expect(await refused.exit()).toBe(2);
      expect(refused.err).toContain("--tls-cert and --tls-key");
      expect(refused.err).toContain("--insecure-plaintext");
    },
  );

  it("should warn if clear text was allowed, and recognize clients that use TLS", async () => {
    const up = await fixture.up("--listen", "0.0.0.0", "--insecure-plaintext", "--no-agent");
    expect(up.out).toContain("Everything listens on 0.0.0.0 in clear text");

    // A client that uses TLS with a clear-text server also gets a clear error.
    const https = `https://${fixture.server}`;
    const listed = await client(`node list --server ${https} --ca-file ${authority.caFile}`);
    expect(listed.text).toContain("it does not speak TLS");
    const agent = fixture.agent("secure", "--server", https, "--ca-file", authority.caFile);
    const { detail } = await agent.logged("connection failed", { reason: "UNREACHABLE" });
    expect(detail).toContain("it does not speak TLS");
  });
});

/** Return a line from the middle of a key. */
function bodyOf(pemFile: string): string {
  return readFileSync(pemFile, "utf8").split("\n")[1] ?? "";
}

function passwordsIn(directory: string): readonly string[] {
  return [readFileSync(join(directory, "password"), "utf8").trim()];
}
