import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type JsonObject,
  type Message,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectList, type ReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SetNodeLabelsRequestSchema } from "../libs/api/src/gen/rollcall/admin/v1/admin_pb.ts";
import { NOT_DIGESTED, requestDigest } from "../libs/rpc/src/index.ts";
import { accessTokenHash, ensureAccessToken, getNode } from "../libs/store/src/index.ts";
import { addWorkNode, createTestDatabase, type TestDatabase } from "../libs/testkit/src/index.ts";
import { type AccessRig, type ServedMethod, startAccessRig } from "./support/access-rig.ts";
import { rawCall } from "./support/raw-call.ts";

const TOKEN = "token-of-an-admin";
const NAME = { name: "x" };
const SCOPE = { scope: { default: true } };
const WEBHOOK = { name: "x", spec: { url: "https://receiver.example/hook" } };

/**
 * What each method requires in a request, in addition to the id, keyed by method. Most methods require an exact node.
 */
const REQUIRED: Readonly<Record<string, JsonObject>> = {
  CreateAccessToken: { name: "x", role: "ROLE_VIEWER" },
  RevokeAccessToken: { id: "x" },
  CreateJoinToken: { description: "x" },
  RevokeJoinToken: { id: "x" },
  SetHealthPolicy: { ...SCOPE, values: { infoInterval: "7s" } },
  DeleteHealthPolicy: SCOPE,
  PruneAuditLog: { through: { sequence: "1", hash: "0".repeat(64) } },
  ApplyState: { objects: [{ webhook: WEBHOOK }] },
  FreezeReactions: {},
  ReleaseReactions: {},
  SubmitJob: { spec: { name: "x", type: "JOB_TYPE_DAEMON", process: { command: ["true"] } } },
  ...Object.fromEntries(["ScaleJob", "RestartJob", "RevertJob", "StopJob", "DeleteJob"].map((it) => [it, NAME])),
  StopExecution: { execution: "x" },
  AdoptExecution: { execution: "x" },
  RepublishEvents: {},
  SetWebhook: WEBHOOK,
  ReplayDeliveries: NAME,
  DeleteWebhook: NAME,
  SetNodeLabels: { node: "n1", set: { a: "b" } },
};

let database: TestDatabase;
let rig: AccessRig;
let methods: readonly ServedMethod[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of ["n1", "n2"]) await addWorkNode(database.store, id);
  rig = await startAccessRig(database, null);
  await ensureAccessToken(rig.store.db, { id: "admin", name: "admin", role: "admin", hash: accessTokenHash(TOKEN) });
  methods = rig.methods.filter(({ method }) => method.input.fields.some(({ name }) => name === "request_id"));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

function call({ baseUrl, method }: ServedMethod, requestId: string, more: JsonObject = {}): Promise<string> {
  const required = REQUIRED[method.name] ?? { node: "n1" };
  return rawCall(baseUrl, method, `Bearer ${TOKEN}`, {}, { ...required, ...more, requestId });
}

/** Claim an id for another request of the method. */
async function use({ method }: ServedMethod, requestId: string): Promise<void> {
  const name = `/${method.parent.typeName}/${method.name}`;
  const row = { caller: "token:admin", method: name, request_id: requestId, digest: Buffer.alloc(32) };
  await rig.store.db.insertInto("request_ids").values(row).execute();
}

