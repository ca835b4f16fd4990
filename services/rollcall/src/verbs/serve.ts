import { join } from "node:path";
import { ADMIN_TOKEN_FILE, cliVersion, columnsOf, findDataDirectory, type Shell, UsageError } from "@rollcall/cli";
import type { ConfigKeys, Flags } from "@rollcall/config";
import { type Logger, type Parts, startParts, systemClock } from "@rollcall/process";
import { refusePlaintext } from "../config/check-tls-config.ts";
import { CONTROL_PLANE_KEYS, type ControlPlaneConfig, loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, type VerbHelp, verbFlags } from "../config/verb-help.ts";
import { exposure, exposureFacts, openTransport } from "../control-plane/exposure.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes } from "../control-plane/open-probes.ts";
import { openRecord, recordAddress } from "../control-plane/open-record.ts";
import { configuredTlsFiles, openTls, trustedCaFile } from "../control-plane/open-tls.ts";
import { configuredPoolSizes } from "../control-plane/pool-sizes.ts";
import { PORT_KEYS, planServe, SERVICE_NAMES, type ServiceName } from "../control-plane/process-plan.ts";
import { provideAdminToken } from "../control-plane/provide-admin-token.ts";
import { startControlPlane } from "../control-plane/start-control-plane.ts";
import { explainingStart, portFlagsOf } from "../control-plane/start-problem.ts";
import { logConfiguration, openLog } from "../log.ts";
import { runServer } from "../run-server.ts";
import { workerRole } from "../workers/open-workers.ts";
import { runWorker } from "../workers/run-worker.ts";
import { serveWorkers } from "../workers/serve-workers.ts";

// The local agent and development certificates belong to `up` alone.
const { "Up.Agent": _agent, "Up.TLS": _tls, ...SERVE_KEYS } = CONTROL_PLANE_KEYS;

/** The flags of `serve`, for completion. */
export const SERVE_FLAGS = verbFlags(SERVE_KEYS);

/** The help of `serve`, or of one service with its own ports. */
function helpOf(word: string | undefined): VerbHelp {
  const service = SERVICE_NAMES.find((name) => name === word);
  if (service === undefined) return HELP;
  const { "Listen.Port": _port, "Listen.ProbePort": _probePort, ...common } = SERVE_KEYS;
  const {
    "Listen.AgentPort": _agents,
    "Listen.HealthInternalPort": _internal,
    "Health.Workers": _workers,
    ...withoutStreams
  } = common;
  const { port, probePort } = PORT_KEYS[service];
  const keys: ConfigKeys<unknown> = {
    ...(service === "health" ? common : withoutStreams),
    [port]: { ...SERVE_KEYS[port], flag: "port" },
    [probePort]: { ...SERVE_KEYS[probePort], flag: "probe-port" },
  };
  return { ...HELP, usage: `serve ${service} [options]`, keys, notes: [] };
}

const HELP: VerbHelp = {
  usage: "serve <service> [options]",
  description:
    "Run one service of the control plane (registry, health, admin or scheduler) in a process of its own, against " +
    "the Postgres that all of them share (--database-url or DATABASE_URL).",
  keys: SERVE_KEYS,
  notes: [
    "--port and --probe-port set Listen.<Service>Port and Listen.<Service>ProbePort:",
    "registry 7710 and 7791, health 7711 and 7792 (agents' streams on 7701), admin 7712 and 7793,",
    "scheduler 7713 and 7794.",
  ],
};

/** Within what Kubernetes waits by default. Health hands its agents on before anything else. */
const SHUTDOWN_DEADLINE_MS = 28_000;

/**
 * `rollcall serve SERVICE`. Answers the exit code: 0 after SIGTERM or SIGINT, 1 when it could not work, 2 for wrong
 * usage.
 */
export async function runServe(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, SERVE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(helpOf(args.words[0]), columnsOf(shell)));
    return 0;
  }
  const service = serviceOf(args.words);
  const flags = withOwnPorts(service, args.flags);
  const config = await loadControlPlaneConfig({ shell, file: args.file, flags });
  const values = { ...config.values, "Up.TLS": false };
  refusePlaintext(values);
  const url = values["Database.URL"];
  if (url === undefined) {
    throw new UsageError(`serve ${service} needs a Postgres: set DATABASE_URL or --database-url`);
  }
  const plan = planServe(service, values);
  const log = openLog(values, shell, service);
  const role = workerRole(shell.env);
  if (role === null) logConfiguration(config, log);
  const tls = await openTls(configuredTlsFiles(values, shell), { clock: systemClock, log });
  const caFile = trustedCaFile(values, shell);
  const several = { plan, config: values, databaseUrl: url, tls, caFile, process, log };
  if (role !== null) return runWorker({ ...several, role });
  if (service === "health" && values["Health.Workers"] > 1) return serveWorkers(several);
  if (tls !== null) process.on("SIGHUP", () => void tls.reload());
  const start = async (signal: AbortSignal, parts: Parts) => {
    const probesTls = values["TLS.Probes"] ? tls : null;
    const hosts = hostRule(values, tls);
    const probes = parts.add(await openProbes({ plan, clock: systemClock, log, tls: probesTls, hosts }));
    const address = recordAddress(values, url);
    const record = { address, pools: configuredPoolSizes(values), log, clock: systemClock };
    const store = parts.add(await openRecord({ ...record, applicationName: `rollcall ${service}` }, signal));
    if (service === "admin") {
      const file = join(values["Data.Dir"] ?? findDataDirectory(shell), ADMIN_TOKEN_FILE);
      await provideAdminToken({ store, config: values, file, always: false, log });
    }
    const version = cliVersion();
    const { port, agentPort } = parts.add(
      await startControlPlane(
        { plan, config: values, store, probes, tls, caFile, version, clock: systemClock, log },
        signal,
      ),
    );
    log.info({ version, host: plan.host, port, agent_port: agentPort, probe_port: probes.port }, "serving");
    if (service === "registry") {
      for (const warning of exposure(exposureFacts(plan.host, values))) log.warn({}, warning);
    }
    if (service === "health") warnOfPlaintext(plan.host, values, log);
    return {};
  };
  return runServer({
    process,
    log,
    start: (signal) =>
      explainingStart({ portFlags: portFlagsOf(plan, values), databaseUrl: url, dataDirectory: null }, () =>
        startParts((parts) => start(signal, parts)),
      ),
    shutdownDeadlineMs: SHUTDOWN_DEADLINE_MS,
  });
}

/** What replicas of health tell each other crosses the network too. */
function warnOfPlaintext(host: string, config: ControlPlaneConfig, log: Logger): void {
  for (const warning of openTransport(exposureFacts(host, config))) log.warn({}, warning);
}

function serviceOf(words: readonly string[]): ServiceName {
  const [word, ...more] = words;
  const service = SERVICE_NAMES.find((name) => name === word);
  if (service === undefined || more.length > 0) {
    const given = words.length === 0 ? "no service was named" : `'${words.join(" ")}' is not a service`;
    throw new UsageError(`${given}, should be one of: ${SERVICE_NAMES.join(", ")}`);
  }
  return service;
}

/** --port and --probe-port mean the service's own. */
function withOwnPorts(service: ServiceName, { port, "probe-port": probePort, ...flags }: Flags): Flags {
  const keys = PORT_KEYS[service];
  return {
    ...flags,
    [keys.port]: flags[keys.port] ?? port,
    [keys.probePort]: flags[keys.probePort] ?? probePort,
  };
}
