import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { fingerprintOf } from "../../../libs/identity/src/index.ts";
import { TestAuthority } from "../../../libs/testkit/src/certificates.ts";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";

const LIMIT_MS = 180_000;

/**
 * The results of running a program that asks who it is, once with the fingerprint of the server's authority and
 * once with another fingerprint.
 */
export interface TrustAndLogin {
  readonly trusted: Answer;
  readonly untrusted: Answer;
  /** `renewed` is the result with a context whose token has expired, and `again` the result of a second run. */
  readonly renewed: Answer;
  readonly again: Answer;
  /** The results of two programs that run at the same time, with a context whose token has expired. */
  readonly together: readonly Answer[];
  /** The result with a context file that is not writable. */
  readonly unsaved: Answer;
  /**
   * The result with the fingerprint of the server's authority, but with a server name that is not in its
   * certificate.
   */
  readonly misnamed: Answer;
  /** The number of times that a token was requested, including the login. */
  readonly tokensAsked: number;
  /** Whether the context has the new token, refresh token and expiry. */
  readonly isSaved: boolean;
}

/** The result of running a program. */
export interface Answer {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Run a program that asks who it is. Run it with a fingerprint, and with a login that needs renewal. */
export async function trustAndLogin(command: readonly [string, ...string[]]): Promise<TrustAndLogin> {
  const root = mkdtempSync(join(tmpdir(), "rollcall-trust-"));
  const data = join(root, "data");
  const [authority, issuer] = [new TestAuthority(), new TestIssuer()];
  await issuer.start();
  const [port = 0, agents = 0, probes = 0, internal = 0] = await freePorts(4);
  const ports = { "--port": port, "--agent-port": agents, "--probe-port": probes, "--internal-port": internal };
  const { certFile, keyFile } = authority.write("server");
  const keys = {
    "TLS.CertFile": certFile,
    "TLS.KeyFile": keyFile,
    "TLS.CAFile": authority.caFile,
    "OIDC.Issuer": issuer.url,
    "OIDC.Audience": issuer.audience,
    "OIDC.ClientID": issuer.clientId,
  };
  const words = [
    ...Object.entries(ports).flatMap(([flag, value]) => [flag, String(value)]),
    ...Object.entries(keys).flatMap(([key, value]) => ["--set", `${key}=${value}`]),
  ];
  const server = new RollcallProcess(["up", "--data-dir", data, ...words]);
  const ask = (env: Record<string, string>, ...more: readonly string[]) =>
    answerOf(command, more, { ...process.env, HOME: root, XDG_CONFIG_HOME: "", ...env });
  try {
    await server.logged("everything is up");
    const fingerprint = fingerprintOf(new X509Certificate(readFileSync(authority.caFile)));
    const token = { ROLLCALL_TOKEN_FILE: join(data, "admin-token") };
    const trusted = await ask(token, `127.0.0.1:${port}`, fingerprint);
    const untrusted = await ask(token, `127.0.0.1:${port}`, `sha256:${"0".repeat(64)}`);
    const file = join(root, ".config/rollcall/config.yaml");
    const place = { server: `https://127.0.0.1:${port}`, ca_file: authority.caFile };
    const before = await writeContext(file, issuer, place);
    const renewed = await ask({});
    const again = await ask({});
    const after = parse(readFileSync(file, "utf8")).contexts.lab;
    const isSaved =
      after.token !== before.token &&
      after.oidc.refresh_token !== before.oidc.refresh_token &&
      Date.parse(after.oidc.expires_at) > Date.parse(before.oidc.expires_at) &&
      after.ca_file === authority.caFile;
    const tokensAsked = issuer.count("POST /token");
    await writeContext(file, issuer, place);
    const together = await Promise.all([ask({}), ask({})]);
    const longPath = unwritablePath(root);
    await writeContext(join(longPath, "rollcall/config.yaml"), issuer, place);
    const unsaved = await ask({ XDG_CONFIG_HOME: longPath });
    const other = await forward(port);
    const misnamed = await ask(token, `127.0.0.2:${other.port}`, fingerprint);
    await other.close();
    if (other.joined === 0) throw new Error("the program did not come to the other name");
    return { trusted, untrusted, misnamed, renewed, again, together, unsaved, tokensAsked, isSaved };
  } finally {
    server.kill("SIGTERM");
    await server.exit();
    await issuer.stop();
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    await rm(authority.dir, { recursive: true, force: true });
  }
}

/** Write a context as `rollcall login --oidc` does. Its token has expired since. */
async function writeContext(file: string, issuer: TestIssuer, place: Readonly<Record<string, string>>) {
  await fetch(`${issuer.url}/device`, { method: "POST" });
  issuer.decideLogin("approved");
  const form = new URLSearchParams({ client_id: issuer.clientId, grant_type: "device", device_code: "device-0" });
  const answer = await fetch(`${issuer.url}/token`, { method: "POST", body: form });
  const { refresh_token } = (await answer.json()) as { readonly refresh_token: string };
  const context = {
    ...place,
    token: await issuer.token(issuer.claims, { expiresInS: -60 }),
    oidc: {
      issuer: issuer.url,
      client_id: issuer.clientId,
      audience: issuer.audience,
      refresh_token: String(refresh_token),
      expires_at: new Date(0).toISOString(),
    },
  };
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, stringify({ current_context: "lab", contexts: { lab: context } }), { mode: 0o600 });
  return context;
}

/**
 * Create a directory with readable contexts in which not even root can create a draft, because the draft's path
 * exceeds Linux's limit. Returns the path of the contexts.
 */
function unwritablePath(root: string): string {
  const length = 4_094 - "/rollcall/config.yaml".length;
  let path = root;
  while (length - path.length > 1) path += `/${"x".repeat(Math.min(200, length - path.length - 1))}`;
  return path;
}

/** Forward a port from an address that is not in the server's certificate. */
async function forward(target: number) {
  let joined = 0;
  const server = createServer((client) => {
    joined += 1;
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {}).on("close", () => end(client, upstream));
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, "127.0.0.2");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get joined() {
      return joined;
    },
    close: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

function end(...sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}

function answerOf([program, ...words]: readonly string[], more: readonly string[], env: NodeJS.ProcessEnv) {
  return new Promise<Answer>((resolve) => {
    execFile(program ?? "", [...words, ...more], { env, timeout: LIMIT_MS }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err });
    });
  });
}
