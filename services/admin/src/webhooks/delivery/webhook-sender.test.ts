import { rmSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { TestReceiver } from "../../testing/test-receiver.ts";
import type { Resolve } from "./guarded-lookup.ts";
import { createWebhookSender, type SenderOptions, type WebhookSender } from "./webhook-sender.ts";

let authority: TestAuthority;
let receiver: TestReceiver;
let sender: WebhookSender;
beforeAll(async () => {
  authority = new TestAuthority();
  receiver = await new TestReceiver(authority, ["127.0.0.1", "hook.example", "localhost"]).listen();
});
afterEach(() => {
  sender.close();
  receiver.answer = () => 204;
});
afterAll(async () => {
  await receiver.close();
  rmSync(authority.dir, { recursive: true, force: true });
});

const LOOPBACK = ["127.0.0.0/8"];
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const BODY = JSON.stringify({ id: "1", type: "test", subject: "s", revision: "1" });

function post(url: string, options: Partial<SenderOptions> = {}, signal = new AbortController().signal) {
  sender = createWebhookSender({
    ...{ clock: systemClock, allowedNetworks: LOOPBACK, authorityFile: authority.caFile },
    ...{ timeoutMs: 5_000, userAgent: "rollcall" },
    ...options,
  });
  return sender.post({ url, secrets: [SECRET], id: "1", body: BODY }, signal);
}

const leadingTo =
  (...addresses: readonly string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

describe("WebhookSender", () => {
  it("should post by name to an allowed address, and check the certificate by the name", async () => {
    const url = receiver.url().replace("127.0.0.1", "hook.example");
    const resolve = leadingTo("127.0.0.1");
    expect(await post(url, { resolve })).toMatchObject({ kind: "answered", status: 204 });
    sender.close();
    const other = url.replace("hook.example", "other.example");
    expect(await post(other, { resolve })).toMatchObject({ kind: "failed", error: expect.stringMatching(/altname/i) });
  });

  it("should return when the receiver asks to be called again", async () => {
    receiver.answer = () => (response) => response.writeHead(503, { "retry-after": "7" }).end();
    expect(await post(receiver.url())).toEqual({ kind: "answered", status: 503, retryAfter: "7" });
    sender.close();
    receiver.answer = () => 503;
    expect(await post(receiver.url())).toEqual({ kind: "answered", status: 503, retryAfter: null });
  });

  it.each([
    "10.0.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "fe80::1",
    "fd00:ec2::254",
    "64:ff9b::7f00:1",
  ])("should not connect by a name to %s", async (address) => {
    const before = receiver.connections;
    const url = receiver.url().replace("127.0.0.1", "hook.example");
    const answer = await post(url, { allowedNetworks: [], resolve: leadingTo(address) });
    expect(answer).toMatchObject({ kind: "failed", error: expect.stringContaining("hook.example resolves to") });
    expect(receiver.connections).toBe(before);
  });

  it("should refuse a name if one of its addresses is private", async () => {
    const before = receiver.connections;
    const url = receiver.url().replace("127.0.0.1", "hook.example");
    const answer = await post(url, { resolve: leadingTo("127.0.0.1", "10.0.0.1") });
    expect(answer).toMatchObject({ kind: "failed", error: expect.stringContaining("10.0.0.1") });
    expect(receiver.connections).toBe(before);
  });

  it("should connect to the checked address, even if the name resolves differently a moment later", async () => {
    let asked = 0;
    const rebinding: Resolve = async () => {
      asked += 1;
      return [{ address: asked === 1 ? "93.184.216.34" : "127.0.0.1", family: 4 }];
    };
    const before = receiver.connections;
    const url = receiver.url().replace("127.0.0.1", "hook.example");
    const answer = await post(url, { allowedNetworks: [], resolve: rebinding, timeoutMs: 300 });
    expect(answer.kind).toBe("failed");
    expect(asked).toBe(1);
    // The name now resolves to this machine, so the next connection is refused.
    expect(
      await sender.post({ url, secrets: [SECRET], id: "1", body: BODY }, new AbortController().signal),
    ).toMatchObject({
      kind: "failed",
      error: expect.stringContaining("127.0.0.1"),
    });
    expect(receiver.connections).toBe(before);
  });

  it.each(["https://localhost", "https://0", "https://2130706433", "https://0177.0.0.1", "https://[::ffff:7f00:1]"])(
    "should not connect to %s",
    async (origin) => {
      const before = receiver.connections;
      const answer = await post(`${origin}:${receiver.port}/`, { allowedNetworks: [] });
      expect(answer).toMatchObject({ kind: "failed", error: expect.stringContaining("AllowedNetworks") });
      expect(receiver.connections).toBe(before);
    },
  );

  it.each([301, 302, 303, 307, 308])("should not follow a redirect with %d", async (status) => {
    const paths: (string | undefined)[] = [];
    receiver.answer = ({ headers }) => {
      paths.push(headers.host);
      return (response) => response.writeHead(status, { location: receiver.url("/elsewhere") }).end();
    };
    expect(await post(receiver.url())).toMatchObject({ kind: "answered", status });
    expect(paths).toHaveLength(1);
  });

  it("should not trust a certificate of an authority that is not known, whatever the environment says", async () => {
    expect(await post(receiver.url(), { authorityFile: null })).toMatchObject({ kind: "failed" });
  });

  it("should give up on receivers that do not answer in time", async () => {
    receiver.answer = () => "hang";
    expect(await post(receiver.url(), { timeoutMs: 200 })).toEqual({
      kind: "failed",
      error: "no response within 0.2 s",
    });
  });

  it("should use the status of an endless response, and read only a little of it", async () => {
    let written = 0;
    receiver.answer = () => (response) => {
      response.writeHead(200);
      const write = (error?: Error | null) => {
        // A write after the socket ended fails immediately, but `destroyed` is set only in the next tick.
        if (error || response.destroyed) return;
        written += 65_536;
        response.write(Buffer.alloc(65_536), write);
      };
      write();
    };
    expect(await post(receiver.url())).toMatchObject({ kind: "answered", status: 200 });
    expect(written).toBeLessThan(16 * 1_048_576);
  });

  it("should fail on a response that is not HTTP, has endless headers, or is truncated", async () => {
    receiver.answer = () => (response) => response.socket?.end("SSH-2.0-OpenSSH_9\r\n\r\n");
    expect(await post(receiver.url())).toMatchObject({ kind: "failed" });
    sender.close();
    receiver.answer = () => (response) => response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`);
    expect(await post(receiver.url())).toMatchObject({ kind: "failed" });
    sender.close();
    receiver.answer = () => (response) => response.socket?.destroy();
    expect(await post(receiver.url())).toMatchObject({ kind: "failed" });
  });

  it("should fail on a response of 101, which is not final", async () => {
    const upgrade = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    receiver.answer = () => (response) => response.socket?.end(upgrade);
    expect(await post(receiver.url())).toMatchObject({
      kind: "failed",
      error: "the connection was closed without a response",
    });
  });

  it("should reuse a connection", async () => {
    const before = receiver.connections;
    await post(receiver.url());
    const again = { url: receiver.url(), secrets: [SECRET], id: "2", body: BODY };
    for (let index = 0; index < 3; index += 1) {
      expect(await sender.post(again, new AbortController().signal)).toMatchObject({ status: 204 });
    }
    expect(receiver.connections).toBe(before + 1);
  });

  it("should reject when it is aborted", async () => {
    receiver.answer = () => "hang";
    const ending = new AbortController();
    const posting = post(receiver.url(), {}, ending.signal);
    ending.abort(new Error("the end"));
    await expect(posting).rejects.toThrow("the end");
  });
});
