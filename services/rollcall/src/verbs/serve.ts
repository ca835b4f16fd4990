import { join } from "node:path";
import { ADMIN_TOKEN_FILE, cliVersion, columnsOf, findDataDirectory, type Shell, UsageError } from "@rollcall/cli";
import type { Flags } from "@rollcall/config";
import { type Parts, startParts, systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import { refusePlaintext } from "../config/check-tls-config.ts";
import { type ControlPlaneConfig, loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, verbFlags } from "../config/verb-help.ts";
import { connectStore, storeAddress } from "../control-plane/connect-store.ts";
import { hasUpstream, refusePlaintextUpstreams } from "../control-plane/console-parts.ts";
import { exposure, exposureFacts, openTransport } from "../control-plane/exposure.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes } from "../control-plane/open-probes.ts";
import { configuredTlsFiles, openTls } from "../control-plane/open-tls.ts";
import { configuredPoolSizes } from "../control-plane/pool-sizes.ts";
import {
  chooseServices,
  type ProcessPlan,
  planServe,
  portKeysOf,
  type ServiceSet,
} from "../control-plane/process-plan.ts";
import { provideAdminToken } from "../control-plane/provide-admin-token.ts";
import { startControlPlane } from "../control-plane/start-control-plane.ts";
import { explainingStart, portFlagsOf } from "../control-plane/start-problem.ts";
import { logConfiguration, openLog } from "../log.ts";
import { runServer } from "../run-server.ts";
import { workerRole } from "../workers/open-workers.ts";
import { runWorker } from "../workers/run-worker.ts";
import { serveWorkers } from "../workers/serve-workers.ts";
import { SERVE_KEYS, serveHelp } from "./serve-help.ts";

/** The flags of `serve`, for completion. */
export const SERVE_FLAGS = verbFlags(SERVE_KEYS);

/** Time limit of the shutdown, shorter than Kubernetes' default grace period. Health first hands over its agents. */
const SHUTDOWN_DEADLINE_MS = 28_000;

/**
 * `rollcall serve SERVICE...`. Returns the exit code: 0 after SIGTERM or SIGINT, 1 for a failure, 2 for wrong usage.
 */
export async function runServe(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, SERVE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(serveHelp(args.words), columnsOf(shell)));
    return 0;
  }
  const services = servicesOf(args.words);
  const flags = withOwnPorts(services, args.flags);
  const config = await loadControlPlaneConfig({ shell, file: args.file, flags });
  const values = { ...config.values, "Up.TLS": false };
  refusePlaintext(values);
  const url = values["Database.URL"];
  if (url === undefined) {
    throw new UsageError(`serve ${services.join(" ")} needs a Postgres: set DATABASE_URL or --database-url`);
  }
  if (services.length === 1 && services[0] === "console" && !hasUpstream(values)) {
    throw new UsageError("serve console forwards calls: set --upstream to the URL of the API");
  }
  if (services.includes("console")) refusePlaintextUpstreams(values);
  const plan = planServe(services, values);
  const log = openLog(values, shell, plan.name);
  const role = workerRole(shell.env);
  if (role === null) logConfiguration(config, log);
  const tls = await openTls(configuredTlsFiles(values), { clock: systemClock, log });
  const caFile = values["TLS.CAFile"] ?? null;
  const several = { plan, config: values, databaseUrl: url, tls, caFile, process, log };
  if (role !== null) return runWorker({ ...several, role });
  const onOpened = async (store: Store) => {
    if (!services.includes("admin")) return;
    const file = join(values["Data.Dir"] ?? findDataDirectory(shell), ADMIN_TOKEN_FILE);
    await provideAdminToken({ store, config: values, file, always: false, log });
  };
  const onServing = () => {
    for (const warning of warningsOf(plan, values)) log.warn({}, warning);
  };
  if (services.includes("health") && values["Health.Workers"] > 1) {
    return serveWorkers({ ...several, onOpened, onServing });
  }
  const start = async (signal: AbortSignal, parts: Parts) => {
    const probesTls = values["TLS.Probes"] ? tls : null;
    const hosts = hostRule(values, tls);
    const probes = parts.add(await openProbes({ plan, clock: systemClock, log, tls: probesTls, hosts }));
    const address = storeAddress(values, url);
    const record = { address, pools: configuredPoolSizes(values), log, clock: systemClock };
    const store = parts.add(await connectStore({ ...record, applicationName: `rollcall ${plan.name}` }, signal));
    await onOpened(store);
    const version = cliVersion();
    const { port, agentPort } = parts.add(
      await startControlPlane(
        { plan, config: values, store, probes, tls, caFile, version, clock: systemClock, log },
        signal,
      ),
    );
    log.info({ version, host: plan.host, port, agent_port: agentPort, probe_port: probes.port }, "serving");
    onServing();
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
    ...(tls !== null && { reload: () => tls.reload() }),
  });
}

/**
 * The warnings of a process. The registry warns about who can join, and health about clear text, because calls
 * between health replicas cross the network too.
 */
function warningsOf({ services, host }: ProcessPlan, config: ControlPlaneConfig): readonly string[] {
  const facts = exposureFacts(host, config);
  if (services.includes("registry")) return exposure(facts);
  return services.includes("health") ? openTransport(facts) : [];
}

function servicesOf(words: readonly string[]): ServiceSet {
  const chosen = chooseServices(words);
  if (!chosen.ok) throw new UsageError(chosen.problem);
  return chosen.services;
}

/** Let --port and --probe-port set the ports of the named services. */
function withOwnPorts(services: ServiceSet, { port, "probe-port": probePort, ...flags }: Flags): Flags {
  const keys = portKeysOf(services);
  return {
    ...flags,
    [keys.port]: flags[keys.port] ?? port,
    [keys.probePort]: flags[keys.probePort] ?? probePort,
  };
}
