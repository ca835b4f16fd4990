import type { MethodCaller, PolicyTable } from "../../libs/rpc/src/index.ts";

/** What a row of the policy table means, for people. */
const CALLERS: Readonly<Record<MethodCaller, string>> = {
  anyone: "anyone, without a token",
  node: "a node, by proof of its key",
  replica: "another process of the cluster",
  viewer: "viewer",
  operator: "operator",
  submitter: "submitter",
  admin: "admin",
};

/** Details that the row does not contain. */
const NOTES: Readonly<Record<string, string>> = {
  "rollcall.admin.v1.AccessService/RevokeAccessToken": "viewer for the caller's own token, admin for any other",
  "rollcall.admin.v1.DeclaredStateService/PlanState": "for each object, the callers that its own methods allow",
  "rollcall.admin.v1.DeclaredStateService/ApplyState": "for each object, the callers that its own methods allow",
  "rollcall.console.v1.ConsoleService/CreateSignInCode": "viewer, with a token (not with a session)",
  "rollcall.console.v1.ConsoleService/SignIn": "anyone who proves possession of a token, from a page of the console",
  "rollcall.console.v1.ConsoleService/SignOut":
    "viewer, with a session; with a token, to end all of the caller's sessions",
};

const BEGIN = "<!-- The table is checked against the policy tables: see tests/access-table.test.ts. -->\n";
const END = "<!-- End of the table. -->\n";

/** Format the table of methods and roles as Markdown. */
export function formatAccessTable(policies: PolicyTable): string {
  const byService = Object.entries(policies).map(([name, row]) => {
    const [service = "", method = ""] = name.split("/");
    return { service, method, who: NOTES[name] ?? CALLERS[row.caller] };
  });
  const services = [...new Set(byService.map(({ service }) => service))].sort();
  const sections = services.map((service) => {
    const rows = byService.filter((row) => row.service === service).map(({ method, who }) => `| ${method} | ${who} |`);
    return [`### ${service}`, "", "| method | who may call it |", "|---|---|", ...rows, ""].join("\n");
  });
  return `${BEGIN}\n${sections.join("\n")}\n${END}`;
}

/** Replace the table of a page. */
export function withAccessTable(page: string, table: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < 0) throw new Error("the page has no place for the table");
  return `${page.slice(0, from)}${table}${page.slice(to + END.length)}`;
}
