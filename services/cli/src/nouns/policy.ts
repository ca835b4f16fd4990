import { create } from "@bufbuild/protobuf";
import {
  DeleteHealthPolicyResponseSchema,
  GetHealthPolicyResponseSchema,
  type HealthPolicy,
  type HealthPolicyScope,
  HealthPolicyService,
  type HealthPolicyValues,
  ListHealthPoliciesResponseSchema,
  type PreviewedNode,
  PreviewHealthPolicyResponseSchema,
  type SetHealthPolicyRequest,
  SetHealthPolicyRequestSchema,
  SetHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import type { Command } from "commander";
import { readActorNames } from "../client/actor-names.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes } from "../command.ts";
import { parseCount, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { CHANGE_FORMATS, writeChange } from "../output/change.ts";
import { confirm, YES } from "../output/confirm.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { type Column, optionalCell, TablePrinter } from "../output/table.ts";
import { counted, printable } from "../output/text.ts";
import {
  dashed,
  POLICY_VALUE_FLAGS,
  POLICY_VALUE_NAMES,
  type PolicyEditOptions,
  type PolicyScopeOptions,
  type PolicyValueName,
  parseCommand,
  parsePolicyEdit,
  parsePolicyScope,
  withFlagNames,
} from "../policies/policy-options.ts";
import { changeWords, effectWords, scopeWords, sourceOf, sourceWord, valueWord } from "../policies/policy-words.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `policy`. */
export function definePolicy(policy: Command, shell: Shell): void {
  const set = addEdit(policy.command("set").description("Create a policy, or change the given values"));
  addNotes(
    addEtag(addChangeOptions(set)),
    "Each value comes from the last of these policies that sets it: configuration, default, groups by ascending " +
      "priority, the node's own. A policy that contradicts itself, or others on any node, is refused. `policy " +
      "preview` with the same flags shows what would change.",
    "-o json|yaml prints a rollcall.admin.v1.SetHealthPolicyResponse in proto JSON.",
  );
  set.action(action(shell, policySet));
  const preview = policy
    .command("preview")
    .description("Show which nodes setting or deleting a policy would change, and how");
  addLimit(addEdit(preview), "nodes", DEFAULT_LIMIT)
    .option("--delete", "Preview the deletion of the policy")
    .action(action(shell, policyPreview));
  addNotes(
    addListingOptions(preview),
    "-o json|yaml prints a rollcall.admin.v1.PreviewHealthPolicyResponse in proto JSON.",
  );
  const list = policy.command("list").description("List the configuration and all policies");
  addNotes(
    addListingOptions(list),
    "-o json|yaml prints a rollcall.admin.v1.ListHealthPoliciesResponse in proto JSON; -o csv prints RFC 4180.",
  );
  list.action(action(shell, policyList));
  const show = policy
    .command("show")
    .description("Show one policy, the resulting values, and where each value comes from");
  addNotes(addScope(show), "-o json|yaml prints a rollcall.admin.v1.GetHealthPolicyResponse in proto JSON.");
  show.action(action(shell, policyShow));
  const remove = policy.command("delete").description("Delete a policy; its nodes inherit the values that it had set");
  addNotes(
    addEtag(addChangeOptions(addScope(remove))).option(...YES),
    "-o json|yaml prints a rollcall.admin.v1.DeleteHealthPolicyResponse in proto JSON.",
  );
  remove.action(action(shell, policyDelete));
}

function addScope(command: Command): Command {
  return command
    .option("--default", "For every node, overriding the configuration")
    .option("--group <name>", "For the nodes that the group's selector matches")
    .option("--node <node>", "For one node, by its id");
}

function addEdit(command: Command): Command {
  addScope(command)
    .option("--selector <selector>", "Selector of a group: labels of tokens and operators, in the syntax of Kubernetes")
    .option("--priority <number>", "Priority of a group: if two groups set the same value, the higher priority wins");
  for (const { flag, doc } of POLICY_VALUE_FLAGS) command.option(flag, doc);
  return command
    .option("--unset <values>", "Inherit these values again, separated by commas")
    .option("--replace", "Unset every value that is not given")
    .option("-f, --file <file>", "Read the whole policy from a file, as `policy show -o yaml` prints it");
}

function addEtag(command: Command): Command {
  return command.option("--etag <etag>", "Only if the policy has not changed since this etag was read");
}

function policyName(scope: HealthPolicyScope | undefined): string {
  const words = scopeWords(scope);
  return words === "default" ? "default policy" : `policy of ${words}`;
}

function policies(control: ControlPlane) {
  const client = control.client("admin", HealthPolicyService);
  const attempt = <T>(what: string, call: () => Promise<T>) => control.attempt("admin", what, call, withFlagNames);
  return { client, attempt };
}

const policySet: Verb<PolicyEditOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const request = await readEdit(shell, options);
  const { client, attempt } = policies(reachControlPlane(shell, options));
  const answer = await attempt(`set the ${policyName(request.scope)}`, () => client.setHealthPolicy(request));
  const result = `set; ${counted(answer.changedNodes, "node")} changed`;
  await writeChange(shell, format, [SetHealthPolicyResponseSchema, answer], {
    object: policyName(request.scope),
    result,
  });
};

type PolicyDeleteOptions = PolicyScopeOptions & Pick<PolicyEditOptions, "message" | "etag" | "requestId">;

const policyDelete: Verb<PolicyDeleteOptions & { readonly yes?: boolean }> = async ({ shell, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const scope = parsePolicyScope(options);
  await confirm(shell, options, `delete the ${policyName(scope)}`);
  const { client, attempt } = policies(reachControlPlane(shell, options));
  const answer = await attempt(`delete the ${policyName(scope)}`, () =>
    client.deleteHealthPolicy({ scope, ...parseCommand(options) }),
  );
  const result = `deleted; ${counted(answer.changedNodes, "node")} changed`;
  await writeChange(shell, format, [DeleteHealthPolicyResponseSchema, answer], { object: policyName(scope), result });
};

/** Read a change to a policy from flags or a file. Throws UsageError. */
async function readEdit(shell: Shell, options: PolicyEditOptions): Promise<SetHealthPolicyRequest> {
  const { file, message, etag, requestId, ...others } = options;
  if (file === undefined) return create(SetHealthPolicyRequestSchema, parsePolicyEdit(options));
  const flags = ["default", "group", "node", "selector", "priority", "unset", "replace"] as const;
  if ([...flags, ...POLICY_VALUE_NAMES].some((flag) => others[flag] !== undefined)) {
    throw new UsageError("--file contains the whole policy, and cannot be combined with other flags of the policy");
  }
  const { readPolicyFile } = await import("../policies/policy-file.ts");
  const policy = await readPolicyFile(shell, file);
  return create(SetHealthPolicyRequestSchema, { ...policy, ...parseCommand(options) });
}

const DEFAULT_LIMIT = "100";

interface PolicyPreviewOptions extends PolicyEditOptions, ListingOptions {
  readonly delete?: boolean;
  readonly limit?: string;
}

const policyPreview: Verb<PolicyPreviewOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 0);
  const change = await readChange(shell, options);
  const { client, attempt } = policies(reachControlPlane(shell, options));
  let shown = 0;
  const last = await printListing(invocation, {
    columns: PREVIEW_COLUMNS,
    nameOf: ({ nodeId }: PreviewedNode) => nodeId,
    pages: readPages((part) => attempt("preview the policy", () => client.previewHealthPolicy({ change, ...part })), {
      limit,
      countOf: ({ nodes }) => nodes.length,
    }),
    itemsOf: ({ nodes }) => {
      shown += nodes.length;
      return nodes;
    },
    whole: (pages) => {
      const { changedNodes = 0, nextPageToken = "" } = pages.at(-1) ?? {};
      const answer = create(PreviewHealthPolicyResponseSchema, { changedNodes, nextPageToken });
      answer.nodes = pages.flatMap(({ nodes }) => nodes);
      return toPlain(PreviewHealthPolicyResponseSchema, answer);
    },
  });
  if (options.output === "json" || options.output === "yaml" || last === undefined) return;
  const some = shown < last.changedNodes ? `, ${shown} of them shown` : "";
  shell.err.write(`${counted(last.changedNodes, "node")} would change${some}\n`);
};

