import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { DiagnosisService, type GetDiagnosisResponse } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { displayAddress, SERVICE_NAMES, type ServiceName } from "../client/addresses.ts";
import type { ControlPlane } from "../client/control-plane.ts";
import type { Shell } from "../shell.ts";
import { evaluateAddress } from "./evaluate-address.ts";
import { evaluateContainment } from "./evaluate-containment.ts";
import { evaluateStatus, evaluateWebhooks, MOST_EVALUATED_WEBHOOKS } from "./evaluate-deliveries.ts";
import { evaluateIdentities } from "./evaluate-identities.ts";
import { evaluateProcesses, evaluateServerClock } from "./evaluate-processes.ts";
import { evaluateResources } from "./evaluate-resources.ts";
import { evaluateStore } from "./evaluate-store.ts";
import { evaluateNextCertificate, evaluateTrust, type NextCertificate } from "./evaluate-trust.ts";
import { evaluateVersions } from "./evaluate-versions.ts";
import { type Finding, finding, groupFindings } from "./finding.ts";
import { NO_ANSWER, NO_CONNECTION, type ProbedAddress, probeAddress } from "./probe-address.ts";

/** Options of calls. The timeout is longer than the server's own limits, because a slow deployment responds late. */
const PATIENTLY = { timeoutMs: 25_000 };
/** Maximum number of endpoints to check, more than any deployment has. */
const MOST_ENDPOINTS = 100;

/**
 * Check a deployment from this machine and through the public API. A check that could not run is reported as a
 * finding.
 */
export async function examine(control: ControlPlane, shell: Shell): Promise<readonly Finding[]> {
  const { findings, silent } = await examineAddresses(control, shell);
  // Skip a service that does not respond, because each check would only use up its time limit.
  const unlessSilent = (at: ServiceName, check: string, run: () => Promise<readonly Finding[]>) =>
    silent.has(at) ? [notAsked(check, at, "its address does not answer")] : run();
  const [status, diagnosis, webhooks] = await Promise.all([
    unlessSilent("registry", "upkeep", () => examineStatus(control)),
    unlessSilent("admin", "deployment", () => examineDeployment(control, shell)),
    unlessSilent("admin", "webhooks", () => examineWebhooks(control)),
  ]);
  return [...findings, ...joinCauses([...status, ...diagnosis, ...webhooks])];
}

/** Join findings that differ only in the service that could not be called, and move them to the start. */
function joinCauses(findings: readonly Finding[]): readonly Finding[] {
  const isCause = ({ check }: Finding) => CAUSE_CHECKS.includes(check);
  const alike = groupFindings(findings.filter(isCause), ({ check, found }) => `${check} ${found}`);
  const joined = alike.flatMap((group) => {
    const subject = [...new Set(group.map((one) => one.subject))].join(", ");
    return group.slice(0, 1).map((first) => ({ ...first, subject }));
  });
  return [...joined, ...findings.filter((it) => !isCause(it))];
}

