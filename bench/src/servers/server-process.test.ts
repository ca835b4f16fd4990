import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { SERVER_FLAGS } from "./server-process.ts";

const FLAG = /--max-semi-space-size=\d+/;

function flagIn(path: string, before: string): string | undefined {
  const text = readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
  return FLAG.exec(text.slice(text.indexOf(before)))?.[0];
}

describe("SERVER_FLAGS", () => {
  it.each([
    ["bin/rollcall", "serve | up)"],
    ["deploy/chart/templates/control-plane.yaml", "rollcall.nodeOptions"],
  ])("should be those with which %s starts the control plane", (path, before) => {
    expect(SERVER_FLAGS).toEqual([flagIn(path, before)]);
  });
});
