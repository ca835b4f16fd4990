import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { nkeys } from "@nats-io/transport-node";
import { createMetrics, renderMetrics, silentLogger } from "@rollcall/process";
import { needs } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import type { NatsLink, NatsLinkOptions } from "./connect-nats.ts";
import type { NatsSettings } from "./nats-settings.ts";
import { type NatsUrl, readNatsUrl } from "./nats-url.ts";
import { hasOpenssl, makeCertificates } from "./testing/certificates.ts";
import { makeJwtSetup } from "./testing/nats-jwt.ts";
import { describeWithNats, startTestNats, type TestNats, type TestNatsOptions } from "./testing/nats-server.ts";
import { recordingLog, testLink } from "./testing/test-link.ts";

function urlOf(text: string): NatsUrl {
  const read = readNatsUrl(text);
  if (!read.ok) throw new Error(`${text} is not a URL of NATS: ${read.reason}`);
  return read.url;
}

const closing: (() => Promise<unknown>)[] = [];
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(await realpath(tmpdir()), "rollcall-link-"));
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(dir, { recursive: true, force: true });
});

async function start(options: TestNatsOptions = {}): Promise<TestNats> {
  const nats = await startTestNats({ jetstream: false, ...options });
  closing.push(() => nats.close());
  return nats;
}

function link(settings: NatsSettings, changes: Partial<NatsLinkOptions> = {}, log = silentLogger): NatsLink {
  const made = testLink(settings, log, changes);
  closing.push(() => made.close());
  return made;
}

async function file(name: string, content: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, content);
  return path;
}

/** Start a server that accepts connections but never responds, like a server that hangs. */
async function startSilentServer(): Promise<{
  readonly url: NatsUrl;
  readonly sockets: Set<Socket>;
}> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: urlOf(`127.0.0.1:${address.port}`), sockets };
}

describe("NatsLink, without a server", () => {
  it("should close connections to a server that does not greet", async () => {
    const { url, sockets } = await startSilentServer();
    const { log, text } = recordingLog();
    link({ urls: [url] }, { connectTimeoutMs: 50 }, log);
    const attempts = () => text().split("cannot connect to nats").length - 1;
    await until("it has tried five times", () => attempts() >= 5);
    // Allow two connections: the current one, and one that the server has not closed yet.
    expect(sockets.size).toBeLessThanOrEqual(2);
  });

  it("should close immediately while connecting", async () => {
    const { url, sockets } = await startSilentServer();
    const made = link({ urls: [url] }, { connectTimeoutMs: 600_000 });
    await until("it connects", () => sockets.size === 1);
    const waiting = made.connected();
    await made.close();
    await expect(waiting).rejects.toThrow("the link to nats is closed");
    await until("the connection is gone", () => sockets.size === 0);
  });

  it("should stop a caller's wait when its signal aborts", async () => {
    const made = link({ urls: [urlOf("127.0.0.1:1")] });
    const ending = new AbortController();
    const waiting = made.connected(ending.signal);
    ending.abort(new Error("no more time"));
    await expect(waiting).rejects.toThrow("no more time");
    await expect(made.connected(ending.signal)).rejects.toThrow("no more time");
  });

  it("should say that a file cannot be read, and try again", async () => {
    const { log, text } = recordingLog();
    link({ urls: [urlOf("127.0.0.1:1")], credentialsFile: join(dir, "absent.creds") }, {}, log);
    await until("it has tried twice", () => text().split("absent.creds").length > 2);
  });

  it("should refuse a file without an nkey seed, and not show what it holds", async () => {
    const { log, text } = recordingLog();
    const nkeyFile = await file("user.nk", "s3cret");
    link({ urls: [urlOf("127.0.0.1:1")], nkeyFile }, {}, log);
    await until("it says so", () => text().includes("holds no seed of a user's nkey"));
    expect(text()).not.toContain("s3cret");
  });
});

