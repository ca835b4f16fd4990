import type { Client } from "@connectrpc/connect";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { LabelTier, type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { stateWords } from "@rollcall/domain";
import { alreadyDone } from "../../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../../client/control-plane.ts";
import { Failure, UsageError } from "../../failure.ts";
import type { Invocation, Verb } from "../../invocation.ts";
import { CHANGE_FORMATS, type ChangeFormat, okLine, writeWords } from "../../output/change.ts";
import { confirm } from "../../output/confirm.ts";
import { outputFormat, toPlain, writePlain } from "../../output/format.ts";
import { counted, printable } from "../../output/text.ts";
import type { Shell } from "../../shell.ts";
import { getNode } from "../read-nodes.ts";
import { chooseNodes, type FilterOptions, type Selector, selectorOf } from "../selection.ts";
import { connectionWord, healthWord, tierWord } from "../words.ts";
import { changeMany, type ManyAnswer } from "./change-many.ts";
import { type NodeVerb, resultOf, VERB_WORDS } from "./verb-words.ts";

/** The options of the verbs that change nodes. */
export interface NodeDecideOptions extends FilterOptions {
  readonly message?: string;
  readonly etag?: string;
  readonly requestId?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly strict?: boolean;
}

/** The fields that the requests of all verbs share. */
export interface VerbRequest {
  /** Set unless `selector` is set. */
  readonly node?: string;
  readonly selector?: Selector;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
  readonly validateOnly?: boolean;
  readonly pageToken?: string;
}

/** Calls the method of a verb. */
export type NodeCall = (
  admin: Client<typeof AdminService>,
  request: VerbRequest,
) => Promise<ManyAnswer & { readonly node?: Node | undefined }>;

const CALLS: Readonly<Record<NodeVerb, NodeCall>> = {
  approve: (admin, request) => admin.approveNode(request),
  reject: (admin, request) => admin.rejectNode(request),
  delete: (admin, request) => admin.deleteNode(request),
  cordon: (admin, request) => admin.cordonNode(request),
  uncordon: (admin, request) => admin.uncordonNode(request),
  undrain: (admin, request) => admin.cancelDrain(request),
  "mark-unhealthy": (admin, request) => admin.markNodeUnhealthy(request),
  "clear-mark": (admin, request) => admin.clearNodeMark(request),
  "rotate-key": (admin, request) => admin.requireKeyRotation(request),
  "accept-hardware": (admin, request) => admin.acceptNodeHardware(request),
  ban: (admin, request) => admin.banNode(request),
  unban: (admin, request) => admin.unbanNode(request),
};

/**
 * `node approve`, `reject` and the like. For a single named node, the verb prints the result, or with --output the
 * current rollcall.node.v1.Node. For many nodes, the verb prints each outcome, and exits with 1 if one was refused.
 */
export function nodeDecide(verb: NodeVerb): Verb<NodeDecideOptions> {
  return (invocation) => decideNodes(invocation, verb, invocation.args, CALLS[verb]);
}

/** What the command line adds to a verb's call. */
interface VerbKnowledge {
  /** Remarks to print after a single node was changed. */
  remarks(node: Node): readonly string[];
  /** Whether a node is already in the requested state. The API does not refuse such a call. */
  isAlready(node: Node): boolean;
}

/** Apply a verb to the nodes that are named, or selected by the options. */
export async function decideNodes(
  { shell, options }: Invocation<NodeDecideOptions>,
  verb: keyof typeof VERB_WORDS,
  names: readonly string[],
  call: NodeCall,
  known: VerbKnowledge | null = null,
): Promise<void> {
  const format = outputFormat(options, CHANGE_FORMATS);
  const choice = chooseNodes(names, options);
  const control = reachControlPlane(shell, options);
  const admin = control.client("admin", AdminService);
  const { message: reason = "", etag = "", requestId = "", strict = false } = options;
  // Ignore the node's state for a repeated request, because the first request has already changed the node.
  const isAlready = requestId === "" && known !== null ? known.isAlready : null;
  if (choice.kind === "many" || options.dryRun === true) {
    if (etag !== "") throw new UsageError("--etag requires exactly one named node");
    const selector = choice.kind === "many" ? choice.selector : selectorOf(choice.node);
    await changeMany(shell, {
      ...{ verb, selector, requestId, format, strict, isAlready },
      ...{ yes: options.yes ?? false, dryRun: options.dryRun ?? false },
      call: (command) => control.attempt("admin", `${verb} nodes`, () => call(admin, { ...command, reason, etag })),
    });
    return;
  }
  const { node } = choice;
  if (DESTRUCTIVE.has(verb)) await confirmNode(shell, control, options, { verb, node });
  const before = isAlready === null ? undefined : await getNode(control, node, verb);
  const answer = await control.attempt("admin", `${verb} node ${node}`, () =>
    alreadyDone(shell, { strict, format, words: { object: node, result: VERB_WORDS[verb].already } }, () =>
      call(admin, { node, reason, etag, requestId }),
    ),
  );
  const changed = answer === null ? await nodeAsItIs(control, node, format) : answer.node;
  const wasAlready = before !== undefined && isAlready?.(before) === true;
  if (wasAlready) noteAlready(shell, { verb, id: before.id, strict, format });
  const remarks = answer?.node === undefined ? [] : (known?.remarks(answer.node) ?? []);
  for (const remark of remarks) shell.err.write(`${printable(remark)}\n`);
  if (format === "json" || format === "yaml") {
    await writePlain(shell, format, changed === undefined ? {} : toPlain(NodeSchema, changed));
  } else if (format === "name" || (answer !== null && !wasAlready)) {
    writeWords(shell, format, { object: changed?.id ?? node, result: resultOf(verb, changed) });
  }
}

/** Verbs that end a node's stream and its work. */
const DESTRUCTIVE: ReadonlySet<keyof typeof VERB_WORDS> = new Set(["reject", "delete", "ban"]);

/** Ask a user on a terminal, and show what depends on the node. */
async function confirmNode(
  shell: Shell,
  control: ControlPlane,
  options: NodeDecideOptions,
  { verb, node: name }: { readonly verb: string; readonly node: string },
): Promise<void> {
  if (shell.ask === null || options.yes === true) return;
  const { connection, health, allocated } = await getNode(control, name, verb);
  const count = allocated?.executions ?? 0;
  const work = `runs ${counted(count, "execution")}`;
  const states = [connectionWord(connection?.state), healthWord(health?.state)].map(stateWords).join(", ");
  shell.err.write(`${printable(name)} is ${states}, and ${work}\n`);
  await confirm(shell, options, `${verb} node ${name}`);
}

function noteAlready(
  { out, err }: Pick<Shell, "out" | "err">,
  { verb, id, strict, format }: { verb: keyof typeof VERB_WORDS; id: string; strict: boolean; format: ChangeFormat },
): void {
  const text = `the labels of node ${printable(id)} are already as requested`;
  if (strict) throw new Failure(`failed to ${verb} node ${printable(id)}: ${text}`);
  if (format === "table") out.write(okLine(id, VERB_WORDS[verb].already));
  else err.write(`nothing to change: ${text}\n`);
}

/** Read the node that needed no change; undefined for a table, which does not print it. */
async function nodeAsItIs(control: ControlPlane, node: string, format: string): Promise<Node | undefined> {
  return format === "table" ? undefined : getNode(control, node, "read");
}

/** The options of `node ban` and `node unban`. */
export interface NodeBanOptions extends NodeDecideOptions {
  /** The fingerprint of a key. */
  readonly key?: string;
  /** An exact id. */
  readonly id?: string;
}

/** `node ban` and `node unban`: change nodes as the other verbs do, or a key, or an id that no node has. */
export function nodeBan(verb: "ban" | "unban"): Verb<NodeBanOptions> {
  return async (invocation) => {
    const { shell, args, options } = invocation;
    const { key: fingerprint, id: nodeId, message: reason = "", requestId = "", strict = false } = options;
    if (fingerprint === undefined && nodeId === undefined) return nodeDecide(verb)(invocation);
    const hasSelection = [options.labels, options.filterApproval, options.filterStatus].some(
      (option) => option !== undefined,
    );
    if (args.length > 0 || hasSelection || (fingerprint !== undefined && nodeId !== undefined)) {
      throw new UsageError("--key and --id cannot be combined with each other, with nodes, or with filters");
    }
    const format = outputFormat(options, ["table", "name"]);
    const control = reachControlPlane(shell, options);
    const admin = control.client("admin", AdminService);
    const name = fingerprint ?? nodeId ?? "";
    const why = { reason, requestId };
    const call = () => {
      if (fingerprint !== undefined) {
        const key = { fingerprint, ...why };
        return verb === "ban" ? admin.banNode(key) : admin.unbanNode(key);
      }
      return verb === "ban" ? admin.banNode({ nodeId: name, ...why }) : admin.unbanNode({ node: name, ...why });
    };
    const object = fingerprint === undefined ? name : `key ${name}`;
    const words = { object, result: VERB_WORDS[verb].already };
    const answer = await control.attempt("admin", `${verb} ${name}`, () =>
      alreadyDone<unknown>(shell, { strict, format, words }, call),
    );
    if (answer !== null) writeWords(shell, format, { object, result: verb === "ban" ? "banned" : "unbanned" });
  };
}

/**
 * `node label NODE... key=value key-`: set and remove operator labels, which override the labels of the nodes
 * themselves.
 */
export const nodeLabel: Verb<NodeDecideOptions> = async (invocation) => {
  const { names, set, remove } = parseLabels(invocation.args);
  if (Object.keys(set).length === 0 && remove.length === 0) {
    throw new UsageError("no labels given: set labels with key=value, remove them with key-");
  }
  const call: NodeCall = (admin, request) => admin.setNodeLabels({ ...request, set, remove: [...remove] });
  // Tell the user which label takes effect again after an operator's label was removed.
  const remarks = (node: Node) =>
    node.labels
      .filter(({ key }) => remove.includes(key))
      .map(({ key, value, tier }) => `${key}=${value} is in effect now, set by ${tierWord(tier)}`);
  const ofOperator = (node: Node) => node.labels.filter(({ tier }) => tier === LabelTier.OPERATOR);
  const isAlready = (node: Node) => {
    const labels = new Map(ofOperator(node).map(({ key, value }) => [key, value]));
    return (
      Object.entries(set).every(([key, value]) => labels.get(key) === value) && !remove.some((it) => labels.has(it))
    );
  };
  await decideNodes(invocation, "label", names, call, { remarks, isAlready });
};

interface LabelWords {
  readonly names: readonly string[];
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** As in kubectl, a word with "=" or a final "-" is a label; every other word is a node. */
function parseLabels(words: readonly string[]): LabelWords {
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
