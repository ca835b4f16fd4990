import { execFile, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "@jest/globals";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { writeChart } from "../../../scripts/packages/chart.mjs";
import { render, toolPath } from "../../../scripts/render-manifests.mjs";
import { containersOf, type Manifest, manifestsIn } from "../../kubernetes/manifests.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { serveSecrets } from "./secret-server.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-chart-values-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = promisify(execFile);
const hasHelm = spawnSync(toolPath("helm"), ["version"]).status === 0;
const { describe: describeWithHelm } = needs("helm", hasHelm);
const objectsOf = (...settings: string[]) => manifestsIn(render({ settings }));
const { version: VERSION } = JSON.parse(readFileSync(join(workspaceRoot, "services/rollcall/package.json"), "utf8"));
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

describeWithHelm("the names of objects", () => {
  const namesOf = async (release: string, ...settings: string[]) => {
    const words = [
      "template",
      release,
      join(workspaceRoot, "deploy/chart"),
      ...settings.flatMap((it) => ["--set", it]),
    ];
    const { stdout } = await run(toolPath("helm"), words, { maxBuffer: 16 * 1_048_576 });
    const found = manifestsIn(stdout).find(
      ({ kind, metadata }) => kind === "Service" && metadata.name.endsWith("-api"),
    );
    return [found?.metadata.name, found?.metadata.labels?.["app.kubernetes.io/name"]];
  };

  it("should begin with the release's name, and contain the chart's once", async () => {
    expect(await namesOf("rollcall")).toEqual(["rollcall-api", "rollcall"]);
    expect(await namesOf("my-rollcall")).toEqual(["my-rollcall-api", "rollcall"]);
    expect(await namesOf("prod")).toEqual(["prod-rollcall-api", "rollcall"]);
  });

  it("should follow the overrides", async () => {
    expect(await namesOf("prod", "nameOverride=fleet")).toEqual(["prod-fleet-api", "fleet"]);
    expect(await namesOf("prod", "fullnameOverride=fleet")).toEqual(["fleet-api", "rollcall"]);
    expect(await namesOf("prod", "nameOverride=a", "fullnameOverride=b")).toEqual(["b-api", "a"]);
  });
});

describeWithHelm("overrides", () => {
  const podOf = (owner: string, ...settings: string[]) =>
    containersOf(objectsOf(...settings)).find((it) => it.owner === owner);

  it("should remove a field of a security context by null", () => {
    const before = podOf("rollcall-api")?.pod.securityContext;
    expect(before).toMatchObject({ runAsUser: 65532, fsGroup: 65532 });
    const after = podOf("rollcall-api", "defaults.podSecurityContext.runAsUser=null")?.pod.securityContext;
    expect([Object(after).runAsUser, Object(after).fsGroup]).toEqual([undefined, 65532]);
  });

  it("should change one service by its own values, also to false", () => {
    const settings = ["health.securityContext.readOnlyRootFilesystem=false", "health.disruptionBudget=false"];
    expect(podOf("rollcall-health", ...settings)?.securityContext).toMatchObject({ readOnlyRootFilesystem: false });
    expect(podOf("rollcall-api", ...settings)?.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    const budgets = objectsOf(...settings).filter(({ kind }) => kind === "PodDisruptionBudget");
    expect(budgets.map(({ metadata }) => metadata.name)).toEqual(["rollcall-api", "rollcall-console"]);
  });

  it("should use an account that exists, also for the migration, which runs before the chart's own accounts exist", () => {
    const settings = ["serviceAccount.create=false", "serviceAccount.name=existing"];
    const accounts = containersOf(objectsOf(...settings)).map(({ owner, pod }) => [owner, pod.serviceAccountName]);
    expect(accounts).toEqual(
      expect.arrayContaining([
        ["rollcall-api", "existing"],
        ["rollcall-migrate", "existing"],
        ["rollcall-agent", "rollcall-agent"],
      ]),
    );
    expect(podOf("rollcall-migrate")?.pod.serviceAccountName).toBeUndefined();
  });

  it("should let the pod of the test reach each service when a network policy names the clients", () => {
    const policies = objectsOf("networkPolicy.clients[0].podSelector.matchLabels.app=client").filter(
      ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "rollcall-api",
    );
    expect(JSON.stringify(policies)).toContain('"app.kubernetes.io/component":"test"');
  });

  it("should test the addresses of all services with layout=apart", () => {
    const [doctor] = containersOf(objectsOf("layout=apart")).filter(({ owner }) => owner === "rollcall-test");
    const addresses = (doctor?.env ?? []).filter(({ value }) => value?.startsWith("https://"));
    expect(addresses.map(({ name, value }) => `${name}=${value}`)).toEqual([
      "ROLLCALL_REGISTRY=https://rollcall-registry.rollcall.svc:7700",
      "ROLLCALL_HEALTH=https://rollcall-health.rollcall.svc:7700",
      "ROLLCALL_ADMIN=https://rollcall-admin.rollcall.svc:7700",
      "ROLLCALL_SCHEDULER=https://rollcall-scheduler.rollcall.svc:7700",
    ]);
  });
});

describeWithHelm("the secrets that the chart creates", () => {
  const secretsOf = (...settings: string[]) => {
    const secrets = objectsOf("adminToken.create=true", "tls.create=true", "database.trial.enabled=true", ...settings);
    const text = (data: string | undefined) => Buffer.from(data ?? "", "base64").toString();
    const found = (name: string) => secrets.find(({ kind, metadata }) => kind === "Secret" && metadata.name === name);
    return (name: string, key: string) => text(found(name)?.data?.[key]);
  };

  it("should be random, and long enough", () => {
    const [one, other] = [secretsOf(), secretsOf()];
    expect(one("rollcall-admin-token", "token")).toMatch(/^\w{48}$/);
    expect(one("rollcall-admin-token", "token")).not.toBe(other("rollcall-admin-token", "token"));
    const password = one("rollcall-database", "password");
    expect(password).toMatch(/^\w{32}$/);
    expect(one("rollcall-database", "url")).toBe(`postgres://rollcall:${password}@rollcall-postgres:5432/rollcall`);
  });

  it("should contain a certificate for the names of all services and hosts, signed by the authority", () => {
    const secret = secretsOf("layout=apart", "tls.dnsNames={lb.example.org}", "ingress.host=api.example.org");
    const certificate = new X509Certificate(secret("rollcall-tls", "tls.crt"));
    const authority = new X509Certificate(secret("rollcall-tls", "ca.crt"));
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect(authority.ca).toBe(true);
    for (const name of ["registry", "health", "admin", "scheduler", "console"]) {
      expect(certificate.checkHost(`rollcall-${name}`)).toBeDefined();
      expect(certificate.checkHost(`rollcall-${name}.rollcall.svc`)).toBeDefined();
    }
    for (const name of ["localhost", "lb.example.org", "api.example.org"])
      expect(certificate.checkHost(name)).toBe(name);
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
  });
});

describeWithHelm("an upgrade", () => {
  const CREATED = ["adminToken.create=true", "tls.create=true", "database.trial.enabled=true"];
  const secretsIn = (text: string) => manifestsIn(text).filter(({ kind }) => kind === "Secret");

  /** A secret as Helm stores it. Helm refuses to change objects of other releases. */
  function installed({ metadata, ...secret }: Manifest): Manifest {
    const own = { "meta.helm.sh/release-name": "rollcall", "meta.helm.sh/release-namespace": "rollcall" };
    return { ...secret, metadata: { ...metadata, annotations: { ...metadata.annotations, ...own } } };
  }

  /** Render the chart with access to an API server that has these secrets. */
  async function renderAgainst(secrets: readonly Manifest[], settings: readonly string[]) {
    const known = manifestsIn(render({ settings: [...settings] }));
    const kubeconfig = join(folder, "kubeconfig");
    const server = await serveSecrets(secrets.map(installed), { known, namespace: "rollcall", kubeconfig });
    const words = ["template", "rollcall", join(workspaceRoot, "deploy/chart"), "--namespace", "rollcall"];
    const more = ["--dry-run=server", "--disable-openapi-validation", ...settings.flatMap((it) => ["--set", it])];
    try {
      const env = { ...process.env, KUBECONFIG: server.kubeconfig };
      const { stdout } = await run(toolPath("helm"), [...words, ...more], { env, maxBuffer: 16 * 1_048_576 });
      return secretsIn(stdout);
    } finally {
      await server.close();
    }
  }

  it("should keep what the first installation created", async () => {
    const first = await renderAgainst([], CREATED);
    expect(first).toHaveLength(3);
    const next = await renderAgainst(first, [...CREATED, "layout=apart", "tls.dnsNames={another.example.org}"]);
    expect(next.map(({ metadata, data }) => [metadata.name, data])).toEqual(
      first.map(({ metadata, data }) => [metadata.name, data]),
    );
  });

  it("should create only what is missing", async () => {
    const first = await renderAgainst([], CREATED);
    const kept = first.filter(({ metadata }) => metadata.name !== "rollcall-tls");
    const next = await renderAgainst(kept, CREATED);
    const changed = next.filter(({ metadata, data }) => {
      const before = first.find((it) => it.metadata.name === metadata.name);
      return JSON.stringify(before?.data) !== JSON.stringify(data);
    });
    expect(changed.map(({ metadata }) => metadata.name)).toEqual(["rollcall-tls"]);
  });
});

describeWithHelm("the packed chart", () => {
  it("should be what Helm pulls from a registry that has the OCI layout, and should render the same", async () => {
    const [archive, layout] = await writeChart(folder, { version: VERSION, timeS: 0, work: join(folder, "work") });
    const blobs = join(folder, "registry");
    mkdirSync(blobs);
    await run("tar", ["-xf", join(folder, layout), "-C", blobs]);
    const registry = await serveLayout(blobs);
    const pulled = join(folder, "pulled");
    mkdirSync(pulled);
    try {
      const from = `oci://127.0.0.1:${registry.port}/rollcall`;
      await run(toolPath("helm"), ["pull", from, "--version", VERSION, "--plain-http", "--destination", pulled]);
    } finally {
      await registry.close();
    }
    const file = join(pulled, `rollcall-${VERSION}.tgz`);
    expect(readFileSync(file).equals(readFileSync(join(folder, archive)))).toBe(true);
    const words = ["template", "rollcall", file, "--namespace", "rollcall"];
    const { stdout } = await run(toolPath("helm"), words, { maxBuffer: 16 * 1_048_576 });
    expect(stdout).toBe(render({}));
  });
});

/** Serve an OCI layout as a registry does, for one repository. */
async function serveLayout(root: string) {
  const { manifests } = JSON.parse(readFileSync(join(root, "index.json"), "utf8"));
  const server = createServer(({ url = "", method }, response) => {
    const [, kind, named = ""] = /^\/v2\/rollcall\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    const digest = named.startsWith("sha256:") ? named : manifests[0].digest;
    if (kind === undefined) {
      response.writeHead(url === "/v2/" ? 200 : 404).end();
      return;
    }
    const content = readFileSync(join(root, "blobs/sha256", digest.replace("sha256:", "")));
    const type = kind === "manifests" ? MANIFEST : "application/octet-stream";
    response.writeHead(200, {
      "content-type": type,
      "content-length": content.length,
      "docker-content-digest": digest,
    });
    response.end(method === "HEAD" ? undefined : content);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the registry listens on no port");
  return {
    port: address.port,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
