import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { EVENT_CATALOGUE, EVENT_TYPES } from "../libs/domain/src/explain/event-catalogue.ts";
import { workspaceRoot } from "./support/workspace.ts";

const read = (path: string) => readFileSync(join(workspaceRoot, path), "utf8");

describe("the catalogue of events", () => {
  it("should be what docs/events.md says", () => {
    const page = read("docs/events.md");
    expect([...page.matchAll(/^## (.*)$/gm)].map(([, type]) => type)).toEqual(EVENT_TYPES);
    for (const type of EVENT_TYPES) {
      const [, when = ""] = page.split(`## ${type}\n\n`)[1]?.match(/^([\s\S]*?)\n\n/) ?? [];
      expect(when.replaceAll("\n", " ")).toBe(EVENT_CATALOGUE[type].when);
      for (const reason of EVENT_CATALOGUE[type].reasons) expect(page).toContain(`\`${reason}\``);
    }
  });

  it("should have the types that the schema describes, in its order", () => {
    const proto = read("proto/rollcall/events/v1/events.proto");
    const described = [...proto.matchAll(/^ {2}\/\/ ([a-z_]+(?:\.[a-z]+)+): /gm)].map(([, type]) => type);
    expect(described).toEqual(EVENT_TYPES);
  });
});
