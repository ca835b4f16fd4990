import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { authorityVectors } from "./authorities.ts";
import {
  endpointVectors,
  executionVectors,
  keyVectors,
  nextStepVectors,
  nodeInfoVectors,
  paceVectors,
  proofVectors,
  workVectors,
} from "./values.ts";
import { agentWalk, sessionWalk } from "./walks.ts";

const FOLDER = new URL("../../../../sdk/conformance/vectors/", import.meta.url);
const WALKS = 40;
const seeds = Array.from({ length: WALKS }, (_, index) => index + 1);

/** The vectors that every agent implementation must match. `UPDATE_VECTORS=1` writes the files; review the diff. */
const VECTORS: Readonly<Record<string, () => unknown>> = {
  proofs: proofVectors,
  "node-info": nodeInfoVectors,
  executions: executionVectors,
  endpoints: endpointVectors,
  "next-step": nextStepVectors,
  pace: paceVectors,
  keys: keyVectors,
  authorities: authorityVectors,
  work: workVectors,
  "agent-machine": () => seeds.map(agentWalk),
  "session-machine": () => seeds.map(sessionWalk),
};

describe("the vectors of sdk/conformance", () => {
  it.each(Object.keys(VECTORS))("should say what this agent does: %s", (name) => {
    const file = new URL(`${name}.json`, FOLDER);
    const made = JSON.parse(JSON.stringify(VECTORS[name]?.())) as unknown;
    if (process.env.UPDATE_VECTORS === "1") writeFileSync(file, `${linesOf(made)}\n`);
    expect(made).toEqual(JSON.parse(readFileSync(file, "utf8")));
  });

  it("should walk through every stage and phase", () => {
    const stages = new Set(seeds.flatMap((seed) => agentWalk(seed).steps.map(({ state }) => state.split(" ")[0])));
    const known = ["registering", "opening", "connected", "waiting", "idle", "closing", "closed"];
    expect([...stages].sort()).toEqual(known.sort());
    // An agent that has lost its session asks the registry for endpoints. It continues with the new endpoints, or with
    // the rest of its round.
    const walks = seeds.flatMap((seed) => turnsOf(agentWalk(seed).steps));
    for (const turn of ["not-opened: register", "registered: open", "not-registered: open"]) {
      expect([turn, walks.filter((it) => it === turn).length > 2]).toEqual([turn, true]);
    }
    const effects = new Set(
      seeds.flatMap((seed) => sessionWalk(seed).steps.flatMap((step) => step.effects)).map(first),
    );
    expect([...effects].sort()).toEqual(
      [
        "acked authorities cancel describe ended executions log-request measure membership move-asked opened read-info",
        "report-acked send-beat send-goodbye send-hello send-info send-report send-want-specs settings spec",
      ]
        .join(" ")
        .split(" ")
        .sort(),
    );
  });
});

/** The event and the first effect of each step, from the first session until the agent must register again. */
function turnsOf(steps: ReturnType<typeof agentWalk>["steps"]): readonly string[] {
  const held = steps.findIndex(({ effects }) => effects.includes("hold"));
  const afterwards = held < 0 ? [] : steps.slice(held);
  const hasToRegister = afterwards.findIndex(({ effects }) => effects.some((it) => it.includes(" register ")));
  const known = hasToRegister < 0 ? afterwards : afterwards.slice(0, hasToRegister);
  return known.map(({ event, effects }) => `${String(event.kind)}: ${first(effects[0] ?? "")}`);
}

function first(text: string): string | undefined {
  return text.split(" ")[0];
}

/** One line for each item of a list, so that a diff shows which items have changed. */
function linesOf(value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value, null, 1);
  return `[\n${value.map((item) => JSON.stringify(item)).join(",\n")}\n]`;
}
