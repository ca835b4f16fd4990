import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { loadConfig } from "@rollcall/config";
import { fingerprintOf } from "@rollcall/identity";
import { eventually } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { agentKeys, checkAgentConfig } from "../config.ts";
import { type RunningAgent, startAgent } from "../start-agent.ts";
import { FakeGrpcServer, send } from "../testing/fake-grpc-server.ts";
import { TlsFront } from "../testing/tls-front.ts";

let folder: string;
let ours: TestAuthority;
let others: TestAuthority;
let plane: FakeGrpcServer;
let fronts: TlsFront[];
let agent: RunningAgent | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-fingerprint-"));
  ours = new TestAuthority(mkdtempSync(join(folder, "ours-")));
  others = new TestAuthority(mkdtempSync(join(folder, "others-")));
  plane = new FakeGrpcServer();
  await plane.listen();
  fronts = [];
});
afterEach(async () => {
  await agent?.close();
  agent = undefined;
  for (const front of fronts) front.close();
  plane.destroy();
  rmSync(folder, { recursive: true, force: true });
});

const caOf = ({ caFile }: TestAuthority) => readFileSync(caFile, "utf8");

interface Front {
  /** The authority that signs the presented certificate. Default: our authority. */
  readonly signer?: TestAuthority;
  readonly names?: readonly string[];
  /** The rest of the chain, after the certificate. */
  readonly chain?: string;
  readonly served?: string | null;
}

async function listen({ signer = ours, names, chain = "", served = caOf(ours) }: Front = {}): Promise<TlsFront> {
  const { certPem, keyPem } = signer.issue(names === undefined ? {} : { names });
  const front = await TlsFront.listen({ certPem: `${certPem}${chain}`, keyPem, served, to: plane.port });
  fronts.push(front);
  return front;
}

const fingerprint = (authority: TestAuthority) => fingerprintOf(new X509Certificate(caOf(authority)));

/** Start an agent with the fingerprint of an authority or with other trust options. */
async function start({ port }: TlsFront, trust: string | Readonly<Record<string, string>> = fingerprint(ours)) {
  const flags = {
    server: `127.0.0.1:${port}`,
    "state-dir": join(folder, "state"),
    name: "wire-1",
    "join-token": "rcj_secret",
    ...(typeof trust === "string" ? { "ca-fingerprint": trust } : trust),
  };
  const result = loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const { log, lines } = captureLog();
  // Backoff is short, because these tests wait for the retry.
  agent = await startAgent({ config: result.config.values, version: "0.1.0", log, random: () => 0.02 });
  const details = () => lines.filter(({ msg }) => msg === "connection failed").map(({ detail }) => String(detail));
  return { lines, details, said: (msg: string) => lines.filter((line) => line.msg === msg) };
}

const isConnected = () => eventually(() => expect(agent?.status().phase).toBe("connected"));

describe("an agent with the fingerprint of its authority", () => {
  it("should fetch it once, and trust only it on both ports", async () => {
    const [api, streams] = [await listen(), await listen({ served: null })];
    plane.healthEndpoints = [`127.0.0.1:${streams.port}`];
    const { said } = await start(api);
    await isConnected();
    expect(plane.registrations[0]?.joinToken).toBe("rcj_secret");
    expect(streams.passed).toBe(1);
    expect(said("authority fetched, its fingerprint matches")).toHaveLength(1);
    await agent?.close();

    // The authority is stored, and other certificates in its file are ignored.
    const kept = join(folder, "state/authorities.pem");
    expect(readFileSync(kept, "utf8")).toContain(caOf(ours));
    writeFileSync(kept, `${caOf(others)}${caOf(ours)}`);
    api.options.served = null;
    await start(api);
    await isConnected();
    expect(api.asked).toBe(1);
  });

  it("should fetch it again without a warning if the file was lost or damaged", async () => {
    const front = await listen();
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    const first = await start(front);
    await isConnected();
    await agent?.close();
    writeFileSync(join(folder, "state/authorities.pem"), caOf(others));
    const second = await start(front);
    await isConnected();
    expect(front.asked).toBe(2);
    expect([...first.details(), ...second.details()]).toEqual([]);
  });

  const attacks: readonly [string, () => Front, string][] = [
    [
      "hands out another authority, of which it has a certificate",
      () => ({ signer: others, served: caOf(others) }),
      "not sha256:",
    ],
    [
      "hands out the right authority, and has another certificate",
      () => ({ signer: others }),
      "authority that is not trusted here",
    ],
    [
      "shows the right authority in its chain, under a certificate of another",
      () => ({ signer: others, chain: caOf(ours) }),
      "authority that is not trusted here",
    ],
    [
      "hands out both authorities, and has a certificate of the wrong one",
      () => ({ signer: others, served: `${caOf(ours)}${caOf(others)}` }),
      "authority that is not trusted here",
    ],
    [
      "has a certificate of the right authority for another name",
      () => ({ names: ["other.example"] }),
      "does not cover the name",
    ],
    ["hands out nothing", () => ({ served: null }), "serves no authority"],
  ];
  it.each(attacks)("should send its token to no server that %s", async (_, front, detail) => {
    const server = await listen(front());
    const { details } = await start(server);
    await eventually(() => expect(details().at(-1)).toContain(detail));
    // Retrying changes nothing.
    const attempts = server.asked;
    await eventually(() => expect(server.asked + server.passed + details().length).toBeGreaterThan(attempts));
    expect(plane.registrations).toEqual([]);
    expect(server.passed).toBe(0);
  });

  it("should not open a stream to a server with a certificate of another authority", async () => {
    const [api, streams] = [await listen(), await listen({ signer: others })];
    plane.healthEndpoints = [`127.0.0.1:${streams.port}`];
    const { details } = await start(api);
    await eventually(() => expect(details().at(-1)).toContain("authority that is not trusted here"));
    expect(plane.streams).toEqual([]);
  });
});

