import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { EVENT_TYPES } from "../libs/domain/src/events/event-catalogue.ts";
import { formatEventCatalogue } from "../libs/domain/src/events/event-page.ts";
import { workspaceRoot } from "./support/workspace.ts";

const read = (path: string) => readFileSync(join(workspaceRoot, path), "utf8");

describe("the catalogue of events", () => {
  it("should be what docs/events.md says", () => {
    expect(read("docs/events.md")).toBe(formatEventCatalogue());
  });

  it("should have the types that the schema describes, in its order", () => {
    const proto = read("proto/rollcall/events/v1/events.proto");
    const described = [...proto.matchAll(/^ {2}\/\/ ([a-z_]+(?:\.[a-z]+)+): /gm)].map(
      ([, type]) => type,
    );
    expect(described).toEqual(EVENT_TYPES);
  });
});
