import type { Client } from "@connectrpc/connect";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { LabelTier, type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { alreadyDone } from "../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Invocation, Verb } from "../command.ts";
import { Failure, UsageError } from "../failure.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { changeMany, type ManyAnswer } from "./change-many.ts";
import { getNode } from "./read-nodes.ts";
import { chooseNodes, type FilterOptions, type Selector, selectorOf } from "./selection.ts";
import { tierWord } from "./words.ts";

/** What the verbs that change nodes take. */
export interface NodeDecideOptions extends FilterOptions {
  readonly message?: string;
  readonly etag?: string;
  readonly requestId?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly strict?: boolean;
}

/** The verbs that decide about nodes. */
export type NodeVerb =
  | "approve"
  | "reject"
  | "delete"
  | "cordon"
  | "uncordon"
  | "undrain"
  | "mark-unhealthy"
  | "clear-mark"
  | "rotate-key"
  | "accept-hardware"
  | "ban"
  | "unban";

/** The fields that the requests of all verbs have. */
export interface VerbRequest {
  /** Either this or the selector. */
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
 * `node approve`, `reject` and the like. For one node that is named it prints Ok, or with --output the
 * rollcall.node.v1.Node as it is now; for many it prints the outcome of each, and exits with 1 when one was refused.
 */
export function nodeDecide(verb: NodeVerb): Verb<NodeDecideOptions> {
  return (invocation) => decideNodes(invocation, verb, invocation.args, CALLS[verb]);
}

/** What a verb knows of nodes beside its call. */
interface VerbKnowledge {
  /** What a single node that was changed gives reason to say. */
  remarks(node: Node): readonly string[];
  /** Whether a node is as the verb would make it, which is no refusal of the API. */
  isAlready(node: Node): boolean;
}

/** Do a verb to the nodes that are named, or chosen by the options. */
export async function decideNodes(
  { shell, options }: Invocation<NodeDecideOptions>,
  verb: string,
  names: readonly string[],
  call: NodeCall,
  known: VerbKnowledge | null = null,
): Promise<void> {
  const format = outputFormat(options, ["table", "name", "json", "yaml"]);
  const choice = chooseNodes(names, options);
  const control = reachControlPlane(shell, options);
  const admin = control.client("admin", AdminService);
  const { message: reason = "", etag = "", requestId = "", strict = false } = options;
  // A repeated request has had its effect before.
  const isAlready = requestId === "" && known !== null ? known.isAlready : null;
  if (choice.kind === "many" || options.dryRun === true) {
    if (etag !== "") throw new UsageError("--etag is for one node that is named");
    const selector = choice.kind === "many" ? choice.selector : selectorOf(choice.node);
    await changeMany(shell, {
      ...{ verb, selector, requestId, format, strict, isAlready },
      ...{ yes: options.yes ?? false, dryRun: options.dryRun ?? false },
      call: (command) => control.attempt("admin", `${verb} nodes`, () => call(admin, { ...command, reason, etag })),
    });
    return;
  }
  const { node } = choice;
  const before = isAlready === null ? undefined : await getNode(control, node, verb);
  const answer = await control.attempt("admin", `${verb} node ${node}`, () =>
    alreadyDone(shell, strict, () => call(admin, { node, reason, etag, requestId })),
  );
  const changed = answer === null ? await nodeAsItIs(control, node, format) : answer.node;
  if (before !== undefined && isAlready?.(before)) noteAlready(shell, verb, before.id, strict);
  const remarks = answer?.node === undefined ? [] : (known?.remarks(answer.node) ?? []);
  for (const remark of remarks) shell.err.write(`${printable(remark)}\n`);
  if (format === "table") shell.out.write("Ok\n");
  else if (format === "name") shell.out.write(`${changed?.id ?? node}\n`);
  else await writePlain(shell, format, changed === undefined ? {} : toPlain(NodeSchema, changed));
}

function noteAlready({ err }: Pick<Shell, "err">, verb: string, id: string, strict: boolean): void {
  const text = `the labels of node ${printable(id)} are already so`;
  if (strict) throw new Failure(`failed to ${verb} node ${printable(id)}: ${text}`);
  err.write(`nothing to change: ${text}\n`);
}

/** The node that a verb had nothing to change about; nothing where it is not printed. */
async function nodeAsItIs(control: ControlPlane, node: string, format: string): Promise<Node | undefined> {
  return format === "table" ? undefined : getNode(control, node, "read");
}

/** What `node ban` and `node unban` take. */
export interface NodeBanOptions extends NodeDecideOptions {
  /** The fingerprint of a key. */
  readonly key?: string;
  /** An exact id. */
  readonly id?: string;
}

/** `node ban` and `node unban`: nodes as the other verbs, or a key, or an id that no node has. */
export function nodeBan(verb: "ban" | "unban"): Verb<NodeBanOptions> {
  return async (invocation) => {
    const { shell, args, options } = invocation;
    const { key: fingerprint, id: nodeId, message: reason = "", requestId = "", strict = false } = options;
    if (fingerprint === undefined && nodeId === undefined) return nodeDecide(verb)(invocation);
    const hasSelection = [options.labels, options.filterApproval, options.filterStatus].some(
      (option) => option !== undefined,
    );
    if (args.length > 0 || hasSelection || (fingerprint !== undefined && nodeId !== undefined)) {
      throw new UsageError("use --key or --id alone: neither goes with the other, with nodes, or with filters");
    }
    outputFormat(options, ["table"]);
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
    await control.attempt("admin", `${verb} ${name}`, () => alreadyDone<unknown>(shell, strict, call));
    shell.out.write("Ok\n");
  };
}

/** `node label NODE... key=value key-`: set and remove labels, which override those of the nodes themselves. */
export const nodeLabel: Verb<NodeDecideOptions> = async (invocation) => {
  const { names, set, remove } = parseLabels(invocation.args);
  if (Object.keys(set).length === 0 && remove.length === 0) {
    throw new UsageError("say which labels to set, as key=value, or to remove, as key-");
  }
  const call: NodeCall = (admin, request) => admin.setNodeLabels({ ...request, set, remove: [...remove] });
  // The label that the operator's had overridden is in effect again.
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