async function readChange(shell: Shell, options: PolicyPreviewOptions) {
  if (options.delete !== true) return { case: "set", value: await readEdit(shell, options) } as const;
  return { case: "delete", value: { scope: parsePolicyScope(options), ...parseCommand(options) } } as const;
}

const PREVIEW_COLUMNS: readonly Column<PreviewedNode>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "CHANGE", name: "change", cell: ({ before, after }) => ({ text: changeWords(before, after) }) },
];

interface Row {
  readonly scope: string;
  readonly values: HealthPolicyValues | undefined;
  readonly policy: HealthPolicy | null;
}

const policyList: Verb<ListingOptions> = async (invocation) => {
  const { client, attempt } = policies(reachControlPlane(invocation.shell, invocation.options));
  let isFirst = true;
  await printListing(invocation, {
    columns: LIST_COLUMNS,
    nameOf: ({ scope }: Row) => scope,
    pages: readPages((part) => attempt("list policies", () => client.listHealthPolicies(part)), {
      countOf: (page) => page.policies.length,
    }),
    itemsOf: ({ policies: found, configuration }) => {
      const rows = found.map((policy) => ({ scope: scopeWords(policy.scope), values: policy.values, policy }));
      const configured = { scope: "configuration", values: configuration, policy: null };
      const all = isFirst ? [configured, ...rows] : rows;
      isFirst = false;
      return all;
    },
    whole: (pages) => {
      const answer = create(ListHealthPoliciesResponseSchema);
      answer.policies = pages.flatMap((page) => page.policies);
      const configuration = pages.at(-1)?.configuration;
      if (configuration !== undefined) answer.configuration = configuration;
      return toPlain(ListHealthPoliciesResponseSchema, answer);
    },
  });
};

