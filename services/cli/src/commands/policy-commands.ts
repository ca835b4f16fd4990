import type { Command } from "commander";
import { POLICY_VALUE_FLAGS } from "../policies/policy-flags.ts";
import type { PolicyEditOptions, PolicyScopeOptions } from "../policies/policy-options.ts";
import type { Shell } from "../shell.ts";
import type { PolicyDeleteOptions } from "../verbs/policy-delete.ts";
import type { PolicyListOptions } from "../verbs/policy-list.ts";
import type { PolicyPreviewOptions } from "../verbs/policy-preview.ts";
import { lazily } from "./lazily.ts";

/** Add `policy` and its verbs. */
export function addPolicyCommands(program: Command, shell: Shell): void {
  const policy = program
    .command("policy")
    .description("say how patient the failure detector is, and how often agents report");
  addSet(policy, shell);
  addPreview(policy, shell);
  addList(policy, shell);
  addShow(policy, shell);
  addDelete(policy, shell);
}

function addScope(command: Command): Command {
  return command
    .option("--default", "for every node: lies over what is configured")
    .option("--group <name>", "for the nodes that the group's selector matches")
    .option("--node <node>", "for one node: its id, or the beginning of it");
}

function addEdit(command: Command): Command {
  addScope(command)
    .option("--selector <selector>", "of a group: labels of tokens and operators, in Kubernetes' syntax")
    .option("--priority <number>", "of a group: the greater wins where two set the same value");
  for (const { flag, doc } of POLICY_VALUE_FLAGS) command.option(flag, doc);
  return command
    .option("--unset <values>", "inherit these again: names of values, with commas")
    .option("--replace", "leave nothing of what the policy set before")
    .option("-f, --file <file>", "the whole policy, as `policy show --output yaml` prints it");
}

function addCommandOptions(command: Command): Command {
  return command
    .option("-m, --message <reason>", "why, for people; stored with the policy")
    .option("--etag <etag>", "only when the policy has not changed since this etag was read")
    .option("--request-id <id>", "the same id twice has one effect and the same answer");
}

function addSet(policy: Command, shell: Shell): void {
  const set = policy.command("set").description("make a policy, or change the values that are given");
  addCommandOptions(addEdit(set))
    .addHelpText(
      "after",
      `
Of all that is set for a node, the strongest counts, value by value: configuration, default, groups by priority, the node's own.
A policy that contradicts itself, or others on any node, is refused. \`policy preview\` with the same flags tells what would change.

  rollcall policy set --default --unhealthy-after 45s
  rollcall policy set --group gpus --selector gpu --priority 10 --unhealthy-after 30s --heartbeat-interval 5s

--output json|yaml prints a rollcall.admin.v1.SetHealthPolicyResponse in proto JSON.`,
    )
    .action(lazily<PolicyEditOptions>(shell, async () => (await import("../verbs/policy-set.ts")).policySet));
}

function addPreview(policy: Command, shell: Shell): void {
  const preview = policy.command("preview").description("tell which nodes a set or a delete would change, and how");
  addEdit(preview)
    .option("--delete", "what deleting the policy would change")
    .option("--limit <count>", "at most so many nodes; 0 for all (default: 100)")
    .option("--hide-header", "leave the headings out")
    .addHelpText("after", "\n--output json|yaml prints a rollcall.admin.v1.PreviewHealthPolicyResponse in proto JSON.")
    .action(
      lazily<PolicyPreviewOptions>(shell, async () => (await import("../verbs/policy-preview.ts")).policyPreview),
    );
}

function addList(policy: Command, shell: Shell): void {
  policy
    .command("list")
    .description("list what is configured, and every policy over it")
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      "\n--output json|yaml prints a rollcall.admin.v1.ListHealthPoliciesResponse in proto JSON; --output csv prints RFC 4180.",
    )
    .action(lazily<PolicyListOptions>(shell, async () => (await import("../verbs/policy-list.ts")).policyList));
}

function addShow(policy: Command, shell: Shell): void {
  addScope(policy.command("show").description("show one policy, what results, and where each value comes from"))
    .addHelpText("after", "\n--output json|yaml prints a rollcall.admin.v1.GetHealthPolicyResponse in proto JSON.")
    .action(lazily<PolicyScopeOptions>(shell, async () => (await import("../verbs/policy-show.ts")).policyShow));
}

function addDelete(policy: Command, shell: Shell): void {
  const remove = policy.command("delete").description("remove a policy: its nodes fall back to what lies below");
  addCommandOptions(addScope(remove))
    .addHelpText("after", "\n--output json|yaml prints a rollcall.admin.v1.DeleteHealthPolicyResponse in proto JSON.")
    .action(lazily<PolicyDeleteOptions>(shell, async () => (await import("../verbs/policy-delete.ts")).policyDelete));
}
