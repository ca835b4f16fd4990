import { create } from "@bufbuild/protobuf";
import {
  HealthPolicyService,
  type SetHealthPolicyRequest,
  SetHealthPolicyRequestSchema,
  SetHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { POLICY_VALUE_NAMES } from "../policies/policy-flags.ts";
import { type PolicyEditOptions, parseCommand, parsePolicyEdit } from "../policies/policy-options.ts";
import { scopeWords } from "../policies/policy-words.ts";
import type { Shell } from "../shell.ts";

/** `policy set`: prints Ok and how many nodes got another policy, or with --output a SetHealthPolicyResponse. */
export const policySet: Verb<PolicyEditOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const request = await readEdit(shell, options);
  const control = reachControlPlane(shell, options);
  const answer = await control.attempt("admin", `set the policy of ${scopeWords(request.scope)}`, () =>
    control.client("admin", HealthPolicyService).setHealthPolicy(request),
  );
  if (format === "table") {
    shell.out.write(`Ok, ${countOfNodes(answer.changedNodes)} changed\n`);
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(SetHealthPolicyResponseSchema, answer)));
};

/** What a policy is to become, by flags or by a file. Throws UsageError. */
export async function readEdit(shell: Shell, options: PolicyEditOptions): Promise<SetHealthPolicyRequest> {
  const { file, message, etag, requestId, ...others } = options;
  if (file === undefined) return create(SetHealthPolicyRequestSchema, parsePolicyEdit(options));
  const flags = ["default", "group", "node", "selector", "priority", "unset", "replace"] as const;
  if ([...flags, ...POLICY_VALUE_NAMES].some((flag) => others[flag] !== undefined)) {
    throw new UsageError("--file says all of the policy: leave out the other flags");
  }
  const { readPolicyFile } = await import("../policies/policy-file.ts");
  const policy = await readPolicyFile(shell, file);
  return create(SetHealthPolicyRequestSchema, { ...policy, ...parseCommand(options) });
}

/** "1 node", "3 nodes". */
export function countOfNodes(count: number): string {
  return count === 1 ? "1 node" : `${count} nodes`;
}
