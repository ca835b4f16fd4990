import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { tierWord } from "../nodes/words.ts";
import { decideNodes, type NodeCall, type NodeDecideOptions } from "./node-decide.ts";

/** `node label NODE... key=value key-`: set and remove labels, which win over what the nodes say of themselves. */
export const nodeLabel: Verb<NodeDecideOptions> = async (invocation) => {
  const { names, set, remove } = parseWords(invocation.args);
  if (Object.keys(set).length === 0 && remove.length === 0) {
    throw new UsageError("say which labels to set, as key=value, or to remove, as key-");
  }
  const call: NodeCall = (admin, command) => admin.setNodeLabels({ ...command, set, remove: [...remove] });
  // What the operator's label had overridden is in effect again.
  const remarks = (node: Node) =>
    node.labels
      .filter(({ key }) => remove.includes(key))
      .map(({ key, value, tier }) => `${key}=${value} is in effect now, set by ${tierWord(tier)}`);
  await decideNodes(invocation, "label", names, call, remarks);
};

interface LabelWords {
  readonly names: readonly string[];
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** What holds "=" or ends with "-" is a label, as kubectl has it; everything else is a node. */
function parseWords(words: readonly string[]): LabelWords {
  const names: string[] = [];
  const set = new Map<string, string>();
  const remove: string[] = [];
  for (const word of words) {
    const equals = word.indexOf("=");
    if (equals > 0) {
      const key = word.slice(0, equals);
      if (set.has(key)) throw new UsageError(`label ${key} is set twice`);
      set.set(key, word.slice(equals + 1));
    } else if (word.length > 1 && word.endsWith("-")) remove.push(word.slice(0, -1));
    else names.push(word);
  }
  return { names, set: Object.fromEntries(set), remove };
}
