import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { fingerprintOf } from "../../libs/identity/src/index.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { until } from "../../libs/testkit/src/until.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import type { RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { openSecureClients, type SecureClients } from "../../services/rollcall/src/testing/secure-clients.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { workspaceRoot } from "../support/workspace.ts";

jest.setTimeout(600_000);

const { describe: describeEquipped } = needs("nginx", spawnSync("nginx", ["-v"]).status === 0);

/** Where nginx listens in the test, and where it forwards calls. */
interface Places {
  readonly port: number;
  readonly agentPort: number;
  readonly server: string;
  readonly agents: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** Change only the marked lines of deploy/nginx/rollcall.conf. */
function changed(text: string, { port, agentPort, server, agents, ...files }: Places): string {
  return text
    .replaceAll(/127\.0\.0\.1:771[0-3]/g, server)
    .replaceAll("127.0.0.1:7701", agents)
    .replaceAll(/^.*listen \[::\].*\n/gm, "")
    .replaceAll("listen 443 ", `listen 127.0.0.1:${port} `)
    .replaceAll("listen 7701 ", `listen 127.0.0.1:${agentPort} `)
    .replaceAll("rollcall.example.org", "localhost")
    .replaceAll("/etc/nginx/tls/rollcall.pem", files.certFile)
    .replaceAll("/etc/nginx/tls/rollcall.key", files.keyFile)
    .replaceAll("/etc/nginx/tls/authority.pem", files.caFile);
}

// Runs Debian's nginx with the configuration that docs/nginx.md describes.
describeEquipped("deploy/nginx/rollcall.conf", () => {
  const authority = new TestAuthority();
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-nginx-"));
  let fixture: UpFixture;
  let nginx: ChildProcess;
  let clients: SecureClients;
  let agent: RollcallProcess;
  let token: string;
  let port: number;

  beforeAll(async () => {
    fixture = await createUpFixture();
    const [outside = 0, agentsOutside = 0, agentsInside = 0] = await freePorts(3);
    port = outside;
    const proxied = ["--trusted-proxies", "127.0.0.1", "--set", `Health.AdvertiseAddress=localhost:${agentsOutside}`];
    const serving = ["--set", `Join.PackagesDir=${folder}`];
    await fixture.up(
      "--no-agent",
      "--agent-port",
      String(agentsInside),
      "--join-tokens=strict",
      ...proxied,
      ...serving,
    );
    token = readFileSync(join(fixture.dataDirectory, "admin-token"), "utf8").trim();
    const { certFile, keyFile } = authority.write("nginx", { usage: "server", names: ["localhost", "127.0.0.1"] });
    const conf = changed(readFileSync(join(workspaceRoot, "deploy/nginx/rollcall.conf"), "utf8"), {
      ...{ port, agentPort: agentsOutside, server: fixture.server, agents: `127.0.0.1:${agentsInside}` },
      ...{ certFile, keyFile, caFile: authority.caFile },
    });
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    const paths = temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n");
    const whole = `user root;\npid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${conf}}\n`;
    const file = join(folder, "nginx.conf");
    mkdirSync(join(folder, "logs"));
    writeFileSync(file, whole);
    const words = ["-p", folder, "-c", file, "-e", "stderr", "-g", "daemon off;"];
    nginx = spawn("nginx", words, { stdio: ["ignore", "inherit", "inherit"] });
    const ca = readFileSync(authority.caFile, "utf8");
    clients = openSecureClients({ baseUrl: `https://localhost:${port}`, ca, token });
    await until("nginx", () => clients.registry.listNodes({}).then(Boolean, () => null));
  });
  afterAll(async () => {
    clients?.close();
    nginx?.kill("SIGTERM");
    if (nginx?.exitCode === null) await once(nginx, "exit");
    await fixture.dispose();
    rmSync(folder, { recursive: true, force: true });
    rmSync(authority.dir, { recursive: true, force: true });
  });

  /** Make a call as JSON over HTTP/1.1 from an address of this machine. */
  function post(path: string, body: object, headers: Readonly<Record<string, string>> = {}, from = "127.0.0.1") {
    return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
      const options = { host: "localhost", port, path, method: "POST", headers: all, localAddress: from, family: 4 };
      const ca = readFileSync(authority.caFile);
      const request = requestHttps({ ...options, ca, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode, text }));
      });
      request.on("error", reject);
      request.end(JSON.stringify(body));
    });
  }

  it("should carry an agent's registration and its stream", async () => {
    const made = await post("/rollcall.admin.v1.JoinTokenService/CreateJoinToken", { preauthorized: true });
    const { text } = JSON.parse(made.text) as { readonly text: string };
    const place = ["--server", `https://localhost:${port}`, "--ca-file", authority.caFile];
    agent = fixture.agent("n1", ...place, "--join-token", text);
    await agent.logged("connected");
    await fixture.client.becomes("n1", "APPROVED CONNECTED HEALTHY");
  });

  it("should serve the authority of its certificate to an agent with the fingerprint", async () => {
    const made = await post("/rollcall.admin.v1.JoinTokenService/CreateJoinToken", { preauthorized: true });
    const { text } = JSON.parse(made.text) as { readonly text: string };
    const fingerprint = fingerprintOf(new X509Certificate(readFileSync(authority.caFile)));
    const place = ["--server", `https://localhost:${port}`, "--ca-fingerprint", fingerprint];
    const known = fixture.agent("n2", ...place, "--join-token", text);
    await known.logged("connected");
    await fixture.client.becomes("n2", "APPROVED CONNECTED HEALTHY");
    expect(await known.killed("SIGTERM")).toBe(0);
  });

  it("should carry every service by gRPC, and by JSON at the same paths", async () => {
    expect((await clients.registry.getNode({ node: "n1" })).node?.id).toBe("n1");
    expect((await clients.health.getNodeHealth({ node: "n1" })).nodeHealth?.nodeId).toBe("n1");
    expect((await clients.audit.listAuditEntries({})).entries.length).toBeGreaterThan(0);
    for (const [path, body] of [
      ["/rollcall.registry.v1.RegistryService/GetNode", { node: "n1" }],
      ["/rollcall.events.v1.EventService/ListEvents", {}],
      ["/rollcall.health.v1.HealthQueryService/GetNodeHealth", { node: "n1" }],
      ["/rollcall.admin.v1.AuditService/ListAuditEntries", {}],
      ["/rollcall.scheduler.v1.JobService/ListJobs", {}],
    ] as const) {
      const { status, text } = await post(path, body);
      expect([path, status, typeof JSON.parse(text)]).toEqual([path, 200, "object"]);
    }
  });

  it.each([
    ["/v1/prometheus/sd", 401, "TOKEN_MISSING"],
    ["/join.sh", 200, "#!/bin/sh"],
    ["/v1/join/packages?platform=linux-x64&node=n2", 401, "JOIN_TOKEN_REQUIRED"],
    ["/v1/join/package?name=x&node=n2", 401, "JOIN_TOKEN_REQUIRED"],
    ["/openapi.json", 200, "rollcall.registry.v1.RegistryService"],
    ["/docs/api", 200, "<!doctype html>"],
  ])("should lead to what is no method: %s", async (path, status, content) => {
    const place = { host: "localhost", port, path, ca: readFileSync(authority.caFile), agent: false, family: 4 };
    const [answer] = (await once(requestHttps(place).end(), "response")) as [IncomingMessage];
    expect([answer.statusCode, await readText(answer)]).toEqual([status, expect.stringContaining(content)]);
  });

  it("should forward errors completely", async () => {
    const failed = clients.registry.getNode({ node: "absent" });
    await expect(failed).rejects.toThrow(/not found/);
    expect(await post("/rollcall.registry.v1.RegistryService/GetNode", { node: "absent" })).toMatchObject({
      status: 404,
      text: expect.stringContaining("NODE_NOT_FOUND"),
    });
  });

  it("should forward events immediately", async () => {
    const ending = new AbortController();
    const types: string[] = [];
    const start = { start: { case: "fromBeginning", value: true } } as const;
    const watching = (async () => {
      for await (const { events } of clients.events.watchEvents(start, { signal: ending.signal })) {
        types.push(...events.map(({ type }) => type));
      }
    })().catch(() => {});
    await until("the past", () => types.includes("node.registered"));
    await clients.admin.cordonNode({ node: "n1" });
    await until("the event", () => types.includes("node.scheduling.changed"));
    ending.abort();
    await watching;
  });

  it("should forward the caller's address, whatever the caller claims", async () => {
    const forged = { "x-forwarded-for": "6.6.6.6", forwarded: "for=6.6.6.6" };
    const uncordon = "/rollcall.admin.v1.AdminService/UncordonNode";
    expect((await post(uncordon, { node: "n1" }, forged, "127.0.0.77")).status).toBe(200);
    const { entries } = await clients.audit.listAuditEntries({});
    const entry = entries.find(({ method }) => method.endsWith("UncordonNode"));
    expect(entry?.address).toMatch(/^127\.0\.0\.77\b/);
  });

  it.each(["/metrics", "/readyz", "/rollcall.health.v1.HealthInternalService/GetReplicaState"])(
    "should lead no caller to %s",
    async (path) => {
      expect((await post(path, {})).status).toBe(404);
    },
  );

  it("should let the agent disconnect cleanly", async () => {
    expect(await agent.killed("SIGTERM")).toBe(0);
    await fixture.client.becomes("n1", "APPROVED DISCONNECTED UNHEALTHY");
  });
});