/** Check only which agents a certificate would lock out if it replaced the current one. */
export async function examineCertificate(control: ControlPlane, next: NextCertificate): Promise<readonly Finding[]> {
  try {
    const facts = await control.client("admin", DiagnosisService).getDiagnosis({});
    const { processes, agentTrust, agentEndpoints } = facts;
    const hosts = agentEndpoints.map((it) => it.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"));
    const named = [...new Set(hosts)].filter((host) => host !== "").slice(0, MOST_ENDPOINTS);
    return [...evaluateTrust(processes, agentTrust), ...evaluateNextCertificate(next, agentTrust, named)];
  } catch (error) {
    return [notAsked("next-certificate", next.file, await control.explain("admin", error))];
  }
}

/** Check each address once, because services often share an address. Also returns the services that do not respond. */
async function examineAddresses(control: ControlPlane, shell: Shell) {
  const services = new Map<string, ServiceName[]>();
  for (const service of SERVICE_NAMES) {
    const address = control.addresses[service];
    services.set(address, [...(services.get(address) ?? []), service]);
  }
  const probes = [...services].map(async ([baseUrl, names]) => {
    const shown = names.length === SERVICE_NAMES.length ? "" : ` (${names.join(", ")})`;
    const subject = `${displayAddress(baseUrl)}${shown}`;
    const address = addressOf(new URL(baseUrl), subject, control, names[0] ?? "registry");
    return { names, probe: await probeAddress({ ...address, isHttp2: false }, shell.interrupted) };
  });
  const nowMs = shell.wallMs();
  const found = await Promise.all(probes);
  const isSilent = (failure: string | null) => failure === NO_ANSWER || failure === NO_CONNECTION;
  const silent = found.filter(({ probe }) => isSilent(probe.failure)).flatMap(({ names }) => names);
  return {
    findings: found.flatMap(({ probe }) => evaluateAddress("address", probe, nowMs)),
    silent: new Set(silent),
  };
}

function addressOf(url: URL, subject: string, control: ControlPlane, at: ServiceName): Omit<ProbedAddress, "isHttp2"> {
  const isTls = url.protocol === "https:";
  const port = Number(url.port) || (isTls ? 443 : 80);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { subject, host, port, timeoutMs: control.timeoutMs, tls: isTls ? control.tls(at) : null };
}

async function examineStatus(control: ControlPlane): Promise<readonly Finding[]> {
  const registry = control.client("registry", RegistryService);
  try {
    return evaluateStatus(await registry.getControlPlaneStatus({}, PATIENTLY));
  } catch (error) {
    return failedCall("upkeep", "registry", error, control);
  }
}

async function examineWebhooks(control: ControlPlane): Promise<readonly Finding[]> {
  const client = control.client("admin", WebhookService);
  try {
    const { webhooks } = await client.listWebhooks({ pageSize: MOST_EVALUATED_WEBHOOKS }, PATIENTLY);
    return evaluateWebhooks(webhooks);
  } catch (error) {
    return failedCall("webhooks", "admin", error, control);
  }
}

async function examineDeployment(control: ControlPlane, shell: Shell): Promise<readonly Finding[]> {
  const admin = control.client("admin", DiagnosisService);
  const askedAtMs = shell.wallMs();
  let facts: GetDiagnosisResponse;
  try {
    facts = await admin.getDiagnosis({}, PATIENTLY);
  } catch (error) {
    return failedCall("deployment", "admin", error, control);
  }
  const nowMs = shell.wallMs();
  const { time, record, processes, agentVersions, agentEndpoints, duplicatedNodes, uncontainedNodes } = facts;
  const { agentTrust, unanswered, unknownResources } = facts;
  const uncertainMs = nowMs - askedAtMs;
  return [
    ...(time === undefined ? [] : [evaluateServerClock(timestampMs(time) - nowMs, uncertainMs)]),
    ...(record === undefined ? [] : evaluateStore(record)),
    ...unanswered.map(unansweredFinding),
    ...evaluateProcesses(processes, nowMs),
    ...evaluateVersions(processes, agentVersions),
    ...evaluateIdentities(duplicatedNodes),
    ...evaluateContainment(uncontainedNodes),
    ...evaluateResources(unknownResources),
    ...evaluateTrust(processes, agentTrust),
    ...(await examineEndpoints(agentEndpoints.slice(0, MOST_ENDPOINTS), control, shell)),
  ];
}

/**
 * Check the addresses at which agents reach the health service. This machine may be on a network that cannot reach
 * them.
 */
async function examineEndpoints(endpoints: readonly string[], control: ControlPlane, shell: Shell) {
  const registry = new URL(control.addresses.registry);
  const probes = endpoints.map((endpoint) => {
    const url = new URL(`${registry.protocol}//${endpoint.startsWith(":") ? registry.hostname : ""}${endpoint}`);
    const address = addressOf(url, endpoint, control, "registry");
    return probeAddress({ ...address, isHttp2: true }, shell.interrupted);
  });
  const nowMs = shell.wallMs();
  return (await Promise.all(probes)).flatMap((probe) => evaluateAddress("agents-port", probe, nowMs));
}

function unansweredFinding(subject: string): Finding {
  const advice = "look for locks and load: `select * from pg_stat_activity where wait_event is not null`";
  return finding(
    "problem",
    { check: "postgres-answers", subject },
    "Postgres did not answer within a few seconds",
    advice,
  );
}

/** The findings for a call that failed: the check that it prevented, preceded by the cause if that is known. */
async function failedCall(
  check: string,
  at: ServiceName,
  error: unknown,
  control: ControlPlane,
): Promise<readonly Finding[]> {
  const cause = causeOf(error, at);
  if (cause === null) return [notAsked(check, at, await control.explain(at, error))];
  const about = { check, subject: at };
  const found = `could not be checked: ${cause.found}`;
  return [cause, finding("unknown", about, found, `solve the problem of ${cause.check} first`)];
}

/** The names of the checks that causeOf() reports. */
const CAUSE_CHECKS: readonly string[] = ["postgres", "connections", "answers"];

/** Create a finding for an error that Postgres causes. Null for any other error. */
function causeOf(error: unknown, subject: ServiceName): Finding | null {
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  if (info?.reason === "STORE_UNAVAILABLE") {
    const found = "the database cannot be reached, or accepts no writes";
    const advice =
      "start Postgres, or correct Database.URL and the network between the two; /readyz and the log have the reason";
    return finding("problem", { check: "postgres", subject }, found, advice);
  }
  const advice = "find slow queries in Postgres; if there are none, raise Database.PoolSize and max_connections";
  if (info?.reason === "OVERLOADED") {
    const found = "every connection to Postgres is in use, and calls are refused";
    return finding("problem", { check: "connections", subject }, found, advice);
  }
  if (failure.code !== Code.DeadlineExceeded) return null;
  const found = "did not answer in time: Postgres is slow, or every connection to it is in use";
  return finding("problem", { check: "answers", subject }, found, `see /readyz, and ${advice}`);
}

function notAsked(check: string, subject: string, why: string): Finding {
  const advice = "fix that call first; checks of the deployment need a token with the role admin";
  return finding("unknown", { check, subject }, `could not be checked: ${why}`, advice);
}
