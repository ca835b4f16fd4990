import { type DescMethod, fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "../libs/api/src/gen/google/rpc/error_details_pb.ts";
import { accessTokenHash, ensureAccessToken } from "../libs/store/src/index.ts";
import {
  changedRows,
  changedTables,
  createTestDatabase,
  readContents,
  type StoreContents,
  type TestDatabase,
  until,
} from "../libs/testkit/src/index.ts";
import { type AccessRig, startAccessRig } from "./support/access-rig.ts";
import {
  ACTING_CALLS,
  type ActingCall,
  FURTHER_CALLS,
  PLANNING_CALLS,
  type Preparation,
} from "./support/acting-calls.ts";
import { changingMethods } from "./support/schema-methods.ts";

/** The fields of requests that keep a call from changing anything. */
const OPTIONS = ["validate_only", "etag", "request_id"];
const TOKEN = "token-of-an-admin";
/** The tables where a refused call leaves its entry. */
const OF_REFUSALS = ["audit_head", "audit_log"];
/** Tables whose rows name no object. */
const WITHOUT_OBJECT = [...OF_REFUSALS, "audit_cut", "event_relay", "execution_specs", "request_ids"];

let database: TestDatabase;
let rig: AccessRig;
let methods: readonly DescMethod[];
beforeAll(async () => {
  database = await createTestDatabase();
  rig = await startAccessRig(database, null);
  await ensureAccessToken(rig.store.db, { id: "admin", name: "admin", role: "admin", hash: accessTokenHash(TOKEN) });
  await rig.store.db.updateTable("cluster").set({ scheduler_led: true }).execute();
  methods = (await changingMethods()).filter(({ input }) => input.fields.some(({ name }) => OPTIONS.includes(name)));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const has = ({ input }: DescMethod, field: string) => input.fields.some(({ name }) => name === field);
/** Whether a method can change several nodes that a selector matches. */
const selectsNodes = (method: DescMethod) => has(method, "selector") && has(method, "node");

function methodNamed(name: string): DescMethod {
  const method = methods.find((it) => it.name === name);
  if (method === undefined) throw new Error(`no method ${name} has an option`);
  return method;
}

interface Answer {
  /** The reason of a refusal, of the call or of its first node; "ok" without one. */
  readonly outcome: string;
  readonly body: JsonObject;
}

interface WireAnswer {
  readonly details?: readonly { readonly type: string; readonly value: string }[];
  readonly outcomes?: readonly { readonly refusal?: { readonly reason?: string } }[];
}

/** Call a method in the same way as a script that sends JSON. */
async function call(name: string, request: JsonObject): Promise<Answer> {
  const served = rig.methods.find(({ method }) => method.name === name);
  if (served === undefined) throw new Error(`no service has a method ${name}`);
  const response = await fetch(`${served.baseUrl}/${served.method.parent.typeName}/${name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  const body = (await response.json()) as JsonObject;
  const { details = [], outcomes = [] } = body as WireAnswer;
  if (response.ok) return { outcome: outcomes[0]?.refusal?.reason ?? "ok", body };
  const info = details.find(({ type }) => type === ErrorInfoSchema.typeName);
  return { outcome: fromBinary(ErrorInfoSchema, Buffer.from(info?.value ?? "", "base64")).reason, body };
}

/** Prepare the state of a case, and return its request. */
async function prepare({ given, request }: ActingCall, name: string): Promise<JsonObject> {
  const preparation: Preparation = {
    ...{ store: rig.store, name },
    call: async (method, first) => {
      const { outcome, body } = await call(method, first);
      if (outcome !== "ok") throw new Error(`${name}: ${method} was refused: ${JSON.stringify(body)}`);
      return body;
    },
  };
  await given?.(preparation);
  return request(preparation);
}

interface Effect extends Answer {
  /** The tables that have changed. */
  readonly changed: readonly string[];
  /** What the store contains afterwards. */
  readonly contents: StoreContents;
}

async function effectOf(before: StoreContents, name: string, request: JsonObject): Promise<Effect> {
  const answer = await call(name, request);
  const contents = await readContents(rig.store);
  return { ...answer, contents, changed: changedTables(before, contents) };
}

/** Wait for the audit entry of a refused call, which is written after its answer. Returns what the store contains. */
function refusalRecorded(before: StoreContents): Promise<StoreContents> {
  return until("the audit entry of a refusal", async () => {
    const contents = await readContents(rig.store);
    return changedTables(before, contents).includes("audit_log") && contents;
  });
}

/** Rows that a call changed although they do not name its object: other nodes, bans, orders, tokens and jobs. */
function foreignRows(before: StoreContents, after: StoreContents, object: string): readonly string[] {
  const tables = changedTables(before, after).filter((table) => !WITHOUT_OBJECT.includes(table));
  const rows = tables.flatMap((table) => changedRows(before, after, table).map((row) => `${table} ${row}`));
  return rows.filter((row) => !['"', "/", ":"].some((mark) => row.includes(`${mark}${object}"`)));
}

/** Find what is wrong with the options of one method, in a state in which its call changes something. */
async function faultsOf(
  method: DescMethod,
  acting: ActingCall,
  { what = "", bySelector = false }: { readonly what?: string; readonly bySelector?: boolean } = {},
): Promise<readonly string[]> {
  const { name } = method;
  const words = name.replaceAll(/(?!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
  const object = `${words}${bySelector ? "-selected" : ""}${what === "" ? "" : `-${what.replaceAll(" ", "-")}`}`;
  const plain = await prepare(acting, object);
  const request = bySelector ? { ...plain, node: "", selector: { nodes: [object] } } : plain;
  const title = `${method.parent.name}.${name}${bySelector ? " with a selector" : ""} ${what}`;
  const faults: string[] = [];
  let contents = await readContents(rig.store);
  const tryOption = async (option: string, more: JsonObject, outcome: string, allowed: readonly string[]) => {
    const found = await effectOf(contents, name, { ...request, ...more });
    contents = found.contents;
    const changed = found.changed.filter((table) => !allowed.includes(table));
    if (found.outcome !== outcome) faults.push(`${title}, ${option}: ${found.outcome} ${JSON.stringify(found.body)}`);
    if (changed.length > 0) faults.push(`${title}, ${option}: changed ${changed.join(", ")}`);
    return found;
  };
  if (has(method, "validate_only")) await tryOption("validate_only", { validateOnly: true }, "ok", []);
  if (has(method, "etag") && !bySelector) {
    const unrefused = contents;
    await tryOption("a wrong etag", { etag: "wrong" }, acting.mismatch ?? "ETAG_MISMATCH", OF_REFUSALS);
    contents = await refusalRecorded(unrefused);
  }
  const requestId = `id of ${object}`;
  const before = contents;
  const first = await effectOf(before, name, { ...request, requestId });
  contents = first.contents;
  const foreign = foreignRows(before, first.contents, acting.target ?? object);
  if (foreign.length > 0) faults.push(`${title} changed what belongs to others: ${foreign.join(", ")}`);
  // The same call must act without the options. Otherwise the checks above would prove nothing.
  const effects = first.changed.filter((table) => ![...OF_REFUSALS, "request_ids"].includes(table));
  if (first.outcome !== "ok" || effects.length === 0) {
    faults.push(`${title} does not act: ${first.outcome} ${JSON.stringify(first.body)}`);
  }
  const again = await tryOption("a repeated request id", { requestId }, "ok", []);
  if (JSON.stringify(again.body) !== JSON.stringify(first.body)) {
    faults.push(`${title}, a repeated request id: ${JSON.stringify(again.body)}, not ${JSON.stringify(first.body)}`);
  }
  return faults;
}

describe("an option that must not act", () => {
  it("should be tested here for every method that has one", () => {
    const missing = methods.filter(({ name }) => ACTING_CALLS[name] === undefined);
    expect(missing.map(({ name }) => `${name}: add a call that acts to tests/support/acting-calls.ts`)).toEqual([]);
    expect(Object.keys(ACTING_CALLS).sort()).toEqual(methods.map(({ name }) => name).sort());
    expect(methods.every((method) => has(method, "request_id"))).toBe(true);
  });

  it.each(Object.keys(ACTING_CALLS))(
    "should change nothing, where the same call without it changes only its own object: %s",
    async (name) => {
      const method = methodNamed(name);
      const acting = ACTING_CALLS[name] as ActingCall;
      expect(await faultsOf(method, acting)).toEqual([]);
      if (selectsNodes(method)) expect(await faultsOf(method, acting, { bySelector: true })).toEqual([]);
    },
  );

  it.each(FURTHER_CALLS)("should change nothing in %s of %s", async (name, what, acting) => {
    expect(await faultsOf(methodNamed(name), acting, { what })).toEqual([]);
  });
});

describe("a call that only says what another would change", () => {
  it.each(Object.keys(PLANNING_CALLS))("should change nothing: %s", async (name) => {
    const request = await prepare(PLANNING_CALLS[name] as ActingCall, `planned-${name.toLowerCase()}`);
    expect(await effectOf(await readContents(rig.store), name, request)).toMatchObject({ outcome: "ok", changed: [] });
  });
});
