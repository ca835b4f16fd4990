import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Logger } from "@rollcall/process";
import { type AgentWishes, toMs } from "./stream/hello.ts";

/** An interval that this machine's configuration requests, but the control plane does not grant. */
export interface UngrantedWish {
  /** The configuration key that requests the interval. */
  readonly key: string;
  readonly wishedMs: number;
  /** The interval that the agent uses instead. */
  readonly toldMs: number;
}

/**
 * Find the requested intervals that the settings do not grant. Intervals that are missing from the settings
 * are unknown, and are skipped.
 */
function ungrantedWishes(
  wishes: AgentWishes,
  { heartbeatInterval, infoInterval }: Pick<Settings, "heartbeatInterval" | "infoInterval">,
): readonly UngrantedWish[] {
  const asked = [
    ["Compute.Heartbeat.Interval", wishes.heartbeatMs, heartbeatInterval],
    ["Compute.Heartbeat.InfoUpdateInterval", wishes.infoMs, infoInterval],
  ] as const;
  return asked.flatMap(([key, wishedMs, told]) => {
    if (wishedMs === undefined || told === undefined) return [];
    const toldMs = toMs(told);
    return toldMs === wishedMs ? [] : [{ key, wishedMs, toldMs }];
  });
}

/**
 * Logs which of the machine's configured intervals have no effect: once for each change, not for each
 * stream.
 */
export class WishLog {
  readonly #log: Logger;
  readonly #wishes: AgentWishes;
  #ungranted: readonly UngrantedWish[] = [];

  constructor(log: Logger, wishes: AgentWishes) {
    this.#log = log;
    this.#wishes = wishes;
  }

  /** The requested intervals that are currently not granted. */
  get ungranted(): readonly UngrantedWish[] {
    return this.#ungranted;
  }

  /** Apply the control plane's settings. */
  heed(settings: Settings): void {
    const before = this.#ungranted;
    const now = ungrantedWishes(this.#wishes, settings);
    this.#ungranted = now;
    for (const wish of now.filter((it) => !before.some((was) => isSame(was, it)))) {
      const { key, wishedMs, toldMs } = wish;
      const fields = { key, configured_ms: wishedMs, in_force_ms: toldMs };
      this.#log.warn(fields, "configured interval is not granted by the health policy");
    }
    for (const { key, wishedMs } of before) {
      const isGranted = !now.some((it) => it.key === key);
      if (isGranted) this.#log.info({ key, in_force_ms: wishedMs }, "configured interval is granted");
    }
  }
}

function isSame(left: UngrantedWish, right: UngrantedWish): boolean {
  return left.key === right.key && left.wishedMs === right.wishedMs && left.toldMs === right.toldMs;
}
