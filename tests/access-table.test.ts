import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Role, roleSuffices } from "../libs/identity/src/index.ts";
import type { MethodCaller } from "../libs/rpc/src/index.ts";
import { accessTokenHash, ensureAccessToken, revokeAccessToken } from "../libs/store/src/index.ts";
import { createTestDatabase, eventually, type TestDatabase } from "../libs/testkit/src/index.ts";
import { TestIssuer } from "../libs/testkit/src/test-issuer.ts";
import { formatAccessTable, withAccessTable } from "./support/access-page.ts";
import { type AccessRig, type ServedMethod, startAccessRig } from "./support/access-rig.ts";
import { endGrpcCalls, grpcCall } from "./support/grpc-call.ts";
import { rawCall } from "./support/raw-call.ts";
import { workspaceRoot } from "./support/workspace.ts";

interface TestCaller {
  readonly authorization: string | null;
  /** The caller's name in the audit log; null for anonymous clients. */
  readonly actor: string | null;
  /** The caller's role, or the refusal that the caller gets from every method that requires a role. */
  readonly is: Role | { readonly refusedWith: string };
}

const PAGE = join(workspaceRoot, "docs/access.md");
const ROLES = ["viewer", "operator", "submitter", "admin"] as const;
const AT_A_TIME = 8;

let database: TestDatabase;
let issuer: TestIssuer;
let rig: AccessRig;
const callers = new Map<string, TestCaller>();
beforeAll(async () => {
  database = await createTestDatabase();
  issuer = new TestIssuer();
  await issuer.start();
  rig = await startAccessRig(database, issuer);
  await addCallers();
});
afterAll(async () => {
  endGrpcCalls();
  await rig.close();
  await issuer.stop();
  await database.drop();
});

async function addCallers(): Promise<void> {
  const unauthenticatedCaller = (authorization: string | null, refusedWith: string): TestCaller => {
    return { authorization, actor: null, is: { refusedWith } };
  };
  const unauthenticated = (reason: string) => `unauthenticated ${reason}`;
  callers.set("no token", unauthenticatedCaller(null, unauthenticated("TOKEN_MISSING")));
  for (const garbage of ["Bearer garbage", "Bearer a.b.c", "Basic dXNlcjpwYXNz", "Bearer"]) {
    callers.set(garbage, unauthenticatedCaller(garbage, unauthenticated("TOKEN_INVALID")));
  }
  for (const role of ROLES) {
    const token = await keepToken(role);
    callers.set(role, { authorization: `Bearer ${token}`, actor: `token:${role}`, is: role });
    const person = await issuer.token({ sub: `a-${role}`, rollcall_role: role });
    const actor = `user:a-${role}`;
    callers.set(`OIDC ${role}`, { authorization: `Bearer ${person}`, actor, is: role });
  }
  const ended = async (id: string) => `Bearer ${await keepToken("admin", id)}`;
  callers.set("expired", unauthenticatedCaller(await ended("expired"), unauthenticated("TOKEN_EXPIRED")));
  callers.set("revoked", unauthenticatedCaller(await ended("revoked"), unauthenticated("TOKEN_REVOKED")));
  await endTokens();
  const admin = { sub: "root", rollcall_role: "admin" };
  const oidc = async (claims: object, options: object = {}) => `Bearer ${await issuer.token({ ...claims }, options)}`;
  const late = unauthenticatedCaller(await oidc(admin, { expiresInS: -60 }), unauthenticated("TOKEN_EXPIRED"));
  callers.set("OIDC expired", late);
  const elsewhere = await oidc(admin, { audience: "other" });
  callers.set("OIDC elsewhere", unauthenticatedCaller(elsewhere, unauthenticated("TOKEN_INVALID")));
  const nobody = await oidc({ sub: "nobody" });
  callers.set("OIDC nobody", unauthenticatedCaller(nobody, "permission_denied ROLE_TOO_LOW"));
}

async function keepToken(role: Role, id: string = role): Promise<string> {
  const token = `test-token-of-${id}`;
  const hash = accessTokenHash(token);
  await ensureAccessToken(rig.store.db, { id, name: id, role, hash });
  return token;
}

async function endTokens(): Promise<void> {
  const { store } = rig;
  const passed = { expires_at: new Date(0) };
  await store.db.updateTable("access_tokens").set(passed).where("id", "=", "expired").execute();
  await store.transaction((tx) => revokeAccessToken(tx, "revoked", { actor: "x", reason: "" }));
}

/** Return the refusal that the tables prescribe; null if the call passes authorization, whatever its result. */
function refusalBy(needs: MethodCaller, { is }: TestCaller): string | null {
  if (needs === "anyone" || needs === "node" || needs === "replica") return null;
  if (typeof is !== "string") return is.refusedWith;
  return roleSuffices(is, needs) ? null : "permission_denied ROLE_TOO_LOW";
}

