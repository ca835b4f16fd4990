import {
  DeleteHealthPolicyResponseSchema,
  HealthPolicyService,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import {
  type PolicyEditOptions,
  type PolicyScopeOptions,
  parseCommand,
  parsePolicyScope,
} from "../policies/policy-options.ts";
import { scopeWords } from "../policies/policy-words.ts";
import { countOfNodes } from "./policy-set.ts";

/** What `policy delete` takes. */
export type PolicyDeleteOptions = PolicyScopeOptions & Pick<PolicyEditOptions, "message" | "etag" | "requestId">;

/** `policy delete`: prints Ok and how many nodes got another policy, or with --output a DeleteHealthPolicyResponse. */
export const policyDelete: Verb<PolicyDeleteOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const scope = parsePolicyScope(options);
  const control = reachControlPlane(shell, options);
  const answer = await control.attempt("admin", `delete the policy of ${scopeWords(scope)}`, () =>
    control.client("admin", HealthPolicyService).deleteHealthPolicy({ scope, ...parseCommand(options) }),
  );
  if (format === "table") {
    shell.out.write(`Ok, ${countOfNodes(answer.changedNodes)} changed\n`);
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  const plain = toPlain(DeleteHealthPolicyResponseSchema, answer);
  shell.out.write(await formatStructured(format, plain));
};
