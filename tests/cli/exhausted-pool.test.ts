import { expect, it } from "@jest/globals";
import { openSession } from "../../libs/postgres-embedded/test/embedded-servers.ts";
import { until } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane(() => ({ "Database.PoolSize": "2" }));

const JOIN_TOKENS = "rollcall.admin.v1.JoinTokenService";
const REGISTRY = "rollcall.registry.v1.RegistryService";

/** Call a method with JSON. Returns "ok" or the reason of the refusal, with "later" if it says when to retry. */
async function ask(token: string, method: string, request: object = {}): Promise<string> {
  const answer = await fetch(`http://${rig.address}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  const text = await answer.text();
  if (answer.ok) return "ok";
  return [/"reason":"(\w+)"/.exec(text)?.[1] ?? text, ...(text.includes('"retryDelay"') ? ["later"] : [])].join(" ");
}

it("should refuse calls with a reason and a delay while all connections are in use, and report it", async () => {
  const tokens = await Promise.all(Array.from({ length: 8 }, () => rig.createToken("admin")));
  const busy = await rig.createToken("admin");
  const holders = await Promise.all([1, 2].map(() => rig.createToken("admin")));
  const locker = await openSession(rig.store.address.url);
  await locker.query("begin; lock table join_tokens in access exclusive mode");
  let isOver = false;
  const held = holders.map(async (token) => {
    while (!isOver) await ask(token, `${JOIN_TOKENS}/GetJoinToken`, { id: "jt-none" });
  });
  try {
    await until("both connections to be used", async () => (await rig.readyz()).includes("calls: 2 of 2 in use"));
    // Callers are still authenticated.
    const viewer = await rig.createToken("viewer");
    expect(await ask(viewer, "rollcall.admin.v1.DiagnosisService/GetDiagnosis")).toBe("ROLE_TOO_LOW");
    expect(await ask("of-no-one", `${JOIN_TOKENS}/ListJoinTokens`)).toBe("TOKEN_INVALID");
    const others = tokens.flatMap((token) => [
      ask(token, `${REGISTRY}/GetClusterSummary`),
      ask(token, `${REGISTRY}/ListNodes`),
    ]);
    // A caller with many calls waits for its own calls first.
    const more = Array.from({ length: 30 }, () => ask(busy, `${REGISTRY}/GetClusterSummary`));
    await until("the pool to be named", async () => /calls: 2 of 2 in use, \d+ calls waiting/.test(await rig.readyz()));
    const [outcomes, { out }] = await Promise.all([Promise.all([...others, ...more]), rig.run("doctor -o json")]);
    expect([...new Set(outcomes)].sort()).toEqual(["OVERLOADED later", "TOO_MANY_CALLS later"]);
    expect(JSON.parse(out).findings).toContainEqual(
      expect.objectContaining({ check: "connections", status: "problem", found: expect.stringMatching(/in use/) }),
    );
  } finally {
    isOver = true;
    await locker.end();
    await Promise.all(held);
  }
  expect(await Promise.all(tokens.map((token) => ask(token, `${REGISTRY}/ListNodes`)))).toEqual(tokens.map(() => "ok"));
});
