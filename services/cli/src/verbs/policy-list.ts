import { create } from "@bufbuild/protobuf";
import {
  type HealthPolicy,
  HealthPolicyService,
  type HealthPolicyValues,
  ListHealthPoliciesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import { dashed, POLICY_VALUE_NAMES } from "../policies/policy-flags.ts";
import { scopeWords, valueWord } from "../policies/policy-words.ts";

/** What `policy list` takes. */
export interface PolicyListOptions {
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

interface Row {
  readonly scope: string;
  readonly values: HealthPolicyValues | undefined;
  readonly policy: HealthPolicy | null;
}

const PAGE_SIZE = 500;

const COLUMNS: readonly Column<Row>[] = [
  { title: "SCOPE", name: "scope", cell: ({ scope }) => ({ text: scope }) },
  {
    title: "SELECTOR",
    name: "selector",
    limit: 40,
    cell: ({ policy }) => ({ text: policy?.selector || "-", raw: policy?.selector ?? "" }),
  },
  {
    title: "PRIORITY",
    name: "priority",
    cell: ({ policy }) => ({ text: policy?.selector ? `${policy.priority}` : "-" }),
  },
  ...POLICY_VALUE_NAMES.map((name): Column<Row> => {
    const title = dashed(name).replaceAll("-", " ").toUpperCase();
    const cell = ({ values }: Row) => ({ text: valueWord(values, name) });
    return { title, name: dashed(name).replaceAll("-", "_"), cell };
  }),
  {
    title: "REASON",
    name: "reason",
    limit: 40,
    cell: ({ policy }) => ({ text: policy?.reason || "-", raw: policy?.reason ?? "" }),
  },
];

/** `policy list`: what is configured and every policy over it, or a ListHealthPoliciesResponse. */
export const policyList: Verb<PolicyListOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", HealthPolicyService);
  const all = create(ListHealthPoliciesResponseSchema);
  let pageToken = "";
  do {
    const request = { pageSize: PAGE_SIZE, pageToken };
    const page = await control.attempt("admin", "list policies", () => client.listHealthPolicies(request));
    all.policies.push(...page.policies);
    if (page.configuration !== undefined) all.configuration = page.configuration;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (format === "json" || format === "yaml") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(ListHealthPoliciesResponseSchema, all)));
    return;
  }
  const rows: readonly Row[] = [
    { scope: "configuration", values: all.configuration, policy: null },
    ...all.policies.map((policy) => {
      return { scope: scopeWords(policy.scope), values: policy.values, policy };
    }),
  ];
  const { hideHeader = false, wide = false } = options;
  if (format === "csv") {
    shell.out.write(`${hideHeader ? "" : csvHeader(COLUMNS)}${csvRows(COLUMNS, rows)}`);
    return;
  }
  const table = new TablePrinter(COLUMNS, { hideHeader, wide, paint: choosePaint(shell, options) });
  shell.out.write(table.print(rows));
};
