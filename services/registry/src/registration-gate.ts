import { ArrivalLimiter } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import type { RegistryConfig } from "./config.ts";

/**
 * Lets so many nodes register in a second. What it counts are registrations that succeed; it is this process's alone.
 */
export interface RegistrationGate {
  /**
   * Do a registration, unless there were too many. Throws REGISTRATION_LIMITED.
   *
   * @param token names the join token, or null for none.
   * @param register answers whether it succeeded.
   */
  pass<T extends { readonly ok: boolean }>(token: string | null, register: () => Promise<T>): Promise<T>;
}

/** So many seconds' worth may come at once, such as when a rack is switched on. */
const BURST_SECONDS = 2;
/** Tokens that are remembered at most. */
const MAX_TOKENS = 10_000;

/** Create the gate of one registry. */
export function createRegistrationGate(config: RegistryConfig, clock: Pick<Clock, "nowMs">): RegistrationGate {
  const perSecond = config["Registry.RegistrationsPerSecond"];
  const perToken = config["Registry.RegistrationsPerTokenPerSecond"];
  const limiter = new ArrivalLimiter(
    { total: limitsOf(perSecond), perKey: limitsOf(perToken), maxKeys: MAX_TOKENS },
    clock.nowMs(),
  );
  return {
    pass: async (token, register) => {
      const verdict = limiter.ask(token, clock.nowMs());
      if (!verdict.ok) throw limited(verdict, verdict.limit === "key" ? perToken : perSecond);
      let isDone = false;
      try {
        const answer = await register();
        isDone = answer.ok;
        return answer;
      } finally {
        if (!isDone) limiter.giveBack(token);
      }
    },
  };
}

function limitsOf(perSecond: number) {
  return { perSecond, burst: perSecond * BURST_SECONDS };
}

function limited(
  { limit, retryAfterMs }: { readonly limit: "total" | "key"; readonly retryAfterMs: number },
  perSecond: number,
): Error {
  const whose = limit === "key" ? "with this join token" : "here";
  const message = `more than ${perSecond} nodes a second register ${whose}; try again at the time that is given`;
  const metadata = {
    limit: limit === "key" ? "join_token" : "total",
    per_second: String(perSecond),
  };
  return refuse("REGISTRATION_LIMITED", message, { metadata, retryAfterMs });
}
