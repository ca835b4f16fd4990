import { bool, type ConfigValues, defineKeys, duration, optional, url } from "@rollcall/config";

const upstream = () => optional(url("https://rollcall-admin:7712", { schemes: ["https", "http"] }));

/** What can be configured of the console. */
export const CONSOLE_KEYS = defineKeys({
  "Console.Enabled": {
    schema: bool(),
    default: true,
    flag: "console",
    doc:
      "Whether `up` serves the console's pages at / of its API, and lets browsers sign in. `serve` does so where the " +
      "service console is named.",
  },
  "Console.SessionIdle": {
    schema: duration({ minMs: 300_000, maxMs: 86_400_000 }),
    default: 1_800_000,
    doc:
      "How long a session of the console lives without a call, to about a minute. A page that is open makes calls. " +
      "From 5 minutes to a day.",
  },
  "Console.SessionLongest": {
    schema: duration({ minMs: 300_000, maxMs: 2_592_000_000 }),
    default: 43_200_000,
    doc:
      "How long a session of the console lives at most, however it is used; it never outlives the access token that " +
      "it was made for. From 5 minutes to 30 days.",
  },
  "Console.Upstream": {
    schema: upstream(),
    default: undefined,
    flag: "upstream",
    doc:
      "URL at which a console that runs alone finds the API, such as https://rollcall.example, which leads to all " +
      "services. It passes the calls of its pages on to there. Where each service has an address of its own, " +
      "use Console.RegistryUpstream and its like.",
  },
  "Console.RegistryUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL at which a console that runs alone finds the registry. Default: Console.Upstream.",
  },
  "Console.HealthUpstream": {
    schema: upstream(),
    default: undefined,
    doc:
      "URL at which a console that runs alone finds what answers readers of health, health or health-query. Default: " +
      "Console.Upstream.",
  },
  "Console.AdminUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL at which a console that runs alone finds admin. Default: Console.Upstream.",
  },
  "Console.SchedulerUpstream": {
    schema: upstream(),
    default: undefined,
    doc: "URL at which a console that runs alone finds the scheduler. Default: Console.Upstream.",
  },
});

/** The values of the console's keys. */
export type ConsoleConfig = ConfigValues<typeof CONSOLE_KEYS>;

/** What is wrong between the keys. */
export function checkConsoleConfig(config: ConsoleConfig) {
  const { "Console.SessionIdle": idleMs, "Console.SessionLongest": longestMs } = config;
  if (idleMs <= longestMs) return [];
  return [{ path: "Console.SessionIdle" as const, message: "must not be longer than Console.SessionLongest" }];
}
