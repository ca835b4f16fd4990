import { create } from "@bufbuild/protobuf";
import {
  HealthPolicyService,
  type PreviewedNode,
  PreviewHealthPolicyRequestSchema,
  PreviewHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { type PolicyEditOptions, parseCommand, parsePolicyScope } from "../policies/policy-options.ts";
import { changeWords } from "../policies/policy-words.ts";
import type { Shell } from "../shell.ts";
import { countOfNodes, readEdit } from "./policy-set.ts";

/** What `policy preview` takes. */
export interface PolicyPreviewOptions extends PolicyEditOptions {
  readonly delete?: boolean;
  readonly limit?: string;
  readonly hideHeader?: boolean;
}

const PAGE_SIZE = 500;
const DEFAULT_LIMIT = 100;

const COLUMNS: readonly Column<PreviewedNode>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => ({ text: nodeId }) },
  {
    title: "CHANGE",
    name: "change",
    cell: ({ before, after }) => ({ text: changeWords(before, after) }),
  },
];

/** `policy preview`: the nodes that a set or a delete would change, and how; or a PreviewHealthPolicyResponse. */
export const policyPreview: Verb<PolicyPreviewOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const limit = options.limit === undefined ? DEFAULT_LIMIT : parseCount("limit", options.limit, 0);
  const change = await readChange(shell, options);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", HealthPolicyService);
  const all = create(PreviewHealthPolicyResponseSchema);
  const isEnough = () => limit > 0 && all.nodes.length >= limit;
  do {
    const left = limit === 0 ? PAGE_SIZE : Math.min(PAGE_SIZE, limit - all.nodes.length);
    const request = create(PreviewHealthPolicyRequestSchema, {
      change,
      pageSize: left,
      pageToken: all.nextPageToken,
    });
    const page = await control.attempt("admin", "preview the policy", () => client.previewHealthPolicy(request));
    all.nodes.push(...page.nodes);
    all.changedNodes = page.changedNodes;
    all.nextPageToken = page.nextPageToken;
  } while (all.nextPageToken !== "" && !isEnough());
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const plain = toPlain(PreviewHealthPolicyResponseSchema, all);
    shell.out.write(await formatStructured(format, plain));
    return;
  }
  const { hideHeader = false } = options;
  const paint = choosePaint(shell, options);
  const table = new TablePrinter(COLUMNS, { hideHeader, wide: true, paint });
  if (all.nodes.length > 0) shell.out.write(table.print(all.nodes));
  const shown = all.nodes.length < all.changedNodes ? `, ${all.nodes.length} of them shown` : "";
  shell.err.write(`${countOfNodes(all.changedNodes)} would change${shown}\n`);
};

async function readChange(shell: Shell, options: PolicyPreviewOptions) {
  if (options.delete !== true) {
    return { case: "set", value: await readEdit(shell, options) } as const;
  }
  const value = { scope: parsePolicyScope(options), ...parseCommand(options) };
  return { case: "delete", value } as const;
}
