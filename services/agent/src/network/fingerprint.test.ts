import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { fingerprintOf } from "@rollcall/identity";
import { eventually } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { agentKeys, checkAgentConfig } from "../config.ts";
import { type RunningAgent, startAgent } from "../start-agent.ts";
import { FakeGrpcServer } from "../testing/fake-grpc-server.ts";
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
  /** Who signs the certificate that is shown. Default: ours. */
  readonly signer?: TestAuthority;
  readonly names?: readonly string[];
  /** What follows the certificate in the chain. */
  readonly chain?: string;
  readonly served?: string | null;
}

async function listen({ signer = ours, names, chain = "", served = caOf(ours) }: Front = {}): Promise<TlsFront> {
  const { certPem, keyPem } = signer.issue(names === undefined ? {} : { names });
  const front = await TlsFront.listen({ certPem: `${certPem}${chain}`, keyPem, served, to: plane.port });
  fronts.push(front);
  return front;
}

async function start({ port }: TlsFront, fingerprint = fingerprintOf(new X509Certificate(caOf(ours)))) {
  const flags = {
    server: `127.0.0.1:${port}`,
    "state-dir": join(folder, "state"),
    name: "wire-1",
    "join-token": "rcj_secret",
    "ca-fingerprint": fingerprint,
  };
  const result = loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const { log, lines } = captureLog();
  // Backoff is short: these tests wait for what comes after it.
  agent = await startAgent({ config: result.config.values, version: "0.1.0", log, random: () => 0.02 });
  const details = () => lines.filter(({ msg }) => msg === "connection failed").map(({ detail }) => String(detail));
  return { lines, details, said: (msg: string) => lines.filter((line) => line.msg === msg) };
}

const isConnected = () => eventually(() => expect(agent?.status().phase).toBe("connected"));

describe("an agent that knows its authority by the fingerprint", () => {
  it("should fetch it once, and trust it alone on both ports", async () => {
    const [api, streams] = [await listen(), await listen({ served: null })];
    plane.healthEndpoints = [`127.0.0.1:${streams.port}`];
    const { said } = await start(api);
    await isConnected();
    expect(plane.registrations[0]?.joinToken).toBe("rcj_secret");
    expect(streams.passed).toBe(1);
    expect(said("authority fetched, its fingerprint is right")).toHaveLength(1);
    await agent?.close();

    // It is kept, and what else is in the file counts for nothing.
    const kept = join(folder, "state/authority.pem");
    expect(readFileSync(kept, "utf8").trim()).toBe(caOf(ours).trim());
    writeFileSync(kept, `${caOf(others)}${caOf(ours)}`);
    api.options.served = null;
    await start(api);
    await isConnected();
    expect(api.asked).toBe(1);
  });

  it("should fetch it again where the file was lost or damaged", async () => {
    const front = await listen();
    plane.healthEndpoints = [`127.0.0.1:${front.port}`];
    await start(front);
    await isConnected();
    await agent?.close();
    writeFileSync(join(folder, "state/authority.pem"), caOf(others));
    await start(front);
    await isConnected();
    expect(front.asked).toBe(2);
  });

  const attacks: readonly [string, () => Front, string][] = [
    [
      "hands out another authority, of which it has a certificate",
      () => ({ signer: others, served: caOf(others) }),
      "not sha256:",
    ],
    [
      "hands out the right authority, and has a certificate of its own",
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
      "for other names",
    ],
    ["hands out nothing", () => ({ served: null }), "hands out no authority"],
  ];
  it.each(attacks)("should tell its token to no server that %s", async (_, front, detail) => {
    const server = await listen(front());
    const { details } = await start(server);
    await eventually(() => expect(details().at(-1)).toContain(detail));
    // Another attempt changes nothing.
    const attempts = server.asked;
    await eventually(() => expect(server.asked + server.passed + details().length).toBeGreaterThan(attempts));
    expect(plane.registrations).toEqual([]);
    expect(server.passed).toBe(0);
  });

  it("should not open a stream at a server with a certificate of another authority", async () => {
    const [api, streams] = [await listen(), await listen({ signer: others })];
    plane.healthEndpoints = [`127.0.0.1:${streams.port}`];
    const { details } = await start(api);
    await eventually(() => expect(details().at(-1)).toContain("authority that is not trusted here"));
    expect(plane.streams).toEqual([]);
  });
});

describe("Compute.TLS.CAFingerprint", () => {
  const load = (flags: Record<string, string>) => loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });
  const fingerprint = `sha256:${"ab".repeat(32)}`;

  it("should be known by its short name too", () => {
    const result = load({ "Compute.CAFingerprint": fingerprint });
    expect(result.ok && result.config.values["Compute.TLS.CAFingerprint"]).toBe(fingerprint);
  });

  it.each([
    [{ "ca-fingerprint": "sha256:ab" }, "64 hexadecimal digits"],
    [{ "ca-fingerprint": fingerprint, "ca-file": "/ca.pem" }, "names the authority already"],
    [{ "ca-fingerprint": fingerprint, server: "http://a.example:7700" }, "has no use"],
  ])("should refuse %j", (flags, problem) => {
    const result = load(flags);
    expect(!result.ok && result.problems.map(({ message }) => message)).toEqual([expect.stringContaining(problem)]);
  });
});
