import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { firstAnswer, type RequestKey, saveAnswer } from "./request-ids.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const digestOf = (content: string) => createHash("sha256").update(content).digest();
const KEY: RequestKey = {
  ...{ requestId: "r-1", method: "/test.Service/Approve", caller: "token:a", digest: digestOf("approve n1") },
};

/**
 * Look up the first response to a request, and save this one if there is none. Returns the stored response.
 */
async function ask(key: RequestKey, answer: string, part = ""): Promise<string> {
  return database.store.transaction(async (tx) => {
    const first = await firstAnswer(tx, key, part);
    if (first !== null) return Buffer.from(first).toString();
    await saveAnswer(tx, key, Buffer.from(answer), part);
    return answer;
  });
}

describe("firstAnswer()", () => {
  it.each<[string, Partial<RequestKey>]>([
    ["caller", { caller: "token:b" }],
    ["method", { method: "/test.Service/Reject" }],
    ["request id", { requestId: "r-2" }],
  ])("should keep the answers of another %s separate", async (_, changes) => {
    const key = { ...KEY, requestId: `${KEY.requestId} ${JSON.stringify(changes)}` };
    const other = { ...key, ...changes };
    expect(await ask(key, "one")).toBe("one");
    expect(await ask(other, "another")).toBe("another");
    // When the requests are repeated, each gets the response that was saved for it first.
    expect(await ask(other, "later")).toBe("another");
    expect(await ask(key, "later")).toBe("one");
  });

  it.each([
    ["the same part", "", ""],
    ["another part", "#", "#n100"],
    ["a part after the whole", "", "#"],
    ["the whole after a part", "#", ""],
  ])("should refuse an id that was used for another request: %s", async (name, part, other) => {
    const key = { ...KEY, requestId: name };
    expect(await ask(key, "one", part)).toBe("one");
    const another = ask({ ...key, digest: digestOf("approve n2") }, "another", other);
    expect(await another.catch((error: unknown) => reasonOf(error))).toBe("REQUEST_ID_REUSED");
    expect(await ask(key, "later", part)).toBe("one");
  });

  it("should let only one of two concurrent requests with the same id proceed", async () => {
    const key = { ...KEY, requestId: "raced" };
    const asked = ["n1", "n2", "n3", "n4"].map((node) =>
      ask({ ...key, digest: digestOf(node) }, node, node === "n1" ? "" : `#${node}`).catch(reasonOf),
    );
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter((outcome) => outcome === "REQUEST_ID_REUSED")).toHaveLength(3);
  });

  it("should drop a claim that was rolled back", async () => {
    const key = { ...KEY, requestId: "rolled back" };
    const failing = database.store.transaction(async (tx) => {
      await firstAnswer(tx, key);
      throw new Error("refused");
    });
    await expect(failing).rejects.toThrow("refused");
    expect(await ask(key, "tried again")).toBe("tried again");
  });
});
