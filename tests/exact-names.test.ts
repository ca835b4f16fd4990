import { type DescMethod, fromBinary, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "../libs/api/src/gen/google/rpc/error_details_pb.ts";
import { generateKeyPair, keyFingerprint } from "../libs/identity/src/index.ts";
import { accessTokenHash, ensureAccessToken } from "../libs/store/src/index.ts";
import { addNode, createTestDatabase, type TestDatabase } from "../libs/testkit/src/index.ts";
import { TestIssuer } from "../libs/testkit/src/test-issuer.ts";
import { Fleet } from "./fuzz/fleet.ts";
import { type AccessRig, startAccessRig } from "./support/access-rig.ts";
import { alternativesOf, declaredObjects, type FieldMeaning, meaningOf, requestOf } from "./support/named-calls.ts";
import { changingMethods } from "./support/schema-methods.ts";

/**
 * MISSING is the name that every call uses; it does not exist. PRESENT is the name of every existing object; MISSING
 * is a prefix of it.
 */
const [MISSING, PRESENT] = ["x-1", "x-12"];
const TOKEN = "token-of-an-admin";

let database: TestDatabase;
let issuer: TestIssuer;
let rig: AccessRig;
let methods: readonly DescMethod[];
const keyPair = generateKeyPair();

beforeAll(async () => {
  database = await createTestDatabase();
  issuer = new TestIssuer();
  await issuer.start();
  rig = await startAccessRig(database, issuer);
  await ensureAccessToken(rig.store.db, { id: "admin", name: "admin", role: "admin", hash: accessTokenHash(TOKEN) });
  methods = await changingMethods();
  await rig.store.db.updateTable("cluster").set({ scheduler_led: true }).execute();
});
afterAll(async () => {
  await rig.close();
  await issuer.stop();
  await database.drop();
});

/** Create one object of each kind with the existing name. Remove everything else that calls have created. */
async function restore(): Promise<void> {
  const { store } = rig;
  const { db } = store;
  for (const table of ["bans", "declared_objects", "health_policies", "webhooks", "executions", "jobs"] as const) {
    await db.deleteFrom(table).execute();
  }
  for (const table of ["brakes", "join_tokens"] as const) await db.deleteFrom(table).execute();
  await db.deleteFrom("nodes").where("type", "=", "COMPUTE").execute();
  await db.deleteFrom("access_tokens").where("id", "<>", "admin").execute();
  await addNode(store, PRESENT);
  const { publicKey } = keyPair;
  const key = { public_key: Buffer.from(publicKey), fingerprint: keyFingerprint(publicKey) };
  await db.updateTable("node_identities").set(key).where("node_id", "=", PRESENT).execute();
  const declared = { owner: PRESENT, objects: declaredObjects(PRESENT) };
  const service = methodNamed("ApplyState");
  expect(await call(service, declared)).toMatchObject({ reason: "" });
  const hash = accessTokenHash("another");
  await ensureAccessToken(db, { id: PRESENT, name: PRESENT, role: "viewer", hash });
  const terms = { description: "", node_name_pattern: "", labels: "{}", preauthorized: false, ephemeral: false };
  await db
    .insertInto("join_tokens")
    .values({ ...terms, id: PRESENT, hash, created_by: "test" })
    .execute();
  await db.insertInto("brakes").values({ group_name: PRESENT, size: 1 }).execute();
  const reserved = { millicores: 1n, memory_bytes: 1n, disk_bytes: 1n, spec_digest: Buffer.alloc(32) };
  const place = { job: PRESENT, node_id: PRESENT, version: 0, index: 0, generation: 1n, ports: "{}", gpu_uuids: [] };
  const state = { desired: "RUN", state: "ORPHANED", attempt: 0, reason: "", message: "" } as const;
  const orphan = { id: PRESENT, ...state, ...place, ...reserved };
  await db.insertInto("executions").values(orphan).execute();
}

function methodNamed(name: string): DescMethod {
  const method = methods.find((it) => it.name === name);
  if (method === undefined) throw new Error(`the schema has no method ${name}`);
  return method;
}

interface Answer {
  /** The reason of the refusal; empty if the call succeeded or if each outcome has its own reason. */
  readonly reason: string;
  readonly message: string;
  readonly suggestion: string | undefined;
  /** The reasons in the outcomes of single nodes. */
  readonly outcomes: readonly string[];
}

/** Call a method in the same way as a script that sends JSON. */
async function call(method: DescMethod, request: JsonObject): Promise<Answer> {
  const served = rig.methods.find(
    (it) => it.method.name === method.name && it.method.parent.name === method.parent.name,
  );
  const response = await fetch(`${served?.baseUrl}/${method.parent.typeName}/${method.name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  const answer = (await response.json()) as WireAnswer;
  const outcomes = (answer.outcomes ?? []).map(({ refusal }) => refusal);
  const reasons = outcomes.map((refusal) => (refusal?.reason ?? "").replace("ERROR_REASON_", ""));
  if (response.ok) {
    return { reason: "", message: "", suggestion: outcomes[0]?.metadata?.suggestion, outcomes: reasons };
  }
  const info = answer.details?.find(({ type }) => type === ErrorInfoSchema.typeName);
  const { reason, metadata } = fromBinary(ErrorInfoSchema, Buffer.from(info?.value ?? "", "base64"));
  return { reason, message: answer.message ?? "", suggestion: metadata.suggestion, outcomes: [] };
}

interface WireAnswer {
  readonly message?: string;
  readonly details?: readonly { readonly type: string; readonly value: string }[];
  readonly outcomes?: readonly {
    readonly refusal?: { readonly reason?: string; readonly metadata?: { readonly suggestion?: string } };
  }[];
}

/** The tables that operators' decisions change, without those that processes write. */
const TABLES = [
  ...["nodes", "node_labels", "node_identities", "bans", "jobs", "job_versions", "webhooks", "join_tokens"],
  ...["access_tokens", "health_policies", "brakes", "declared_objects", "executions"],
] as const;

/** Read all rows stored under the existing name. */
async function stored(): Promise<Readonly<Record<string, readonly string[]>>> {
  const { db } = rig.store;
  const all = await Promise.all(
    TABLES.map(async (table) => {
      const rows = await db
        .selectFrom(table as never)
        .selectAll()
        .execute();
      const texts = rows.map((row) =>
        JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
      );
      return [
        table,
        texts.filter((text) => text.includes(`"${PRESENT}`) || text.includes(`/${PRESENT}`)).sort(),
      ] as const;
    }),
  );
  return Object.fromEntries(all);
}

