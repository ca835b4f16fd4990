import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase } from "../../libs/testkit/src/index.ts";
import { type Rig as Admin, startRig as startAdmin } from "../../services/admin/src/testing/rig.ts";
import { run } from "../../services/cli/src/testing/run.ts";
import { type Rig as Registry, startRig as startRegistry } from "../../services/registry/src/testing/rig.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

describe("calls that fail", () => {
  it("should report that nothing listens, and what to do", async () => {
    const { code, err } = await run(["node", "list", "--server", "127.0.0.1:1"]);
    expect(code).toBe(3);
    expect(err).toMatch(
      /^failed to list nodes: cannot reach the registry service at 127\.0\.0\.1:1: connection refused\nhint: `rollcall up`/,
    );
  });

  it("should report a token that is missing, wrong, or without the required role", async () => {
    const missing = await run(["node", "list", "--server", rig.address]);
    expect(missing.err).toMatch(/^failed to list nodes: an access token is required: .*\nhint: run `rollcall login`/);
    expect((await rig.run("node list --token x")).err).toMatch(/^failed to list nodes: the access token is .*\nhint: /);
    const env = { ROLLCALL_TOKEN: await rig.createToken("viewer") };
    expect((await rig.run("node cordon n1", { env })).err).toMatch(/role operator[\s\S]*hint: `rollcall whoami`/);
  });

  it("should exit with 130 when it is interrupted", async () => {
    const answer = await rig.run("node list", { interrupted: AbortSignal.abort() });
    expect(answer).toEqual({ code: 130, out: "", err: "" });
  });

  it("should find global options before and after the verb", async () => {
    const { ROLLCALL_SERVER: _, ...env } = { ROLLCALL_TOKEN: rig.token, ROLLCALL_SERVER: "" };
    for (const words of [
      ["--server", rig.address, "-o", "json", "node", "list"],
      ["node", "list", "--server", rig.address, "-o", "json"],
    ]) {
      expect(await run(words, { env })).toMatchObject({ code: 0, err: "" });
    }
  });
});

describe("whoami", () => {
  it("should print the caller", async () => {
    const { code, out } = await rig.run("whoami");
    expect(code).toBe(0);
    const context = `server {3}${rig.address}\ncontext {2}-\n`;
    expect(out).toMatch(
      new RegExp(`^name {5}admin\nrole {5}admin\nexpires {2}never\nactor {4}token:\\S+\ncluster {2}\\S+\n${context}$`),
    );
    const json = JSON.parse((await rig.run("whoami --output json")).out);
    expect(json).toMatchObject({ role: "ROLE_ADMIN", accessToken: { name: "admin" } });
  });
});

describe("services at separate addresses", () => {
  let registry: Registry;
  let admin: Admin;
  beforeAll(async () => {
    const database = await createTestDatabase();
    registry = await startRegistry(database);
    admin = await startAdmin({ store: database.store });
  });
  afterAll(async () => {
    await admin.close();
    await registry.close();
  });

  it("should say which service answers, and how to name the right one", async () => {
    const [registryAt, adminAt] = [new URL(registry.baseUrl).host, new URL(admin.baseUrl).host];
    const env = { ROLLCALL_TOKEN: admin.operator.text };
    const toRegistry = await run(["node", "cordon", "n1", "--server", registryAt], { env });
    expect(toRegistry).toEqual({
      code: 1,
      out: "",
      err:
        `failed to cordon node n1: ${registryAt} is the registry service, not admin\nhint: set the address of admin ` +
        "with --admin or " +
        "ROLLCALL_ADMIN\n",
    });
    const toAdmin = await run(["events", "--server", adminAt], { env });
    expect(toAdmin.err).toContain(
      `${adminAt} is the admin service, not registry\nhint: set the address of registry with --registry`,
    );
    const apart = await run(["node", "cordon", "n1", "--registry", registryAt, "--admin", adminAt], { env });
    expect(apart.err).toContain("node n1 not found");
  });
});
