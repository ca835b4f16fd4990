import type { PolicyTable } from "../../libs/rpc/src/index.ts";

const DATABASE = "the database";
const LOG = "**what its process has read of the log**";
const SNAPSHOT = "the database, then the log as it grows";
const REPLICAS = "the memory of the replicas that hold the nodes";
const NODE = "the node itself, by the replica that holds it";

/** Details that the policy tables do not contain, keyed by method. */
const SOURCES: Readonly<Record<string, string>> = {
  "rollcall.admin.v1.AdminService/WatchDrain": "the database, each second",
  "rollcall.events.v1.EventService/WatchEvents": "the log, from its present end or where the request says",
  "rollcall.health.v1.HealthQueryService/GetClusterHealth": REPLICAS,
  "rollcall.health.v1.HealthQueryService/GetNodeHealth": REPLICAS,
  "rollcall.health.v1.HealthQueryService/ListNodeHealth": REPLICAS,
  "rollcall.health.v1.HealthQueryService/WatchNodeHealth": REPLICAS,
  "rollcall.health.v1.HealthQueryService/ReadExecutionLog": NODE,
  "rollcall.registry.v1.RegistryService/WatchNodes": SNAPSHOT,
  "rollcall.scheduler.v1.JobService/WatchExecutions": SNAPSHOT,
  "rollcall.scheduler.v1.JobService/WatchJobs": SNAPSHOT,
};

const BEGIN = "<!-- The table is checked against the policy tables: see tests/min-revision.test.ts. -->\n";
const END = "<!-- End of the table. -->\n";

/**
 * Return whether a method honours the header. Methods that return data to callers with a role honour it, and
 * the others ignore it.
 */
function takesRevision(caller: PolicyTable[string]["caller"]): boolean {
  return caller !== "anyone" && caller !== "node" && caller !== "replica";
}

/** Format the table of what each method reads as Markdown. */
export function formatSourcesTable(policies: PolicyTable): string {
  const methods = Object.entries(policies).filter(([, { caller }]) => takesRevision(caller));
  const sourceOf = (name: string) => (policies[name]?.readsLog === true ? LOG : (SOURCES[name] ?? DATABASE));
  const rows = methods.map(([name]) => {
    const [service = "", method = ""] = name.split("/");
    return { service: service.split(".").at(-1) ?? "", method, source: sourceOf(name) };
  });
  const services = [...new Set(rows.map(({ service }) => service))].sort();
  const lines = services.flatMap((service) => {
    const own = rows.filter((row) => row.service === service);
    return [...new Set(own.map(({ source }) => source))].map((source) => {
      const names = own.filter((row) => row.source === source).map(({ method }) => method);
      return `| ${service} | ${names.sort().join(", ")} | ${source} |`;
    });
  });
  return `${BEGIN}\n| service | methods | answer from |\n|---|---|---|\n${lines.join("\n")}\n\n${END}`;
}

/** Replace the table of a page. */
export function withSourcesTable(page: string, table: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < 0) throw new Error("the page has no place for the table");
  return `${page.slice(0, from)}${table}${page.slice(to + END.length)}`;
}
