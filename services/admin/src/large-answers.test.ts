import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { addNode, createTestDatabase, sendBearer } from "@rollcall/testkit";
import { createToken, type Rig, startRig } from "./testing/rig.ts";

/** The default message limit of gRPC clients. */
const MOST_BYTES = 4 * 1_048_576;
const ROWS = 1_000;
/** The longest reason that the schema allows. */
const LONGEST = "\u{20AC}".repeat(1_024);

let rig: Rig;
let token: string;

beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  token = (await createToken(rig.store, "admin")).text;
});
afterAll(() => rig.close());

function clientOf<S extends DescService>(service: S): Client<S> {
  const interceptors = [sendBearer(token)];
  const { baseUrl } = rig;
  return createClient(service, createGrpcTransport({ baseUrl, readMaxBytes: MOST_BYTES, interceptors }));
}

/**
 * Read a whole listing. Returns the items and the number of pages. The client must accept every page.
 */
async function readAll<T>(read: (pageToken: string) => Promise<{ items: T[]; next: string }>) {
  const items: T[] = [];
  let pages = 0;
  let pageToken = "";
  do {
    const page = await read(pageToken);
    items.push(...page.items);
    pages += 1;
    pageToken = page.next;
  } while (pageToken !== "");
  return { items, pages };
}

const numbers = Array.from({ length: ROWS }, (_, at) => at + 1);

describe("the largest possible entries", () => {
  it("should be reported as outcomes in pages that clients accept, each node once", async () => {
    const ids = Array.from({ length: 150 }, (_, at) => `n${100 + at}`);
    for (const id of ids) await addNode(rig.store, id);
    await rig.store.db
      .updateTable("nodes")
      .set({ info: JSON.stringify({ advertiseUrl: "u".repeat(60_000) }) })
      .execute();
    const admin = clientOf(AdminService);
    const { items, pages } = await readAll(async (pageToken) => {
      const request = { selector: { all: true }, requestId: "cordon-all", pageToken };
      const page = await admin.cordonNode(request);
      // Repeating the request returns the same response.
      expect(await admin.cordonNode(request)).toEqual(page);
      return { items: page.outcomes, next: page.nextPageToken };
    });
    expect(items.map(({ nodeId }) => nodeId)).toEqual(ids);
    for (const { result } of items) expect(result.case).toBe("node");
    expect(pages).toBeGreaterThan(5);
  });

  it("should be listed in pages that clients accept: the audit log", async () => {
    await rig.store.db
      .insertInto("audit_log")
      .values(
        numbers.map((at) => ({
          ...{ sequence: BigInt(at + ROWS), at: new Date(), actor: "someone", method: "m" },
          ...{ target: "t".repeat(63), reason: LONGEST + LONGEST, outcome: "OK", address: "" },
          ...{ request_id: "", previous_hash: Buffer.alloc(32), hash: Buffer.alloc(32) },
        })),
      )
      .execute();
    const audit = clientOf(AuditService);
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await audit.listAuditEntries({
        pageSize: 1_000,
        pageToken,
        actor: "someone",
      });
      return { items: page.entries, next: page.nextPageToken };
    });
    expect(items.map(({ sequence }) => Number(sequence) - ROWS)).toEqual(numbers.toReversed());
    expect(pages).toBeGreaterThan(3);
  });

  it("should be listed in pages that clients accept: bans", async () => {
    await rig.store.db
      .insertInto("bans")
      .values(
        numbers.map((at) => ({
          ...{ node_id: `banned-${at}`, fingerprint: null, actor: "system" },
          reason: LONGEST + LONGEST,
        })),
      )
      .execute();
    const admin = clientOf(AdminService);
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await admin.listBans({ pageSize: 1_000, pageToken });
      return { items: page.bans, next: page.nextPageToken };
    });
    expect(items.map(({ nodeId }) => nodeId)).toEqual(numbers.map((at) => `banned-${at}`).toReversed());
    expect(pages).toBeGreaterThan(2);
  });

  it("should be listed in pages that clients accept: join tokens", async () => {
    const labels = Object.fromEntries(
      Array.from({ length: 64 }, (_, at) => [`${"d".repeat(60)}.example/${at}`, "v".repeat(63)]),
    );
    await rig.store.db
      .insertInto("join_tokens")
      .values(
        numbers.map((at) => ({
          ...{
            id: `t${at}`,
            hash: Buffer.from(String(at).padStart(32, "0")),
            created_by: "system",
          },
          ...{ description: "", max_uses: null, expires_at: null, node_name_pattern: "" },
          ...{ labels: JSON.stringify(labels), preauthorized: false, ephemeral: false },
        })),
      )
      .execute();
    const tokens = clientOf(JoinTokenService);
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await tokens.listJoinTokens({ pageSize: 1_000, pageToken });
      return { items: page.tokens, next: page.nextPageToken };
    });
    expect(items.map(({ id }) => id)).toEqual(numbers.map((at) => `t${at}`).toReversed());
    expect(pages).toBeGreaterThan(3);
  });

  it("should be listed in pages that clients accept: health policies", async () => {
    await rig.store.db
      .insertInto("health_policies")
      .values(
        numbers.map((at) => ({
          ...{
            scope: `health-policy/group/g${at}`,
            kind: "group" as const,
            node_id: null,
            actor: "system",
          },
          message: LONGEST + LONGEST,
          facts: JSON.stringify({ priority: 0, selector: `a=${at}`, values: {} }),
        })),
      )
      .execute();
    const policies = clientOf(HealthPolicyService);
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await policies.listHealthPolicies({ pageSize: 1_000, pageToken });
      return { items: page.policies, next: page.nextPageToken };
    });
    expect(items).toHaveLength(ROWS);
    expect(pages).toBeGreaterThan(2);
  });
});
