import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase } from "@rollcall/testkit";
import { SERVICES } from "./routes.ts";
import { type Rig, startRig } from "./testing/rig.ts";
import { TestNode } from "./testing/test-node.ts";

const METHODS = SERVICES.flatMap((service) => service.methods);
let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  await new TestNode("bystander").register(rig.registry);
});
afterAll(async () => {
  // The invalid input above has not disturbed any other call.
  const { node } = await rig.registry.getNode({ node: "bystander" });
  expect(node?.id).toBe("bystander");
  await rig.close();
});

/** Post raw bytes, in an envelope if the method streams. Returns the Connect error. */
async function post(
  method: (typeof METHODS)[number],
  body: string | Uint8Array<ArrayBuffer>,
  codec: "json" | "proto",
): Promise<{ readonly code: string; readonly text: string }> {
  const streams = method.methodKind !== "unary";
  const url = `${rig.baseUrl}/${method.parent.typeName}/${method.name}`;
  const headers = {
    "content-type": streams ? `application/connect+${codec}` : `application/${codec}`,
    authorization: `Bearer ${rig.token}`,
  };
  const bytes = Buffer.from(body);
  const sent = streams ? envelope(bytes) : bytes;
  const response = await fetch(url, { method: "POST", headers, body: new Uint8Array(sent) });
  const answer = Buffer.from(await response.arrayBuffer());
  const text = (streams ? answer.subarray(ENVELOPE_BYTES) : answer).toString();
  const parsed = JSON.parse(text) as { code: string } | { error: { code: string } };
  return { code: "error" in parsed ? parsed.error.code : parsed.code, text };
}

/** Size of the flag byte and the length before each message of a stream. */
const ENVELOPE_BYTES = 5;

function envelope(message: Buffer): Buffer {
  const header = Buffer.alloc(ENVELOPE_BYTES);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

describe.each(METHODS)("$name", (method) => {
  it("should refuse garbage bytes", async () => {
    // A field of length 127 whose bytes are missing.
    const garbage = new Uint8Array([0x0a, 0x7f, 0x00]);
    const { code, text } = await post(method, garbage, "proto");
    expect([code, text]).toEqual(["invalid_argument", expect.stringContaining("MALFORMED_MESSAGE")]);
  });

  it("should refuse text that is not JSON", async () => {
    const { code, text } = await post(method, "{]", "json");
    expect([code, text]).toEqual(["invalid_argument", expect.stringContaining("MALFORMED_MESSAGE")]);
  });

  it("should refuse a message above 1 MiB", async () => {
    const large = new Uint8Array(1_048_577);
    const { code, text } = await post(method, large, "proto");
    expect([code, text]).toEqual(["resource_exhausted", expect.stringContaining("MESSAGE_TOO_LARGE")]);
  });
});

describe("half of a surrogate pair", () => {
  it("should be refused wherever it could reach the store", async () => {
    const registerNode = METHODS.find(({ name }) => name === "RegisterNode");
    if (registerNode === undefined) throw new Error("there is no RegisterNode");
    const request = `{"nodeId":"x","info":{"hostname":"\\ud800"}}`;
    const { code } = await post(registerNode, request, "json");
    expect(code).toBe("invalid_argument");
  });
});