/** One way for a method to name objects. */
interface NamedCall {
  readonly title: string;
  readonly method: DescMethod;
  readonly meaning: FieldMeaning;
}

/** Whether a field can name an object. Numbers, times and bytes cannot. */
function canName(field: DescMethod["input"]["fields"][number]): boolean {
  if (field.fieldKind === "scalar") return field.scalar === ScalarType.STRING;
  return field.fieldKind !== "enum" && !field.message?.typeName.startsWith("google.protobuf.");
}

function callsOf(method: DescMethod): readonly NamedCall[] {
  const service = method.parent.name;
  const fields = method.input.fields.filter(canName).flatMap(({ name }) => {
    const meaning = meaningOf(service, method.name, name);
    return meaning === undefined ? [] : [[name, meaning] as const];
  });
  return [...fields, ...alternativesOf(service, method.name)].map(([field, meaning]) => {
    return { title: `${service}.${method.name} by ${field}`, method, meaning };
  });
}

describe("a call that changes something", () => {
  it("should be covered here, with all fields that can name an object", () => {
    const unknown = methods.flatMap((method) =>
      method.input.fields
        .filter(canName)
        .filter(({ name }) => meaningOf(method.parent.name, method.name, name) === undefined)
        .map(
          ({ name }) =>
            `${method.parent.name}.${method.name}.${name}: say in tests/support/named-calls.ts what it names`,
        ),
    );
    expect(unknown).toEqual([]);
    expect(methods.length).toBeGreaterThan(45);
  });

  it("should not change an object whose name only begins with the given one", async () => {
    await restore();
    const before = await stored();
    for (const table of TABLES.filter((it) => it !== "bans")) {
      expect([table, before[table]?.length]).not.toEqual([table, 0]);
    }
    const wrong: string[] = [];
    const calls = methods.flatMap(callsOf);
    const creating = calls.filter(({ meaning }) => meaning.kind === "create");
    // Calls that create an object come last, because afterwards the missing name exists.
    for (const { title, method, meaning } of [...calls.filter((it) => !creating.includes(it)), ...creating]) {
      if (meaning.kind === "none") continue;
      const request = meaning.kind === "own" ? proven(method) : requestOf(method.name, meaning, MISSING);
      const answer = await call(method, request);
      const found = answer.outcomes[0] ?? answer.reason;
      const wanted = meaning.kind === "name" ? meaning.missing : meaning.kind === "create" ? "" : found;
      if (found !== wanted) wrong.push(`${title}: ${found} ${answer.message}, not ${wanted}`);
      const said = `${answer.suggestion} ${answer.message}`;
      if (meaning.kind === "name" && !said.includes(PRESENT)) wrong.push(`${title}: no suggestion, ${said}`);
      if (meaning.kind === "own" && found === "") wrong.push(`${title}: was let in`);
      expect([title, await stored()]).toEqual([title, before]);
    }
    expect(wrong).toEqual([]);
  });

  it("should find the object by its exact name", async () => {
    const wrong: string[] = [];
    for (const { title, method, meaning } of methods.flatMap(callsOf)) {
      if (meaning.kind !== "name") continue;
      await restore();
      const { reason, message, outcomes } = await call(method, requestOf(method.name, meaning, PRESENT));
      const found = outcomes[0] ?? reason;
      if (found === meaning.missing || found === "INVALID_REQUEST") wrong.push(`${title}: ${found} ${message}`);
    }
    expect(wrong).toEqual([]);
  });
});

/** Create the request of a node with the missing id, but with the key of the existing node. */
function proven(method: DescMethod): JsonObject {
  const overlay = new Fleet(rig.store).proofOf(method, { id: MISSING, keyPair });
  if (overlay === null) throw new Error(`${method.name} takes no proof`);
  return overlay.json as JsonObject;
}
