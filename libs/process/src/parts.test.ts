import { describe, expect, it } from "@jest/globals";
import { type Parts, startParts } from "./parts.ts";

/** Add parts that record when they are closed. */
function noted(parts: Parts, closed: string[], ...names: readonly string[]): void {
  for (const name of names) parts.add({ close: () => closed.push(name) });
}

describe("startParts()", () => {
  it("should close in reverse order, once", async () => {
    const closed: string[] = [];
    const running = await startParts(async (parts) => {
      noted(parts, closed, "store", "server");
      return { port: 1 };
    });
    expect(running.port).toBe(1);
    await running.close();
    await running.close();
    expect(closed).toEqual(["server", "store"]);
  });

  it("should close earlier parts when a later one fails, and report why", async () => {
    const closed: string[] = [];
    const starting = startParts(async (parts) => {
      noted(parts, closed, "store");
      parts.onClose(() => {
        throw new Error("cannot be closed");
      });
      throw new Error("port is taken");
    });
    await expect(starting).rejects.toThrow("port is taken");
    expect(closed).toEqual(["store"]);
  });

  it("should close the others when one cannot be closed", async () => {
    const closed: string[] = [];
    const running = await startParts(async (parts) => {
      noted(parts, closed, "store");
      parts.onClose(async () => {
        throw new Error("broken");
      });
      noted(parts, closed, "server");
      return {};
    });
    await expect(running.close()).rejects.toThrow("broken");
    expect(closed).toEqual(["server", "store"]);
  });
});
