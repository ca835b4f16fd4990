import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { chooseContext } from "../contexts/choose-context.ts";
import { readContexts } from "../contexts/context-file.ts";
import { parseSelection, readNodes } from "../nodes/read-nodes.ts";
import type { Parts } from "../parts.ts";
import { createProgram } from "../program.ts";
import type { Shell } from "../shell.ts";
import { complete } from "./complete.ts";

/** Somebody waits for the answer with a finger on the tab key. */
const TIMEOUT = "1500ms";
const MOST_NODES = 1000;

/** Answer `rollcall __complete WORD...`: one candidate a line, a tab, and what it is. It never fails. */
export async function answerCompletion(words: readonly string[], shell: Shell, parts: Parts): Promise<void> {
  const candidates = await complete(words, {
    program: createProgram(shell, parts),
    parts,
    nodeIds: () => readNodeIds(shell),
    contextNames: async () => {
      const contexts = await readContexts(shell).catch(() => null);
      return (contexts?.contexts ?? []).map(({ name }) => name);
    },
  });
  for (const { word, description } of candidates) shell.out.write(`${word}\t${description}\n`);
}

async function readNodeIds(shell: Shell): Promise<readonly string[]> {
  try {
    const chosenContext = await chooseContext(shell, {});
    const control = reachControlPlane(shell, { timeout: TIMEOUT, color: false, chosenContext });
    const registry = control.client("registry", RegistryService);
    const range = { limit: MOST_NODES, token: "" };
    const ids: string[] = [];
    for await (const { nodes } of readNodes(control, registry, parseSelection({}), range)) {
      ids.push(...nodes.map((node) => node.id));
    }
    return ids;
  } catch {
    // A completion that fails must stay silent: its words would land in the middle of the user's line.
    return [];
  }
}
