import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { DiagnosisService, type GetDiagnosisResponse } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { displayAddress, SERVICE_NAMES, type ServiceName } from "../client/addresses.ts";
import type { ControlPlane } from "../client/control-plane.ts";
import type { Shell } from "../shell.ts";
import { type Finding, finding } from "./finding.ts";
import { judgeAddress } from "./judge-address.ts";
import { judgeContainment } from "./judge-containment.ts";
import { judgeStatus, judgeWebhooks, MOST_JUDGED_WEBHOOKS } from "./judge-deliveries.ts";
import { judgeIdentities } from "./judge-identities.ts";
import { judgeProcesses, judgeServerClock } from "./judge-processes.ts";
import { judgeRecord } from "./judge-record.ts";
import { judgeNextCertificate, judgeTrust, type NextCertificate } from "./judge-trust.ts";
import { judgeVersions } from "./judge-versions.ts";
import { type ProbedAddress, probeAddress } from "./probe-address.ts";

/** What is slow answers late: longer than the server's own limits. */
const PATIENTLY = { timeoutMs: 25_000 };
/** More than any deployment has. */
const MOST_ENDPOINTS = 100;

/** Check a deployment, from this machine and by the public API. What cannot be checked is among the findings. */
export async function examine(control: ControlPlane, shell: Shell): Promise<readonly Finding[]> {
  const [addresses, status, diagnosis, webhooks] = await Promise.all([
    examineAddresses(control, shell),
    examineStatus(control),
    examineDeployment(control, shell),
    examineWebhooks(control),
  ]);
  return [...addresses, ...status, ...diagnosis, ...webhooks];
}

/** Check only which agents a certificate would lock out that is about to replace the present one. */
export async function examineCertificate(control: ControlPlane, next: NextCertificate): Promise<readonly Finding[]> {
  try {
    const facts = await control.client("admin", DiagnosisService).getDiagnosis({});
    const { processes, agentTrust, agentEndpoints } = facts;
    const hosts = agentEndpoints.map((it) => it.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"));
    const named = [...new Set(hosts)].filter((host) => host !== "").slice(0, MOST_ENDPOINTS);
    return [...judgeTrust(processes, agentTrust), ...judgeNextCertificate(next, agentTrust, named)];
  } catch (error) {
    return [notAsked("next-certificate", next.file, await control.explain("admin", error))];
  }
}

/** Services often share an address: each address is looked at once. */
async function examineAddresses(control: ControlPlane, shell: Shell): Promise<readonly Finding[]> {
  const services = new Map<string, ServiceName[]>();
  for (const service of SERVICE_NAMES) {
    const address = control.addresses[service];
    services.set(address, [...(services.get(address) ?? []), service]);
  }
  const probes = [...services].map(([baseUrl, names]) => {
    const shown = names.length === SERVICE_NAMES.length ? "" : ` (${names.join(", ")})`;
    const subject = `${displayAddress(baseUrl)}${shown}`;
    return probeAddress(addressOf(new URL(baseUrl), subject, control, names[0] ?? "registry"), shell.interrupted);
  });
  const nowMs = shell.wallMs();
  return (await Promise.all(probes)).flatMap((probe) => judgeAddress("address", probe, nowMs));
}

function addressOf(url: URL, subject: string, control: ControlPlane, at: ServiceName): ProbedAddress {
  const isTls = url.protocol === "https:";
  const port = Number(url.port) || (isTls ? 443 : 80);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { subject, host, port, tls: isTls ? control.trust(at) : null };
}

async function examineStatus(control: ControlPlane): Promise<readonly Finding[]> {
  const registry = control.client("registry", RegistryService);
  try {
    return judgeStatus(await registry.getControlPlaneStatus({}, PATIENTLY));
  } catch (error) {
    return [notAsked("upkeep", "registry", await control.explain("registry", error))];
  }
}

async function examineWebhooks(control: ControlPlane): Promise<readonly Finding[]> {
  const client = control.client("admin", WebhookService);
  try {
    const { webhooks } = await client.listWebhooks({ pageSize: MOST_JUDGED_WEBHOOKS }, PATIENTLY);
    return judgeWebhooks(webhooks);
  } catch (error) {
    return [notAsked("webhooks", "admin", await control.explain("admin", error))];
  }
}

async function examineDeployment(control: ControlPlane, shell: Shell): Promise<readonly Finding[]> {
  const admin = control.client("admin", DiagnosisService);
  const askedAtMs = shell.wallMs();
  let facts: GetDiagnosisResponse;
  try {
    facts = await admin.getDiagnosis({}, PATIENTLY);
  } catch (error) {
    return [slowFinding(error) ?? notAsked("deployment", "admin", await control.explain("admin", error))];
  }
  const nowMs = shell.wallMs();
  const { time, record, processes, agentVersions, agentEndpoints, duplicatedNodes, uncontainedNodes } = facts;
  const { agentTrust, unanswered } = facts;
  const uncertainMs = nowMs - askedAtMs;
  return [
    ...(time === undefined ? [] : [judgeServerClock(timestampMs(time) - nowMs, uncertainMs)]),
    ...(record === undefined ? [] : judgeRecord(record)),
    ...unanswered.map(unansweredFinding),
    ...judgeProcesses(processes, nowMs),
    ...judgeVersions(processes, agentVersions),
    ...judgeIdentities(duplicatedNodes),
    ...judgeContainment(uncontainedNodes),
    ...judgeTrust(processes, agentTrust),
    ...(await examineEndpoints(agentEndpoints.slice(0, MOST_ENDPOINTS), control, shell)),
  ];
}

/** Agents reach health at these; this machine may be one from which they cannot be reached. */
async function examineEndpoints(endpoints: readonly string[], control: ControlPlane, shell: Shell) {
  const registry = new URL(control.addresses.registry);
  const probes = endpoints.map((endpoint) => {
    const url = new URL(`${registry.protocol}//${endpoint.startsWith(":") ? registry.hostname : ""}${endpoint}`);
    return probeAddress(addressOf(url, endpoint, control, "registry"), shell.interrupted);
  });
  const nowMs = shell.wallMs();
  return (await Promise.all(probes)).flatMap((probe) => judgeAddress("agents-port", probe, nowMs));
}

function unansweredFinding(subject: string): Finding {
  const advice = "look for locks and load: `select * from pg_stat_activity where wait_event is not null`";
  return finding("problem", { check: "postgres-answers", subject }, "Postgres did not answer within seconds", advice);
}

/** What an error says about the deployment: that every connection is in use, or that all is slow; null otherwise. */
function slowFinding(error: unknown): Finding | null {
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  const advice = "see what takes long in Postgres; where nothing does, raise Database.PoolSize and max_connections";
  if (info?.reason === "OVERLOADED") {
    const about = { check: "connections", subject: "admin" };
    return finding("problem", about, "every connection to Postgres is in use, and calls are refused", advice);
  }
  if (failure.code !== Code.DeadlineExceeded) return null;
  const found = "did not answer in time: Postgres is slow, or every connection to it is in use";
  return finding("problem", { check: "answers", subject: "admin" }, found, `see /readyz of admin, and ${advice}`);
}

function notAsked(check: string, subject: string, why: string): Finding {
  const advice = "make that call succeed first; facts about the deployment need a token of the role admin";
  return finding("unknown", { check, subject }, `could not be checked: ${why}`, advice);
}
