import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { ADMIN_TOKEN_FILE, cliVersion, columnsOf, findDataDirectory, type Shell, UsageError } from "@rollcall/cli";
import { startEmbeddedPostgres } from "@rollcall/postgres-embedded";
import { type Logger, type Parts, startParts, systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import { refusePlaintext, speaksTls } from "../config/check-tls-config.ts";
import { CONTROL_PLANE_KEYS, type ControlPlaneConfig, loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { type Arguments, readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, verbFlags } from "../config/verb-help.ts";
import { connectStore, storeAddress } from "../control-plane/connect-store.ts";
import { type ExposureFacts, exposure, exposureFacts } from "../control-plane/exposure.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes, type Probes } from "../control-plane/open-probes.ts";
import { configuredPoolSizes } from "../control-plane/pool-sizes.ts";
import { localAddress, planUp } from "../control-plane/process-plan.ts";
import { provideAdminToken } from "../control-plane/provide-admin-token.ts";
import { startControlPlane } from "../control-plane/start-control-plane.ts";
import { explainingStart, portFlagsOf } from "../control-plane/start-problem.ts";
import { logConfiguration, openLog } from "../log.ts";
import { runServer } from "../run-server.ts";
import { addressElsewhere } from "../up/address-elsewhere.ts";
import { formatBanner } from "../up/banner.ts";
import { lockDataDirectory } from "../up/directory-lock.ts";
import { keepLocalAgent, type LocalAgentOptions } from "../up/local-agent.ts";
import { agentFlags, localAgentOptions, programName, secondAgentCommand } from "../up/local-agent-options.ts";
import { localJoinToken } from "../up/local-join-token.ts";
import { openUpTls, type UpTls } from "../up/open-up-tls.ts";
import { removeRunFile, writeRunFile } from "../up/run-file.ts";
import { runUpWorker, type UpServices, upWorkers } from "../up/up-workers.ts";
import { workerRole } from "../workers/open-workers.ts";
import { loadAgentConfig } from "./agent.ts";

/** The flags of `up`, for completion. */
export const UP_FLAGS = verbFlags(CONTROL_PLANE_KEYS);

const HELP = {
  usage: "up [options]",
  description:
    "Run everything on this machine: registry, health, admin and scheduler in one process, an embedded Postgres " +
    "unless --database-url or DATABASE_URL names one, and an agent, so that this machine is the first node.",
  keys: CONTROL_PLANE_KEYS,
  notes: [],
};

/**
 * Time limit for shutting down all parts, one after the other: the agent's goodbye, calls in progress, streams,
 * Postgres.
 */
const SHUTDOWN_DEADLINE_MS = 40_000;

/** The state that the parts of `up` share. */
interface Up {
  readonly shell: Shell;
  readonly process: NodeJS.Process;
  readonly config: ControlPlaneConfig;
  readonly args: Arguments;
  readonly dataDirectory: string;
  /** The TLS settings; null for clear text. */
  readonly tls: UpTls | null;
  readonly log: Logger;
  /** The services; null until they serve. */
  services: UpServices | null;
}

/** `rollcall up`. Returns the exit code: 0 after SIGTERM or SIGINT, 1 for a failure, 2 for wrong usage. */
export async function runUp(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, CONTROL_PLANE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  if (args.words.length > 0) throw new UsageError(`up takes no arguments: '${args.words[0]}'`);
  const config = await loadControlPlaneConfig({ shell, file: args.file, flags: args.flags });
  const { values } = config;
  refusePlaintext(values);
  const role = workerRole(shell.env);
  if (role === null) await checkLocalAgent(values, args, shell);
  const log = openLog(values, shell, "up");
  if (role === null) logConfiguration(config, log);
  const dataDirectory = values["Data.Dir"] ?? findDataDirectory(shell);
  const tls = await openUpTls(values, dataDirectory, log);
  const up: Up = { shell, process, config: values, args, dataDirectory, tls, log, services: null };
  const source = tls?.source ?? null;
  if (role !== null)
    return runUpWorker({
      role,
      config: values,
      tls: source,
      caFile: tls?.trust.caFile ?? null,
      process,
      log,
    });
  return runServer({
    process,
    log,
    ...(source !== null && {
      reload: async () => {
        up.services?.reload?.();
        await source.reload();
      },
    }),
    start: (signal) =>
      explainingStart(
        {
          portFlags: portFlagsOf(planUp(values), values),
          databaseUrl: values["Database.URL"] ?? null,
          dataDirectory,
        },
        () => startParts((parts) => startUp(up, signal, parts)),
      ),
    shutdownDeadlineMs: SHUTDOWN_DEADLINE_MS,
  });
}

/** Throw UsageError if the agent would refuse its configuration, because `up` would restart it forever. */
async function checkLocalAgent(values: ControlPlaneConfig, { file, flags }: Arguments, shell: Shell): Promise<void> {
  if (!values["Up.Agent"]) return;
  const server = speaksTls(values) ? "https://127.0.0.1:7700" : "127.0.0.1:7700";
  await loadAgentConfig({ file, flags: { ...agentFlags(flags), server } }, shell, true);
}

async function startUp(up: Up, signal: AbortSignal, parts: Parts) {
  const { config, dataDirectory, log, process, tls } = up;
  parts.onClose(await lockDataDirectory(dataDirectory, process.pid));
  const source = tls?.source ?? null;
  const plan = planUp(config);
  const hosts = hostRule(config, source);
  const probesTls = config["TLS.Probes"] ? source : null;
  const probes = parts.add(await openProbes({ plan, clock: systemClock, log, tls: probesTls, hosts }));
  const databaseUrl = config["Database.URL"] ?? (await startPostgres(up, parts));
  const address = storeAddress(config, databaseUrl);
  const record = { address, pools: configuredPoolSizes(config), applicationName: "rollcall up" };
  const store = parts.add(await connectStore({ ...record, log, clock: systemClock }, signal));
  const file = join(dataDirectory, ADMIN_TOKEN_FILE);
  const tokenFile = await provideAdminToken({ store, config, file, always: true, log });
  const version = cliVersion();
  const common = { plan, config, store, probes, log, tls: source };
  const tasks = tls?.tasks ?? [];
  const caFile = tls?.trust.caFile ?? null;
  const isOwnRecord = config["Database.URL"] === undefined;
  const running: UpServices = parts.add(
    config["Health.Workers"] > 1
      ? await upWorkers({ ...common, tasks, isOwnRecord }, signal)
      : await startControlPlane({ ...common, caFile, tasks, clock: systemClock, version }, signal),
  );
  up.services = running;
  const addresses = addressesOf(plan.host, running, probes);
  const trust = tls === null ? {} : { tls: tls.trust };
  const certificate = source === null ? null : String(source.context.cert);
  const elsewhere = addressElsewhere({ host: plan.host, port: running.port }, certificate, networkInterfaces());
  const others = elsewhere === null ? {} : { elsewhere };
  await writeRunFile(dataDirectory, { pid: process.pid, ...addresses, ...others, ...trust });
  // Add the agent after the services, so that it ends before them, and they receive its goodbye.
  const agent = parts.add(await startAgent(up, store, addresses.server));
  parts.onClose(() => removeRunFile(dataDirectory, process.pid));
  const facts = exposureFacts(config["Listen.Host"], config);
  for (const warning of exposure(facts)) log.warn({}, warning);
  log.info({ version, ...addresses, data_dir: dataDirectory }, "everything is up");
  // Print the banner last, so that the user sees it.
  void agent.connected.then(() => greet(up, facts, { ...addresses, tokenFile }));
  return {};
}

/** Start the embedded Postgres. Returns its URL. */
async function startPostgres({ dataDirectory, log }: Up, parts: Parts): Promise<string> {
  const dir = join(dataDirectory, "postgres");
  const postgres = await startEmbeddedPostgres({ dir, parent: dataDirectory, log });
  parts.onClose(() => postgres.stop());
  return postgres.url;
}

function addressesOf(host: string, running: UpServices, probes: Probes) {
  return {
    server: localAddress(host, running.port),
    agents: localAddress(host, running.agentPort ?? 0),
    probes: localAddress(host, probes.port),
  };
}

/** The agent of this machine. */
interface LocalAgent {
  /** Resolves when the agent has a session, after 5 s, or when it ends. */
  readonly connected: Promise<void>;
  /** End the agent, after its goodbye. */
  close(): Promise<void>;
}

const CONNECT_LIMIT_MS = 5_000;

async function startAgent(up: Up, store: Store, server: string): Promise<LocalAgent> {
  if (!up.config["Up.Agent"]) return { connected: Promise.resolve(), close: async () => {} };
  const ending = new AbortController();
  const settledBy = new AbortController();
  const over = AbortSignal.any([ending.signal, settledBy.signal]);
  // Ignore the rejection, because sleep() rejects only when the agent connects or ends first.
  const connected = systemClock.sleep(CONNECT_LIMIT_MS, over).catch(() => {});
  const settled = localAgentOptions({ ...up, server, trust: up.tls?.trust ?? null });
  const options = {
    ...settled,
    env: { ...(await joinTokenOf(up, store, settled)), ...settled.env },
    onConnected: () => settledBy.abort(),
  };
  const done = keepLocalAgent(options, ending.signal).catch((err: unknown) => {
    up.log.error({ err }, "cannot supervise the local agent");
  });
  return {
    connected,
    close: async () => {
      ending.abort(new Error("up is ending"));
      await done;
    },
  };
}

/**
 * The environment with the token that the agent joins with; empty when it needs no token, or when the user configured
 * one.
 */
async function joinTokenOf(
  { config }: Up,
  store: Store,
  { env, stateDirectory }: LocalAgentOptions,
): Promise<LocalAgentOptions["env"]> {
  if (env.ROLLCALL_JOIN_TOKEN || env.ROLLCALL_JOIN_TOKEN_FILE) return {};
  const enforcement = config["Orchestrator.NodeManager.JoinTokens"];
  const text = await localJoinToken({ store, enforcement, stateDirectory });
  return text === null ? {} : { ROLLCALL_JOIN_TOKEN: text };
}

function greet(
  { shell, config, args, dataDirectory, process, tls }: Up,
  facts: ExposureFacts,
  where: {
    readonly server: string;
    readonly agents: string;
    readonly probes: string;
    readonly tokenFile: string | null;
  },
): void {
  if (!shell.out.isTerminal) return;
  shell.out.write(
    formatBanner({
      ...where,
      ...facts,
      server: tls === null ? where.server : `https://${where.server}`,
      probes: config["TLS.Probes"] ? `https://${where.probes}` : where.probes,
      caFile: tls?.trust.caFile ?? null,
      version: cliVersion(),
      dataDirectory,
      tokenFile: where.tokenFile ?? "as configured",
      program: programName(process, shell.cwd),
      secondAgent: secondAgentCommand({
        shell,
        process,
        args,
        dataDirectory,
        server: where.server,
        trust: tls?.trust ?? null,
      }),
    }),
  );
}