/** Announce authorities on the newest stream, as a server does to agents that accept them. */
function announce(...authorities: readonly (TestAuthority | Uint8Array)[]): void {
  const stream = plane.streams.at(-1);
  if (stream === undefined) throw new Error("there is no stream");
  const certificates = authorities.map((it) => (it instanceof Uint8Array ? it : new X509Certificate(caOf(it)).raw));
  send(stream, { case: "authorities", value: { certificates } });
}

/** The trust that the agent reported last. */
function reported() {
  const infos = plane.frames.flatMap((frame) => (frame.case === "nodeInfo" ? [frame.value] : []));
  return infos.at(-1)?.trust;
}

describe("an agent that receives announced authorities", () => {
  /** Connect an agent to a new server, and return the server's front. */
  async function connected(trust?: Parameters<typeof start>[1]) {
    const front = await listen();
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    const { said } = await start(front, trust);
    await isConnected();
    return { front, said };
  }

  /** Restart the agent against a new server with a certificate of another authority. */
  async function switched(signer: TestAuthority, trust?: Parameters<typeof start>[1]) {
    await agent?.close();
    const front = await listen({ signer, served: `${caOf(ours)}${caOf(others)}` });
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    writeFileSync(join(folder, "state/sentinel.json"), "{}");
    return { front, ...(await start(front, trust)) };
  }

  it("should keep the next authority, report it, and trust it after a restart with the former fingerprint", async () => {
    const { said } = await connected();
    const first = { source: TrustSource.ANNOUNCED, authorities: [fingerprint(ours)], serverName: "127.0.0.1" };
    await eventually(() => expect(reported()).toMatchObject(first));
    announce(ours, others);
    const both = [fingerprint(ours), fingerprint(others)].toSorted();
    await eventually(() => expect(reported()?.authorities).toEqual(both));
    expect(said("trusted authorities replaced by those that the control plane announced")).toHaveLength(1);
    await switched(others);
    await isConnected();
    announce(others);
    await eventually(() => expect(reported()?.authorities).toEqual([fingerprint(others)]));
    // The former authority is no longer trusted, although the configured fingerprint is still that authority's.
    const { front, details } = await switched(ours);
    await eventually(() => expect(details().at(-1)).toContain("authority that is not trusted here"));
    expect(front.passed).toBe(0);
  });

  it("should include its digest in the Hello, so that authorities are not announced again", async () => {
    await connected();
    const digests = () => plane.frames.flatMap((it) => (it.case === "hello" ? [hex(it.value.authoritiesDigest)] : []));
    expect(digests()).toEqual([createHash("sha256").digest("hex")]);
    announce(ours);
    await eventually(() => expect(reported()).toBeDefined());
    plane.streams.at(-1)?.end();
    await eventually(() => expect(digests()).toHaveLength(2));
    const digest = createHash("sha256").update(Buffer.from(fingerprint(ours).slice(7), "hex"));
    expect(digests().at(-1)).toBe(digest.digest("hex"));
  });

  it.each<readonly [string, () => readonly (TestAuthority | Uint8Array)[], string]>([
    ["nothing", () => [], "valid today"],
    ["bytes that are no certificate", () => [Uint8Array.of(1, 2, 3)], "rror"],
    ["only an authority that did not sign the server's certificate", () => [others], "verifies the server's own"],
  ])("should not change what it trusts if %s is announced", async (_, announced, problem) => {
    const { said } = await connected();
    const file = join(folder, "state/authorities.pem");
    const before = readFileSync(file, "utf8");
    announce(...announced());
    const refused = () => said("announced authorities rejected, trusted authorities unchanged");
    await eventually(() => expect(refused()).toMatchObject([{ problem: expect.stringContaining(problem) }]));
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("should not keep a cross-signed certificate, which verifies nothing without its root", async () => {
    const crossSigned = ours.crossSign(others);
    const front = await listen({ signer: others, chain: crossSigned });
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    const { said } = await start(front);
    await isConnected();
    const { raw } = new X509Certificate(crossSigned);
    announce(raw);
    const refused = () => said("announced authorities rejected, trusted authorities unchanged");
    await eventually(() => expect(refused()).toMatchObject([{ problem: expect.stringContaining("no root") }]));
    announce(raw, ours, others);
    const roots = [fingerprint(ours), fingerprint(others)].toSorted();
    await eventually(() => expect(reported()?.authorities).toEqual(roots));
    await agent?.close();
    await start(front);
    await isConnected();
  });

  it("should start again with another fingerprint, ignoring earlier announcements", async () => {
    await connected();
    announce(ours, others);
    await eventually(() => expect(reported()?.authorities).toHaveLength(2));
    await switched(others, fingerprint(others));
    await isConnected();
    const { details } = await switched(ours, fingerprint(others));
    await eventually(() => expect(details().at(-1)).toContain("authority that is not trusted here"));
  });

  it("should never change an operator's file, and report its content", async () => {
    const caFile = join(folder, "ca.pem");
    writeFileSync(caFile, caOf(ours));
    await connected({ "ca-file": caFile });
    announce(ours, others);
    const inFile = { source: TrustSource.FILE, serverName: "127.0.0.1" };
    await eventually(() => expect(reported()).toMatchObject({ ...inFile, authorities: [fingerprint(ours)] }));
    expect(readFileSync(caFile, "utf8")).toBe(caOf(ours));
  });
});

describe("an agent whose servers have another authority, without notice", () => {
  const message = "servers have an authority that this agent does not trust";

  it.each<readonly [string, () => Readonly<Record<string, string>> | string, string]>([
    ["a fingerprint", () => fingerprint(ours), "--ca-fingerprint"],
    ["a file", () => ({ "ca-file": ours.caFile }), "--ca-file"],
  ])("should log both fingerprints and what to do, with %s", async (_, trust, option) => {
    const front = await listen();
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    await start(front, trust());
    await isConnected();
    await agent?.close();
    const other = await listen({ signer: others, served: caOf(others) });
    writeFileSync(join(folder, "state/sentinel.json"), "{}");
    const { said } = await start(other, trust());
    await eventually(() => expect(said(message)).toHaveLength(1));
    const [line] = said(message);
    expect(line).toMatchObject({ trusted: [fingerprint(ours)], served: [fingerprint(others)], level: "error" });
    expect(line?.repair).toContain(`${option} `);
    expect(line?.repair).toContain(fingerprint(others));
    expect(line?.repair).toContain("`rollcall token create`");
    expect(plane.registrations).toHaveLength(1);
  });
});

describe("an agent with TLS files that cannot be used", () => {
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const pair = (certPem: string, keyPem: string) => ({
    "ca-file": ours.caFile,
    "client-cert": file("client.pem", certPem),
    "client-key": file("client-key.pem", keyPem),
  });

  it.each<readonly [string, () => Readonly<Record<string, string>>, string]>([
    ["no authority", () => ({ "ca-file": file("junk.pem", "junk") }), "junk.pem: contains no PEM certificate"],
    ["no certificate", () => pair("", ours.issue().keyPem), "client.pem: contains no PEM certificate"],
    ["no key", () => pair(ours.issue().certPem, "junk"), "client-key.pem: contains no PEM private key"],
    [
      "the key of another certificate",
      () => pair(ours.issue().certPem, ours.issue().keyPem),
      "client-key.pem: not the key of the certificate in ",
    ],
  ])("should not start, and name the file and what is wrong: %s", async (_, trust, problem) => {
    await expect(start(await listen(), trust())).rejects.toThrow(`${folder}/${problem}`);
  });

  it("should name the file and what is wrong when it is replaced, and connect when it is repaired", async () => {
    const { certPem, keyPem } = ours.issue();
    const front = await listen();
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    const { said } = await start(front, pair(certPem, keyPem));
    await isConnected();
    pair(certPem, ours.issue().keyPem);
    front.cut();
    const problem = `${folder}/client-key.pem: not the key of the certificate in ${folder}/client.pem`;
    await eventually(() => expect(said("connection failed").map(({ detail }) => detail)).toContain(problem));
    pair(certPem, keyPem);
    await isConnected();
  });
});

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("Compute.TLS.CAFingerprint", () => {
  const load = (flags: Record<string, string>) => loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });
  const some = `sha256:${"ab".repeat(32)}`;

  it("should also be accepted by its short name", () => {
    const result = load({ "Compute.CAFingerprint": some });
    expect(result.ok && result.config.values["Compute.TLS.CAFingerprint"]).toBe(some);
  });

  it.each([
    [{ "ca-fingerprint": "sha256:ab" }, "64 hexadecimal digits"],
    [{ "ca-fingerprint": some, "ca-file": "/ca.pem" }, "cannot be combined with Compute.TLS.CAFile"],
    [{ "ca-fingerprint": some, server: "http://a.example:7700" }, "has no effect"],
  ])("should refuse %j", (flags, problem) => {
    const result = load(flags);
    expect(!result.ok && result.problems.map(({ message }) => message)).toEqual([expect.stringContaining(problem)]);
  });
});