describeWithNats("NatsLink", () => {
  it("should connect again whenever the server comes back", async () => {
    const nats = await start();
    const metrics = createMetrics({ defaults: false });
    const { log, text } = recordingLog();
    const made = link(nats.settings, { metrics }, log);
    const first = await made.connected();
    expect(made.connection).toBe(first);
    expect(await renderMetrics(metrics)).toContain("rollcall_nats_connected 1");
    await nats.kill();
    await until("the loss is noticed", () => made.connection === null);
    expect(await renderMetrics(metrics)).toContain("rollcall_nats_connected 0");
    await nats.start();
    expect(await made.connected()).not.toBe(first);
    expect(text()).toContain("connection to nats lost");
  });

  it("should connect as soon as a server starts for the first time", async () => {
    const nats = await start();
    await nats.stop();
    const made = link(nats.settings);
    const waiting = made.connected();
    await nats.start();
    expect((await waiting).isClosed()).toBe(false);
  });

  it("should use whichever of its servers is alive", async () => {
    const nats = await start();
    const made = link({ urls: [urlOf("127.0.0.1:1"), ...nats.settings.urls] });
    expect((await made.connected()).getServer()).toBe(`127.0.0.1:${nats.port}`);
  });

  it("should drop a server that stops answering", async () => {
    const nats = await start();
    const made = link(nats.settings, { pingIntervalMs: 30 });
    const connection = await made.connected();
    await nats.pause();
    // Send more than the socket buffers hold, because unsent data must not keep the connection open either.
    for (let count = 0; count < 200; count += 1) connection.publish("x", Buffer.alloc(100_000));
    await until("it is left", () => made.connection === null);
    expect(connection.isClosed()).toBe(true);
    nats.resume();
    expect(await made.connected()).not.toBe(connection);
  });

  it("should end when it is closed", async () => {
    const nats = await start();
    const made = link(nats.settings);
    const connection = await made.connected();
    await made.close();
    await made.close();
    expect(connection.isClosed()).toBe(true);
    expect(made.connection).toBeNull();
  });
});

describeWithNats("NatsLink, who connects", () => {
  const users = 'authorization { user: rollcall, password: "s3cret" }';

  it("should use a user and a password", async () => {
    const nats = await start({ config: users });
    await link({ ...nats.settings, user: "rollcall", password: "s3cret" }).connected();
  });

  it("should use the credentials in the URL", async () => {
    const nats = await start({ config: users });
    await link({ urls: [urlOf(`nats://rollcall:s3cret@127.0.0.1:${nats.port}`)] }).connected();
  });

  it("should use a token", async () => {
    const nats = await start({ config: 'authorization { token: "s3cret" }' });
    await link({ ...nats.settings, token: "s3cret" }).connected();
    await link({ urls: [urlOf(`nats://s3cret@127.0.0.1:${nats.port}`)] }).connected();
  });

  it("should use an nkey", async () => {
    const user = nkeys.createUser();
    const nats = await start({
      config: `authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`,
    });
    const seed = Buffer.from(user.getSeed()).toString();
    const nkeyFile = await file("user.nk", `# the seed of rollcall\n${seed}\n`);
    await link({ ...nats.settings, nkeyFile }).connected();
  });

  it.each(["\n", "\r\n"])("should use a credentials file with lines that end in %j", async (end) => {
    const { config, credentials } = makeJwtSetup();
    const nats = await start({ config });
    const credentialsFile = await file("user.creds", credentials.replaceAll("\n", end));
    await link({ ...nats.settings, credentialsFile }).connected();
  });

  it("should read a credentials file for each connection", async () => {
    const { config, credentials } = makeJwtSetup();
    const nats = await start({ config });
    const credentialsFile = await file("user.creds", makeJwtSetup().credentials);
    const { log, text } = recordingLog();
    const made = link({ ...nats.settings, credentialsFile }, {}, log);
    await until("it is refused", () => text().includes("Authorization Violation"));
    await file("user.creds", credentials);
    await made.connected();
  });

  it("should keep trying when refused, without logging the secret", async () => {
    const nats = await start({ config: users });
    const { log, text } = recordingLog();
    const urls = [urlOf(`nats://rollcall:wr0ng@127.0.0.1:${nats.port}`)];
    link({ urls }, {}, log);
    await until("it was refused often", () => text().split("Authorization Violation").length > 6);
    expect(text()).not.toContain("wr0ng");
  });
});

describeWithNats("NatsLink, TLS", () => {
  const withOpenssl = needs("openssl", hasOpenssl());

  withOpenssl.it("should trust the configured authority, and show its certificate", async () => {
    const certificates = await makeCertificates(dir);
    const { caFile, clientCertFile: certFile, clientKeyFile: keyFile } = certificates;
    const files = `cert_file: "${certificates.serverCertFile}", key_file: "${certificates.serverKeyFile}"`;
    const nats = await start({
      config: `tls { ${files}, ca_file: "${caFile}", verify: true }`,
    });
    const { urls } = nats.settings;
    await link({ urls, tls: { caFile, certFile, keyFile } }).connected();
    await link({
      urls: [urlOf(`tls://localhost:${nats.port}`)],
      tls: { caFile, certFile, keyFile },
    }).connected();

    const { log, text } = recordingLog();
    link({ urls, tls: { certFile, keyFile } }, {}, log);
    await until("the server is not trusted", () => text().includes("certificate"));
    const withoutCertificate = link({ urls, tls: { caFile } });
    await until("both have tried", () => text().split("cannot connect").length > 3);
    expect(withoutCertificate.connection).toBeNull();
  });

  it("should refuse a server without TLS where the URL asks for it", async () => {
    const nats = await start();
    const { log, text } = recordingLog();
    link({ urls: [urlOf(`tls://127.0.0.1:${nats.port}`)] }, {}, log);
    await until("it is refused", () => text().includes("server does not support 'tls'"));
  });
});