describe("every method with a request id", () => {
  it("should refuse an id that the caller has used for another request", async () => {
    expect(methods.length).toBeGreaterThan(30);
    const wrong: string[] = [];
    for (const served of methods) {
      await use(served, "used");
      const outcome = await call(served, "used");
      if (outcome !== "failed_precondition REQUEST_ID_REUSED") wrong.push(`${served.name}: ${outcome}`);
    }
    expect(wrong).toEqual([]);
  });

  it("should refuse it with a selector too, but not in a call that only validates", async () => {
    const ofNodes = methods.filter(({ method }) => method.input.fields.some(({ name }) => name === "selector"));
    const selecting = ofNodes.filter(({ method }) => method.name !== "SetHealthPolicy");
    expect(selecting).toHaveLength(14);
    for (const served of selecting) {
      const more = { node: "", selector: { nodes: ["n1"] } };
      expect(await call(served, "used", more)).toBe("failed_precondition REQUEST_ID_REUSED");
      expect(await call(served, "used", { ...more, validateOnly: true })).not.toMatch(/REQUEST_ID_REUSED/);
    }
  });

  it("should digest each field of its request", () => {
    for (const { method } of methods) {
      const { input } = method;
      const empty = requestDigest(input, create(input));
      const ignored = input.fields.filter((field) =>
        Buffer.from(requestDigest(input, only(input, field))).equals(empty),
      );
      const expected = input.fields.filter(({ name }) => NOT_DIGESTED.has(name));
      expect([method.name, ignored.map(({ name }) => name)]).toEqual([method.name, expected.map(({ name }) => name)]);
    }
  });
});

describe("two requests with one id", () => {
  it("should not both be carried out when they arrive together", async () => {
    const cordon = methods.find(({ method }) => method.name === "CordonNode");
    if (cordon === undefined) throw new Error("there is no CordonNode");
    const nodes = ["n1", "n2"];
    const outcomes = await Promise.all(
      ["n1", "n2", "n1", "n2"].map((node) => call(cordon, "raced", { node, reason: "disk" })),
    );
    const done = nodes.filter((_, at) => outcomes[at] === "ok");
    expect(done).toHaveLength(1);
    // Each repetition must have the result of its original.
    expect(outcomes.slice(2)).toEqual(outcomes.slice(0, 2));
    expect(outcomes.filter((it) => it === "failed_precondition REQUEST_ID_REUSED")).toHaveLength(2);
    for (const id of nodes) {
      const node = await getNode(rig.store.db, id);
      expect(node?.holds.map(({ kind }) => kind)).toEqual(done.includes(id) ? ["OPERATOR"] : []);
    }
  });
});

describe("requestDigest()", () => {
  const schema = SetNodeLabelsRequestSchema;
  const digestOf = (request: Message) => Buffer.from(requestDigest(schema, request)).toString("hex");

  it("should not depend on the order of map entries, or on unknown fields", () => {
    const digest = digestOf(create(schema, { node: "n1", set: { a: "1", b: "2" } }));
    expect(digestOf(create(schema, { node: "n1", set: { b: "2", a: "1" } }))).toBe(digest);
    const unknown = new BinaryWriter().tag(999, WireType.Varint).uint32(7).finish();
    const bytes = toBinary(schema, create(schema, { node: "n1", set: { a: "1", b: "2" } }));
    expect(digestOf(fromBinary(schema, Buffer.concat([bytes, unknown])))).toBe(digest);
    expect(digestOf(create(schema, { node: "n1", set: { a: "2", b: "1" } }))).not.toBe(digest);
  });

  it("should not change the request", () => {
    const request = create(schema, { node: "n1", set: { b: "2", a: "1" }, requestId: "r1", pageToken: "p" });
    requestDigest(schema, request);
    expect(request).toMatchObject({ requestId: "r1", pageToken: "p" });
    expect(Object.keys(request.set)).toEqual(["b", "a"]);
  });
});

/** Create a message with only this field set. */
function only(schema: DescMessage, field: DescField): Message {
  const message = reflect(schema, create(schema));
  switch (field.fieldKind) {
    case "list":
      (message.get(field) as ReflectList).add(sampleOf(field));
      break;
    case "map":
      (message.get(field) as ReflectMap).set("1", sampleOf(field));
      break;
    default:
      message.set(field, sampleOf(field));
  }
  return message.message;
}

function sampleOf(field: DescField): string | number | bigint | boolean | Uint8Array | ReflectMessage {
  if (field.message !== undefined) return reflect(field.message, create(field.message));
  switch (field.scalar) {
    case ScalarType.STRING:
      return "text";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return new Uint8Array([1]);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return 1n;
    default:
      return 1;
  }
}
