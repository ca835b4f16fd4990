import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { firstAnswer, type RequestKey, saveAnswer } from "./request-ids.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const KEY: RequestKey = { requestId: "r-1", method: "/test.Service/Approve", caller: "token:a" };

/** Ask for the first answer to a request, and give this one if there is none; what the request is answered. */
async function ask(key: RequestKey, answer: string): Promise<string> {
  return database.store.transaction(async (tx) => {
    const first = await firstAnswer(tx, key);
    if (first !== null) return Buffer.from(first).toString();
    await saveAnswer(tx, key, Buffer.from(answer));
    return answer;
  });
}

describe("firstAnswer()", () => {
  it.each<[string, Partial<RequestKey>]>([
    ["caller", { caller: "token:b" }],
    ["method", { method: "/test.Service/Reject" }],
    ["request id", { requestId: "r-2" }],
  ])("should keep what another %s was answered to itself", async (_, changes) => {
    const key = { ...KEY, requestId: `${KEY.requestId} ${JSON.stringify(changes)}` };
    const other = { ...key, ...changes };
    expect(await ask(key, "one")).toBe("one");
    expect(await ask(other, "another")).toBe("another");
    // Each has its own again, whichever was written first.
    expect(await ask(other, "later")).toBe("another");
    expect(await ask(key, "later")).toBe("one");
  });

  it("should forget a claim that was rolled back", async () => {
    const key = { ...KEY, requestId: "rolled back" };
    const failing = database.store.transaction(async (tx) => {
      await firstAnswer(tx, key);
      throw new Error("refused");
    });
    await expect(failing).rejects.toThrow("refused");
    expect(await ask(key, "tried again")).toBe("tried again");
  });
});