/** The table ranks of the values that most policies set. */
const VALUE_RANKS: Readonly<Partial<Record<PolicyValueName, number>>> = {
  unhealthyAfter: 1,
  unknownAfter: 6,
  heartbeatInterval: 5,
};

const LIST_COLUMNS: readonly Column<Row>[] = [
  { title: "SCOPE", name: "scope", cell: ({ scope }) => ({ text: scope }) },
  {
    title: "SELECTOR",
    name: "selector",
    limit: 40,
    rank: 2,
    cell: ({ policy }) => optionalCell(policy?.selector),
  },
  {
    title: "PRIORITY",
    name: "priority",
    rank: 3,
    cell: ({ policy }) => ({ text: policy?.selector ? `${policy.priority}` : "-" }),
  },
  ...POLICY_VALUE_NAMES.map((name, at): Column<Row> => {
    const title = dashed(name).replaceAll("-", " ").toUpperCase();
    const cell = ({ values }: Row) => ({ text: valueWord(values, name) });
    return { title, name: dashed(name).replaceAll("-", "_"), rank: VALUE_RANKS[name] ?? 10 + at, cell };
  }),
  { title: "REASON", name: "reason", limit: 40, rank: 4, cell: ({ policy }) => optionalCell(policy?.reason) },
];

const policyShow: Verb<PolicyScopeOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const scope = parsePolicyScope(options);
  const control = reachControlPlane(shell, options);
  const { client, attempt } = policies(control);
  const answer = await attempt(`show the ${policyName(scope)}`, () =>
    client.getHealthPolicy({ scope, withEffective: true }),
  );
  const { policy, effective } = answer;
  const columns: readonly Column<PolicyValueName>[] = [
    { title: "VALUE", name: "value", cell: (name) => ({ text: dashed(name) }) },
    { title: "SET HERE", name: "set", cell: (name) => ({ text: valueWord(policy?.values, name) }) },
    { title: "RESULT", name: "result", cell: (name) => ({ text: valueWord(effective?.values, name) }) },
    { title: "FROM", name: "from", cell: (name) => ({ text: sourceWord(sourceOf(effective, name)) }) },
  ];
  const paint = choosePaint(shell, options);
  const group = policy?.selector ? `  ${policy.selector}  priority ${policy.priority}` : "";
  const names = await readActorNames(control, policy?.reason ? [policy.actor] : []);
  const reason = policy?.reason ? `${printable(`${policy.reason} (${names(policy.actor)})`)}\n` : "";
  const effect = effective === undefined ? "" : `${effectWords(effective)}\n`;
  const heading = `${paint("bold", scopeWords(policy?.scope ?? scope))}${group}\n${reason}${effect}\n`;
  const table = new TablePrinter(columns, { paint, columns: columnsOf(shell) }).print(POLICY_VALUE_NAMES);
  await writeAnswer(shell, format, [GetHealthPolicyResponseSchema, answer], heading + table);
};
