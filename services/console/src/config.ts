import { bool, type ConfigValues, defineKeys, duration, optional, url } from "@rollcall/config";

const upstream = () => optional(url("https://rollcall-admin:7712", { schemes: ["https", "http"] }));

/** The console's configuration keys. */
export const CONSOLE_KEYS = defineKeys({
  "Console.Enabled": {
    schema: bool(),
    default: true,
    flag: "console",
    doc:
      "Whether `up` serves the console at / of its API port and lets browsers sign in. `serve` does so when the " +
      "console service is named.",
  },
  "Console.SessionIdle": {
    schema: duration({ minMs: 300_000, maxMs: 86_400_000 }),
    default: 1_800_000,
    doc:
      "How long a console session stays valid without a call, accurate to about a minute. An open page makes calls. " +
      "From 5 minutes to a day.",
  },
  "Console.SessionLongest": {
    schema: duration({ minMs: 300_000, maxMs: 2_592_000_000 }),
    default: 43_200_000,
    doc:
      "How long a console session is valid, even when it is used; it never outlives the access token that " +
      "it was created for. From 5 minutes to 30 days.",
  },
  "Console.Upstream": {
    schema: upstream(),
    default: undefined,
    flag: "upstream",
    doc:
      "URL of the API for a console that runs separately, such as https://rollcall.example, which serves all " +
      "services. The console forwards the calls of its pages there. If each service has a separate address, " +
      "use Console.RegistryUpstream and the keys for other services.",
  },
  "Console.RegistryUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL of the registry for a console that runs separately. Default: Console.Upstream.",
  },
  "Console.HealthUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL of health or health-query for a console that runs separately. Default: " + "Console.Upstream.",
  },
  "Console.AdminUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL of admin for a console that runs separately. Default: Console.Upstream.",
  },
  "Console.SchedulerUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL of the scheduler for a console that runs separately. Default: Console.Upstream.",
  },
});

/** The values of the console's keys. */
export type ConsoleConfig = ConfigValues<typeof CONSOLE_KEYS>;

/** Returns the contradictions between keys. */
export function checkConsoleConfig(config: ConsoleConfig) {
  const { "Console.SessionIdle": idleMs, "Console.SessionLongest": longestMs } = config;
  if (idleMs <= longestMs) return [];
  return [{ path: "Console.SessionIdle" as const, message: "must not be longer than Console.SessionLongest" }];
}
