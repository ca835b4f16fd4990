import { describe, expect, it } from "@jest/globals";
import { compileEventFilter, type EventFilter } from "./event-hub.ts";

const EVENT = { type: "node.approved", subject: "n1", actor: "token:ops" } as const;

describe("compileEventFilter()", () => {
  it("should be empty when everything is wanted", () => {
    expect(compileEventFilter({})).toBeNull();
  });

  it.each<[EventFilter, boolean]>([
    [{ types: ["node.approved", "node.deleted"] }, true],
    [{ types: ["node.deleted"] }, false],
    [{ types: [] }, false],
    [{ excludeTypes: ["node.approved"] }, false],
    [{ excludeTypes: ["node.deleted"] }, true],
    [{ types: ["node.approved"], excludeTypes: ["node.approved"] }, false],
    [{ subject: "n1" }, true],
    [{ subject: "n" }, false],
    [{ actor: "token:ops" }, true],
    [{ actor: "system" }, false],
    [{ types: ["node.approved"], subject: "n1", actor: "token:ops" }, true],
    [{ types: ["node.approved"], subject: "n2", actor: "token:ops" }, false],
  ])("should evaluate %j", (filter, wanted) => {
    expect(compileEventFilter(filter)?.(EVENT)).toBe(wanted);
  });
});
