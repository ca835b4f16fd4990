import { GetHealthPolicyResponseSchema, HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { dashed, POLICY_VALUE_NAMES, type PolicyValueName } from "../policies/policy-flags.ts";
import { type PolicyScopeOptions, parsePolicyScope } from "../policies/policy-options.ts";
import { effectWords, scopeWords, sourceOf, sourceWord, valueWord } from "../policies/policy-words.ts";

/** `policy show`: what a policy sets, what results and where each value comes from, or a GetHealthPolicyResponse. */
export const policyShow: Verb<PolicyScopeOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const scope = parsePolicyScope(options);
  const control = reachControlPlane(shell, options);
  const answer = await control.attempt("admin", `show the policy of ${scopeWords(scope)}`, () =>
    control.client("admin", HealthPolicyService).getHealthPolicy({ scope, withEffective: true }),
  );
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(GetHealthPolicyResponseSchema, answer)));
    return;
  }
  const { policy, effective } = answer;
  const columns: readonly Column<PolicyValueName>[] = [
    { title: "VALUE", name: "value", cell: (name) => ({ text: dashed(name) }) },
    { title: "SET HERE", name: "set", cell: (name) => ({ text: valueWord(policy?.values, name) }) },
    {
      title: "RESULT",
      name: "result",
      cell: (name) => ({ text: valueWord(effective?.values, name) }),
    },
    {
      title: "FROM",
      name: "from",
      cell: (name) => ({ text: sourceWord(sourceOf(effective, name)) }),
    },
  ];
  const paint = choosePaint(shell, options);
  const table = new TablePrinter(columns, { hideHeader: false, wide: true, paint });
  const who = scopeWords(policy?.scope ?? scope);
  const group = policy?.selector ? `  ${policy.selector}  priority ${policy.priority}` : "";
  const why = policy?.reason ? `${policy.reason} (${policy.actor})\n` : "";
  const effect = effective === undefined ? "" : `${effectWords(effective)}\n`;
  shell.out.write(`${paint("bold", who)}${group}\n${why}${effect}\n`);
  shell.out.write(table.print(POLICY_VALUE_NAMES));
};
