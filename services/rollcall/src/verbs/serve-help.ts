import type { ConfigKeys } from "@rollcall/config";
import { CONTROL_PLANE_KEYS } from "../config/control-plane-config.ts";
import type { VerbHelp } from "../config/verb-help.ts";
import { chooseServices, portKeysOf } from "../control-plane/process-plan.ts";

// These settings belong only to `up`: the local agent, development certificates and the switch for the console.
const { "Up.Agent": _agent, "Up.TLS": _tls, "Console.Enabled": _console, ...SERVE_KEYS } = CONTROL_PLANE_KEYS;

export { SERVE_KEYS };

const HELP: VerbHelp = {
  usage: "serve <service>... [options]",
  description:
    "Run services of the control plane in one process behind one port, with the Postgres that all processes share " +
    "(--database-url or DATABASE_URL): registry, health, admin, scheduler, console, and health-query, which serves " +
    "reads of health by querying the health processes.",
  keys: SERVE_KEYS,
  notes: [
    "Several services listen on 7700 and 7790. For a single service, --port and --probe-port",
    "set Listen.<Service>Port and Listen.<Service>ProbePort: registry 7710 and 7791,",
    "health and health-query 7711 and 7792, admin 7712 and 7793, scheduler 7713 and",
    "7794, console 7700 and 7795. Agents connect to health on 7701.",
    "A console that runs without the other services forwards their calls to",
    "--upstream.",
  ],
};

/** The help of `serve`. If services are named, it lists their ports. */
export function serveHelp(words: readonly string[]): VerbHelp {
  const chosen = chooseServices(words);
  if (!chosen.ok) return HELP;
  const { services } = chosen;
  const { "Listen.Port": _port, "Listen.ProbePort": _probePort, ...common } = SERVE_KEYS;
  const {
    "Listen.AgentPort": _agents,
    "Listen.HealthInternalPort": _internal,
    "Health.Workers": _workers,
    ...withoutStreams
  } = common;
  const { port, probePort } = portKeysOf(services);
  const keys: ConfigKeys<unknown> = {
    ...(services.includes("health") ? common : withoutStreams),
    [port]: { ...SERVE_KEYS[port], flag: "port" },
    [probePort]: { ...SERVE_KEYS[probePort], flag: "probe-port" },
  };
  return { ...HELP, usage: `serve ${services.join(" ")} [options]`, keys, notes: [] };
}
