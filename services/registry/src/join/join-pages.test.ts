import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { expireToken, makeToken, revokeToken } from "../testing/join-tokens.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const DEB = "rollcall-agent_0.1.0_amd64.deb";
const TARBALL = "rollcall-agent-0.1.0-linux-x64.tar.gz";
/** Larger than the buffers of a connection. */
const CONTENT = randomBytes(3_000_000);
const SCRIPT = readFileSync(new URL("../../../../deploy/package/join.sh", import.meta.url), "utf8");

let folder: string;
let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-join-pages-"));
  const sum = createHash("sha256").update(CONTENT).digest("hex");
  // The list of a release names more files than the directory has.
  const names = [DEB, TARBALL, "rollcall-agent_0.1.0_arm64.deb", "rollcall_0.1.0_amd64.deb", "secret"];
  writeFileSync(join(folder, "SHA256SUMS"), names.map((name) => `${sum}  ${name}\n`).join(""));
  for (const name of [DEB, TARBALL, "rollcall_0.1.0_amd64.deb", "secret"]) writeFileSync(join(folder, name), CONTENT);
  database = await createTestDatabase();
  rig = await startRig(database, { config: { "Join.PackagesDir": folder } });
});
afterAll(async () => {
  await rig.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Asking {
  readonly token?: string | null;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(path: string, { token = null, method = "GET", headers = {} }: Asking = {}): Promise<Response> {
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${rig.baseUrl}${path}`, { method, headers: { ...headers, ...authorization } });
}

const list = (platform = "linux-x64", node = "web-1") => `/v1/join/packages?platform=${platform}&node=${node}`;
const download = (name = DEB, node = "web-1") => `/v1/join/package?name=${encodeURIComponent(name)}&node=${node}`;
const tokenText = async (...terms: Parameters<typeof makeToken> extends [unknown, ...infer T] ? T : never) =>
  (await makeToken(rig.store, ...terms)).text;

describe("/join.sh", () => {
  it("should be the script, for anyone", async () => {
    const response = await ask("/join.sh");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/x-shellscript; charset=utf-8");
    expect(await response.text()).toBe(SCRIPT);
  });

  it("should answer HEAD without a body, whatever range is asked for, and nothing else", async () => {
    const head = await ask("/join.sh", { method: "HEAD", headers: { range: "bytes=0-1" } });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([
      200,
      String(Buffer.byteLength(SCRIPT)),
      "",
    ]);
    expect(await (await ask("/join.sh", { headers: { range: "bytes=0-1" } })).text()).toBe(SCRIPT);
    const post = await ask("/join.sh", { method: "POST" });
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe("/v1/join/packages", () => {
  it("should list the agent's packages in the directory with their digests", async () => {
    const response = await ask(list(), { token: await tokenText() });
    expect(response.status).toBe(200);
    const lines = (await response.text()).trim().split("\n");
    expect(lines.map((line) => line.split("  ")[1])).toEqual([DEB, TARBALL]);
    expect(lines[0]).toBe(`${createHash("sha256").update(CONTENT).digest("hex")}  ${DEB}`);
  });

  it("should name the platforms that have packages", async () => {
    const token = await tokenText();
    const missing = await ask(list("linux-arm64"), { token });
    expect([missing.status, await missing.text()]).toEqual([
      400,
      expect.stringContaining("linux-arm64 has no package at this control plane, which has packages for linux-x64"),
    ]);
    const unknown = await ask(list("plan9-mips"), { token });
    expect([unknown.status, await unknown.text()]).toEqual([400, expect.stringContaining("linux-x64, linux-arm64")]);
  });

  it("should not use the token up", async () => {
    const { id, text } = await makeToken(rig.store);
    await (await ask(list(), { token: text })).text();
    await (await ask(download(), { token: text })).arrayBuffer();
    const { uses } = (await rig.store.db
      .selectFrom("join_token_uses")
      .select(({ fn }) => fn.countAll().as("uses"))
      .where("token_id", "=", id)
      .executeTakeFirstOrThrow()) as { readonly uses: bigint };
    expect(Number(uses)).toBe(0);
  });

  it("should report to the operator, not to the machine, that the directory cannot be read", async () => {
    const lost = mkdtempSync(join(tmpdir(), "rollcall-join-lost-"));
    const other = await startRig({ store: rig.store }, { config: { "Join.PackagesDir": lost } });
    const headers = { authorization: `Bearer ${await tokenText()}` };
    const text = await (await fetch(`${other.baseUrl}${list()}`, { headers })).text();
    await other.close();
    rmSync(lost, { recursive: true });
    expect(text).toContain("which has none at all");
    expect(text).not.toContain(lost);
  });
});

describe("/v1/join/package", () => {
  it("should be the whole package, also if a range is asked for", async () => {
    const response = await ask(download(), { token: await tokenText(), headers: { range: "bytes=5-9" } });
    expect([response.status, response.headers.get("content-length")]).toEqual([200, String(CONTENT.length)]);
    expect(Buffer.from(await response.arrayBuffer()).equals(CONTENT)).toBe(true);
  });

  it("should only be readable with GET, and send nothing otherwise", async () => {
    const token = await tokenText();
    for (const method of ["HEAD", "POST"]) {
      const response = await ask(download(), { token, method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET"]);
      expect((await response.text()).length).toBeLessThan(100);
    }
  });

  it.each([
    "secret",
    "rollcall_0.1.0_amd64.deb",
    "SHA256SUMS",
    "../../../../etc/passwd",
    "%2e%2e%2fetc%2fpasswd",
    "/etc/passwd",
    `./${DEB}`,
    `${DEB}\0`,
    "",
  ])("should serve no other file: %j", async (name) => {
    const response = await ask(download(name), { token: await tokenText() });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("is not a package")]);
  });

  it("should close the file of a machine that disconnects, and serve the next one", async () => {
    const token = await tokenText();
    const { hostname, port } = new URL(rig.baseUrl);
    // More than can be served at a time. The machines read the head of the response, and no more.
    for (let at = 0; at < 20; at += 1) {
      const socket = connect(Number(port), hostname);
      socket.write(`GET ${download()} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n\r\n`);
      await new Promise((resolve) => {
        socket.once(at < 6 ? "data" : "connect", resolve);
      });
      socket.pause();
      setImmediate(() => socket.destroy());
    }
    const response = await ask(download(), { token });
    expect((await response.arrayBuffer()).byteLength).toBe(CONTENT.length);
  });
});

describe.each([list(), download()])("%s", (path) => {
  it("should need a join token", async () => {
    const response = await ask(path);
    expect([response.status, await response.text()]).toEqual([401, expect.stringContaining("JOIN_TOKEN_REQUIRED")]);
  });

  it("should refuse an access token", async () => {
    expect(await (await ask(path, { token: rig.token })).text()).toContain("JOIN_TOKEN_INVALID");
  });

  it("should refuse tokens that admit no machine, with the reason", async () => {
    const [expired, revoked, used, other] = await Promise.all([
      makeToken(rig.store),
      makeToken(rig.store),
      makeToken(rig.store),
      makeToken(rig.store, { nodeNamePattern: "gpu-*" }),
    ]);
    await expireToken(rig.store, expired.id);
    await revokeToken(rig.store, revoked.id);
    await rig.store.db
      .insertInto("join_token_uses")
      .values({ token_id: used.id, node_id: "before", fingerprint: "SHA256:x" })
      .execute();
    const secret = (await makeToken(rig.store)).text;
    const cases = [
      ["JOIN_TOKEN_EXPIRED", expired.text],
      ["JOIN_TOKEN_REVOKED", revoked.text],
      ["JOIN_TOKEN_USED_UP", used.text],
      ["JOIN_TOKEN_NAME_MISMATCH", other.text],
      ["JOIN_TOKEN_INVALID", `${secret.slice(0, -4)}AAAA`],
      ["JOIN_TOKEN_INVALID", "rcj_short"],
      ["JOIN_TOKEN_WRONG_CLUSTER", secret.replace(/^rcj_[0-9a-f]{8}/, "rcj_00000000")],
    ] as const;
    for (const [reason, token] of cases) {
      const response = await ask(path, { token });
      expect([response.ok, await response.text()]).toEqual([false, expect.stringContaining(`"${reason}"`)]);
    }
  });
});

describe("a machine's node id", () => {
  it("should be checked before the token", async () => {
    const response = await ask("/v1/join/packages?platform=linux-x64&node=a%20b", { token: await tokenText() });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("node: ")]);
  });
});

describe("without Join.PackagesDir", () => {
  it("should serve nothing of this", async () => {
    const other = await startRig({ store: rig.store });
    for (const path of ["/join.sh", list(), download()]) {
      expect((await fetch(`${other.baseUrl}${path}`)).status).toBe(404);
    }
    await other.close();
  });
});

describe("a package that is replaced", () => {
  it("should be served from then on", async () => {
    const token = await tokenText();
    writeFileSync(join(folder, TARBALL), "newer");
    expect(await (await ask(download(TARBALL), { token })).text()).toBe("newer");
    unlinkSync(join(folder, TARBALL));
    expect((await ask(download(TARBALL), { token })).status).toBe(400);
  });
});