const AT_AUTHENTICATION = /TOKEN_MISSING|TOKEN_INVALID|TOKEN_EXPIRED|TOKEN_REVOKED|ROLE_TOO_LOW/;
/** Results that an authorized call must never have. */
const WRONG = /INTERNAL|UNKNOWN_METHOD|without a reason/;

/** Compare a result with the tables. Returns "as expected", or the actual result. */
function evaluate(served: ServedMethod, caller: TestCaller, outcome: string): string {
  const refusal = refusalBy(served.caller, caller);
  const isRight = refusal === null ? !AT_AUTHENTICATION.test(outcome) && !WRONG.test(outcome) : outcome === refusal;
  // The standard gRPC services refuse calls without a reason.
  const isForeign = served.name.startsWith("grpc.") && outcome.endsWith("without a reason");
  return isRight || isForeign ? "as expected" : `${outcome}, not ${refusal ?? "let in"}`;
}

function isMutation({ method, caller }: ServedMethod): boolean {
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return !isRead && ROLES.some((role) => role === caller);
}

describe("authorization", () => {
  it("should give each kind of caller the right answer from every method", async () => {
    expect(rig.methods.length).toBeGreaterThan(30);
    const calls = rig.methods.flatMap((served) =>
      [...callers].flatMap(([name, caller]) =>
        // Make each call both ways, because the server handles plain gRPC with other code than Connect.
        [rawCall, grpcCall].map((ask) => ({ served, name, caller, ask })),
      ),
    );
    const wrong: string[] = [];
    const call = async ({ served, name, caller, ask }: (typeof calls)[number]) => {
      const outcome = await ask(served.baseUrl, served.method, caller.authorization);
      const decision = evaluate(served, caller, outcome);
      if (decision !== "as expected") wrong.push(`${ask.name} of ${served.name} by ${name}: ${decision}`);
    };
    const isUnary = ({ served }: (typeof calls)[number]) => served.method.methodKind === "unary";
    // Open all streams at the same time. The first message of a stream is its bookmark, which arrives late if nothing
    // happens.
    const streams = calls.filter((it) => !isUnary(it)).map(call);
    const unary = calls.filter(isUnary);
    for (let start = 0; start < unary.length; start += AT_A_TIME) {
      await Promise.all(unary.slice(start, start + AT_A_TIME).map(call));
    }
    await Promise.all(streams);
    expect(wrong).toEqual([]);
  });

  it("should decode no messages of anonymous clients, and no large ones in methods that accept no token", async () => {
    const json = { "content-type": "application/json" };
    const reasonOf = async ({ baseUrl, name }: ServedMethod, body: string) => {
      const answer = await fetch(`${baseUrl}/${name}`, { method: "POST", headers: json, body });
      return /"reason":"(\w+)"/.exec(await answer.text())?.[1] ?? `${answer.status} without a reason`;
    };
    const unary = rig.methods.filter(({ method }) => method.methodKind === "unary");
    const wrong: string[] = [];
    for (const served of unary) {
      const isOpen = served.caller === "anyone" || served.caller === "node";
      const refusal = served.caller === "replica" ? "REPLICA_CREDENTIALS_INVALID" : "TOKEN_MISSING";
      const malformed = await reasonOf(served, "}{");
      if (malformed !== (isOpen ? "MALFORMED_MESSAGE" : refusal)) wrong.push(`${served.name}: ${malformed} for }{`);
      const large = await reasonOf(served, `{"x":"${"x".repeat(300_000)}"}`);
      if (large !== (isOpen ? "MESSAGE_TOO_LARGE" : refusal)) wrong.push(`${served.name}: ${large} for 300 KB`);
    }
    expect(unary.length).toBeGreaterThan(30);
    expect(wrong).toEqual([]);
  });

  it("should log which mutations were refused to which caller, and none of anonymous clients", async () => {
    const wanted = rig.methods.filter(isMutation).flatMap(({ name, caller: needs }) =>
      [...callers.values()].flatMap((caller) => {
        const isRefused = caller.actor !== null && refusalBy(needs, caller) !== null;
        return isRefused ? [`${caller.actor} ${name} ROLE_TOO_LOW`] : [];
      }),
    );
    expect(wanted.length).toBeGreaterThan(0);
    await eventually(async () => {
      const rows = await rig.store.db.selectFrom("audit_log").selectAll().execute();
      const written = rows.map((row) => `${row.actor} ${row.method} ${row.outcome}`);
      expect(written).toEqual(expect.arrayContaining(wanted));
      const known = [...callers.values()].map(({ actor }) => actor);
      expect(rows.filter(({ actor }) => !known.includes(actor))).toEqual([]);
    });
  });

  it("should be as docs/access.md says (UPDATE_DOCS=1 writes its table)", () => {
    const page = readFileSync(PAGE, "utf8");
    const wanted = withAccessTable(page, formatAccessTable(rig.policies));
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, wanted);
    else expect(page).toBe(wanted);
  });
});
