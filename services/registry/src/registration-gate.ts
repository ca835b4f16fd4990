import { ArrivalLimiter } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import type { RegistryConfig } from "./config.ts";

/** Limits the registrations per second. Counts only successful registrations of this process. */
export interface RegistrationGate {
  /**
   * Carry out a registration unless the limit is reached. Throws REGISTRATION_LIMITED.
   *
   * @param token The id of the join token; null for none.
   * @param register Returns whether it succeeded.
   */
  pass<T extends { readonly ok: boolean }>(token: string | null, register: () => Promise<T>): Promise<T>;
}

/**
 * The size of an allowed burst, in seconds' worth of registrations. A burst occurs, for example, when a rack
 * is switched on.
 */
const BURST_SECONDS = 2;
/** Maximum number of tokens that are tracked. */
const MAX_TOKENS = 10_000;

export function createRegistrationGate(config: RegistryConfig, clock: Pick<Clock, "nowMs">): RegistrationGate {
  const perSecond = config["Registry.RegistrationsPerSecond"];
  const perToken = config["Registry.RegistrationsPerTokenPerSecond"];
  const limiter = new ArrivalLimiter(
    { total: limitsOf(perSecond), perKey: limitsOf(perToken), maxKeys: MAX_TOKENS },
    clock.nowMs(),
  );
  return {
    pass: async (token, register) => {
      const decision = limiter.ask(token, clock.nowMs());
      if (!decision.ok) throw limited(decision, decision.limit === "key" ? perToken : perSecond);
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
  const whose = limit === "key" ? " for this join token" : "";
  const message = `registration rate limit of ${perSecond} per second${whose} exceeded; retry after the given delay`;
  const metadata = {
    limit: limit === "key" ? "join_token" : "total",
    per_second: String(perSecond),
  };
  return refuse("REGISTRATION_LIMITED", message, { metadata, retryAfterMs });
}
